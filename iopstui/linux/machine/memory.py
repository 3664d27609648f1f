"""Amount of memory in the machine (/proc/meminfo)."""

from __future__ import annotations

import re

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_bytes

_TOTAL = re.compile(rb"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


_AVAILABLE = re.compile(rb"^MemAvailable:\s+(\d+) kB$", re.MULTILINE)


def parse_memory(text: bytes) -> int | None:
    """MemTotal in bytes; ``None`` if it is not there."""
    match = _TOTAL.search(text)
    return int(match[1]) << 10 if match else None


def read_memory(roots: Roots) -> int | None:
    """The machine's memory in bytes; ``None`` if that can't be read."""
    return parse_memory(read_bytes(str(roots.proc / "meminfo")) or b"")


def read_available(roots: Roots) -> int | None:
    """Bytes that programs may still take without swapping; ``None`` if that can't be read."""
    match = _AVAILABLE.search(read_bytes(str(roots.proc / "meminfo")) or b"")
    return int(match[1]) << 10 if match else None
