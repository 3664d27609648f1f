"""What the next run takes over from the run it replaces, while that one still works."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from iopstui.errors import Interrupted
from iopstui.linux.process.processes import parent, start_time
from iopstui.safety.locks import HeldLock


class ActiveRun:
    """Locks and exclusively opened devices (``holds``) of the active run, duplicated, and its
    processes: all below its guard, the process ``guard_pid``.

    The duplicates stay until ``close``, even if the active run ends meanwhile. ``is_given_up``: the
    next run is no longer wanted; then ``owns``, which is called for each process, raises
    Interrupted."""

    def __init__(
        self,
        locks: Sequence[HeldLock],
        holds: Sequence[int],
        guard_pid: int,
        is_given_up: Callable[[], bool] = bool,
    ) -> None:
        self._is_given_up = is_given_up
        self._resources = ExitStack()
        self._guard = (guard_pid, start_time(guard_pid))
        self.locks = tuple(HeldLock(self._duplicate(held.fd), held.shared) for held in locks)
        self.holds = tuple(map(self._duplicate, holds))

    def _duplicate(self, fd: int) -> int:
        duplicate = os.dup(fd)
        self._resources.callback(os.close, duplicate)
        return duplicate

    def owns(self, pid: int) -> bool:
        """Whether this is a process of the active run, now."""
        if self._is_given_up():
            raise Interrupted("The run is not wanted any more.")
        guard_pid, began = self._guard
        while pid > 1 and pid != guard_pid:
            pid = parent(pid)
        return pid == guard_pid and began is not None and start_time(pid) == began

    def close(self) -> None:
        """Close the duplicates; may be called twice."""
        self._resources.close()
        self.locks = self.holds = ()
