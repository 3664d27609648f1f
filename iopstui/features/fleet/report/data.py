"""The data of a report on many hosts, collected from their JSON lines; and their seconds as a
table."""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.events import AnswerGiven, ExpectationChecked, FindingEnded, StepStarted
from iopstui.features.fleet.deduplication import Deduplicator, without_repeats
from iopstui.features.fleet.findings import FleetAnswers
from iopstui.features.fleet.fleet_events import FLEET, FLEET_OVER
from iopstui.features.fleet.hosts.conversation import start_spread
from iopstui.features.fleet.merging.figures import parse_fleet_expectation
from iopstui.features.fleet.merging.host_timeline import HostInterval, HostTimeline
from iopstui.features.fleet.merging.merger import (
    MergeCertificate,
    MergedInterval,
    Merger,
    certify_merge,
)
from iopstui.features.fleet.merging.row_events import event_of
from iopstui.features.fleet.merging.sums import HostSums, MalformedRow, Object, counted_directions
from iopstui.features.fleet.output.labelled_rows import file_rows
from iopstui.features.fleet.output.sinks import (
    figure_cells,
    figure_columns,
    first_names,
    head_cells,
    head_columns,
    is_last,
    judge_expectations,
)
from iopstui.format import counted
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import DEVICE
from iopstui.model.metrics.fields import BY_ID
from iopstui.model.sizes import MIB
from iopstui.output.page.overview import note_answer
from iopstui.output.page.source import Expected, Judged
from iopstui.output.page.svg import HEAT_COLUMNS, heat_rows
from iopstui.recording.redact import REDACTED, Redactor
from iopstui.tables import WHOLE, WORDS, Column
from iopstui.text import printable

LINES_EXAMINED = 400
LONG_SAMPLE_FACTOR = 1.5
MAX_WALL_MS = 1e15
Answers = dict[tuple[str, ...], AnswerGiven]


class Names:
    """The names of hosts in a report: their own, or numbers in a redacted report."""

    def __init__(self, redact: bool) -> None:
        self._redact = redact
        self._numbers: dict[str, int] = {}

    def __call__(self, host: str) -> str:
        if not self._redact:
            return printable(host)
        return f"host {self._numbers.setdefault(host, len(self._numbers) + 1)}"

    def text(self, text: str) -> str:
        """A text; in a redacted report without the names of hosts and other private words."""
        if not self._redact:
            return printable(text)
        private = Redactor()
        private.learn([{"host": host} for host in self._numbers])
        return str(private.redacted(printable(text)))


class Reading:
    """A file of JSON lines that is being read. ``seconds`` can be used only once. ``name`` returns
    the name to show for a host, ``run`` is the number of the run to which the last lines belong
    (``None``: unknown); ``broken_lines`` counts lines that iopstui did not write."""

    def __init__(self, path: Path, redact: bool, keep_bins: bool) -> None:
        self.path = path
        self.name = Names(redact)
        self.interval_s = interval_of(path)
        self.merger = Merger(self.interval_s, keep_bins=keep_bins)
        self.run: int | None = None
        self.broken_lines = 0
        self._deduplicator = Deduplicator()
        self._unread = False

    @property
    def repeated(self) -> int:
        """The number of repeated frames and totals."""
        return sum(self._deduplicator.repeat_counts.values())

    def _correct(self, name: str, row: Object) -> None:
        """Note how far a host's clock is ahead, as known from its start, so that its seconds are
        placed as during the run."""
        offset: Any = row.get("offset_ms")
        host = self.merger.hosts.get(name)
        is_valid = type(offset) in (int, float) and abs(offset) < MAX_WALL_MS
        if row.get("event") == "executed" and host is not None and is_valid:
            host.offset_ms = float(offset)

    def omissions(self) -> Iterator[tuple[str, str]]:
        """Which lines are left out of the seconds, in words."""
        if self.repeated:
            yield "counted once", f"{counted(self.repeated, 'second')} of hosts in the file twice"
        if self.broken_lines:
            yield "left out", f"{counted(self.broken_lines, 'line')} that iopstui did not write"
        if self._unread:
            yield "not read", "lines that are not JSON objects, or cut off"

    def _report_bad_line(self, message: str) -> None:
        """Note that the file has lines that are not JSON."""
        self._unread = True

    def seconds(
        self, note: Callable[[str, Object], None] = lambda host, row: None
    ) -> Iterator[MergedInterval]:
        """The closed seconds in order; ``note`` is called with each line. Raises UsageError at the
        end of a file without frames."""
        merger = self.merger
        for name, row in without_repeats(
            file_rows(self.path, "", self._report_bad_line), self._deduplicator
        ):
            try:
                merger.feed(name, row)
            except MalformedRow:
                self.broken_lines += 1
                continue
            if row.get("event") == FLEET:
                self.run = (self.run or 0) + 1
            self._correct(name, row)
            if name in merger.hosts:
                # number the hosts in the order of their first rows, so that all formats use the
                # same numbers
                self.name(name)
            note(name, row)
            yield from merger.close_seconds(early=False)
        yield from merger.finish()
        if not (merger.merged_rows or any(host.frames for host in merger.hosts.values())):
            broken = counted(self.broken_lines, "line")
            none = f" ({broken} that iopstui did not write)" if self.broken_lines else ""
            raise UsageError(
                f"{printable(str(self.path))} has JSON lines of iopstui, but no frames{none}.",
                "To record hosts: iopstui fleet HOSTS --job JOB --record FILE",
            )


def interval_of(path: Path) -> float:
    """The length of an interval in seconds: from totals in the file, else from the lengths of its
    frames."""
    intervals = []
    for _, row in file_rows(path, "", lambda message: None):
        interval: Any = row.get("interval_s")
        seconds: Any = row.get("seconds")
        if row.get("event") == "total" and _is_length(interval):
            return float(interval)
        if row.get("event") == "frame" and _is_length(seconds):
            intervals.append(float(seconds))
        if len(intervals) >= LINES_EXAMINED:
            break
    middle = statistics.median(intervals) if intervals else 1.0
    return float(round(middle)) if middle > LONG_SAMPLE_FACTOR else 1.0


def _is_length(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= 60


MAX_MESSAGES = 20


@dataclass(slots=True)
class FleetRun:
    """One run of a fleet.

    ``job`` is "" if the hosts only watched. ``finished`` of the ``hosts`` finished. ``ending`` is
    "not seen" if the file ends before the run."""

    number: int
    job: str
    hosts: int
    finished: int = 0
    totals: HostSums = field(default_factory=HostSums)
    ending: str = "not seen"
    messages: tuple[str, ...] = ()


def runs_of(
    rows: Iterable[tuple[str, Object]], interval_s: float, keep_bins: bool = False
) -> Iterator[tuple[FleetRun, Merger]]:
    """Yield each run in labelled lines, together with its merger, when the next run begins or the
    lines end."""
    run: FleetRun | None = None
    merger = Merger(interval_s, keep_bins=keep_bins)
    for name, row in rows:
        kind = row.get("event")
        if kind == FLEET:
            if run is not None:
                yield _added_up(run, merger)
            hosts = row.get("hosts")
            count = len(hosts) if isinstance(hosts, list) else 0
            number = run.number + 1 if run is not None else 1
            run = FleetRun(number, printable(str(row.get("job") or "")), count)
            merger = Merger(interval_s, keep_bins=keep_bins)
        elif kind == FLEET_OVER and run is not None:
            run.ending = printable(str(row.get("how") or "not seen"))
            run.messages = _messages(row)
        elif run is not None:
            with contextlib.suppress(MalformedRow):
                merger.feed(name, row)
            for _ in merger.close_seconds(early=False):
                pass
    if run is not None:
        yield _added_up(run, merger)


def _messages(row: Object) -> tuple[str, ...]:
    said = row.get("said")
    texts = said[:MAX_MESSAGES] if isinstance(said, list) else []
    return tuple(printable(str(message)) for message in texts)


def _added_up(run: FleetRun, merger: Merger) -> tuple[FleetRun, Merger]:
    for _ in merger.finish():
        pass
    run.finished, run.totals = certify_merge(merger).finished, merger.run_sums()
    return run, merger


KERNEL = (DiskRates.r_s, DiskRates.w_s, DiskRates.aqu_sz)


@dataclass(frozen=True, slots=True)
class SecondRow:
    """Totals of a second: latencies in ns by name, ``kernel`` from /proc/diskstats, and the
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
    """Counts of I/Os by time and latency. Columns become wider as the time grows."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], int] = {}
        self.width = 1

    @property
    def columns(self) -> int:
        return max((column for column, _ in self.cells), default=-1) + 1

    def add(self, place: int, histograms: Iterable[Mapping[int, int]]) -> None:
        """Add the counts by latency (ns) of a second; ``place`` is its index."""
        while place // self.width >= 2 * HEAT_COLUMNS:
            self.width *= 2
            cells, self.cells = self.cells, {}
            for (column, row), count in cells.items():
                self._count(column // 2, row, count)
        for bins in histograms:
            for row, count in heat_rows(bins).items():
                self._count(place // self.width, row, count)

    def _count(self, column: int, row: int, count: int) -> None:
        self.cells[column, row] = self.cells.get((column, row), 0) + count


@dataclass
class FleetReportData:
    """All that a report on many hosts shows.

    ``absent_seconds`` are the seconds of each host that are not in the totals. ``_begins`` are the
    times (ms, our clock) at which fio was executed, with their errors, for each run.
    ``broken_lines`` counts lines that could not be read; ``omissions`` says what is left out."""

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
    runs: list[FleetRun] = field(default_factory=list)
    broken_lines: int = 0
    omissions: tuple[tuple[str, str], ...] = ()
    _begins: list[list[tuple[float, float]]] = field(default_factory=lambda: [[]])
    names: Names = field(default_factory=lambda: Names(False))
    messages: tuple[str, ...] = ()
    """The messages at the end of the last run."""
    jobs: list[str] = field(default_factory=list)
    """The names of the jobs, each once."""
    outcomes: Sequence[ExpectationChecked] = ()
    answers: dict[str, list[Answers]] = field(default_factory=dict)
    """The answers and findings of each host, by session."""
    findings: Answers = field(default_factory=dict)
    """Findings about differences between the hosts."""
    compared: FleetAnswers | None = None
    _first: int | None = None
    _utils: dict[int, list[float]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file's name; hidden in a redacted report."""
        return REDACTED if self.redact else printable(self.path.name)

    @property
    def length_s(self) -> float:
        """The time from the first to the last second (s)."""
        return self.seconds[-1].t + self.interval_s if self.seconds else 0.0

    @property
    def start_times(self) -> list[tuple[float, float]]:
        """The start times of the run whose hosts began furthest apart."""
        return max(self._begins, key=lambda host: (_span_of_starts(host), len(host)))

    @property
    def has_several_runs(self) -> bool:
        """Whether the file contains more than one run."""
        return len(self._begins) > 2

    @property
    def spread(self) -> tuple[float, float] | None:
        """The time between the first and the last start, with its error (ms); ``None`` with fewer
        than two start times."""
        if len(self.start_times) < 2:
            return None
        return start_spread(self.start_times)

    def add(self, second: MergedInterval) -> None:
        utils = self._utils.pop(second.number, [])
        if is_last(second):
            return
        for host in (*second.missing, *second.incomplete):
            self.absent_seconds[host] = self.absent_seconds.get(host, 0) + 1
        if not second.counted:
            return
        self._first = second.number if self._first is None else self._first
        place = second.number - self._first
        answer = self.compared.second(second) if self.compared and self.jobs else None
        if answer is not None and answer.repeats_finding:
            note_answer(self.findings, AnswerGiven(place * self.interval_s, answer))
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
        """Note a host's second; this is called before the totals that include it."""
        if in_totals and slot.util is not None:
            self._utils.setdefault(slot.number, []).append(slot.util)

    def note(self, host: str, row: Object) -> None:
        """Note a host's messages, and where runs begin."""
        kind = row.get("event")
        if kind == FLEET:
            self._begins.append([])
        elif self.compared is not None:
            self.compared.note_row(host, row)
        if kind in (FLEET, StepStarted.kind):
            job = printable(str(row.get("job") or ""))
            self.jobs += [job] if job and job not in self.jobs else []
        elif kind == FLEET_OVER:
            self.messages = _messages(row)
        elif kind == "session":
            self.answers.setdefault(host, []).append({})
        elif kind in (AnswerGiven.kind, FindingEnded.kind):
            event = event_of(row, ())
            if isinstance(event, AnswerGiven | FindingEnded) and self.answers.get(host):
                note_answer(self.answers[host][-1], event)
        if kind == "step_finished" and row.get("error"):
            self.errors[host] = REDACTED if self.redact else printable(str(row["error"]))
        if kind == "executed":
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
    """The hosts' percentages can't be added: the highest one, and that of the median host."""
    return {"highest": max(utils), "middle": statistics.median(utils)} if utils else {}


def _rates(sums: HostSums) -> dict[str, float]:
    """I/Os per second by direction: those of fio, or of the devices if no job runs."""
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
    """The data of a file of JSON lines. Raises UsageError if it has no frames."""
    reading = Reading(path, redact, keep_bins=True)
    merger = reading.merger
    data = FleetReportData(path, reading.interval_s, redact, names=reading.name)
    data.compared = FleetAnswers(merger, (), watching=False)
    compare = merger.on_interval

    def slot(name: str, interval: HostInterval, is_counted: bool) -> None:
        compare(name, interval, is_counted)
        data.slot(name, interval, is_counted)

    merger.on_interval = slot
    for second in reading.seconds(data.note):
        data.add(second)
    data.totals, data.certificate = merger.run_sums(), certify_merge(merger)
    data.hosts = merger.hosts
    data.broken_lines, data.omissions = reading.broken_lines, tuple(reading.omissions())
    if data.has_several_runs:
        rows = without_repeats(file_rows(path, "", lambda message: None), Deduplicator())
        data.runs = [run for run, _ in runs_of(rows, reading.interval_s)]
    return data


def judge(path: Path, expected: Expected) -> Judged:
    """Judge the expectations of --expect by the runs in the file, each with all of its hosts."""
    if expected.baseline is not None:
        raise UsageError("--baseline is not available for many hosts.",
                         "Give an absolute limit, e.g. --expect 'iops>=95k'.")  # fmt: skip
    expectations = [parse_fleet_expectation(text, expected.tolerance) for text in expected.texts]
    keep_bins = any(expectation.per_host for expectation in expectations)
    rows = without_repeats(file_rows(path, "", lambda message: None), Deduplicator())
    runs = [(run.number, merger)
            for run, merger in runs_of(rows, interval_of(path), keep_bins)]  # fmt: skip
    if not runs:
        reading = Reading(path, False, keep_bins)
        for _ in reading.seconds():
            pass
        runs = [(1, reading.merger)]
    judged = Judged()
    for number, merger in runs:
        judged.outcomes += judge_expectations(merger, expectations, number)
        certificate = certify_merge(merger)
        bad = len(certificate.failed) + len(certificate.lost)
        if bad and not judged.failed:
            judged.failed = f"{bad} of {counted(certificate.hosts, 'host')} failed or were lost"
    return judged


Cells = list[Any]


def columns() -> Iterator[Column]:
    """The columns of a row; ``host`` is empty in rows of totals."""
    yield Column("t", unit="s", meaning="since the first second in which a host is counted")
    yield Column("run", type=WHOLE, meaning="run number; null if the recording has none")
    yield Column("host", type=WORDS, meaning='"" in rows that sum all counted hosts')
    yield from head_columns()
    yield from figure_columns()
    # the mean, because percentages can't be added
    yield BY_ID["kernel.total.util"].column("kernel.util")
    yield Column("slowest", type=WORDS, meaning="the host with the highest p99")


class FleetRows:
    """The rows of a file's seconds: for each second, all hosts together, then each host."""

    def __init__(self, path: Path, redact: bool) -> None:
        self.columns = [*columns()]
        self._reading = Reading(path, redact, keep_bins=False)
        self._reading.merger.on_interval = self._slot
        self._name = self._reading.name
        self._slots: dict[int, dict[str, HostInterval]] = {}
        self._runs: dict[int, int | None] = {}
        self._first: int | None = None
        self._left = 0

    def __iter__(self) -> Iterator[Cells]:
        for second in self._reading.seconds():
            slots = self._slots.pop(second.number, {})
            run = self._runs.pop(second.number, self._reading.run)
            if not is_last(second):
                self._first = second.number if self._first is None else self._first
                at = (second.number - self._first) * second.interval_s
                yield [at, run, "", *self._total_row(second)]
                yield from ([at, run, *row] for row in self._host_rows(second, slots))

    def print_omissions(self) -> None:
        reading = self._reading
        lost = [self._name(host) for host in certify_merge(reading.merger).lost]
        if self._left:
            # so the sum of the rows is less than fio's total
            print(f"iopstui: {self._left} I/Os are not in the rows, because a host measured only a "
                  "part of their second", file=sys.stderr)  # fmt: skip
        for title, entries in (
            *reading.omissions(),
            *([("no end seen", first_names(lost))] if lost else ()),
        ):
            print(f"iopstui: {title}: {entries}", file=sys.stderr)

    def _slot(self, host: str, slot: HostInterval, in_totals: bool) -> None:
        """Note a host's second; this is called before the totals that include it."""
        self._runs[slot.number] = self._reading.run
        if in_totals:
            self._slots.setdefault(slot.number, {})[host] = slot
        elif (total := slot.sums.total) is not None:
            self._left += total.ios

    def _total_row(self, second: MergedInterval) -> Cells:
        names = [" ".join(map(self._name, hosts)) for hosts in (second.missing, second.incomplete)]
        slowest = second.sums.slowest
        name = self._name(slowest[1]) if slowest else ""
        return [*head_cells(second)[:-2], *names, *figure_cells(second.sums), None, name]

    def _host_rows(self, second: MergedInterval, slots: dict[str, HostInterval]) -> Iterator[Cells]:
        when = head_cells(second)[:3]
        for host in sorted({*slots, *second.missing, *second.incomplete}):
            name, slot = self._name(host), slots.get(host)
            absent = [
                name if host in hosts else "" for hosts in (second.missing, second.incomplete)
            ]
            figures = figure_cells(slot.sums if slot else HostSums())
            yield [name, *when, 1, int(slot is not None), *absent, *figures,
                   slot.util if slot else None, ""]  # fmt: skip
