"""``--destroy-data``: bind each path to its device or file when the option is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from iopstui.linux.devices.usage.openers import File, file_identity
from iopstui.linux.sysattr import read_count

SYS = Path("/sys/dev/block")


@dataclass(frozen=True, slots=True)
class DestroyPath:
    """A path of ``--destroy-data``, bound to the file or device it named when it was read.

    ``real`` is the path with links followed, ``file`` the file (``None``: there was none), or
    ``number`` the block device, ``diskseq`` which of the disks that had that number. ``fd`` keeps
    the file's inode from being given to another one.
    """

    text: str
    real: str
    file: File | None = None
    number: tuple[int, int] | None = None
    diskseq: int | None = None
    fd: int = -1

    @property
    def existed(self) -> bool:
        """False if there was nothing of this name."""
        return self.file is not None or self.number is not None

    def matches(self, path: str, info: os.stat_result | None, diskseq: int | None = None) -> bool:
        """Whether it names the file or device ``info``, whose real path is ``path``."""
        if not os.path.isabs(self.text):
            return False
        if info is None or not self.existed:
            return self.real == path
        if stat.S_ISBLK(info.st_mode):
            if self.number != (os.major(info.st_rdev), os.minor(info.st_rdev)):
                return False
            return None in (self.diskseq, diskseq) or self.diskseq == diskseq
        return self.file == file_identity(info)


def bind_paths(texts: Sequence[str]) -> tuple[DestroyPath, ...]:
    """Bind the paths to their present files or devices; paths bound before keep their binding."""
    return tuple(map(_bind_path, texts))


@cache
def _bind_path(text: str) -> DestroyPath:
    try:
        real = os.path.realpath(text)
        fd = os.open(real, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return DestroyPath(text, os.path.realpath(text) if "\0" not in text else text)
    info = os.fstat(fd)
    if not stat.S_ISBLK(info.st_mode):
        return DestroyPath(text, real, file=file_identity(info), fd=fd)
    major, minor = os.major(info.st_rdev), os.minor(info.st_rdev)
    directory = SYS / f"{major}:{minor}"
    diskseq = read_count(directory / "diskseq")
    if diskseq is None:
        diskseq = read_count(directory / "../diskseq")
    return DestroyPath(text, real, number=(major, minor), diskseq=diskseq, fd=fd)
