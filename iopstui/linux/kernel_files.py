"""The kernel's file trees: where they are, one attribute of them, and files that stay open."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Roots:
    """Root directories of all kernel files that iopstui reads."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    run: Path = Path("/run")

    @classmethod
    def under(cls, base: Path) -> Roots:
        """Return the same layout below ``base`` (a fixture tree)."""
        return cls(base / "proc", base / "sys", base / "dev", base / "run")

    @property
    def real(self) -> bool:
        """True if this is the running machine, not a fixture tree."""
        return self.sys == Path("/sys")


PAGE = 4096
CHUNK_BYTES = 1 << 16
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_CPU_RANGE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")
_MAX_CPU = 65535

File: TypeAlias = Path | str


def read_bytes(path: File) -> bytes | None:
    """The attribute's bytes; None if it is missing, unreadable or not a file."""
    try:
        # a file object would need four more system calls, and hundreds of attributes are read every
        # few seconds
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = [os.read(fd, 2 * PAGE)]
            # a file of /proc may come in short pieces: only an empty read means its end
            while parts[-1]:
                parts.append(os.read(fd, CHUNK_BYTES))
            return b"".join(parts)
        finally:
            os.close(fd)
    except (OSError, ValueError):
        return None


def decode(data: bytes) -> str:
    """Decode UTF-8; undecodable bytes are kept the way Python keeps them in file names."""
    return data.decode("utf-8", "surrogateescape")


def read_text(path: File) -> str | None:
    """The attribute as text, without NULs and surrounding white space; None if nothing is left."""
    data = read_bytes(path)
    if data is None:
        return None
    return decode(data).replace("\0", "").strip() or None


def read_int(path: File) -> int | None:
    """A decimal attribute; None if it is anything else."""
    return parse_int(read_text(path) or "")


def parse_int(text: str) -> int | None:
    """A decimal number; None if it is anything else, or too long for a kernel value."""
    return int(text) if _INTEGER.fullmatch(text) else None


def read_count(path: File) -> int | None:
    """A decimal attribute that can't be negative; None for -1 ("unknown") and garbage."""
    value = read_int(path)
    return value if value is not None and value >= 0 else None


def read_flag(path: File) -> bool | None:
    """An attribute that is 0 or 1, as a boolean; None if it is not a number."""
    value = read_int(path)
    return None if value is None else value != 0


def list_names(path: File) -> tuple[str, ...]:
    """Sorted names in a directory; empty if it can't be read."""
    try:
        return tuple(sorted(os.listdir(path)))
    except OSError:
        return ()


def link_name(path: File) -> str | None:
    """The last path component of a symbolic link's target (driver, subsystem)."""
    try:
        return os.path.basename(os.readlink(path)) or None
    except OSError:
        return None


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """CPU numbers of "0-3,8" or "0, 1, 2" (both spellings are the kernel's), sorted.

    Parts that are neither a number nor a range are skipped."""
    cpus: set[int] = set()
    for part in text.split(","):
        match = _CPU_RANGE.fullmatch(part.strip())
        if not match:
            continue
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        cpus.update(range(first, min(last, _MAX_CPU) + 1))
    return tuple(sorted(cpus))


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
