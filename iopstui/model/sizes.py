"""Sizes as fio writes them: powers of 1024 with one letter, ranges, lists (fio(1), "Parameter
types")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from iopstui.model.samples import READ, TRIM, WRITE

KIB, MIB = 1 << 10, 1 << 20
FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZED = re.compile(r"(\d+)([kmgtKMGT]?)")


def parse_whole_size(text: str) -> int | None:
    """Parse a whole size: "8k" -> 8192; ``None`` for anything but digits with at most one
    letter."""
    match = _SIZED.fullmatch(text.strip())
    return None if match is None else int(match[1]) * FACTORS[match[2].lower()]


def size_text(value: int) -> str:
    """Format a size: 8192 -> "8k", in the largest unit that gives a whole number."""
    for unit in ("t", "g", "m", "k"):
        if value and value % FACTORS[unit] == 0:
            return f"{value // FACTORS[unit]}{unit}"
    return str(value)


DEFAULT = "4k"
_NAMES = (READ, WRITE, TRIM)
_BS_POSITIONS = {"read": (0,), "write": (1,), "trim": (2,), "rw": (0, 1), "readwrite": (0, 1),
           "trimwrite": (1, 2)}  # fmt: skip
"""Which of the three values of bs= count, by the value of rw= without "rand"."""
# the I/Os of cpuio are turns of a loop and move no bytes
_ENGINE_WITHOUT_IO = "cpuio"
_VARYING_SIZES = {"bsrange", "blocksize_range", "bssplit", "bs_unaligned", "blocksize_unaligned"}


def fixed_block_size(options: Mapping[str, str]) -> int | None:
    """The size in bytes of every I/O of a job, or ``None`` if sizes vary (fio(1), "bs") or an I/O
    moves no bytes. For a job that only reads, the size of writes doesn't matter."""
    sizes = set(fixed_block_sizes(options).values())
    return sizes.pop() if len(sizes) == 1 else None


def fixed_block_sizes(options: Mapping[str, str]) -> dict[str, int | None]:
    """The size of every I/O of a job, by the directions in its ``rw``; ``None`` for a size that
    can't be read as a number; empty if sizes vary."""
    if not _VARYING_SIZES.isdisjoint(options) or options.get("ioengine") == _ENGINE_WITHOUT_IO:
        return {}
    text = options.get("bs", options.get("blocksize", DEFAULT))
    rw = options.get("rw", options.get("readwrite", "read"))
    return dict(_sizes(text, rw, options.get("kb_base", "")))


@lru_cache(256)
def _sizes(text: str, rw: str, kb_base: str) -> tuple[tuple[str, int | None], ...]:
    """Parse bs= (``text``), which lists the sizes of reads, writes and trims: a missing one equals
    the one before, an empty one is the default."""
    listed = [part.partition("/")[0] for part in text.split(",")][:3]
    by_direction = [*listed, *listed[-1:] * (3 - len(listed))]
    kind = rw.partition(":")[0].strip().removeprefix("rand")
    return tuple(
        (_NAMES[place], size_bytes(by_direction[place] or DEFAULT, {"kb_base": kb_base}))
        for place in _BS_POSITIONS.get(kind, (0, 1, 2))
    )


_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def size_bytes(text: str, options: Mapping[str, str] | None = None) -> int | None:
    """A size ("4k", "1MiB", "200g") in bytes; ``None`` for percentages and nonsense.

    With the ``options`` of a job it is read as by fio: if k means 1024 (kb_base=1024, the default),
    KiB means 1000, and vice versa; unknown letters are ignored (4x is 4). Without options it is a
    user's input to iopstui: k, kB and KiB are 1024 bytes, anything unknown gives ``None``."""
    size = text.strip().lower()
    if options is None:
        match = re.fullmatch(r"(\d{1,19})([kmgtp]?)(?:i?b)?", size, re.ASCII)
        return int(match[1]) * 1024 ** _UNITS[match[2]] if match else None
    match = re.fullmatch(r"(?!0x)(\d{1,19})([kmgtp]?)(ib)?[a-z]*", size, re.ASCII)
    if match is None:
        return None
    bases = (1024, 1000) if options.get("kb_base") != "1000" else (1000, 1024)
    factor: int = bases[match[3] is not None] ** _UNITS[match[2]]
    return int(match[1]) * factor


def part_bytes(
    text: str, total: int | None, options: Mapping[str, str] | None = None
) -> int | None:
    """Parse a size like ``size_bytes``, or "50%" of a ``total`` (bytes; ``None``: not known),
    rounded up."""
    share = text.removesuffix("%")
    if share == text:
        return size_bytes(text, options)
    if total is None or not share.isdecimal():
        return None
    return -(-total * int(share) // 100)
