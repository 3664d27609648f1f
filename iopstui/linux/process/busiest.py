"""The process with the most I/O, read so rarely that it costs almost nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from iopstui.linux.process.process_io import ProcessIo, ProcessRates

MIN_INTERVAL_S = 5.0
MAX_CPU_SHARE = 0.0005
"""A reading that takes 10 ms is made every 20 s."""


class BusiestProcess:
    """Finds the process with the most I/O over all disks (/proc has no figures by process and
    disk). To be used by one thread."""

    def __init__(
        self,
        rates: Callable[[], list[ProcessRates] | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        cost: Callable[[], float] = time.thread_time,
    ) -> None:
        self._rates = rates or ProcessIo().rates
        self._clock, self._cost = clock, cost
        self._due_at = 0.0

    @property
    def due(self) -> bool:
        """Whether it may be read again."""
        return self._clock() >= self._due_at

    def __call__(self) -> ProcessRates | None:
        """The process with the most I/O since the last reading; ``None``: none had any, or this is
        the first reading."""
        before = self._cost()
        rates = self._rates()
        self._due_at = self._clock() + max(MIN_INTERVAL_S, (self._cost() - before) / MAX_CPU_SHARE)
        return rates[0] if rates else None
