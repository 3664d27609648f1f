"""Sizes as fio writes them: powers of 1024 with one letter ("8k")."""

from __future__ import annotations

import re

KIB, MIB = 1 << 10, 1 << 20
FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZED = re.compile(r"(\d+)([kmgtKMGT]?)")


def parse_whole_size(text: str) -> int | None:
    """ "8k" -> 8192; ``None`` for anything but digits with at most one letter."""
    match = _SIZED.fullmatch(text.strip())
    return None if match is None else int(match[1]) * FACTORS[match[2].lower()]


def size_text(value: int) -> str:
    """8192 -> "8k", in the largest unit that leaves a whole number."""
    for unit in ("t", "g", "m", "k"):
        if value and value % FACTORS[unit] == 0:
            return f"{value // FACTORS[unit]}{unit}"
    return str(value)
