"""What a report says about one recording: gathered in one pass, in bounded memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import Any

from iopstui import events
from iopstui.errors import UsageError
from iopstui.model import histogram
from iopstui.model.block.device import BlockDevice
from iopstui.model.columns import BinsTotal
from iopstui.model.fio.log_lines import LogRow
from iopstui.model.metrics.cpu_frames import busy_of
from iopstui.model.metrics.figures import ends_idle
from iopstui.model.metrics.frame import RAMP, Frame
from iopstui.model.metrics.probe import ProbeTotal
from iopstui.model.metrics.run_history import RunHistory, RunRow
from iopstui.model.metrics.stretches import Stretch, Stretches
from iopstui.model.metrics.summary import FramesTotal
from iopstui.model.rates import DiskRates
from iopstui.model.samples import DIRECTIONS
from iopstui.recording import layout as form
from iopstui.recording.replay import Fold, how_it_ends
from iopstui.records import dataclass
from iopstui.report.experiment import Experiment
from iopstui.report.redact import opened
from iopstui.session.run_rows import take, take_stretch
from iopstui.text import printable

SERIES = ("t", "seconds", "fio", "device", "p50", "p99", "p99.9", "aqu-sz", "busy", "busiest",
          "job_cpu", "mean", "bw")  # fmt: skip
HEAT_COLUMNS = 120
HEAT_ROWS_PER_DECADE = 8
MOST_SAID = 200
MOST_POINTS = 500
GAP = 0.5
COMPLETED, READ, WRITTEN, QUEUE, BUSY = "I/Os", "read", "written", "aqu-sz", "util"
_SHOWN = (50.0, 99.0, 99.9, 99.99)


@dataclass
class Device:
    """Means of the devices that the jobs work on together over a run, weighted by time, of the
    intervals that a run's figures are made of everywhere (model/metrics/figures.py); ``ios`` what
    they completed in all of it (``None``: they did not tell)."""

    ios: int | None = None
    _totals: dict[str, list[float]] = field(default_factory=dict)

    def add(self, disk: DiskRates | None, ramp: bool = False, idle: bool = False) -> None:
        """One more interval; ``None``: not all of them were measured in it. ``ramp``: it is of
        fio's ramp; ``idle``: fio ended in it."""
        if disk is None:
            return
        ios, length = disk.ios, disk.seconds
        if ios is not None:
            self.ios = (self.ios or 0) + ios
        if ramp or (idle and self._totals):
            return
        for what, value in (
            (COMPLETED, disk.ios_s),
            (READ, disk.r_bytes_s), (WRITTEN, disk.w_bytes_s), (QUEUE, disk.aqu_sz),
            (BUSY, disk.util),
        ):  # fmt: skip
            if value is not None:
                held = self._totals.get(what)
                if held is None:
                    held = self._totals[what] = [0.0, 0.0]
                held[0] += value * length
                held[1] += length

    def mean(self, what: str) -> float | None:
        """I/Os or bytes a second, aqu-sz or percent; ``None`` where it was not measured."""
        total, seconds = self._totals.get(what, (0.0, 0.0))
        return total / seconds if seconds else None


@dataclass
class Ends:
    """How often a finding ceased, how long it held in all until then, and the last second of it."""

    times: int = 0
    held_s: float = 0.0
    until: float = 0.0


def _in_order() -> BinsTotal:
    return BinsTotal(in_order=True)


@dataclass
class Run:
    """One fio run: what was asked for, what fio says of it in the end, and what the frames hold.

    ``added`` has all latencies of a direction, ``added_all`` those of every I/O once. ``part``:
    the recording began or
    ended within the run, so the frames can't add up to fio's count. ``point`` is the label of the
    experiment's point that it is, "" outside of one. ``device`` are the devices together, ``each``
    every one of them by itself, and what lies below. ``note`` is said where nothing can be checked.
    """

    step: int
    started: events.StepStarted | None = None
    asked: form.JobRun | None = None
    finished: events.StepFinished | None = None
    total: FramesTotal = field(default_factory=FramesTotal)
    probed: ProbeTotal = field(default_factory=ProbeTotal)
    device: Device = field(default_factory=Device)
    each: dict[str, Device] = field(default_factory=dict)
    added: dict[str, BinsTotal] = field(default_factory=dict)
    added_all: BinsTotal = field(default_factory=_in_order)
    max_ns: int | None = None
    bins_of: str = "clat"
    part: bool = False
    begin: float | None = None
    end: float = 0.0
    judged: list[events.Judged] = field(default_factory=list)
    point: str = ""
    steady: events.SteadyState | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """The job's name."""
        return self.started.job if self.started else f"run {self.step}"

    @property
    def bins(self) -> dict[str, dict[int, int]]:
        """All latencies (ns) of each direction in one histogram."""
        return {name: total.bins for name, total in self.added.items()}

    @property
    def all_bins(self) -> dict[int, int]:
        """The latencies of every I/O once."""
        return self.added_all.bins

    @property
    def title(self) -> str:
        """What it does, in a line."""
        return self.started.title if self.started else ""

    @property
    def seconds(self) -> float:
        """How long it was measured."""
        return self.end - self.begin if self.begin is not None else 0.0

    def add(self, frame: Frame, tree: Sequence[str]) -> None:
        """One more frame of this run. ``tree``: the target's devices and those below them."""
        fio = frame.fio
        if fio is None:
            return
        if self.begin is None:
            self.begin = max(0.0, frame.t - (fio.seconds or 0.0))
        self.end = frame.t
        self.total.add(fio)
        self.probed.add(frame.probe, frame.opened)
        ramp, idle = RAMP in frame.flags, ends_idle(frame)
        self.device.add(frame.total, ramp, idle)
        for name in tree:
            one = self.each.get(name)
            if one is None:
                one = self.each[name] = Device()
            one.add(frame.disks.get(name), ramp, idle)
        self.bins_of = fio.total.bins_of
        for name, part in fio.directions.items():
            self.add_bins(name, part.bins)
        self.added_all.add(fio.total.bins)
        if fio.total.max_ns is not None:
            self.max_ns = max(self.max_ns or 0, fio.total.max_ns)

    def add_bins(self, name: str, bins: Mapping[int, int]) -> None:
        """More latencies of one direction."""
        total = self.added.get(name)
        if total is None:
            total = self.added[name] = _in_order()
        total.add(bins)

    def latencies(self) -> dict[str, int | None]:
        """p50 ... p99.99 and max in ns of all I/Os of the run, from the frames' histograms."""
        found = histogram.percentiles(self.all_bins, _SHOWN)
        return {
            **{histogram.percentile_name(p): found.get(p) for p in _SHOWN},
            "max": self.max_ns,
        }

    def figures(self) -> dict[str, dict[str, Any]]:
        """fio's final figures by direction, of all rows; empty if the run has no end."""
        summary: Mapping[str, Any] = self.finished.summary if self.finished else {}
        total = summary.get("total", {})
        return {name: total[name] for name in DIRECTIONS if name in total}


@lru_cache(4096)
def _heat_row(key: int) -> int:
    return math.floor(math.log10(max(key, 1)) * HEAT_ROWS_PER_DECADE)


def _heat_rows(bins: Mapping[int, int]) -> dict[int, int]:
    """I/Os by row: a tenth as many as there are buckets."""
    rows: dict[int, int] = {}
    for key, count in bins.items():
        row = _heat_row(key)
        rows[row] = rows.get(row, 0) + count
    return rows


@dataclass
class Heat:
    """Counts of I/Os by time (columns) and latency (rows, ``HEAT_ROWS_PER_DECADE``)."""

    duration: float
    _cells: dict[tuple[int, int], int] = field(default_factory=dict)
    # of a day some 700 intervals make a column: they are added up first
    _now: int = 0
    _added: BinsTotal = field(default_factory=BinsTotal)

    def add(self, t: float, seconds: float, bins: Mapping[int, int]) -> None:
        """The histogram of the interval that ends at ``t``: in every column that it reaches."""
        last = self._column(t)
        first = min(last, self._column(t - seconds) + 1)
        if first == last:
            if last != self._now:
                self._settle()
                self._now = last
            self._added.add(bins)
            return
        rows = _heat_rows(bins)
        for column in range(first, last + 1):
            self._count(column, rows)

    def _settle(self) -> None:
        added, self._added = self._added, BinsTotal()
        self._count(self._now, _heat_rows(added.bins))

    def _count(self, column: int, rows: Mapping[int, int]) -> None:
        for row, count in rows.items():
            place = column, row
            self._cells[place] = self._cells.get(place, 0) + count

    @property
    def cells(self) -> dict[tuple[int, int], int]:
        """I/Os by column and row."""
        self._settle()
        return self._cells

    def _column(self, t: float) -> int:
        return min(HEAT_COLUMNS - 1, max(0, int(HEAT_COLUMNS * t / self.duration)))

    @property
    def rows(self) -> tuple[int, int]:
        """The lowest and the highest row there are."""
        rows = [row for _, row in self.cells]
        return (min(rows), max(rows)) if rows else (0, 0)


@dataclass
class Story:
    """Everything a report says about one recording. Strings are as they were recorded: whoever
    prints them makes them harmless.

    ``foreign`` says of what it was made, if not of a recording, and ``lacks`` what that does not
    hold, ``disks`` fio's words of each disk; ``logged``: logs of fio gave its series. ``zero`` is
    the second that charts beside others begin to count from."""

    path: Path
    header: form.Header
    duration: float
    heat: Heat
    samples: int = 0
    series: dict[str, array[float]] = field(
        default_factory=lambda: {name: array("d") for name in SERIES}
    )
    runs: list[Run] = field(default_factory=list)
    rows: list[RunRow] = field(default_factory=list)
    """The same runs side by side."""
    experiments: list[Experiment] = field(default_factory=list)
    marks: list[events.Mark] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    changes: list[events.TunableChanged] = field(default_factory=list)
    findings: list[events.Found] = field(default_factory=list)
    ends_of: dict[int, Ends] = field(default_factory=dict)
    """Of the findings that ceased, by their place in ``findings``."""
    notices: list[events.Notice] = field(default_factory=list)
    devices: tuple[BlockDevice, ...] = ()
    ends: str = ""
    foreign: str = ""
    lacks: list[str] = field(default_factory=list)
    disks: list[tuple[str, str]] = field(default_factory=list)
    logged: bool = False
    zero: float = 0.0

    @property
    def longest(self) -> Run | None:
        """The run that others are compared with."""
        return max(self.runs, key=lambda run: run.seconds, default=None)


def gather(path: Path, redact: bool = False) -> Story:
    """Read the recording. UsageError if it is not one, or holds no sample. ``redact``: without
    what says whose machine it is of."""
    with opened(path, redact) as recording:
        recording.only_needed()
        index = recording.index()
        if not index.samples:
            raise UsageError(
                f"The recording {printable(str(path))} holds no sample: nothing to report."
            )
        duration = max(index.end, 1e-3)
        story = Story(recording.path, recording.header, duration, Heat(duration))
        fold = Fold(recording.header)
        history = RunHistory(recording.header.target.opened)
        stretches = Stretches(recording.header.target.opened)
        for record in recording.records():
            for event in fold.feed(record):
                _take(story, fold, event)
                take(history, event)
                take_stretch(stretches, event)
            if fold.run is not None:
                _run(story, fold.run.step).asked = fold.run
            if not story.devices:
                story.devices = tuple(fold.devices.values())
        if fold.begins_within and story.runs:
            story.runs[0].part = True
        story.samples, story.rows = index.samples, history.rows
        story.stretches = stretches.all if stretches.marked else []
        story.ends = how_it_ends(recording, fold.whole)
    story.runs = [run for run in story.runs if run.total.frames or run.finished]
    for run in story.runs:
        run.part |= run.finished is None
    return story


def _run(story: Story, step: int) -> Run:
    for run in story.runs:
        if run.step == step:
            return run
    story.runs.append(Run(step))
    return story.runs[-1]


def _take(story: Story, fold: Fold, event: events.Event) -> None:
    match event:
        case events.FrameReady():
            take_frame(story, event.frame)
        case events.StepStarted():
            _started(story, event)
        case events.ExperimentStarted():
            story.experiments.append(Experiment(event.plan, event.t))
        case (
            events.PointStarted()
            | events.PointFinished()
            | events.PointFailed()
            | events.ExperimentFinished()
        ):
            if story.experiments:
                story.experiments[-1].take(event)
        case events.StepFinished():
            _run(story, event.step).finished = event
        case events.Judged():
            _run(story, event.step).judged.append(event)
        case events.SteadyState():
            _run(story, event.step).steady = event
        case _:
            _said(story, event)


def _started(story: Story, event: events.StepStarted) -> None:
    run = _run(story, event.step)
    run.started = event
    if story.experiments:
        run.point = story.experiments[-1].began(event.step)


def _ceased(story: Story, event: events.Ceased) -> None:
    """An end belongs to the newest of its rule."""
    of_rule = [n for n, one in enumerate(story.findings) if one.finding.rule == event.rule]
    if of_rule:
        ends = story.ends_of.setdefault(of_rule[-1], Ends())
        ends.times += 1
        ends.held_s += event.until - event.since
        ends.until = max(ends.until, event.until)


def _said(story: Story, event: events.Event) -> None:
    """Take in a message, up to the number that a report can hold."""
    match event:
        case events.Mark() if len(story.marks) < MOST_SAID:
            story.marks.append(event)
        case events.TunableChanged() if len(story.changes) < MOST_SAID:
            story.changes.append(event)
        case events.Found() if len(story.findings) < MOST_SAID:
            # a finding is said again while it lasts: the report says the newest words of each once
            step = story.runs[-1].step if story.runs else 0
            for place, before in enumerate(story.findings):
                same = before.finding.rule == event.finding.rule
                if same and before.t >= _begin(story, step):
                    story.findings[place] = events.Found(before.t, event.finding)
                    return
            story.findings.append(event)
        case events.Ceased():
            _ceased(story, event)
        case events.Notice() if len(story.notices) < MOST_SAID:
            # passing messages (fio's progress) are not part of a report
            story.notices += [event] if event.level != "info" else []


def _begin(story: Story, step: int) -> float:
    started = _run(story, step).started if step else None
    return started.t if started else 0.0


def take_frame(story: Story, frame: Frame) -> None:
    """One more interval of a recording, or of fio's own documents."""
    fio, disk = frame.fio, frame.total
    if frame.step:
        _run(story, frame.step).add(frame, story.header.target.tree)
    busy = busy_of(frame.cpus)
    job = [v for v in (fio.usr_cpu, fio.sys_cpu) if v is not None] if fio else []
    seconds = frame.seconds or (fio.seconds if fio else None) or 0.0
    percentiles = fio.total.percentiles if fio else {}
    # in the order of SERIES
    _append(
        story, frame.t, seconds,
        fio.total.iops if fio else None, disk.ios_s if disk else None,
        percentiles.get("p50"), percentiles.get("p99"), percentiles.get("p99.9"),
        disk.aqu_sz if disk else None,
        sum(busy) / len(busy) if busy else None, max(busy, default=None),
        sum(job) if job else None,
        fio.total.clat_ns if fio else None, fio.total.bw if fio else None,
    )  # fmt: skip
    if fio is not None:
        story.heat.add(frame.t, fio.seconds or 0.0, fio.total.bins)


def take_row(story: Story, row: LogRow) -> None:
    """One more interval of fio's logs."""
    found = histogram.percentiles(row.bins, (50.0, 99.0, 99.9))
    ranks = [found.get(p) for p in (50.0, 99.0, 99.9)]
    unknown = [None] * 4
    _append(story, row.t, row.seconds, row.iops, None, *ranks, *unknown, row.mean_ns, row.bw)
    story.heat.add(row.t, row.seconds, row.bins)


def _append(story: Story, t: float, seconds: float, *others: float | None) -> None:
    """One value for each of SERIES."""
    _gap(story, t - seconds)
    values = (t, seconds, *others)
    for column, value in zip(story.series.values(), values, strict=True):
        column.append(nan if value is None else value)


def _gap(story: Story, begin: float) -> None:
    """Where nothing was measured before ``begin``, between two runs of an experiment, lines
    break."""
    times = story.series["t"]
    if times and begin - times[-1] > GAP * story.header.interval_s:
        for key in SERIES:
            story.series[key].append(nan)
        times[-1] = begin


def points(story: Story, name: str, top: bool = False) -> list[tuple[float, float | None]]:
    """A series as (second, value), at most ``MOST_POINTS``: beyond that the mean of neighbours,
    or the highest of them. ``None`` is a gap."""
    times, lengths, values = (story.series[key] for key in ("t", "seconds", name))
    if len(times) <= MOST_POINTS:
        return [(t, None if math.isnan(v) else v) for t, v in zip(times, values, strict=True)]
    each = -(-len(times) // MOST_POINTS)
    found = []
    for first in range(0, len(times), each):
        part = slice(first, first + each)
        there = [
            (value, length or 1e-9)
            for value, length in zip(values[part], lengths[part], strict=True)
            if not math.isnan(value)
        ]
        middle = (times[part][0] + times[part][-1]) / 2
        found.append((middle, _joined(there, top)))
    return found


def _joined(values: Sequence[tuple[float, float]], top: bool) -> float | None:
    if not values:
        return None
    if top:
        return max(value for value, _ in values)
    return sum(value * weight for value, weight in values) / sum(weight for _, weight in values)
