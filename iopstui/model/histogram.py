"""fio's latency histogram: subtraction, merging, percentiles, error bounds.

fio (stat.h, FIO_IO_U_PLAT_*) counts latencies in buckets: exact up to 127 ns, then 64 buckets
for every power of two. json+ prints each non-empty bucket under its midpoint in nanoseconds.
Bins are cumulative, so two documents subtract to the interval's own histogram, and bins of
several jobs or hosts add exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from iopstui.model.histogram_columns import HistogramColumns

Bins = Mapping[int, int]

BUCKET_BITS = 6
EXACT_BELOW = 1 << (BUCKET_BITS + 1)

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
MAX_RELATIVE_ERROR = 1 / EXACT_BELOW


def bucket_key(latency_ns: int) -> int:
    """The key (midpoint, ns) of the bucket that fio counts this latency in."""
    if latency_ns < 0:
        raise ValueError(f"a latency can't be negative: {latency_ns}")
    if latency_ns < EXACT_BELOW:
        return latency_ns
    shift = latency_ns.bit_length() - 1 - BUCKET_BITS
    return ((latency_ns >> shift) << shift) + (1 << (shift - 1))


def bucket_bounds(key: int) -> tuple[int, int]:
    """The lowest and the highest latency (ns, both inclusive) counted under this key."""
    if key < EXACT_BELOW:
        return key, key
    shift = key.bit_length() - 1 - BUCKET_BITS
    low = (key >> shift) << shift
    return low, low + (1 << shift) - 1


def subtract(current: Bins, previous: Bins) -> Bins | None:
    """Counts between two cumulative histograms.

    ``None`` if the counters were reset in between. fio copies its counters without stopping
    the jobs, so a single bucket may lag; a negative one beside a growing total is left out.
    """
    if type(current) is HistogramColumns and (not previous or type(previous) is HistogramColumns):
        counts = current.since(previous if type(previous) is HistogramColumns else None)
        if counts is not None:
            return counts
    # hundreds of buckets in hundreds of rows: look for decreases only if there is one
    before = previous.get
    difference = {
        key: increase for key, count in current.items() if (increase := count - before(key, 0))
    }
    lost = 0
    if difference and min(difference.values()) < 0:
        lost = -sum(increase for increase in difference.values() if increase < 0)
        difference = {key: increase for key, increase in difference.items() if increase > 0}
    if not previous.keys() <= current.keys():
        lost += sum(count for key, count in previous.items() if key not in current)
    if lost and lost > sum(difference.values()):
        return None
    return difference


def merge(parts: Iterable[Bins]) -> dict[int, int]:
    """The sum of several histograms."""
    total: dict[int, int] = {}
    for part in parts:
        add(total, part)
    return total


def add(total: dict[int, int], part: Bins) -> None:
    """Counts ``part`` into ``total``."""
    if not total:
        total.update(part)
        return
    before = total.get
    total.update({key: before(key, 0) + count for key, count in part.items()})


def percentiles(bins: Bins, percents: Iterable[float] = PERCENTILES) -> dict[float, int]:
    """Nearest-rank percentiles in ns, by fio's own rule (stat.c, calc_clat_percentiles).

    The answer is the key of the first bucket whose cumulative count reaches p/100 of the
    total, so it is within 1/128 of the true sample. Empty bins give an empty dict.
    """
    keys: Sequence[int]
    if type(bins) is HistogramColumns:
        keys, cumulative = bins.bucket_keys, bins.sums
    else:
        keys = sorted(bins)
        # at each key, how many are counted up to it: whole numbers, so nothing is lost by adding
        cumulative = list(accumulate(map(bins.__getitem__, keys)))
    total = cumulative[-1] if cumulative else 0
    if total <= 0:
        return {}
    indices = {p: bisect_left(cumulative, p / 100.0 * total) for p in sorted(percents)}
    return {p: keys[index] for p, index in indices.items() if index < len(keys)}


def maximum(bins: Bins) -> int | None:
    """The highest non-empty bucket's key (ns), or ``None`` if there is none."""
    if type(bins) is HistogramColumns:
        return bins.highest
    highest = max(bins, default=None)
    if highest is None or bins[highest] > 0:
        return highest
    return max((key for key, count in bins.items() if count > 0), default=None)


def percentile_name(p: float) -> str:
    """50.0 -> "p50", 99.9 -> "p99.9"."""
    return _NAMES.get(p) or f"p{p:g}"


_NAMES = {p: f"p{p:g}" for p in PERCENTILES}
