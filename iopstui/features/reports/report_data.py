"""The content of a report on one recording, collected in one pass and in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui import events
from iopstui.errors import UsageError
from iopstui.features.reports.blocks import (
    Block,
    BlockBuilder,
    SegmentMismatch,
    duration,
    fold_in_parallel,
    segments,
)
from iopstui.features.reports.experiment import Experiment
from iopstui.features.reports.run import Run
from iopstui.features.reports.series import Heat, Series, append, empty, extend
from iopstui.model import histogram
from iopstui.model.block.device import BlockDevice
from iopstui.model.fio.log_lines import LogRow
from iopstui.model.metrics.run_figures import MarkInterval, MarkIntervals
from iopstui.model.metrics.run_history import RunHistory, RunRow
from iopstui.model.metrics.slow.slow_requests import SlowestTotal
from iopstui.model.metrics.slow.stalls import Stall
from iopstui.model.metrics.waits import MeanWaits
from iopstui.output.page.overview import note_answer
from iopstui.recording import layout as form
from iopstui.recording.reader import EventRecord, Recording
from iopstui.recording.redact import opened
from iopstui.recording.replay import ReplayFold, why_incomplete
from iopstui.session.run_rows import add_mark_event, add_run_event
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures

MAX_EVENTS = 200


@dataclass
class FindingEnds:
    """How many times a finding ended, how long it held in total, and its last second."""

    times: int = 0
    held_s: float = 0.0
    until: float = 0.0
    why: str = ""
    """Why the finding was not true; "" if its cause is gone."""


@dataclass
class ReportData:
    """All that a report says about one recording. Strings are as they were recorded, so the code
    that prints them must make them harmless. ``foreign`` says what the report was made from if not
    from a recording, ``missing_facts`` what such a file lacks, and ``disks`` has fio's lines on
    each disk. ``origin_t`` is the second from which the time axes of charts beside one another
    count; ``promised`` is the bought volume, whose limits are shown beside the measurement."""

    path: Path
    header: form.Header
    duration: float
    heat: Heat
    samples: int = 0
    series: Series = field(default_factory=empty)
    runs: list[Run] = field(default_factory=list)
    rows: list[RunRow] = field(default_factory=list)
    """The same runs as rows of a table."""
    idle_waits: MeanWaits = field(default_factory=MeanWaits)
    """Where I/Os of other programs waited while no job ran."""
    slowest: SlowestTotal = field(default_factory=SlowestTotal)
    experiments: list[Experiment] = field(default_factory=list)
    marks: list[events.Mark] = field(default_factory=list)
    mark_intervals: list[MarkInterval] = field(default_factory=list)
    changes: list[events.TunableChanged] = field(default_factory=list)
    findings: list[events.FindingReported] = field(default_factory=list)
    finding_ends: dict[int, FindingEnds] = field(default_factory=dict)
    """The ends of findings, by the finding's index in ``findings``."""
    answers: dict[tuple[str, ...], events.AnswerGiven] = field(default_factory=dict)
    """The last answer of each kind (``Answer.key``), except answers that were withdrawn."""
    notices: list[events.Notice] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    devices: tuple[BlockDevice, ...] = ()
    ending: str = ""
    foreign: str = ""
    missing_facts: list[str] = field(default_factory=list)
    disks: list[tuple[str, str]] = field(default_factory=list)
    origin_t: float = 0.0
    promised: PromisedFigures | None = None

    @property
    def longest(self) -> Run | None:
        """The longest run, which is compared with those of other recordings."""
        return max(self.runs, key=lambda run: run.seconds, default=None)


def load_report_data(path: Path, redact: bool = False) -> ReportData:
    """Read the recording. Raises UsageError if the file is not a recording, or has no sample.
    ``redact``: leave out what identifies the machine."""
    with opened(path, redact) as recording:
        recording.skip_unneeded_fields()
        if not recording.index().samples:
            raise UsageError(f"The recording {printable(str(path))} is empty: nothing to report.")
        try:
            # redaction must read in order, because it learns names while it reads
            data = None if redact else _read_report(recording, True)
        except SegmentMismatch:
            data = None
        if data is None:
            data = _read_report(recording, False)
    data.runs = [run for run in data.runs if run.total.frames or run.finished]
    for run in data.runs:
        run.is_partial |= run.finished is None
    return data


def _read_report(recording: Recording, several: bool) -> ReportData:
    """Read the report's data. ``several``: use several processes if that is worthwhile."""
    index, header = recording.index(), recording.header
    length = duration(index)
    data = ReportData(
        recording.path, header, length, Heat(length), index.samples, empty(header.target.tree)
    )
    fold = ReplayFold(header)
    history, mark_intervals = RunHistory(), MarkIntervals()
    folded = fold_in_parallel(recording, fold) if several else None
    for item in folded or _one_by_one(recording, fold):
        if isinstance(item, Block):
            add_block(data, item)
            for step, run in item.runs.items():
                if run.total.frames:
                    history.add_figures(step, run.measured)
            for figures in item.figures:
                mark_intervals.add_figures(figures, item.first)
            continue
        for event in fold.feed(item):
            _add_event(data, event)
            add_run_event(history, event)
            add_mark_event(mark_intervals, event)
        if fold.run is not None:
            _run(data, fold.run.step).job_run = fold.run
        data.devices = data.devices or tuple(fold.devices.values())
    if fold.starts_during_run and data.runs:
        data.runs[0].is_partial = True
    data.rows = history.rows
    data.mark_intervals = mark_intervals.all if mark_intervals.marked else []
    data.ending = why_incomplete(recording, fold.has_end_marker)
    return data


def _one_by_one(recording: Recording, fold: ReplayFold) -> Iterator[Block | EventRecord]:
    blocks = BlockBuilder(recording, fold)
    for segment in segments(recording.index()):
        yield from blocks.blocks_of(segment)


def add_block(data: ReportData, block: Block) -> None:
    """Add the next intervals of a recording, or of fio's own documents."""
    for step, run in block.runs.items():
        _run(data, step).join(run)
    extend(data.series, data.header.interval_s, block.series)
    data.heat.join(block.heat)
    data.idle_waits.join(block.idle_waits)
    data.slowest.join(block.slowest)


def _run(data: ReportData, step: int) -> Run:
    for run in data.runs:
        if run.step == step:
            return run
    data.runs.append(Run(step))
    return data.runs[-1]


def _add_event(data: ReportData, event: events.Event) -> None:
    match event:
        case events.StepStarted():
            _started(data, event)
        case events.ExperimentStarted():
            data.experiments.append(Experiment(event.plan, event.t, event.name))
        case (
            events.PointStarted()
            | events.PointFinished()
            | events.PointFailed()
            | events.ExperimentFinished()
        ):
            if data.experiments:
                data.experiments[-1].add_event(event)
        case events.StepFinished():
            _run(data, event.step).finished = event
        case events.ExpectationChecked():
            _run(data, event.step).outcomes.append(event)
        case events.SteadyState():
            _run(data, event.step).steady_state = event
        case _:
            _add_message(data, event)


def _started(data: ReportData, event: events.StepStarted) -> None:
    run = _run(data, event.step)
    run.started = event
    if data.experiments:
        run.point = data.experiments[-1].label_of_run(event.step)


def _finding_ended(data: ReportData, event: events.FindingEnded) -> None:
    """Note the end of a finding, which is the newest finding of its rule."""
    of_rule = [n for n, finding in enumerate(data.findings) if finding.finding.rule == event.rule]
    if of_rule:
        ends = data.finding_ends.setdefault(of_rule[-1], FindingEnds())
        ends.times += 1
        ends.held_s += event.until - event.since
        ends.until = max(ends.until, event.until)
        ends.why = event.why
    note_answer(data.answers, event)


def _add_message(data: ReportData, event: events.Event) -> None:
    """Add an event, up to the number that a report can hold."""
    match event:
        case events.Mark() if len(data.marks) < MAX_EVENTS:
            data.marks.append(event)
        case events.TunableChanged() if len(data.changes) < MAX_EVENTS:
            data.changes.append(event)
        case events.FindingReported() if len(data.findings) < MAX_EVENTS:
            # a finding is repeated while it lasts: keep only its newest words
            step = data.runs[-1].step if data.runs else 0
            for place, before in enumerate(data.findings):
                is_same_rule = before.finding.rule == event.finding.rule
                if is_same_rule and before.t >= _begin(data, step):
                    data.findings[place] = events.FindingReported(before.t, event.finding)
                    return
            data.findings.append(event)
        case events.FindingEnded():
            _finding_ended(data, event)
        case events.AnswerGiven():
            note_answer(data.answers, event)
        case events.StallFound():
            _stall(data, event.stall)
        case events.Notice() if len(data.notices) < MAX_EVENTS:
            # leave out transient messages, such as fio's progress
            data.notices += [event] if event.level != "info" else []


def _stall(data: ReportData, stall: Stall) -> None:
    """Add a stall. A long one is also reported before its end; the final report then replaces
    that."""
    last = data.stalls[-1] if data.stalls else None
    if last is not None and (last.disk, last.start) == (stall.disk, stall.start):
        data.stalls[-1] = stall
    elif len(data.stalls) < MAX_EVENTS:
        data.stalls.append(stall)


def _begin(data: ReportData, step: int) -> float:
    start = _run(data, step).started if step else None
    return start.t if start else 0.0


def add_row(data: ReportData, row: LogRow) -> None:
    """Add an interval of fio's logs."""
    ranks = histogram.percentiles(row.bins, (50.0, 99.0, 99.9))
    values = {"t": row.t, "seconds": row.seconds, "fio": row.iops, "mean": row.mean_ns,
              "bw": row.bw, **{f"p{p:g}": value for p, value in ranks.items()}}  # fmt: skip
    append(data.series, data.header.interval_s, values)
    data.heat.add(row.t, row.seconds, row.bins)
