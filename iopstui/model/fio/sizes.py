"""Sizes as fio writes them (fio(1), "Parameter types")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

DEFAULT = "4k"
_PLACES = {"read": (0,), "write": (1,), "trim": (2,), "rw": (0, 1), "readwrite": (0, 1),
           "trimwrite": (1, 2)}  # fmt: skip
"""Which of bs= count, by rw= without its "rand"."""
_VARYING = {"bsrange", "blocksize_range", "bssplit", "bs_unaligned", "blocksize_unaligned"}


def fixed_block_size(options: Mapping[str, str]) -> int | None:
    """The size in bytes of every I/O of a job, or ``None`` if sizes vary (fio(1), "bs"). One that
    only reads doesn't have those of writes."""
    if not _VARYING.isdisjoint(options):
        return None
    text = options.get("bs", options.get("blocksize", DEFAULT))
    does = options.get("rw", options.get("readwrite", "read"))
    return _one_size(text, does, options.get("kb_base", ""))


@lru_cache(256)
def _one_size(text: str, does: str, kb_base: str) -> int | None:
    """``text`` has the sizes of reads, writes and trims: one that is not given is that of the one
    before, one that is empty the default."""
    given = re.split("[,/]", text)[:3]
    each = [*given, *given[-1:] * (3 - len(given))]
    kind = does.partition(":")[0].strip().removeprefix("rand")
    wanted = _PLACES.get(kind, (0, 1, 2))
    sizes = {size_bytes(each[place] or DEFAULT, {"kb_base": kb_base}) for place in wanted}
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
