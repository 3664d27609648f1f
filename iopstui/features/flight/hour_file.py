"""One file of the ring: a recording that makes room for itself, and is on the disk every 5 s."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iopstui.features.flight.model.slim_probe import SlimProbe
from iopstui.recording import layout
from iopstui.recording.writer import Recorder

SYNC_S = 5.0
_FULL = (errno.ENOSPC, errno.EDQUOT)


class HourFile(Recorder):
    """``make_room`` removes something and returns True, or False where nothing is left to remove.
    It is called in the recorder's thread, which nobody waits for."""

    is_listed = False
    compression_level = 4
    """Half the CPU time of level 6 for a tenth more bytes, until it is thinned."""

    def __init__(self, path: Path, make_room: Callable[[], bool]) -> None:
        super().__init__(path)
        self.identity = _identity(self._fd)
        self._make_room = make_room
        self._slim_probe = SlimProbe()
        self._synced_at = time.monotonic()

    @property
    def is_there(self) -> bool:
        """Whether the file still has its name."""
        with contextlib.suppress(OSError):
            info = os.lstat(self.path)
            return (info.st_dev, info.st_ino) == self.identity
        return False

    def _chunk(self, kind: bytes, t: float, value: Any) -> None:
        if kind == layout.SAMPLE:
            is_shown, raw = value
            value = is_shown, self._slim_probe.feed(t, raw)
        super()._chunk(kind, t, value)

    def _write(self, data: bytes) -> None:
        while True:
            try:
                super()._write(data)
                break
            except OSError as error:
                if error.errno not in _FULL or not self._make_room():
                    raise
        if time.monotonic() - self._synced_at >= SYNC_S:
            os.fdatasync(self._fd)
            self._synced_at = time.monotonic()

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            if self._fd >= 0:
                os.fdatasync(self._fd)
        super()._end()


def _identity(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino
