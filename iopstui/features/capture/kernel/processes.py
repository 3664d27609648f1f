"""Names of the processes that a capture sees, and which of them are wanted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

from iopstui.features.capture.model.packing import METADATA, METADATA_PROCESS
from iopstui.linux.process.processes import task_stat
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_text
from iopstui.text import printable

MAX_CACHED = 8192
ENDED = "ended processes"
"""Of those that had ended before anybody asked for their names."""
_MAX_PARENTS = 64


class Processes:
    """Names of processes by number, looked up once. ``roots_of``: only these processes and what
    they have started are chosen; none: all."""

    def __init__(self, roots: Roots, roots_of: Collection[int] = ()) -> None:
        self._proc = roots.proc
        self._roots_of = frozenset(roots_of)
        self._names: dict[int, str] = {}
        self._chosen: dict[int, bool] = {}

    def name(self, pid: int) -> str:
        """The name of process ``pid``, or METADATA_PROCESS."""
        if pid & METADATA:
            return METADATA_PROCESS
        name = self._names.get(pid)
        if name is None:
            if len(self._names) >= MAX_CACHED:
                self._names.clear()
            name = self._names[pid] = _name(read_text(self._proc / str(pid) / "comm"))
        return name

    def is_chosen(self, pid: int) -> bool:
        """Whether it is one of the chosen processes, or was started by one."""
        pid &= ~METADATA
        is_chosen = self._chosen.get(pid)
        if is_chosen is None:
            if len(self._chosen) >= MAX_CACHED:
                self._chosen.clear()
            is_chosen = self._chosen[pid] = self._descends_from_root(pid)
        return is_chosen

    def _descends_from_root(self, pid: int) -> bool:
        for _ in range(_MAX_PARENTS):
            if pid in self._roots_of:
                return True
            pid = self._parent(pid)
            if not pid:
                break
        return False

    def _parent(self, pid: int) -> int:
        try:
            fields = task_stat(f"{self._proc}/{pid}")[1]
        except OSError:
            return 0
        return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def _name(comm: str | None) -> str:
    if not comm:
        return ENDED
    if comm.startswith("kworker"):
        # one of many that do the same
        return "kworker (writeback)" if "flush-" in comm else "kworker"
    return printable(comm) or "?"


def cgroups_below(path: Path) -> frozenset[int]:
    """Numbers of the cgroup at ``path`` and of all below it, as captured requests carry them: the
    lower 32 bits of the directories' inodes. Empty if it can't be read."""
    numbers = set()
    for place, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            numbers.add(os.stat(place).st_ino & 0xFFFFFFFF)
    return frozenset(numbers)
