"""Figures of a run, of a part of it, or of the time between two marks, from its frames.

Used wherever they are shown: in lists of runs, reports and points of an experiment. Figures of
consecutive parts can be joined."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import Totals
from iopstui.model.fio.interval import BW, IOPS
from iopstui.model.histogram import BinsTotal
from iopstui.model.metrics.figures import has_idle_end
from iopstui.model.metrics.frame import SOME_HOSTS, UNCOUNTED, Frame
from iopstui.model.metrics.shares import RunShare
from iopstui.model.metrics.waits import MeanWaits


class DeviceTotal(Totals):
    """Means of a device, or of several together, over the intervals that count; ``ios`` is what it
    completed in all intervals, including fio's ramp (``None``: not known)."""

    FIGURES = (DiskRates.ios_s, DiskRates.r_bytes_s, DiskRates.w_bytes_s, DiskRates.aqu_sz,
               DiskRates.util, DiskRates.bytes_s, DiskRates.data_s, DiskRates.merges_s,
               DiskRates.ios_await)  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.ios: int | None = None

    def add_interval(self, disk: DiskRates | None, counts: bool) -> None:
        """Add an interval; ``None``: not all of the devices were measured."""
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
        self._all_hosts = self._idle = False

    def add(self, frame: Frame, layers: Sequence[str] = ()) -> bool:  # type: ignore[override]
        """Add an interval. Returns whether its kernel figures were counted."""
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
        """Whether to count an interval of many hosts. Only seconds with all hosts count, because a
        missing host has not done 0; if there is none, seconds of the present hosts count."""
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
