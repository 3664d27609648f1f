"""fio's latency histogram: subtraction, merging, percentiles, error bounds.

fio (stat.h, FIO_IO_U_PLAT_*) counts latencies in buckets: exact up to 127 ns, then 64 buckets
for every power of two. json+ prints each non-empty bucket under its midpoint in nanoseconds.
Bins are cumulative, so two documents subtract to the interval's own histogram, and bins of
several jobs or hosts add exactly."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from itertools import accumulate
from operator import sub

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

    ``None`` if the counters were reset in between. fio copies its counters without stopping the
    jobs, so a single bucket may lag; if the total grows, a negative bucket is left out."""
    if type(current) is HistogramColumns and (not previous or type(previous) is HistogramColumns):
        counts = current.since(previous if type(previous) is HistogramColumns else None)
        if counts is not None:
            return counts
    if current == previous:
        return {}
    # there are hundreds of buckets in hundreds of rows, so look for decreases only if there is one
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
    if not total:
        total.update(part)
        return
    before = total.get
    total.update({key: before(key, 0) + count for key, count in part.items()})


def percentiles(bins: Bins, percents: Iterable[float] = PERCENTILES) -> dict[float, int]:
    """Nearest-rank percentiles in ns, by fio's own rule (stat.c, calc_clat_percentiles).

    The answer is the key of the first bucket whose cumulative count reaches p/100 of the
    total, so it is within 1/128 of the true sample. Empty bins give an empty dict."""
    keys: Sequence[int]
    if type(bins) is HistogramColumns:
        keys, cumulative = bins.bucket_keys, bins.sums
    else:
        keys = sorted(bins)
        # number of values up to each key: whole numbers, so adding loses nothing
        cumulative = list(accumulate(map(bins.__getitem__, keys)))
    total = cumulative[-1] if cumulative else 0
    if total <= 0:
        return {}
    indices = {p: bisect_left(cumulative, p / 100.0 * total) for p in sorted(percents)}
    return {p: keys[index] for p, index in indices.items() if index < len(keys)}


def maximum(bins: Bins) -> int | None:
    """The key (ns) of the highest bucket that is not empty; ``None`` if all are empty."""
    if type(bins) is HistogramColumns:
        return bins.highest
    highest = max(bins, default=None)
    if highest is None or bins[highest] > 0:
        return highest
    return max((key for key, count in bins.items() if count > 0), default=None)


def percentile_name(p: float) -> str:
    """Format a percentile's name: 50.0 -> "p50", 99.9 -> "p99.9"."""
    return _NAMES.get(p) or f"p{p:g}"


_NAMES = {p: f"p{p:g}" for p in PERCENTILES}


# Histograms as two columns, for fast sums over many intervals.
#
# A day has 86,400 histograms of some 200 buckets. Successive histograms of fio have the same
# buckets, so their lists of counts are subtracted as a whole. And the growths of successive
# intervals need not be added up: the last histogram minus the first one is their sum.


class HistogramColumns(Mapping[int, int]):
    """A histogram: ``bucket_keys`` (in ns, ascending) and their ``counts``, none of them below 0. A
    bucket that counted nothing is not in it, as in a dict. ``ends`` are the cumulative histogram at
    the end of the interval, and the one at its beginning (``None``: it grew from nothing); ``lag``
    is the excess of this growth over their difference. Histograms with the same buckets should
    share one list of ``bucket_keys``, which makes this fast."""

    __slots__ = ("_dict", "_sums", "bucket_keys", "counts", "ends", "lag")

    def __init__(
        self,
        bucket_keys: Sequence[int],
        counts: Sequence[int],
        ends: tuple[HistogramColumns, HistogramColumns | None] | None = None,
        lag: Mapping[int, int] | None = None,
    ) -> None:
        self.bucket_keys = bucket_keys
        self.counts = counts
        self.ends = ends
        self.lag = lag
        self._sums: list[int] | None = None
        self._dict: dict[int, int] | None = None

    def __getitem__(self, key: int) -> int:
        return self.as_dict()[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return len(self.as_dict())

    def __bool__(self) -> bool:
        return any(self.counts)

    def __repr__(self) -> str:
        return f"Columns({self.as_dict()!r})"

    def keys(self) -> KeysView[int]:
        return self.as_dict().keys()

    def values(self) -> ValuesView[int]:
        return self.as_dict().values()

    def items(self) -> ItemsView[int, int]:
        return self.as_dict().items()

    def as_dict(self) -> dict[int, int]:
        """The histogram as a dict, which callers must not change."""
        if self._dict is None:
            pairs = zip(self.bucket_keys, self.counts, strict=True)
            self._dict = {key: count for key, count in pairs if count}
        return self._dict

    @property
    def sums(self) -> list[int]:
        """Cumulative counts up to each index of ``bucket_keys``."""
        if self._sums is None:
            self._sums = list(accumulate(self.counts))
        return self._sums

    @property
    def highest(self) -> int | None:
        """The highest key that counted anything; ``None`` if the histogram is empty."""
        sums = self.sums
        return self.bucket_keys[bisect_left(sums, sums[-1])] if sums and sums[-1] else None

    def since(self, before: HistogramColumns | None) -> HistogramColumns | None:
        """The counts since ``before`` (``None``: all are new), like ``subtract``; ``None`` if a
        bucket has disappeared or the counts began again."""
        if before is None:
            return HistogramColumns(self.bucket_keys, self.counts, (self, None))
        old_counts = before.counts
        if self.bucket_keys is not before.bucket_keys:
            old_count = before.as_dict().get
            old_counts = [old_count(key, 0) for key in self.bucket_keys]
            if sum(map(bool, old_counts)) != sum(map(bool, before.counts)):
                return None
        counts = list(map(sub, self.counts, old_counts))
        if not counts or min(counts) >= 0:
            return HistogramColumns(self.bucket_keys, counts, (self, before))
        return self._without_lag(counts, before)

    def _without_lag(self, counts: list[int], before: HistogramColumns) -> HistogramColumns | None:
        """The growth without negative counts: fio copies its counters without stopping the jobs, so
        a single counter may lag, and is taken as unchanged. ``None`` if these lags are more than
        what was counted."""
        lag = {
            key: -count for key, count in zip(self.bucket_keys, counts, strict=True) if count < 0
        }
        counts = [count if count > 0 else 0 for count in counts]
        if sum(lag.values()) > sum(counts):
            return None
        return HistogramColumns(self.bucket_keys, counts, (self, before), lag)


class BinsTotal:
    """The sum of many intervals' histograms. ``in_order``: its keys are in the order in which they
    were first counted, as if the histograms were added one by one."""

    def __init__(self, in_order: bool = False) -> None:
        self._in_order = in_order
        self._counts: dict[int, int] = {}
        # the growth from _first to _last is not yet in _counts
        self._first: HistogramColumns | None = None
        self._last: HistogramColumns | None = None
        self._has_lag = False

    def __getstate__(self) -> dict[str, object]:
        """Copy the sum so far; the copy starts its own sequence of intervals."""
        self._add_pending()
        return {**self.__dict__, "_first": None, "_last": None}

    def add(self, part: Mapping[int, int]) -> None:
        last, ends = self._last, part.ends if type(part) is HistogramColumns else None
        if last is not None and ends is not None and ends[1] is last:
            now = ends[0]
            if now.bucket_keys is last.bucket_keys:
                self._last = now
                if part.lag:  # type: ignore[attr-defined]
                    self._has_lag = True
                    self._count(part.lag)  # type: ignore[attr-defined]
                return
        self._add_pending()
        self._count(part)
        first = ends[0] if ends is not None else None
        if (
            first is not None
            and self._in_order
            and not self._counts.keys() >= set(first.bucket_keys)
        ):
            first = None
        self._first = self._last = first

    def _add_pending(self) -> None:
        first, last = self._first, self._last
        if first is None or last is None or first is last:
            return
        self._first = last
        self._count(HistogramColumns(last.bucket_keys, list(map(sub, last.counts, first.counts))))
        if self._has_lag:
            self._has_lag = False
            self._counts = {key: count for key, count in self._counts.items() if count}

    def _count(self, part: Mapping[int, int]) -> None:
        if not self._counts:
            self._counts.update(part)
            return
        before = self._counts.get
        self._counts.update({key: before(key, 0) + count for key, count in part.items()})

    @property
    def bins(self) -> dict[int, int]:
        """The sum so far, which callers must not change."""
        self._add_pending()
        return self._counts
