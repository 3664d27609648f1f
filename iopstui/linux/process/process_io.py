"""Reads and writes of each process, over all disks together (/proc/PID/io, proc(5))."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil

from iopstui.text import printable


@dataclass(frozen=True, slots=True)
class ProcessRates:
    """Bytes per second that a process had the block layer read and write: ``write_s`` is what it
    dirtied in the page cache or wrote directly, whichever disk that goes to."""

    pid: int
    comm: str
    read_s: float
    write_s: float


class ProcessIo:
    """Counters of all processes that may be read; ``rates`` gives what they did since the reading
    before. For one thread. It costs some 20 µs a process: only ask while somebody looks."""

    def __init__(self, least_s: float = 0.9) -> None:
        self._min_interval_s = least_s
        self._at = 0.0
        self._before: dict[tuple[int, float], tuple[int, int]] = {}
        self._rates: list[ProcessRates] | None = None
        self.closed = 0
        """How many processes did not let us read theirs."""

    def rates(self) -> list[ProcessRates] | None:
        """The busiest first; ``None`` until two readings are made."""
        now = time.monotonic()
        if self._at and now - self._at < self._min_interval_s:
            return self._rates
        counts, names = self._read()
        if self._at:
            self._rates = self._differences(counts, names, now - self._at)
        self._at, self._before = now, counts
        return self._rates

    def _read(self) -> tuple[dict[tuple[int, float], tuple[int, int]], dict[int, str]]:
        counts: dict[tuple[int, float], tuple[int, int]] = {}
        names: dict[int, str] = {}
        self.closed = 0
        for process in psutil.process_iter():
            try:
                io = process.io_counters()
                # a number is given again when its process is gone
                counts[process.pid, process.create_time()] = (io.read_bytes, io.write_bytes)
                names[process.pid] = process.name()
            except psutil.AccessDenied:
                self.closed += 1
            except (psutil.Error, OSError, ValueError):
                continue
        return counts, names

    def _differences(
        self,
        counts: dict[tuple[int, float], tuple[int, int]],
        names: dict[int, str],
        seconds: float,
    ) -> list[ProcessRates]:
        rates = []
        for key, (read, written) in counts.items():
            before = self._before.get(key)
            if before is None or read < before[0] or written < before[1]:
                continue
            increases = read - before[0], written - before[1]
            if any(increases):
                name = printable(names[key[0]])
                rates.append(
                    ProcessRates(key[0], name, increases[0] / seconds, increases[1] / seconds)
                )
        return sorted(rates, key=lambda process: (-process.read_s - process.write_s, process.pid))
