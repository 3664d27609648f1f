"""One line for each change, for screen readers and logs: no colours, columns or redrawn lines.

Figures are in a status line that comes every few seconds, and only if they differ from the line
before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from iopstui import format as units
from iopstui.events import (
    LAYOUT,
    AnswerGiven,
    Event,
    ExperimentFinished,
    ExperimentStarted,
    FindingEnded,
    FindingReported,
    FrameReady,
    LayoutProgress,
    Mark,
    Notice,
    PointFailed,
    PointFinished,
    PointStarted,
    StallFound,
    StepFinished,
    StepStarted,
)
from iopstui.model.answer.answer import CRITICAL, GOOD, WARNING, Answer
from iopstui.model.block.target import Target
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import Totals
from iopstui.model.findings.finding import headline_of, severity_of
from iopstui.model.fio.interval import BW, IOPS
from iopstui.model.metrics import frame as flags
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.run_history import DONE, FAILED, RUNS, STOPPED, RunHistory
from iopstui.model.metrics.shares import OperationRates as OP
from iopstui.model.metrics.shares import ShareTotal
from iopstui.model.metrics.summary import FramesTotal
from iopstui.output.narration import LOG_LINES
from iopstui.output.summary import interruption, reconciliation
from iopstui.output.table import EXPLAINED
from iopstui.session.run_rows import add_run_event, run_outcome
from iopstui.text import printable

STATUS_EVERY_S = 10.0
"""The least seconds between two status lines."""
CHANGED, CHANGED_LATENCY, CHANGED_UTIL = 0.1, 0.5, 10.0
"""A figure has changed if it differs by this share; util by this many points."""
MIN_RATE = 1.0
"""A rate below this counts as 0."""
MIN_RTT_MS = 0.5
"""Response times that differ by less (ms) count as equal."""
QUARTERS = 4
"""How many times at most the progress of a layout is printed."""
_ENDED = {DONE: "ended", RUNS: "ended", STOPPED: "stopped", FAILED: "failed"}
_AS_WORDS = str.maketrans({"→": "to", "×": "x", "·": "*", "–": "-", "…": "...", "µ": "u"})


class _Rates(Totals):
    """Means over several frames, of fio and of the disks, and the highest p99."""

    FIGURES = (IOPS, BW, DiskRates.r_s, DiskRates.w_s, DiskRates.data_s, DiskRates.util)

    def __init__(self) -> None:
        super().__init__()
        self.share = ShareTotal()
        self.p99_ns: float | None = None

    def add_frame(self, frame: Frame) -> None:
        if frame.fio is not None:
            self.add(frame.fio.total, frame.fio)
        self.add(frame.total)
        self.share.add(frame.share)
        p99 = frame.fio.total.percentiles.get("p99") if frame.fio is not None else None
        if p99 is not None:
            self.p99_ns = max(self.p99_ns or 0.0, p99)

    @property
    def empty(self) -> bool:
        rows = (IOPS, DiskRates.r_s, DiskRates.w_s, DiskRates.util)
        return all(self.mean(row) is None for row in rows) and not self.share.operations

    def differs(self, other: _Rates) -> bool:
        """Whether it differs enough from ``other`` to be printed."""
        now, before = self.share.data, other.share.data
        pairs = [(self.mean(row), other.mean(row)) for row in self.FIGURES]
        rates, (util, util_before) = pairs[:-1], pairs[-1]
        rates += [(row.value(now), row.value(before)) for row in (OP.ops_s, OP.kb_s)]
        answers = [(row.value(now), row.value(before)) for row in (OP.rtt, OP.latency)]
        return (
            any(_differ_by_share(*pair, CHANGED) for pair in rates)
            or _differ_by_share(self.p99_ns, other.p99_ns, CHANGED_LATENCY)
            or any(_differ_by_share(*pair, CHANGED_LATENCY, MIN_RTT_MS) for pair in answers)
            or _util_differs(util, util_before)
        )

    def text(self, name: str) -> str:
        """ "fio 75.1k IOPS, 293 MiB/s, p99 up to 1.79 ms. vda 52.3k reads/s ..."; what was not
        measured is left out."""
        iops, bw, reads, writes, moved, util = map(self.mean, self.FIGURES)
        fio = []
        if iops is not None:
            fio += [f"fio {units.number(iops)} IOPS", f"{units.mib(bw)} MiB/s"]
        if self.p99_ns is not None:
            fio.append(f"p99 up to {units.latency(self.p99_ns)}")
        disk = []
        if reads is not None and writes is not None:
            disk += [f"{name} {units.number(reads)} reads/s", f"{units.number(writes)} writes/s"]
            if moved is not None:
                disk.append(f"{units.mib(moved)} MiB/s")
            if util is not None:
                disk.append(f"util {units.percent(util)} %")
        return ". ".join(", ".join(part) for part in (fio, disk, self._share_texts()) if part)

    def _share_texts(self) -> list[str]:
        """Texts about NFS and SMB mounts: the rates of operations and the response time."""
        data = self.share.data
        if data is None:
            return []
        read, write = (self.share.operations[name] for name in ("read", "write"))
        texts = [f"{self.share.protocol} {units.number(read.ops_s)} reads/s",
                 f"{units.number(write.ops_s)} writes/s"]  # fmt: skip
        if data.kb_s is not None:
            texts.append(f"{units.number(data.kb_s)} kB/s")
        if data.rtt is not None:
            texts.append(f"RTT {units.milliseconds(data.rtt)}")
        if data.latency is not None:
            texts.append(f"latency {units.milliseconds(data.latency)}")
        if data.retransmissions:
            texts.append(f"{units.counted(data.retransmissions, 'request')} sent again")
        return texts


def _differ_by_share(
    now: float | None, before: float | None, share: float, least: float = MIN_RATE
) -> bool:
    if now is None or before is None:
        return now is not before
    return abs(now - before) > max(least, share * max(abs(now), abs(before)))


def _util_differs(now: float | None, before: float | None) -> bool:
    if now is None or before is None:
        return now is not before
    return abs(now - before) >= CHANGED_UTIL


class PlainSink:
    """Writes a line for each change to ``out``; ``BrokenPipeError`` is passed on.

    ``target`` says which disks' figures are in the status line, which is printed at most once in
    ``every_s`` seconds of the session."""

    def __init__(self, out: TextIO, target: Target, every_s: float = STATUS_EVERY_S) -> None:
        self._out = out
        self._name = printable(target.name)
        self._devices = target.opened
        self._every_s = every_s
        self._history = RunHistory()
        self._total = FramesTotal()
        self._rates, self._last_rates = _Rates(), _Rates()
        self._next_status_t: float | None = None
        self._quarter = 0
        self._flags: frozenset[str] = frozenset()
        self._answered: tuple[str, ...] = ()
        self._log: list[str] = []

    def handle(self, event: Event) -> None:
        add_run_event(self._history, event)
        for text in self._lines(event):
            self._print_sentence(event.t, text)

    def close(self) -> None:
        self._out.flush()

    def _print_sentence(self, t: float, text: str) -> None:
        line = printable(text).replace(" · ", ", ").translate(_AS_WORDS)
        end = "" if line.endswith((".", "!", "?", ":")) else "."
        units.print_line(f"{units.clock(t)} {line}{end}", self._out)

    def _lines(self, event: Event) -> Iterator[str]:
        match event:
            case FrameReady():
                yield from self._frame(event.frame)
            case StepStarted():
                yield self._started(event)
            case LayoutProgress():
                yield from self._progress(event)
            case Mark():
                yield f"Mark: {event.text}"
            case Notice():
                self._log.append(event.text)
                yield event.text if event.level == "info" else f"{event.level}: {event.text}"
            case FindingReported() | FindingEnded():
                yield _finding(event)
            case AnswerGiven(answer=answer) if answer.key != self._answered:
                self._answered = answer.key
                if not answer.repeats_finding:
                    yield answer_sentence(answer)
            case StallFound():
                yield f"Stall: {event.stall.text}"
            case StepFinished():
                yield from self._finished(event)
            case _:
                yield from _experiment(event)

    def _started(self, event: StepStarted) -> str:
        self._quarter = 0
        if event.phase == LAYOUT:
            return f"Creating the files for {event.job}"
        self._total, self._next_status_t = FramesTotal(), None
        self._rates, self._last_rates, self._flags = _Rates(), _Rates(), frozenset()
        return f"Run {event.step} starts: {event.job}, {event.title} on {self._name}"

    def _progress(self, event: LayoutProgress) -> Iterator[str]:
        quarter = QUARTERS * event.done // event.total if event.total else 0
        if quarter > self._quarter:
            self._quarter = quarter
            yield f"{event.what}: {100 * quarter // QUARTERS} % of {units.size(event.total)}"

    def _frame(self, frame: Frame) -> Iterator[str]:
        self._total.add_frame(frame)
        yield from self._state(frame)
        self._rates.add_frame(frame)
        if self._rates.empty or (self._next_status_t is not None and frame.t < self._next_status_t):
            return
        rates, self._rates = self._rates, _Rates()
        self._next_status_t = frame.t + self._every_s
        if rates.differs(self._last_rates):
            self._last_rates = rates
            yield rates.text(self._name)

    def _state(self, frame: Frame) -> Iterator[str]:
        """Sentences about states that began with this interval."""
        before, self._flags = self._flags, frame.flags
        new = frame.flags - before
        if flags.RAMP in new:
            yield "Warming up (ramp_time): not counted"
        if flags.LATE in new:
            yield "warning: fio has not reported for too long. It may be waiting for the device"
        if flags.LATE in before - frame.flags and frame.fio is not None:
            yield "fio reports again"
        for flag, text in EXPLAINED:
            if flag in new:
                yield text

    def _finished(self, event: StepFinished) -> Iterator[str]:
        row = self._history.rows[-1] if self._history.rows else None
        if row is not None:
            lasted = "" if row.seconds is None else f" after {units.duration(row.seconds)}"
            figures = run_outcome(row).partition(": ")[2] or "no results"
            yield f"Run {row.step} {_ENDED[row.ended]}{lasted}: {figures}"
        if event.error:
            yield from (f"fio: {line}" for line in event.fio_log[-LOG_LINES:]
                        if line not in self._log)  # fmt: skip
            yield f"error: {event.error}"
        elif event.interrupted:
            yield interruption(event.summary)
        if event.summary:
            yield reconciliation(event.summary, self._total)


def answer_sentence(answer: Answer, at_s: float | None = None) -> str:
    """The answer in words only, because screen readers skip signs: "Warning at 0:05: vda is
    busy"."""
    sign = {GOOD: "Answer", WARNING: "Warning", CRITICAL: "Critical"}[answer.state]
    who = f"; {answer.who}" if answer.who else ""
    at = "" if at_s is None else f" at {units.clock(at_s)}"
    return f"{sign}{at}: {answer.text}{who}"


def _finding(event: FindingReported | FindingEnded) -> str:
    if isinstance(event, FindingEnded):
        duration = units.duration(event.until - event.since)
        return f"Finding ended after {duration}: {event.text}"
    finding = event.finding
    advice = f" Next: {finding.advice}" if finding.advice else ""
    sign = {"info": "Finding", "warning": "Warning", "critical": "Critical"}[severity_of(finding)]
    text = finding.text if finding.text.endswith(".") else f"{finding.text}."
    return f"{sign}: {headline_of(finding)}. {text}{advice}"


def _experiment(event: Event) -> Iterator[str]:
    """Sentences about a sweep or a comparison."""
    match event:
        case ExperimentStarted():
            kind = "Sweep" if event.plan.axes else "Comparison"
            yield f"{kind} starts: {units.counted(event.plan.points, 'point')}"
        case PointStarted():
            left = units.duration(event.left_s)
            yield f"Point {event.index + 1} of {event.total}: {event.label}. {left} left"
        case PointFinished():
            point = event.point
            text = f"{event.label}: {units.number(point.iops)} IOPS, {units.mib(point.bw)} MiB/s"
            if point.p99_ns is not None:
                text += f", p99 {units.latency(point.p99_ns)}"
            yield text
        case PointFailed():
            yield f"error: {event.label} failed: {event.error}"
        case ExperimentFinished():
            verb = "stopped" if event.interrupted else "ended"
            yield f"Experiment {verb}: {event.done} of {event.total} points measured"
