"""Sizes as fio writes them (fio(1), "Parameter types")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_VARYING = {"bsrange", "blocksize_range", "bssplit", "bs_unaligned", "blocksize_unaligned"}


def fixed_block_size(options: Mapping[str, str]) -> int | None:
    """The size in bytes of every I/O of a job, or ``None`` if sizes vary (fio(1), "bs")."""
    if not _VARYING.isdisjoint(options):
        return None
    text = options.get("bs", options.get("blocksize", "4k"))
    return _one_size(text, options.get("kb_base", ""))


@lru_cache(256)
def _one_size(text: str, kb_base: str) -> int | None:
    sizes = {size_bytes(part, {"kb_base": kb_base}) for part in re.split("[,/]", text) if part}
    return sizes.pop() if len(sizes) == 1 else None


_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def size_bytes(text: str, options: Mapping[str, str] | None = None) -> int | None:
    """A fio size ("4k", "1MiB", "200g") in bytes; ``None`` for percentages and nonsense.

    As fio does by default (kb_base=1024), k and kB mean 1024 bytes, and so does KiB.
    """
    match = re.fullmatch(r"(\d{1,19})([kmgtp]?)(i?b)?", text.strip().lower(), re.ASCII)
    if match is None:
        return None
    base = 1000 if (options or {}).get("kb_base") == "1000" and match[3] != "ib" else 1024
    factor: int = base ** _UNITS[match[2]]
    return int(match[1]) * factor
