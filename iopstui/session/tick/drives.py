"""Read NVMe drives' own counters in the background; a hung drive must not stop the session."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.samples import DriveReading

if TYPE_CHECKING:
    from iopstui.linux.nvme.health import DriveHealth

INTERVAL_S = 10.0
LAST_TIMEOUT_S = 1.0
"""How long the end of a run waits for its last reading. Most drives answer within a millisecond."""


class DriveReader:
    """Reads the drives below a target every ``INTERVAL_S`` seconds, at the beginning of a run and
    at its end. To be used by one thread, which blocks only in ``read_last``. Nothing is read, and
    no thread started, without an NVMe drive in the target's tree."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._health: DriveHealth | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._readings: dict[str, DriveReading] = {}
        self._first_counts: dict[str, Mapping[str, int]] = {}
        self._run = 0
        self._due_at = 0.0
        self._closed = False

    def begin(self) -> None:
        """A run begins: compare later readings with the next one."""
        with self._lock:
            self._run += 1
            self._readings, self._first_counts = {}, {}
        self._due_at = 0.0

    def start_if_due(
        self, t: float, devices: Mapping[str, BlockDevice], tree: Sequence[str]
    ) -> None:
        """Begin a reading if one is due at ``t`` (seconds of the session)."""
        if t >= self._due_at and self._start(devices, tree):
            self._due_at = t + INTERVAL_S

    def take(self) -> dict[str, DriveReading]:
        """What was read since the last call."""
        with self._lock:
            readings, self._readings = self._readings, {}
        return readings

    def read_last(
        self, devices: Mapping[str, BlockDevice], tree: Sequence[str]
    ) -> dict[str, DriveReading]:
        """Read once more and wait for that, but not for a drive that hangs."""
        if self._thread is not None:
            self._thread.join(LAST_TIMEOUT_S)
        if self._start(devices, tree) and self._thread is not None:
            self._thread.join(LAST_TIMEOUT_S)
        return self.take()

    def close(self) -> None:
        """Begin no further reading. Does not wait for a current one."""
        self._closed = True

    def _start(self, devices: Mapping[str, BlockDevice], tree: Sequence[str]) -> bool:
        """Whether a reading was started, or nothing can be read."""
        if self._closed or not any(_is_nvme(devices, name) for name in tree):
            return True
        if self._thread is not None and self._thread.is_alive():
            return False
        self._thread = threading.Thread(
            target=self._read, args=(self._run, dict(devices), tuple(tree)), name="drives",
            daemon=True,
        )  # fmt: skip
        with contextlib.suppress(RuntimeError):  # the limit of threads is reached: try again later
            self._thread.start()
            return True
        self._thread = None
        return False

    def _read(self, run: int, devices: Mapping[str, BlockDevice], tree: Sequence[str]) -> None:
        # imported by the first reading, because nobody waits for it
        from iopstui.linux.nvme.admin import DriveUnreadable
        from iopstui.linux.nvme.health import DriveHealth, drives_of, unprivileged_counters

        if self._health is None:
            self._health = DriveHealth(self._roots)
        for controller, drive in drives_of(self._roots, devices, tree).items():
            problem = ""
            try:
                counts = self._health.read(controller, drive.namespace)
            except (DriveUnreadable, OSError) as error:
                counts, problem = unprivileged_counters(self._roots, controller), str(error)
            self._keep(run, controller, DriveReading(counts, counts, problem, drive.devices))

    def _keep(self, run: int, controller: str, reading: DriveReading) -> None:
        with self._lock:
            # a reading that began before the run did says nothing about it
            if run != self._run:
                return
            if not reading.problem:
                began = self._first_counts.setdefault(controller, reading.counts)
                self._readings[controller] = replace(reading, began=began)
            elif controller not in self._first_counts:
                self._readings[controller] = reading


def _is_nvme(devices: Mapping[str, BlockDevice], name: str) -> bool:
    device = devices.get(name)
    return device is not None and device.kind == "nvme"
