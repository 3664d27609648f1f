"""Convert a counted value to the number of its bin, and a bin to its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from iopstui.linux.probe.regions import Region
from iopstui.model.metrics.probe import KINDS

BUCKET_BITS = 6
# a count's key: region, direction, bin
DIRECTION_AT, REGION_AT = 12, 16
OFFSET_MASK = (1 << DIRECTION_AT) - 1
DIRECTION_MASK = (1 << (REGION_AT - DIRECTION_AT)) - 1


def midpoint(index: int, bits: int) -> int:
    """The middle (ns) of the bucket with this number, as in fio (plat_idx_to_val), for buckets with
    ``bits`` below the highest bit."""
    octave = index >> bits
    if octave <= 1:
        return index
    low = ((1 << bits) | (index & ((1 << bits) - 1))) << (octave - 1)
    return low + (1 << (octave - 1) >> 1)


def counts_by_disk(
    regions: Sequence[Region], counts: Mapping[int, int], value: Callable[[int], int]
) -> dict[str, dict[str, dict[int, int]]]:
    """Sort ``counts``, whose keys are region number, direction and bin, by disk: the result has
    counts by name, direction and ``value`` of the bin. A partition's requests also count for its
    disk."""
    by_disk: dict[str, dict[str, dict[int, int]]] = {
        region.name: {kind: {} for kind in KINDS} for region in regions
    }
    bins_of: dict[int, list[dict[int, int]]] = {}
    for key, count in counts.items():
        place = key >> DIRECTION_AT
        if place not in bins_of:
            kind, region = KINDS[place & DIRECTION_MASK], regions[key >> REGION_AT]
            bins_of[place] = [
                by_disk[each.name][kind] for each in regions
                if each is region or (each.last is None and each.devs == region.devs)
            ]  # fmt: skip
        low = value(key & OFFSET_MASK)
        for bins in bins_of[place]:
            bins[low] = bins.get(low, 0) + count
    return by_disk


@cache
def bucket_middle(low: int) -> int:
    """The middle (ns) of the bucket of a latency with this number."""
    return midpoint(low, BUCKET_BITS)


def size_of(octave: int) -> int:
    """The smallest size (bytes, a power of two) counted in this octave of bins."""
    return 1 << (octave + BUCKET_BITS - 1) if octave else 0
