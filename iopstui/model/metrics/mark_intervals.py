"""Intervals between marks, with the figures measured in each.

A pure fold, like the runs (run_history.py): the same calls give the same intervals, live or from a
recording."""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field

from iopstui.model import histogram
from iopstui.model.figures.disk import DiskRates
from iopstui.model.fio.interval import BW, IOPS
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.run_figures import RunFigures

BEGIN = "from the beginning"
RESTART_S = 5.0
"""A run that begins within this time after a mark is the mark's subject."""
MAX_INTERVALS = 500


@dataclass(frozen=True, slots=True)
class MarkInterval:
    """From ``start`` to ``end`` (seconds of the session), named after the mark at its beginning. It
    ends with the measurement: with its job, if one ran, even if nothing follows for minutes.
    ``seconds`` of it were measured; ``iops`` and ``bw`` (bytes/s) are fio's means over them, or the
    device's if no job ran (``by_fio`` False); ``p99_ns`` is of all fio latencies in one histogram.
    ``None``: not measured."""

    start: float
    end: float
    text: str
    by_fio: bool
    seconds: float
    iops: float | None
    bw: float | None
    p99_ns: float | None


def middle_of_frame(frame: Frame) -> float:
    """Middle of the measured time: the frame belongs to the interval that contains it."""
    seconds = frame.fio.seconds if frame.fio is not None else frame.seconds
    return frame.t - (seconds or 0.0) / 2


@dataclass
class _OpenInterval:
    start: float
    text: str
    figures: RunFigures = field(default_factory=RunFigures)

    def to_interval(self) -> MarkInterval | None:
        figures = self.figures
        device = figures.device
        seconds = figures.sums[IOPS.name][1]
        by_fio = seconds > 0
        iops, bw = figures.mean(IOPS), figures.mean(BW)
        if not by_fio:
            iops, bw = device.mean(DiskRates.ios_s), device.mean(DiskRates.data_s)
            seconds = device.sums[DiskRates.ios_s.name][1]
        if not seconds:
            return None
        p99 = histogram.percentiles(figures.bins, (99.0,)).get(99.0)
        end = max(self.start, figures.end, figures.last_t)
        return MarkInterval(self.start, end, self.text, by_fio, seconds, iops, bw, p99)


class MarkIntervals:
    """Takes marks, starts of runs and frames in order."""

    def __init__(self) -> None:
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
        """A run begins. Right after a mark, the interval is the mark's, and the rest of the run
        before belongs to neither."""
        now = self._current
        if now.text != BEGIN and t - now.start <= RESTART_S:
            self._current = _OpenInterval(t, now.text)
        elif now.to_interval() is not None:
            self._begin(t, text)

    def _begin(self, t: float, text: str) -> None:
        interval = self._current.to_interval()
        if interval is not None:
            self._finished.append(interval)
        self._current = _OpenInterval(t, text)

    def add_frame(self, frame: Frame) -> None:
        """Add a frame; one that began before the mark does not count after it."""
        if middle_of_frame(frame) >= self._current.start:
            self._current.figures.add(frame)

    def add_figures(self, later: RunFigures, first: float) -> None:
        """Add the figures of several frames; ``first``: the earliest of their middles."""
        if first >= self._current.start:
            self._current.figures.join(later)

    @property
    def all(self) -> list[MarkInterval]:
        """Intervals with measurements, the oldest first, with the current one."""
        now = self._current.to_interval()
        return [*self._finished, *([now] if now is not None else [])]
