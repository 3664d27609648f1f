"""Check each row of a run by figures that it is not made of."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.model.metrics.frame import APART, APPROX_BW, APPROX_IOPS, RAMP, Frame

IOPS, BANDWIDTH, DEVICE = "IOPS", "MiB/s", "device"
ALL_ON_DEVICE = 0.95
"""If the device moves at least this share of a run's bytes, it does so in each row."""
LESS_ON_DEVICE = 0.85
MIN_IOS = 100
MAX_TIMES = 1000
"""No more rows are kept for each column."""


class RowChecks:
    """Collects the rows whose figures do not agree: I/Os in flight that exceed iodepth × numjobs
    (N = X·R), bytes that are not I/Os × block size, and fewer bytes on the device than fio moved
    where the device has all of them otherwise. Rates that are marked as those of other seconds are
    not verified either."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}
        self._fio_bytes = self._device_bytes = 0.0

    def add(self, frame: Frame) -> None:
        """Check one frame."""
        fio = frame.fio
        if fio is None or RAMP in frame.flags or not fio.seconds:
            return
        if APPROX_IOPS in frame.flags or not fio.within_depth:
            self._note(IOPS, frame.t)
        if APPROX_BW in frame.flags or not fio.bytes_agree:
            self._note(BANDWIDTH, frame.t)
        self._check_device(frame.whole)

    def join(self, later: RowChecks) -> None:
        """Add the checks of the frames that follow."""
        for column, times in later._times.items():
            for t in times:
                self._note(column, t)
        self._fio_bytes += later._fio_bytes
        self._device_bytes += later._device_bytes

    @property
    def doubtful(self) -> Mapping[str, list[float]]:
        """The times of rows that are not verified, by column."""
        all_on_device = self._device_bytes >= ALL_ON_DEVICE * self._fio_bytes
        return {
            column: times
            for column, times in self._times.items()
            if column != DEVICE or all_on_device
        }

    def _check_device(self, frame: Frame) -> None:
        fio, disk, waits = frame.fio, frame.total, frame.waits
        if fio is None or disk is None or waits is None or waits.cache or waits.unsent:
            return
        if not frame.holds or {APART, APPROX_BW} & frame.flags or fio.total.ios < MIN_IOS:
            return
        seconds = fio.seconds or 0.0
        on_device = (disk.bytes_s or 0.0) * seconds
        self._fio_bytes += fio.total.bytes
        self._device_bytes += on_device
        if on_device < LESS_ON_DEVICE * fio.total.bytes:
            self._note(DEVICE, frame.t)

    def _note(self, column: str, t: float) -> None:
        times = self._times.setdefault(column, [])
        if len(times) < MAX_TIMES:
            times.append(t)
