"""Figures of a run, of the time between two marks, and of its energy, from its frames.

Used wherever they are shown: in lists of runs, reports and points of an experiment. Figures of
consecutive parts can be joined.

Marks are a pure fold, like the runs (run_history.py): the same calls give the same intervals, live
or from a recording."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from iopstui.model import histogram
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import Totals
from iopstui.model.fio.interval import BW, IOPS, MEANS
from iopstui.model.histogram import BinsTotal
from iopstui.model.metrics.figures import has_idle_end
from iopstui.model.metrics.frame import SOME_HOSTS, UNCOUNTED, Frame
from iopstui.model.metrics.shares import RunShare
from iopstui.model.metrics.waits import MeanWaits
from iopstui.model.rates import ratio
from iopstui.model.sources import POWER


class DeviceTotal(Totals):
    """Means of a device, or of several together, over the intervals that count; ``ios`` are the
    I/Os it completed in all intervals, including fio's ramp (``None``: not known)."""

    FIGURES = (DiskRates.ios_s, DiskRates.r_bytes_s, DiskRates.w_bytes_s, DiskRates.aqu_sz,
               DiskRates.util, DiskRates.bytes_s, DiskRates.data_s, DiskRates.merges_s,
               DiskRates.ios_await)  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.ios: int | None = None

    def add_interval(self, disk: DiskRates | None, counts: bool) -> None:
        """Add an interval of the device; ``None``: not all of the devices were measured."""
        if disk is not None:
            self._add_ios(disk.ios)
            if counts:
                self.add(disk)

    def join_intervals(self, later: DeviceTotal, counts: bool) -> None:
        self._add_ios(later.ios)
        if counts:
            self.join(later)

    def _add_ios(self, ios: int | None) -> None:
        if ios is not None:
            self.ios = (self.ios or 0) + ios


class LatencyMeans(Totals):
    """Mean latencies of fio."""

    FIGURES = tuple(MEANS.values())


class RunFigures(Totals):
    """Means of fio, of ``device`` (all devices that the jobs work on), of the requested ``layers``,
    and of the places where I/Os wait.

    Frames of fio's ramp and around a handover don't count. The kernel's figures of the interval in
    which fio ended count only if there are no others. ``seconds`` of fio were measured, from
    ``begin`` to ``end``; if no job ran, ``end`` is the end of the last interval. ``last_t`` is when
    fio's last interval ended, which may be too short to give rates."""

    FIGURES = (IOPS, BW)

    def __init__(self) -> None:
        super().__init__()
        self.device = DeviceTotal()
        self.layers: dict[str, DeviceTotal] = {}
        self.waits = MeanWaits()
        self.share = RunShare()
        self.seconds = self.end = self.last_t = 0.0
        self.begin: float | None = None
        self.bins_of = "clat"
        self._bins = BinsTotal()
        self._latencies = LatencyMeans()
        self._all_hosts = self._idle = False

    def add(self, frame: Frame, layers: Sequence[str] = ()) -> bool:  # type: ignore[override]
        """Add an interval. Return whether its kernel figures were counted."""
        counted = not UNCOUNTED & frame.flags
        fio = frame.fio if counted else None
        seconds = fio.seconds if fio is not None else None
        self.share.add(frame.share, reported=bool(seconds))
        idle = has_idle_end(frame)
        counts = counted and self._accepts(SOME_HOSTS not in frame.flags)
        of_kernel = counts and not (idle and self.has_job)
        self._idle |= of_kernel and idle
        self.device.add_interval(frame.total, of_kernel)
        for name in layers:
            self._layer(name).add_interval(frame.disks.get(name), of_kernel)
        if of_kernel and fio is not None:
            self.waits.add(frame.waits, frame.whole.seconds)
        if fio is not None:
            if counts:
                super().add(fio.total, fio)
            self._bins.add(fio.total.bins)
            self._latencies.add(fio.total)
            self.bins_of = fio.total.bins_of
            self.last_t = frame.t
        if seconds:
            self.begin = frame.t - seconds if self.begin is None else self.begin
            self.seconds += seconds
        if seconds or not self.seconds:
            self.end = frame.t
        return of_kernel

    def join(self, later: RunFigures) -> None:  # type: ignore[override]
        self.share.join(later.share)
        counts = self._accepts(later._all_hosts)
        of_kernel = counts and not (later._idle and self.has_job)
        self._idle |= of_kernel and later._idle
        self.device.join_intervals(later.device, of_kernel)
        for name, device in later.layers.items():
            self._layer(name).join_intervals(device, of_kernel)
        if of_kernel:
            self.waits.join(later.waits)
        if counts:
            super().join(later)
        self._latencies.join(later._latencies)
        if later.bins:
            self._bins.add(later.bins)
            self.bins_of = later.bins_of
        if later.seconds:
            self.begin = later.begin if self.begin is None else self.begin
        if later.seconds or not self.seconds:
            self.end = later.end or self.end
        self.seconds += later.seconds
        self.last_t = max(self.last_t, later.last_t)

    def _layer(self, name: str) -> DeviceTotal:
        if name not in self.layers:
            self.layers[name] = DeviceTotal()
        return self.layers[name]

    def _accepts(self, all_hosts: bool) -> bool:
        """Whether to count an interval of many hosts. Only seconds with figures of all hosts count,
        because a missing host does not mean 0 I/Os; without such a second, the seconds with fewer
        hosts count."""
        if all_hosts and not self._all_hosts:
            self._all_hosts = True
            for totals in (self, self.device, *self.layers.values()):
                totals.clear()
            self.waits = MeanWaits()
        return all_hosts or not self._all_hosts

    @property
    def has_job(self) -> bool:
        """Whether fio measured anything in these frames."""
        return self.mean(BW) is not None

    @property
    def bins(self) -> dict[int, int]:
        """All latencies of ``bins_of``; callers must not change the result."""
        return self._bins.bins

    @property
    def mean_ns(self) -> float | None:
        """The mean of the latencies that the histogram has; ``None``: none was measured."""
        return self._latencies.mean(MEANS[self.bins_of])


BEGIN = "from the beginning"
RESTART_S = 5.0
"""If a run begins within this time after a mark, the mark names the run."""
MAX_INTERVALS = 500


@dataclass(frozen=True, slots=True)
class MarkInterval:
    """From ``start`` to ``end`` (seconds of the session), named after the mark at its beginning. It
    ends with the measurement: with its job, if one ran, even if nothing follows for minutes.
    ``seconds`` were measured; ``iops`` and ``bw`` (bytes/s) are fio's means over them, or the
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
        self.marked = True
        self._begin(t, text)

    def start_run(self, t: float, text: str) -> None:
        """Note that a run begins. If it begins right after a mark, the interval of that mark begins
        with the run, and the rest of the earlier run belongs to no interval."""
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
        """Add a frame; a frame that began before the mark does not count after it."""
        if middle_of_frame(frame) >= self._current.start:
            self._current.figures.add(frame)

    def add_figures(self, later: RunFigures, first: float) -> None:
        """Add the figures of several frames; ``first`` is the earliest of the frames' middles."""
        if first >= self._current.start:
            self._current.figures.join(later)

    @property
    def all(self) -> list[MarkInterval]:
        """All intervals with measurements, the oldest first and the current one last."""
        now = self._current.to_interval()
        return [*self._finished, *([now] if now is not None else [])]


class RunEnergy:
    """Sums over the intervals of a run in which both fio and the counters were measured."""

    def __init__(self) -> None:
        self.joules: dict[str, float] = {}
        """Energy by kind ("package", "dram", "platform")."""
        self._seconds = 0.0
        self._ios = 0

    def add(self, frame: Frame) -> None:
        power = frame.more.get(POWER, {})
        seconds = frame.seconds or 0.0
        used = {kind: watts * seconds for kind, watts in power.items() if watts is not None}
        if frame.fio is not None and seconds and used:
            self._add(used, seconds, frame.fio.total.ios)

    def join(self, later: RunEnergy) -> None:
        """Add the frames that follow."""
        self._add(later.joules, later._seconds, later._ios)

    def _add(self, joules: Mapping[str, float], seconds: float, ios: int) -> None:
        for kind, used in joules.items():
            self.joules[kind] = self.joules.get(kind, 0.0) + used
        self._seconds += seconds
        self._ios += ios

    def watts(self, kind: str) -> float | None:
        """Mean power; ``None`` if it was not counted."""
        return ratio(self.joules.get(kind), self._seconds)

    @property
    def ios_per_joule(self) -> float | None:
        """I/Os for each joule of the CPU packages, idle power included."""
        return ratio(float(self._ios), self.joules.get("package"))

    def data(self) -> dict[str, object] | None:
        """The sums as JSON: watts and joules by kind, and I/Os per joule; ``None`` without
        counters."""
        if not self.joules:
            return None
        return {
            "seconds": self._seconds,
            "joules": dict(self.joules),
            "watts": {kind: self.watts(kind) for kind in self.joules},
            "ios_per_joule": self.ios_per_joule,
        }
