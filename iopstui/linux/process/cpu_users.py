"""Which program uses the CPUs most (utime and stime in /proc/PID/stat, proc(5))."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iopstui.linux.kernel_files import Roots, decode
from iopstui.linux.process.processes import command_of, is_within, task_stat
from iopstui.text import printable

LEAST_PERCENT = 25.0
"""A program that uses less of a CPU is not named."""
_PARENT, _USER, _SYSTEM, _START = 1, 11, 12, 19
"""ppid, utime, stime and starttime in /proc/PID/stat, counted after the name."""


@dataclass(frozen=True, slots=True)
class _Process:
    comm: str
    parent: int
    used_s: float
    start: bytes


class CpuUsers:
    """The CPU time of all processes since this object was made, other than this program's own: in
    user mode, where I/O of others costs hardly any, and ``with_kernel`` in kernel mode, too."""

    def __init__(
        self, roots: Roots | None = None, clock: Callable[[], float] = time.monotonic,
        own_pid: int | None = None, with_kernel: bool = False,
    ) -> None:  # fmt: skip
        self._times = (_USER, _SYSTEM) if with_kernel else (_USER,)
        self._proc = str((roots or Roots()).proc)
        self._clock, self._own_pid = clock, os.getpid() if own_pid is None else own_pid
        self._began_s, self._before = clock(), self._read()

    def busiest(self) -> str:
        """ "stress-ng --cpu 2 (965) with 98 %" of a CPU, "cc1 (4 processes) with 180 %"; "" if no
        program that still runs used much."""
        seconds, now = self._clock() - self._began_s, self._read()
        used: dict[str, dict[int, float]] = {}
        for pid, process in now.items():
            if seconds <= 0 or self._is_own(pid, now):
                continue
            before = self._before.get(pid)
            earlier = before.used_s if before is not None and before.start == process.start else 0.0
            percent = 100 * (process.used_s - earlier) / seconds
            if percent >= 1:
                used.setdefault(process.comm, {})[pid] = percent
        comm = max(used, key=lambda name: sum(used[name].values()), default="")
        total = sum(used[comm].values()) if comm else 0.0
        if total < LEAST_PERCENT:
            return ""
        pids = [*used[comm]]
        if len(pids) > 1:
            return f"{comm} ({len(pids)} processes) with {total:.0f} %"
        command = command_of(f"{self._proc}/{pids[0]}") or comm
        return f"{command} ({pids[0]}) with {total:.0f} %"

    def _is_own(self, pid: int, now: Mapping[int, _Process]) -> bool:
        return is_within(pid, self._own_pid, lambda one: now[one].parent if one in now else 0)

    def _read(self) -> dict[int, _Process]:
        found, ticks_s = {}, os.sysconf("SC_CLK_TCK")
        for name in os.listdir(self._proc):
            if not name.isdecimal():
                continue
            try:
                comm, fields = task_stat(f"{self._proc}/{name}")
                used_s = sum(int(fields[index]) for index in self._times) / ticks_s
                found[int(name)] = _Process(
                    printable(decode(comm)), int(fields[_PARENT]), used_s, fields[_START]
                )
            except (OSError, ValueError, IndexError):
                continue  # it has just ended
        return found
