"""What a report says of many hosts: gathered from their JSON lines in one pass."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.fleet.hosts.wire import object_of
from iopstui.fleet.merging.host import Host
from iopstui.fleet.merging.merger import Merger, Second
from iopstui.fleet.merging.outcome import Certified, certified
from iopstui.fleet.merging.sums import Kernel, Malformed, Part, Sums, split
from iopstui.fleet.replay import FLEET
from iopstui.model.rates import MIB
from iopstui.output.fleet.lines import file_rows
from iopstui.output.fleet.once import Once, each_once
from iopstui.output.fleet.words import ends
from iopstui.records import dataclass
from iopstui.report.fleet.runs import RunRow, runs_of
from iopstui.report.redact import WORD
from iopstui.report.story import HEAT_COLUMNS, HEAT_ROWS_PER_DECADE
from iopstui.text import printable

FIRST_LINE = 1 << 22
LOOKED_AT = 400
LONG = 1.5
Object = dict[str, Any]


def is_fleet(path: Path) -> bool:
    """Whether a file holds JSON lines of hosts (fleet --record, merge, run --format jsonl)."""
    try:
        # to open a pipe is to wait for its writer
        if not path.is_file():
            return False
        with path.open("rb") as file:
            row = object_of(file.readline(FIRST_LINE))
    except (OSError, ValueError):
        return False
    return row is not None and isinstance(row.get("event"), str)


@dataclass(frozen=True, slots=True)
class SecondRow:
    """Totals of a second; latencies in ns by name. ``None``: not measured."""

    t: float
    wall_ms: float
    counted: int
    expected: int
    rates: dict[str, float]
    bw: float | None
    latencies: dict[str, int]
    slowest: str


class FleetHeat:
    """Counts of I/Os by time and latency. Its columns become wider as time goes on."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], int] = {}
        self.width = 1

    @property
    def columns(self) -> int:
        """How many there are."""
        return max((column for column, _ in self.cells), default=-1) + 1

    def add(self, place: int, parts: Iterator[Part] | Sequence[Part]) -> None:
        """The histograms of the ``place``-th second."""
        while place // self.width >= 2 * HEAT_COLUMNS:
            self.width *= 2
            found, self.cells = self.cells, {}
            for (column, row), count in found.items():
                self._count(column // 2, row, count)
        for part in parts:
            for key, count in part.main[1].numbered().items():
                row = math.floor(math.log10(max(key, 1)) * HEAT_ROWS_PER_DECADE)
                self._count(place // self.width, row, count)

    def _count(self, column: int, row: int, count: int) -> None:
        self.cells[column, row] = self.cells.get((column, row), 0) + count


@dataclass
class FleetStory:
    """Everything a report says of many hosts. ``absent`` counts the seconds in which a host is not
    in the totals, ``began`` are the instants (ms, our clock) at which fio was executed, with their
    errors, those of each run by themselves; of several ``runs`` each is told. ``broken`` lines were
    none of ours, and ``repeated`` ones came twice."""

    path: Path
    interval_s: float
    redact: bool = False
    seconds: list[SecondRow] = field(default_factory=list)
    heat: FleetHeat = field(default_factory=FleetHeat)
    absent: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    whole: Sums = field(default_factory=Sums)
    certified: Certified = field(default_factory=Certified)
    runs: list[RunRow] = field(default_factory=list)
    broken: int = 0
    repeated: int = 0
    _begins: list[list[tuple[float, float]]] = field(default_factory=lambda: [[]])
    _first: int | None = None
    _names: dict[str, str] = field(default_factory=dict)

    def name(self, host: str) -> str:
        """What a host is called here."""
        if not self.redact:
            return printable(host)
        return self._names.setdefault(host, f"host {len(self._names) + 1}")

    @property
    def file(self) -> str:
        """The file's name, for people."""
        return WORD if self.redact else printable(self.path.name)

    @property
    def length_s(self) -> float:
        """From the first second to the last."""
        return self.seconds[-1].t + self.interval_s if self.seconds else 0.0

    @property
    def began(self) -> list[tuple[float, float]]:
        """Those of the run whose hosts began farthest apart."""
        return max(self._begins, key=lambda one: (_between(one), len(one)))

    @property
    def several(self) -> bool:
        """Whether it holds more than one run."""
        return len(self._begins) > 2

    @property
    def spread(self) -> tuple[float, float] | None:
        """Between the first and the last of ``began``, and how wrong that can be (ms); ``None``:
        fewer than two have said."""
        if len(self.began) < 2:
            return None
        return _between(self.began), max(error for _, error in self.began)

    def add(self, second: Second) -> None:
        """Take a second."""
        if ends(second):
            return
        for host in (*second.missing, *second.incomplete):
            self.absent[host] = self.absent.get(host, 0) + 1
        if not second.counted:
            return
        self._first = second.number if self._first is None else self._first
        place = second.number - self._first
        slowest, total = second.sums.slowest, second.sums.total
        self.seconds.append(SecondRow(
            place * self.interval_s, second.wall_ms, second.counted, second.expected,
            _rates(second.sums), _moved(second.sums), total.main[1].percentiles() if total else {},
            self.name(slowest[1]) if slowest else "",
        ))  # fmt: skip
        self.heat.add(place, [*split(second.sums.fio)])

    def note(self, host: str, row: Object) -> None:
        """What a host says beside its frames, and where runs begin."""
        if row.get("event") == FLEET:
            self._begins.append([])
        if row.get("event") == "step_finished" and row.get("error"):
            self.errors[host] = WORD if self.redact else printable(str(row["error"]))
        if row.get("event") == "executed":
            found = [row.get(name) for name in ("wall_ms", "offset_ms", "error_ms")]
            known = [
                float(one) for one in found if isinstance(one, int | float) and abs(one) < 1e15
            ]
            if len(known) == len(found):
                self._begins[-1].append((known[0] - known[1], known[2]))


def _between(began: Sequence[tuple[float, float]]) -> float:
    instants = [at for at, _ in began]
    return max(instants, default=0.0) - min(instants, default=0.0)


def _rates(sums: Sums) -> dict[str, float]:
    """I/Os per second by direction, of fio, or of the devices where no job runs."""
    if sums.fio:
        return {name: part.iops for name, part in sums.fio.items()}
    return {
        name: rate for name, key in (("read", "r/s"), ("write", "w/s"))
        if (rate := sums.kernel.rate(key)) is not None
    }  # fmt: skip


def _moved(sums: Sums) -> float | None:
    total = sums.total
    if total is not None:
        return total.bw
    return _device_bytes(sums.kernel)


def _device_bytes(kernel: Kernel) -> float | None:
    found = [kernel.rate(name) for name in ("rMB/s", "wMB/s")]
    known = [value for value in found if value is not None]
    return MIB * sum(known) if known else None


def gather_fleet(path: Path, redact: bool = False) -> FleetStory:
    """Of a file of JSON lines. UsageError for one that holds no frames."""
    interval_s = interval_of(path)
    story = FleetStory(path, interval_s, redact)
    merger = Merger(interval_s, keep_bins=True)
    once = Once()
    for name, row in each_once(file_rows(path, "", lambda words: None), once):
        try:
            merger.feed(name, row)
        except Malformed:
            story.broken += 1
            continue
        story.note(name, row)
        for second in merger.closed(early=False):
            story.add(second)
    for second in merger.finish():
        story.add(second)
    if not (merger.merged or any(host.frames for host in merger.hosts.values())):
        raise UsageError(
            f"{printable(str(path))} has JSON lines of iopstui, but not a single frame.",
            "iopstui fleet HOSTS --job JOB --record FILE writes one that has.",
        )
    story.whole, story.certified = merger.rated(), certified(merger)
    story.hosts = merger.hosts
    story.repeated = sum(once.repeated.values())
    if story.several:
        rows = each_once(file_rows(path, "", lambda words: None), Once())
        story.runs = [*runs_of(rows, interval_s)]
    return story


def interval_of(path: Path) -> float:
    """The length of a row's second: that of the totals in it, or what holds its frames."""
    found = []
    for _, row in file_rows(path, "", lambda words: None):
        interval: Any = row.get("interval_s")
        seconds: Any = row.get("seconds")
        if row.get("event") == "total" and _is_length(interval):
            return float(interval)
        if row.get("event") == "frame" and _is_length(seconds):
            found.append(float(seconds))
        if len(found) >= LOOKED_AT:
            break
    middle = statistics.median(found) if found else 1.0
    return float(round(middle)) if middle > LONG else 1.0


def _is_length(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= 60
