"""Files of /proc/PID that are read again and again, kept open: opening and closing one takes twice
as long as reading it."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Container

MOST = 1000
SHARE_OF_LIMIT = 0.5
"""Of the files that this process may have open."""
BYTES = 1024


class KeptFiles:
    """The file ``name`` of many processes. For one thread. What is open is closed with it."""

    def __init__(self, proc: str, name: str) -> None:
        self._proc, self._name = proc, name
        self._fds: dict[int, int] = {}
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = MOST if soft < 0 else min(MOST, int(SHARE_OF_LIMIT * soft))

    def read(self, pid: int) -> bytes:
        """Its beginning. OSError if it can't be read, or the process has ended."""
        fd = self._fds.get(pid)
        if fd is not None:
            with contextlib.suppress(OSError):
                if data := os.pread(fd, BYTES, 0):
                    return data
            self._close(pid)  # it has ended, and another one may have its number
        # a file object would make more system calls
        fd = os.open(f"{self._proc}/{pid}/{self._name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(fd, BYTES, 0)
        except OSError:
            os.close(fd)
            raise
        if len(self._fds) < self._most:
            self._fds[pid] = fd
        else:
            os.close(fd)
        return data

    def keep_only(self, pids: Container[int]) -> None:
        """Close the files of all other processes."""
        for pid in [pid for pid in self._fds if pid not in pids]:
            self._close(pid)

    def _close(self, pid: int) -> None:
        os.close(self._fds.pop(pid))

    def __del__(self) -> None:
        self.keep_only(())
