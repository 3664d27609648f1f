"""Subtract and add many rows' histograms, packed into one large integer per row.

Hundreds of rows of hundreds of buckets each: a step of Python for every bucket is most of a wide
document's cost. Here a histogram is one number with a field of 64 bits for each bucket that any row
has, so subtracting or adding two is one operation. Where that could be wrong (a bucket that went
backwards, an impossible count) there is no result, and the caller uses ``histogram.subtract``.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable

from iopstui.model.histogram import Bins

FIELD = 64
# a million rows of such counts still fit into a field, and its highest bit stays free
MAX_COUNT = 1 << 40
_BEYOND = (1 << FIELD) - MAX_COUNT
_GUARD = 1 << (FIELD - 1)


class PackedBins:
    """The rows of one direction. Keeps each row's histogram of one document for the next."""

    def __init__(self) -> None:
        self._zeros: dict[int, int] = {}
        self._keys: list[int] = []
        self._guard = self._beyond = 0
        self._packed_rows: dict[int, tuple[Bins, int]] = {}

    def add_buckets(self, histograms: Iterable[Bins]) -> None:
        """Have a field for every bucket of these histograms: of all that follow."""
        keys = self._zeros.keys()
        new = {key for bins in histograms if not bins.keys() <= keys for key in bins}
        if new.issubset(keys):
            return
        self._keys = sorted(new.union(keys))
        self._zeros = dict.fromkeys(self._keys, 0)
        ones = int.from_bytes(_bytes(array("Q", [1]) * len(self._keys)), "little")
        self._guard, self._beyond = ones * _GUARD, ones * _BEYOND
        self._packed_rows = {}

    def growth(self, row: int, now: Bins, old: Bins | None) -> int | None:
        """Counts in ``row`` between two histograms; ``None`` if they cannot be computed here.
        ``old`` is ``None`` if it starts from zero."""
        packed = self._pack(now)
        before = 0
        if old:
            cached = self._packed_rows.get(row)
            packed_old = cached[1] if cached is not None and cached[0] is old else self._pack(old)
            if packed_old is None:
                return None
            before = packed_old
        if packed is None:
            return None
        self._packed_rows[row] = now, packed
        # a field that would go below zero borrows the bit above it
        difference = (packed | self._guard) - before
        return None if difference & self._guard != self._guard else difference ^ self._guard

    def highest(self, packed: int) -> int | None:
        """The key of the highest bucket that is not empty, in ns."""
        return self._keys[(packed.bit_length() - 1) // FIELD] if packed else None

    def unpacked(self, packed: int) -> dict[int, int]:
        """The buckets that are not empty."""
        counts = array("Q")
        counts.frombytes(packed.to_bytes(FIELD // 8 * len(self._keys), "little"))
        if sys.byteorder == "big":
            counts.byteswap()
        return {key: count for key, count in zip(self._keys, counts, strict=True) if count}

    def _pack(self, bins: Bins) -> int | None:
        counts = self._zeros | (bins if type(bins) is dict else dict(bins))
        if len(counts) != len(self._keys):
            return None
        try:
            packed = int.from_bytes(_bytes(array("Q", counts.values())), "little")
        except (OverflowError, TypeError):
            return None
        return None if packed & self._beyond else packed


def _bytes(counts: array[int]) -> bytes:
    if sys.byteorder == "big":
        counts.byteswap()
    return counts.tobytes()
