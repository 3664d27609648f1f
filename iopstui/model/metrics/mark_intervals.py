"""Intervals between marks, with the figures measured in each.

A pure fold, like the runs (run_history.py): the same calls give the same stretches, live or from a
recording.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from iopstui.model import histogram
from iopstui.model.histogram_columns import BinsTotal
from iopstui.model.metrics.frame import UNCOUNTED, Frame

BEGIN = "from the beginning"
RESTART_S = 5.0
"""A run that begins so soon behind a mark is what the mark tells of."""
MAX_INTERVALS = 500


@dataclass(frozen=True, slots=True)
class MarkInterval:
    """From ``start`` to ``end`` (seconds of the session), called by the mark at its beginning. It
    ends with what was measured: with its job, if one ran, though nothing follows for minutes.
    ``seconds`` of it were measured; ``iops`` and ``bw`` (bytes/s) are fio's means over them, else,
    where no job ran (``by_fio`` False), the device's; ``p99_ns`` is of all latencies of fio in one
    histogram. What was not measured is ``None``."""

    start: float
    end: float
    text: str
    by_fio: bool
    seconds: float
    iops: float | None
    bw: float | None
    p99_ns: float | None


Sums = tuple[float, float, float]
"""Seconds, I/Os and bytes."""


def _added(sums: Sums, more: Sums) -> Sums:
    return sums[0] + more[0], sums[1] + more[1], sums[2] + more[2]


def _counted(sums: Sums, seconds: float, iops: float | None, bw: float | None) -> Sums:
    if seconds <= 0 or iops is None:
        return sums
    return _added(sums, (seconds, iops * seconds, (bw or 0.0) * seconds))


@dataclass
class IntervalFigures:
    """Figures measured in an interval or a part of it: fio and devices together, up to the last
    second of either."""

    end: float = 0.0
    fio_end: float = 0.0
    fio: Sums = (0.0, 0.0, 0.0)
    device: Sums = (0.0, 0.0, 0.0)
    bins: BinsTotal = field(default_factory=BinsTotal)

    def add(self, frame: Frame, devices: Sequence[str]) -> None:
        """Add an interval; those of fio's ramp and around a handover do not count."""
        if UNCOUNTED & frame.flags:
            return
        fio, self.end = frame.fio, frame.t
        disk = frame.combined(devices)
        if disk is not None:
            self.device = _counted(self.device, disk.seconds, disk.ios_s, disk.bytes_s)
        if fio is not None:
            self.fio_end = frame.t
            self.fio = _counted(self.fio, fio.seconds or 0.0, fio.total.iops, fio.total.bw)
            self.bins.add(fio.total.bins)

    def join(self, later: IntervalFigures) -> None:
        """Add the figures of the following intervals."""
        self.end = later.end or self.end
        self.fio_end = later.fio_end or self.fio_end
        self.fio = _added(self.fio, later.fio)
        self.device = _added(self.device, later.device)
        self.bins.add(later.bins.bins)


def middle_of_frame(frame: Frame) -> float:
    """Middle of the measured time: the frame counts to the interval that contains it."""
    seconds = frame.fio.seconds if frame.fio is not None else frame.seconds
    return frame.t - (seconds or 0.0) / 2


@dataclass
class _OpenInterval:
    start: float
    text: str
    figures: IntervalFigures = field(default_factory=IntervalFigures)

    @property
    def had_job(self) -> bool:
        return bool(self.figures.fio[0] or self.figures.device[0])

    def to_interval(self) -> MarkInterval | None:
        figures = self.figures
        by_fio = figures.fio[0] > 0
        seconds, ios, moved = figures.fio if by_fio else figures.device
        if not seconds:
            return None
        p99 = histogram.percentiles(figures.bins.bins, (99.0,)).get(99.0)
        end = max(self.start, figures.fio_end if by_fio else figures.end)
        return MarkInterval(
            self.start, end, self.text, by_fio, seconds, ios / seconds, moved / seconds, p99
        )


class MarkIntervals:
    """Takes marks, starts of runs and frames in order; ``devices`` are those that jobs work on."""

    def __init__(self, devices: Sequence[str] = ()) -> None:
        self._devices = tuple(devices)
        self._finished: deque[MarkInterval] = deque(maxlen=MAX_INTERVALS)
        self._current = _OpenInterval(0.0, BEGIN)
        self.marked = False
        """Whether there was a mark at all."""

    def copy(self) -> MarkIntervals:
        """A copy of the current intervals, unaffected by later additions."""
        return deepcopy(self)

    def add_mark(self, t: float, text: str) -> None:
        """A mark: another stretch begins."""
        self.marked = True
        self._begin(t, text)

    def start_run(self, t: float, text: str) -> None:
        """A run begins. Right behind a mark the stretch is that of the mark, and what the run
        before still did belongs to neither."""
        now = self._current
        if now.text != BEGIN and t - now.start <= RESTART_S:
            self._current = _OpenInterval(t, now.text)
        elif now.had_job:
            self._begin(t, text)

    def _begin(self, t: float, text: str) -> None:
        interval = self._current.to_interval()
        if interval is not None:
            self._finished.append(interval)
        self._current = _OpenInterval(t, text)

    def add_frame(self, frame: Frame) -> None:
        """Add a frame; one that began before the mark is not counted behind it."""
        if middle_of_frame(frame) >= self._current.start:
            self._current.figures.add(frame, self._devices)

    def add_figures(self, later: IntervalFigures, first: float) -> None:
        """Several intervals; ``first``: the earliest of their middles."""
        if first >= self._current.start:
            self._current.figures.join(later)

    @property
    def all(self) -> list[MarkInterval]:
        """Intervals with measurements, the oldest first, with the current one."""
        now = self._current.to_interval()
        return [*self._finished, *([now] if now is not None else [])]
