"""Read who uses the disks in the background, as often as its cost allows."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from iopstui.linux.roots import Roots
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice

if TYPE_CHECKING:
    from iopstui.linux.activity.disk_use import DiskUseReader

MAX_CPU_SHARE = 0.002
"""Share of a CPU: a reading that takes 4 ms is made every 2 s."""
MIN_INTERVAL_S = 1.0
QUICK_READINGS = 4
"""When a disk begins to be used, there are this many readings, one a second at any cost, to know at
once who uses it."""
PAUSE_S = 20.0
TASKS_EVERY = 4
"""Waiting tasks are read in one out of this many later readings."""


class UseWatch:
    """To be used by one thread, which never blocks. Nothing is read before ``ask``. ``eager``: read
    every second at any cost; else at most every ``min_interval_s``."""

    def __init__(
        self, roots: Roots, eager: bool = False, min_interval_s: float = MIN_INTERVAL_S
    ) -> None:
        self._eager = eager
        self._min_interval_s = max(MIN_INTERVAL_S, min_interval_s)
        self._roots = roots
        self._reader: DiskUseReader | None = None
        self._thread: threading.Thread | None = None
        self._results: deque[DiskUse] = deque(maxlen=1)
        self._due_at = 0.0
        self._asked_at = 0.0
        self._readings = 0
        self._closed = False

    def ask(self, t: float, devices: Mapping[str, BlockDevice], tasks: bool) -> None:
        """Begin a reading if one is due at ``t`` (the session's clock)."""
        busy = self._thread is not None and self._thread.is_alive()
        if self._closed or busy or t < self._due_at:
            return
        self._due_at = t + MIN_INTERVAL_S * 0.9
        if self._eager or t - self._asked_at > PAUSE_S:
            self._readings = 0
        self._asked_at, self._readings = t, self._readings + 1
        tasks = tasks and (self._readings <= QUICK_READINGS or not self._readings % TASKS_EVERY)
        self._thread = threading.Thread(
            target=self._read, args=(t, dict(devices), tasks), name="disk use", daemon=True
        )
        with contextlib.suppress(RuntimeError):  # the limit of threads is reached: try again later
            self._thread.start()

    def take(self) -> DiskUse | None:
        """The newest reading, once."""
        return self._results.pop() if self._results and not self._closed else None

    def close(self) -> None:
        """Begin no further reading. Does not wait for a current one."""
        self._closed = True

    def _read(self, t: float, devices: Mapping[str, BlockDevice], tasks: bool) -> None:
        began = time.thread_time()
        with contextlib.suppress(OSError):  # the limit of open files is reached: try again later
            if self._reader is None:
                # imported by the first reading, because nobody waits for it
                from iopstui.linux.activity.disk_use import DiskUseReader

                self._reader = DiskUseReader(self._roots)
            use = self._reader.read(t, devices, tasks)
            if use is not None:
                self._results.append(use)
        cost_s = time.thread_time() - began
        if self._readings > QUICK_READINGS:
            self._due_at = t + max(self._min_interval_s * 0.9, cost_s / MAX_CPU_SHARE)
