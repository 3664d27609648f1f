"""Detect a removed device, which otherwise looks like a very fast one.

fio counts I/Os that a removed disk refuses as done: its IOPS climb, its bytes stand still, and it
ends with exit code 0."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.model.samples import FioStatus, RawSample

MANY_IOS = 100


class DeviceWatch:
    """Watches one run for a removed device. ``devices`` are the kernel names of its devices."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = tuple(devices)
        self._seen: set[str] = set()
        self._before: tuple[int, int, int, int] | None = None
        self._empty = 0

    def follow(self, earlier: DeviceWatch) -> None:
        """Continue the watch of the run that this one replaces: devices that were there in that run
        count as missing if they are gone."""
        self._seen |= earlier._seen

    def feed(self, raw: RawSample) -> str:
        """Why this run is worthless from now on, in one sentence; "" while all is well."""
        return self._vanished(raw) or self._moves_nothing(raw.fio)

    def _vanished(self, raw: RawSample) -> str:
        if raw.kernel is None:
            return ""
        missing = [name for name in self._devices if name in self._seen - raw.kernel.disks.keys()]
        self._seen |= raw.kernel.disks.keys()
        if not missing:
            return ""
        plural = "have disappeared from the kernel" if len(missing) > 1 else (
            "has disappeared from the kernel")  # fmt: skip
        return f"{', '.join(missing)} {plural}"

    def _moves_nothing(self, fio: FioStatus | None) -> str:
        """A sentence if fio completes I/Os without moving a byte, else "". If there are only
        submissions, they must go on for two intervals: a device that stalls also accepts
        submissions, but only once, and as many as the queues are deep."""
        if fio is None:
            return ""
        before, self._before = self._before, _fio_counts(fio)
        if before is None:
            return ""
        issued, completed, moved, failed = (
            now - earlier for now, earlier in zip(self._before, before, strict=True)
        )
        # errors that fio counts and continues after are a finding, and may end soon
        issued, completed = issued - failed, completed - failed
        empty = moved == 0 and max(issued, completed) >= MANY_IOS
        self._empty = self._empty + 1 if empty else 0
        if not empty or (completed < MANY_IOS and self._empty < 2):
            return ""
        devices = " or ".join(self._devices) or "the device"
        return (
            f"{devices} has failed or was removed: fio counts {max(issued, completed)} I/Os "
            "without data"
        )


def _fio_counts(fio: FioStatus) -> tuple[int, int, int, int]:
    """(submitted, completed, bytes, failed) so far, all jobs and directions."""
    statuses = [direction for job in fio.jobs for direction in job.directions.values()]
    return (
        sum(status.issued for status in statuses),
        sum(status.completed or 0 for status in statuses),
        sum(status.io_bytes for status in statuses),
        sum(job.failed or 0 for job in fio.jobs),
    )
