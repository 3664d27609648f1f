"""The runs of a session as rows: what was changed for each, what it measured, and how much its IOPS
differ from the run before and from a chosen base.

A pure fold: the same calls give the same rows, live or from a recording. A run's figures are
computed as everywhere (run_figures.py)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace

from iopstui.model import histogram
from iopstui.model.figures.disk import DiskRates
from iopstui.model.fio.interval import BW, IOPS, DirectionInterval
from iopstui.model.fio.jobfile import SEQUENCE
from iopstui.model.fio.rows import duration_s
from iopstui.model.histogram import Bins
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.run_figures import RunFigures

RUNS, DONE, STOPPED, FAILED = "runs", "done", "stopped", "failed"
UNCHANGED_TEXT = "the same again"
MAX_RUNS = 1000
# fio/job_text.py describes a job with one section as "randread 4k QD 32 × 2 jobs"
_TITLE = re.compile(r"(?P<rw>\S+) (?P<bs>\S+) +QD (?P<iodepth>\S+) × (?P<numjobs>\d+) jobs?")
_OPTIONS_IN_TITLE = frozenset(
    {"readwrite", "blocksize", "bsrange", "blocksize_range", "bssplit", "group_reporting"}
)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run. ``changed`` lists the differences from the last earlier run that measured something
    (empty: no difference; ``None``: no such run). ``seconds`` were measured; ``iops`` and ``bw``
    (bytes/s) are means over them; ``mean_ns`` is the mean of all their latencies of ``bins_of``,
    and ``p50_ns``, ``p99_ns`` and ``p999_ns`` are of these latencies in one histogram; ``util``
    (percent) and ``aqu_sz`` are means of the device, or of several devices together; ``rtt_ms`` is
    the mean time of an answer to reads and writes on NFS. ``ended`` is one of RUNS, DONE, STOPPED,
    FAILED. ``to_before`` and ``to_base`` say how many percent its IOPS are above those of the run
    before (number ``before``, measured for ``before_s``) and of the base (``None`` for the base
    itself). The measurement is from ``begin`` to ``end`` (seconds of the session). ``point``: which
    point of an experiment it is, "sweep 4/8", and ``experiment`` what that is, "sweep".
    ``disturbed``: what spoiled its figures, in sentences. ``None``: not measured."""

    step: int
    job: str
    title: str
    changed: tuple[str, ...] | None
    ended: str = RUNS
    seconds: float | None = None
    iops: float | None = None
    bw: float | None = None
    p50_ns: float | None = None
    p99_ns: float | None = None
    bins_of: str = "clat"
    util: float | None = None
    aqu_sz: float | None = None
    to_before: float | None = None
    to_base: float | None = None
    before: int | None = None
    begin: float | None = None
    end: float | None = None
    rtt_ms: float | None = None
    before_s: float | None = None
    point: str = ""
    disturbed: tuple[str, ...] = ()
    experiment: str = ""
    mean_ns: float | None = None
    p999_ns: float | None = None

    @property
    def what(self) -> str:
        """The changes in one line; for the first run, a description."""
        if self.changed is None:
            return self.title or self.job
        return ", ".join(self.changed) or UNCHANGED_TEXT

    @property
    def what_and_point(self) -> str:
        """The changes in one line, of a point after which one it is."""
        return f"{self.point}: {self.what}" if self.point else self.what


@dataclass
class _CurrentRun:
    """The current run. ``total`` has all of its I/Os, if they are known apart from its frames;
    ``tunable_changes`` are the tunables changed while it ran."""

    row: RunRow
    options: Mapping[str, str]
    figures: RunFigures
    total: DirectionInterval | None = None
    tunable_changes: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)


class RunHistory:
    """Collects the runs of a session from its events, in order.

    A run that was stopped before it measured anything is no row. ``base`` is the number of the run
    that all others are compared with (``None``: none is chosen)."""

    def __init__(self) -> None:
        self.base: int | None = None
        self._rows: deque[RunRow] = deque(maxlen=MAX_RUNS)
        self._current: _CurrentRun | None = None
        self._experiment = self._point = ""
        # the last run that measured something, and its options
        self._previous: RunRow | None = None
        self._options: Mapping[str, str] = {}
        # tunables that were changed since that run ended
        self._tunable_changes: dict[tuple[str, str], tuple[str, str]] = {}

    def copy(self) -> RunHistory:
        """A copy of the current runs, unaffected by later additions."""
        return deepcopy(self)

    def start_experiment(self, noun: str) -> None:
        """Begin a sweep or a comparison; the next runs are its points, until ``end_experiment``."""
        self._experiment = noun

    def start_point(self, index: int, total: int) -> None:
        """Begin a point of the experiment; ``index`` counts from 0."""
        self._experiment = self._experiment or "point"
        self._point = f"{self._experiment} {index + 1}/{total}"

    def end_experiment(self) -> None:
        """The next runs are no points."""
        self._experiment = self._point = ""

    def start_run(
        self, step: int, job: str, title: str, options: Mapping[str, str] | None = None
    ) -> None:
        """Begin a run, or go on with its next phase. ``options`` are common to all sections of its
        job; without them they are taken from the ``title``."""
        options = options or {}
        now = self._current
        is_current = now is not None and now.row.step == step
        if now is not None and is_current and (now.row.job or now.row.title):
            return
        changed = None
        if self._previous is not None:
            before = self._previous
            was = (before.job, before.title, self._options)
            changes = _differences(was, (job, title, options))
            changed = (*changes, *_tunable_changes(self._tunable_changes))
        row = RunRow(
            step, job, title, changed, point=self._point,
            experiment=self._experiment if self._point else "",
        )  # fmt: skip
        # a recording may begin with a frame of this run
        figures = now.figures if now is not None and is_current else RunFigures()
        self._current = _CurrentRun(row, options, figures)

    def add_frame(self, frame: Frame) -> None:
        if frame.fio is not None and frame.step:
            figures = self._figures_of(frame.step)
            if figures is not None:
                figures.add(frame)

    def add_figures(self, step: int, later: RunFigures) -> None:
        """Note that several intervals of one run were measured."""
        figures = self._figures_of(step)
        if figures is not None:
            figures.join(later)

    def add_total(self, step: int, total: DirectionInterval) -> None:
        """Note what the whole run measured, which may be more than its frames have."""
        now = self._current
        if now is not None and now.row.step == step:
            now.total = total

    def _figures_of(self, step: int) -> RunFigures | None:
        if self._current is None and all(row.step != step for row in self._rows):
            # a recording begins within the run
            self.start_run(step, "", "")
        now = self._current
        return now.figures if now is not None and now.row.step == step else None

    def note_tunable_change(self, device: str, name: str, before: str, now: str) -> None:
        changes = self._tunable_changes if self._current is None else self._current.tunable_changes
        first, _ = changes.get((device, name), (before, now))
        changes[device, name] = (first, now)

    def finish_run(self, step: int, outcome: str, disturbed: tuple[str, ...] = ()) -> None:
        """Finish a run; a run that never started its job does not count."""
        now = self._current
        if now is None or now.row.step != step:
            return
        self._current = None
        row = replace(self._row(now, outcome), disturbed=disturbed)
        if now.figures.seconds:
            self._previous, self._options, self._tunable_changes = row, now.options, {}
        else:
            for key, (before, value) in now.tunable_changes.items():
                self._tunable_changes[key] = (
                    self._tunable_changes.get(key, (before, value))[0],
                    value,
                )
        if now.figures.seconds or outcome == FAILED:
            self._rows.append(row)

    def disturb_point(self, disturbed: tuple[str, ...]) -> None:
        """Note what disturbed the point of an experiment whose run has just ended."""
        if self._rows and self._rows[-1].point:
            self._rows[-1] = replace(self._rows[-1], disturbed=disturbed)

    def _row(self, now: _CurrentRun, outcome: str) -> RunRow:
        row = now.row
        meanwhile = _tunable_changes(now.tunable_changes)
        if meanwhile:
            notes = tuple(f"{change} while it ran" for change in meanwhile)
            row = replace(row, changed=(*(row.changed or (row.what,)), *notes))
        row = _filled(replace(row, ended=outcome), now.figures, now.total)
        before = self._previous
        if before is None:
            return row
        return replace(
            row, to_before=percent_change(before.iops, row.iops), before=before.step,
            before_s=before.seconds,
        )  # fmt: skip

    @property
    def rows(self) -> list[RunRow]:
        """All runs, the oldest first, with their differences."""
        rows = [*self._rows]
        if self._current is not None:
            rows.append(self._row(self._current, RUNS))
        base = next((row for row in rows if row.step == self.base), None)
        if base is None:
            return rows
        return [
            row if row is base else replace(row, to_base=percent_change(base.iops, row.iops))
            for row in rows
        ]

    def name_of(self, row: RunRow) -> str:
        """ "run 3"; of the first run after an experiment "run 9 (2 to 8: sweep)": points are runs,
        too."""
        points: list[RunRow] = []
        for each in self._rows:
            if each.step >= row.step:
                break
            is_next = points and points[-1].experiment == each.experiment
            points = [] if not each.point else [*points, each] if is_next else [each]
        if row.point or not points:
            return f"run {row.step}"
        first, last = points[0].step, points[-1].step
        which = f"{first} to {last}" if first != last else f"{first}"
        return f"run {row.step} ({which}: {points[0].experiment})"

    @property
    def last(self) -> RunRow | None:
        """The newest run that has ended and has measured something."""
        return next((row for row in reversed(self._rows) if row.iops is not None), None)

    def toggle_base(self) -> RunRow | None:
        """Make the newest finished run the base and return it. If it was the base already, there is
        no base afterwards. ``None``: there is no base now."""
        newest = self.last
        if newest is None or newest.step == self.base:
            self.base = None
            return None
        self.base = newest.step
        return newest


def _filled(row: RunRow, figures: RunFigures, total: DirectionInterval | None) -> RunRow:
    bins: Bins = figures.bins
    bins_of, mean_ns = figures.bins_of, figures.mean_ns
    iops, bw, seconds = figures.mean(IOPS), figures.mean(BW), figures.seconds
    if total is not None:
        bins, bins_of, mean_ns = total.bins, total.bins_of, total.latency(total.bins_of).mean
        iops, bw = total.iops, total.bw
        seconds = total.ios / iops if iops else seconds
    latencies = histogram.percentiles(bins, (50.0, 99.0, 99.9))
    data = figures.share.data
    return replace(
        row, iops=iops, bw=bw, seconds=seconds or None,
        util=figures.device.mean(DiskRates.util), aqu_sz=figures.device.mean(DiskRates.aqu_sz),
        mean_ns=mean_ns, p50_ns=latencies.get(50.0), p99_ns=latencies.get(99.0),
        p999_ns=latencies.get(99.9), bins_of=bins_of,
        begin=figures.begin, end=figures.end if figures.seconds else None,
        rtt_ms=data.rtt if data is not None else None,
    )  # fmt: skip


def percent_change(before: float | None, now: float | None) -> float | None:
    """Change from ``before`` to ``now`` in percent; ``None`` if undefined."""
    if before is None or now is None or before <= 0:
        return None
    return 100 * (now - before) / before


def _differences(
    before: tuple[str, str, Mapping[str, str]], now: tuple[str, str, Mapping[str, str]]
) -> Iterable[str]:
    if before[0] != now[0] and before[0] and now[0]:
        return [f"job {before[0]} → {now[0]}"]
    old, new = _title_parts(before[1]), _title_parts(now[1])
    if before[2] and now[2]:
        # write an option without a value, such as time_based, as 1
        old, new = ({name: value or "1" for name, value in _all_options(title, options).items()}
                    for title, options in ((old, before[2]), (new, now[2])))  # fmt: skip
    if not old or not new:
        return [] if before[1] == now[1] else [now[1]]
    for parts in (old, new):
        parts.update({name: _seconds_text(parts[name]) for name in _TIMES if name in parts})
    names = [*new, *(name for name in old if name not in new)]
    return [_change_text(name, old.get(name), new.get(name)) for name in names
            if old.get(name) != new.get(name) and name not in SEQUENCE]  # fmt: skip


_TIMES = ("runtime", "timeout", "ramp_time", "startdelay")


def _seconds_text(value: str) -> str:
    """A time of fio in seconds: points of a sweep have theirs in milliseconds ("10000ms")."""
    seconds = duration_s(value)
    return value if seconds is None else f"{seconds:g}s"


def _title_parts(title: str) -> dict[str, str]:
    match = _TITLE.fullmatch(title)
    return match.groupdict() if match else {}


def options_of_run(title: str, options: Mapping[str, str]) -> dict[str, str]:
    """All known options of a run; its ``title`` also has fio's defaults."""
    return _all_options(_title_parts(title), options)


def _all_options(title_options: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    if not title_options:
        return dict(options)
    return {
        **title_options,
        **{k: v for k, v in options.items() if k not in {*title_options, *_OPTIONS_IN_TITLE}},
    }


def _change_text(name: str, before: str | None, now: str | None) -> str:
    if now is None:
        return f"{name} unset"
    return f"{name} {now}" if before is None else f"{name} {before} → {now}"


def _tunable_changes(changes: Mapping[tuple[str, str], tuple[str, str]]) -> list[str]:
    """Each change once, though several devices may have had the same change."""
    texts = (
        _change_text(name, *values) for (_, name), values in changes.items() if len(set(values)) > 1
    )
    return list(dict.fromkeys(texts))
