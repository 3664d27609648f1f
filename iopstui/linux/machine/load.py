"""The current load of every disk of the machine, for a list."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

from iopstui.linux.counters.procfs import parse_diskstats
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_bytes
from iopstui.model.figures.disk import DiskRates, disk_rates


class DiskLoads:
    """Reads /proc/diskstats on request and returns rates since the previous call."""

    def __init__(
        self, roots: Roots | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file = (roots or Roots()).proc / "diskstats"
        self._clock = clock
        self._before = parse_diskstats(b"")
        self._at = 0.0

    def __call__(self) -> Mapping[str, DiskRates]:
        """Rates by kernel name; empty at the first call, or if the file can't be read. A device
        that is new, or has another number now, has none yet."""
        now, counters = self._clock(), parse_diskstats(read_bytes(self._file) or b"")
        seconds, before = now - self._at, self._before
        self._at, self._before = now, counters
        rates_by_name = {
            name: disk_rates(current, before[name], seconds)
            for name, current in counters.items()
            if name in before
        }
        return {name: rates for name, rates in rates_by_name.items() if rates is not None}


# Amount of memory in the machine (/proc/meminfo).


_TOTAL = re.compile(rb"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


_AVAILABLE = re.compile(rb"^MemAvailable:\s+(\d+) kB$", re.MULTILINE)


def parse_memory(text: bytes) -> int | None:
    """MemTotal in bytes; ``None`` if it is missing."""
    match = _TOTAL.search(text)
    return int(match[1]) << 10 if match else None


def read_memory(roots: Roots) -> int | None:
    """The machine's memory in bytes; ``None`` if it can't be read."""
    return parse_memory(read_bytes(str(roots.proc / "meminfo")) or b"")


def read_available(roots: Roots) -> int | None:
    """Bytes that programs may still take without swapping; ``None`` if that can't be read."""
    match = _AVAILABLE.search(read_bytes(str(roots.proc / "meminfo")) or b"")
    return int(match[1]) << 10 if match else None
