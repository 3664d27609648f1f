"""Convert fio's fine histogram bins to the few buckets of a classic histogram.

The bounds are such that no bin of fio's lies across one: counts stay exact. A latency that is
exactly a bound is counted above it, where Prometheus would count it below: fio's bins don't tell.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from iopstui.output.export.exposition import Labels, Sample, histogram_samples

# two for each power of two from 8 µs to 1 s, where disks are; few around it
BOUNDS_NS = (
    1 << 11, 1 << 12,
    *(bound for power in range(13, 30) for bound in (1 << power, 3 << (power - 1))),
    1 << 30, 1 << 32, 1 << 34,
)  # fmt: skip


class Buckets:
    """A histogram that only grows. ``add`` takes an interval's own bins (by midpoint in ns)."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_NS) + 1)
        self._sum_ns = 0.0

    def add(self, bins: Mapping[int, int], mean_ns: float | None) -> None:
        """Count them; ``mean_ns`` is the mean of what is in them (``None``: that of the bins)."""
        for key, count in bins.items():
            self._counts[bisect_right(BOUNDS_NS, key)] += count
        if mean_ns is None:
            self._sum_ns += sum(key * count for key, count in bins.items())
        else:
            self._sum_ns += mean_ns * sum(bins.values())

    def samples(self, own: Labels) -> list[Sample]:
        """Return its lines, in seconds."""
        *below, total = accumulate(self._counts)
        counts = {bound / 1e9: count for bound, count in zip(BOUNDS_NS, below, strict=True)}
        return list(histogram_samples(counts, total, self._sum_ns / 1e9, own))
