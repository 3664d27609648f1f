"""The content of a report on many hosts, collected from their JSON lines in one pass."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iopstui.features.reports.fleet.reading import Names, Reading
from iopstui.features.reports.fleet.runs import RunRow, runs_of
from iopstui.features.reports.folding.heat import HEAT_COLUMNS, HEAT_ROWS_PER_DECADE
from iopstui.features.reports.redact import REDACTED
from iopstui.fleet.deduplication import Deduplicator, without_repeats
from iopstui.fleet.fleet_events import FLEET
from iopstui.fleet.hosts.clocks import start_spread
from iopstui.fleet.merging.certificate import MergeCertificate, certify_merge
from iopstui.fleet.merging.host_timeline import HostInterval, HostTimeline
from iopstui.fleet.merging.merger import MergedInterval
from iopstui.fleet.merging.sums import HostSums, counted_directions
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.paths import DEVICE
from iopstui.model.sizes import MIB
from iopstui.output.fleet.labelled_rows import file_rows
from iopstui.output.fleet.wording import is_last
from iopstui.text import printable

KERNEL = (DiskRates.r_s, DiskRates.w_s, DiskRates.aqu_sz)
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SecondRow:
    """Totals of a second: latencies in ns by name, ``kernel`` as /proc/diskstats has it, and the
    ``util`` of the hosts' devices in percent. ``None``: not measured."""

    t: float
    wall_ms: float
    counted: int
    expected: int
    rates: dict[str, float]
    bw: float | None
    latencies: dict[str, int]
    slowest: str
    kernel: dict[str, float | None]
    util: dict[str, float]


class FleetHeat:
    """Counts of I/Os by time and latency. Its columns become wider as time goes on."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], int] = {}
        self.width = 1

    @property
    def columns(self) -> int:
        """Number of columns."""
        return max((column for column, _ in self.cells), default=-1) + 1

    def add(self, place: int, histograms: Iterable[Mapping[int, int]]) -> None:
        """The counts by latency (ns) of the ``place``-th second."""
        while place // self.width >= 2 * HEAT_COLUMNS:
            self.width *= 2
            cells, self.cells = self.cells, {}
            for (column, row), count in cells.items():
                self._count(column // 2, row, count)
        for bins in histograms:
            for key, count in bins.items():
                row = math.floor(math.log10(max(key, 1)) * HEAT_ROWS_PER_DECADE)
                self._count(place // self.width, row, count)

    def _count(self, column: int, row: int, count: int) -> None:
        self.cells[column, row] = self.cells.get((column, row), 0) + count


@dataclass
class FleetReportData:
    """Everything a report shows of many hosts.

    ``absent_seconds`` are the seconds of each host that are not in the totals. ``_begins`` are the
    times (ms, our clock) at which fio was executed, with their errors, for each run.
    ``broken_lines`` counts lines that could not be read; ``omissions`` names what is left out."""

    path: Path
    interval_s: float
    redact: bool = False
    seconds: list[SecondRow] = field(default_factory=list)
    heat: FleetHeat = field(default_factory=FleetHeat)
    device_heat: FleetHeat = field(default_factory=FleetHeat)
    absent_seconds: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, HostTimeline] = field(default_factory=dict)
    totals: HostSums = field(default_factory=HostSums)
    certificate: MergeCertificate = field(default_factory=MergeCertificate)
    runs: list[RunRow] = field(default_factory=list)
    broken_lines: int = 0
    omissions: tuple[tuple[str, str], ...] = ()
    _begins: list[list[tuple[float, float]]] = field(default_factory=lambda: [[]])
    names: Names = field(default_factory=lambda: Names(False))
    _first: int | None = None
    _utils: dict[int, list[float]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file's name, for people."""
        return REDACTED if self.redact else printable(self.path.name)

    @property
    def length_s(self) -> float:
        """Return the seconds from the first to the last."""
        return self.seconds[-1].t + self.interval_s if self.seconds else 0.0

    @property
    def start_times(self) -> list[tuple[float, float]]:
        """Start times of the run whose hosts began farthest apart."""
        return max(self._begins, key=lambda host: (_span_of_starts(host), len(host)))

    @property
    def has_several_runs(self) -> bool:
        """Whether it holds more than one run."""
        return len(self._begins) > 2

    @property
    def spread(self) -> tuple[float, float] | None:
        """Time between the first and the last start and its error (ms); ``None`` with fewer than
        two start times."""
        if len(self.start_times) < 2:
            return None
        return start_spread(self.start_times)

    def add(self, second: MergedInterval) -> None:
        """Take a second."""
        utils = self._utils.pop(second.number, [])
        if is_last(second):
            return
        for host in (*second.missing, *second.incomplete):
            self.absent_seconds[host] = self.absent_seconds.get(host, 0) + 1
        if not second.counted:
            return
        self._first = second.number if self._first is None else self._first
        place = second.number - self._first
        slowest, total = second.sums.slowest, second.sums.total
        self.seconds.append(SecondRow(
            place * self.interval_s, second.wall_ms, second.counted, second.expected,
            _rates(second.sums), _moved(second.sums),
            total.main.percentiles if total else {},
            self.names(slowest[1]) if slowest else "",
            {each.name: second.sums.kernel.value(each) for each in KERNEL}, _of_hosts(utils),
        ))  # fmt: skip
        self.heat.add(place, (part.main.bins for part in counted_directions(second.sums.fio)))
        self.device_heat.add(
            place, (part.latency(DEVICE).bins for part in second.sums.device.parts.values())
        )

    def slot(self, host: str, slot: HostInterval, in_totals: bool) -> None:
        """A host's second, told before the totals that it is in."""
        if in_totals and slot.util is not None:
            self._utils.setdefault(slot.number, []).append(slot.util)

    def note(self, host: str, row: Object) -> None:
        """Note messages of a host, and where runs begin."""
        if row.get("event") == FLEET:
            self._begins.append([])
        if row.get("event") == "step_finished" and row.get("error"):
            self.errors[host] = REDACTED if self.redact else printable(str(row["error"]))
        if row.get("event") == "executed":
            values = [row.get(name) for name in ("wall_ms", "offset_ms", "error_ms")]
            numbers = [
                float(value)
                for value in values
                if isinstance(value, int | float) and abs(value) < 1e15
            ]
            if len(numbers) == len(values):
                self._begins[-1].append((numbers[0] - numbers[1], numbers[2]))


def _span_of_starts(began: Sequence[tuple[float, float]]) -> float:
    instants = [at for at, _ in began]
    return max(instants, default=0.0) - min(instants, default=0.0)


def _of_hosts(utils: Sequence[float]) -> dict[str, float]:
    """Percentages of the hosts, which cannot be added: the highest, and that of the median host."""
    return {"highest": max(utils), "middle": statistics.median(utils)} if utils else {}


def _rates(sums: HostSums) -> dict[str, float]:
    """I/Os per second by direction, of fio, or of the devices where no job runs."""
    if sums.fio:
        return {name: part.iops for name, part in sums.fio.items()}
    return {
        name: rate for name, figure in (("read", DiskRates.r_s), ("write", DiskRates.w_s))
        if (rate := sums.kernel.value(figure)) is not None
    }  # fmt: skip


def _moved(sums: HostSums) -> float | None:
    total, mib_s = sums.total, sums.kernel.mib_s
    if total is not None:
        return total.bw
    return None if mib_s is None else MIB * mib_s


def load_fleet_report(path: Path, redact: bool = False) -> FleetReportData:
    """ReportData of a file of JSON lines. UsageError for one that holds no frames."""
    reading = Reading(path, redact, keep_bins=True)
    merger = reading.merger
    data = FleetReportData(path, reading.interval_s, redact, names=reading.name)
    merger.on_interval = data.slot
    for second in reading.seconds(data.note):
        data.add(second)
    data.totals, data.certificate = merger.run_sums(), certify_merge(merger)
    data.hosts = merger.hosts
    data.broken_lines, data.omissions = reading.broken_lines, tuple(reading.omissions())
    if data.has_several_runs:
        rows = without_repeats(file_rows(path, "", lambda message: None), Deduplicator())
        data.runs = [*runs_of(rows, reading.interval_s)]
    return data
