"""Files of /proc/PID that are read again and again, kept open: opening and closing one takes twice
as long as reading it."""

from __future__ import annotations

import resource
from collections.abc import Set

from iopstui.linux.counters.kernel_file import KernelFile

MOST = 1000
SHARE_OF_LIMIT = 0.5
"""Of the files that this process may have open."""


class KeptFiles:
    """The file ``name`` of many processes. For one thread. What is open is closed with it."""

    def __init__(self, proc: str, name: str) -> None:
        self._proc, self._name = proc, name
        self._files: dict[int, KernelFile] = {}
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = MOST if soft < 0 else min(MOST, int(SHARE_OF_LIMIT * soft))

    def read(self, pid: int) -> bytes:
        """Its beginning. OSError if it can't be read, or the process has ended."""
        kept = self._files.get(pid)
        if kept is not None:
            try:
                if data := kept.read_attribute():
                    return data
            except OSError:
                pass
            self._close(pid)  # it has ended, and another one may have its number
        file = KernelFile(f"{self._proc}/{pid}/{self._name}")
        try:
            data = file.read_attribute()
        except OSError:
            file.close()
            raise
        if len(self._files) < self._most:
            self._files[pid] = file
        else:
            file.close()
        return data

    def keep_only(self, pids: Set[int]) -> None:
        """Close the files of all other processes."""
        for pid in self._files.keys() - pids:
            self._close(pid)

    def _close(self, pid: int) -> None:
        self._files.pop(pid).close()

    def __del__(self) -> None:
        self.keep_only(set())
