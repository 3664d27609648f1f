"""Kernel files that stay open and are reread from the beginning."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

CHUNK = 64 << 10


class KernelFile:
    """A kernel file that stays open for repeated reading."""

    def __init__(self, path: Path | str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def chunks(self) -> Iterator[bytes]:
        """The current content. Large proc files come in pieces and are read to the end."""
        offset = 0
        while chunk := os.pread(self._fd, CHUNK, offset):
            yield chunk
            offset += len(chunk)

    def read(self) -> bytes:
        return b"".join(self.chunks())

    def read_attribute(self) -> bytes:
        """Read a small file in one call: a file of sysfs has at most a page."""
        return os.pread(self._fd, CHUNK, 0)

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_files(paths: Iterable[Path]) -> list[KernelFile]:
    files = []
    for path in paths:
        with contextlib.suppress(OSError):
            files.append(KernelFile(path))
    return files
