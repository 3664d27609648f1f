"""Compare a figure with an earlier run: confidence interval of the ratio.

Seconds of a run are correlated, so a run is cut into batches. The spread of the batches, widened by
their correlation, gives the interval of a mean or of a percentile (docs/statistics.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui.model import histogram
from iopstui.model.histogram import bucket_bounds
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.statistics import CONFIDENCE, t_quantile

MIN_INTERVALS = 20
"""A run needs at least this many intervals: with fewer, comparisons of equal runs fail too often
(docs/statistics.md)."""
MAX_BATCHES = 20
MAX_CORRELATION = 0.9
MAXIMUM = "max"
_NEXT_COARSER = {"max": "p99.9", "p99.99": "p99.9", "p99.9": "p99", "p99": "p95", "p95": "p90",
            "p90": "p50", "p50": "mean"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spread:
    """The variation of a figure within one run.

    ``error`` is its standard error as a share of the figure, ``freedom`` the degrees of freedom of
    that error. ``below`` and ``above`` are set for percentiles, whose interval is not symmetric:
    the distances of its 95 % limits, as natural logarithms."""

    error: float
    freedom: int
    below: float | None = None
    above: float | None = None

    def distances(self) -> tuple[float, float]:
        """How far its 95 % limits are below and above the figure, as logarithms of the ratios."""
        half = t_quantile(0.5 + CONFIDENCE / 2, self.freedom) * self.error
        if self.below is None or self.above is None:
            return half, half
        return self.below, self.above


@dataclass(frozen=True, slots=True)
class BaselineFigure:
    """A figure of an earlier run: ``value`` in the field's unit, ``spread`` (``None``: a single
    final figure), ``name`` of its file, and the ``seconds`` it covers."""

    value: float
    spread: Spread | None
    name: str
    seconds: float = 0.0


class BatchMeans:
    """A figure over the frames of a run, also as means of up to ``MAX_BATCHES`` equal batches.
    Neighbouring batches are joined if there would be more."""

    def __init__(self, path: Sequence[str]) -> None:
        self._path = tuple(path)
        self.whole = Meter(path)
        self._batches: list[Meter] = []
        self._each, self._held = 1, 0
        self.frames = 0

    def add(self, frame: Frame) -> None:
        """Count one frame, unless its rates are not those of the job."""
        if not frame.holds or self.whole.add(frame) is None:
            return
        self.frames += 1
        if not self._held:
            if len(self._batches) == MAX_BATCHES:
                self._halve()
            self._batches.append(Meter(self._path))
        self._batches[-1].add(frame)
        self._held = (self._held + 1) % self._each

    def _halve(self) -> None:
        pairs = zip(self._batches[::2], self._batches[1::2], strict=True)
        for first, second in pairs:
            first.join(second)
        self._batches = self._batches[::2]
        self._each *= 2

    @property
    def spread(self) -> Spread | None:
        """The spread; ``None`` if there is no confidence interval (``why`` gives the reason)."""
        if self.frames < MIN_INTERVALS or self._path[-1] == MAXIMUM:
            return None
        complete = self._batches if not self._held else self._batches[:-1]
        if self.whole.percent is not None:
            return percentile_spread([batch.bins for batch in complete], self.whole.percent)
        return batch_spread([value for batch in complete if (value := batch.value) is not None])

    def share_above(self, limit: float) -> tuple[float, float] | None:
        """The 95 % interval of the share of all values in the histograms above ``limit`` (ns);
        ``None`` with fewer than two batches. If none of n values is above, the interval reaches up
        to 3 / n."""
        batches = [batch.bins for batch in self._batches if batch.bins]
        sizes = [sum(bins.values()) for bins in batches]
        if len(batches) < 2 or self.frames < MIN_INTERVALS:
            return None
        above = [sum(n for key, n in bins.items() if key > limit) for bins in batches]
        margin = t_quantile(0.5 + CONFIDENCE / 2, len(batches) - 1) * _share_error(above, sizes)
        share, unseen = sum(above) / sum(sizes), 3 / sum(sizes)
        return max(0.0, share - margin), share + max(margin, unseen)

    @property
    def why(self) -> str:
        """Why there is no confidence interval; "" if there is one."""
        if self.spread is not None:
            return ""
        if self._path[-1] == MAXIMUM:
            return WHY_NO_MAX
        if self.frames < MIN_INTERVALS:
            measured = "1 interval" if self.frames == 1 else f"{self.frames} intervals"
            return f"only {measured}; a 95 % confidence interval needs at least {MIN_INTERVALS}"
        if self.whole.percent is not None:
            return "too few I/Os are this slow for a 95 % confidence interval"
        return "the figure is 0"


WHY_NO_MAX = (
    "the maximum is a single I/O and has no confidence interval, so a check of it can fail "
    "for equal runs"
)


def next_coarser_figure(name: str) -> str:
    """The next figure that depends less on rare I/Os (p99 for p99.9). It may have a confidence
    interval if ``name`` has none. "" if there is no such figure."""
    for figure, coarser in _NEXT_COARSER.items():
        if name == figure or name.endswith(f".{figure}"):
            return name.removesuffix(figure) + coarser
    return ""


def batch_spread(values: Sequence[float]) -> Spread | None:
    """Spread of the mean of equal batches; ``None`` with fewer than two batches, or if the mean is
    not above 0."""
    count = len(values)
    mean = sum(values) / count if count else 0.0
    if count < 2 or mean <= 0:
        return None
    return Spread(_standard_error([value - mean for value in values]) / mean, count - 1)


def percentile_spread(batches: Sequence[Mapping[int, int]], percent: float) -> Spread | None:
    """The interval of a percentile of all I/Os, from the histograms of equal batches.

    The share of I/Os above the percentile is a mean over the batches, so it has a standard error.
    The percentiles at the ends of that share's interval are the ends of the percentile's interval
    (Woodruff, Journal of the American Statistical Association 47, 1952), out to the edges of their
    buckets. ``None`` if the interval of the share reaches 0: then it has no upper end."""
    merged = histogram.merge(batches)
    key = histogram.percentiles(merged, (percent,)).get(percent)
    if key is None or len(batches) < 2:
        return None
    sizes = [sum(bins.values()) for bins in batches]
    error = max(
        _share_error(
            [sum(n for place, n in bins.items() if place >= first) for bins in batches], sizes
        )
        for first in (key, key + 1)
    )
    freedom = len(batches) - 1
    slower = 1 - percent / 100
    margin = t_quantile(0.5 + CONFIDENCE / 2, freedom) * error
    if margin >= slower:
        return None
    ends = [100 * (1 - min(1 - 1e-12, slower + sign * margin)) for sign in (1, -1)]
    limits = histogram.percentiles(merged, ends)
    low = max(1, bucket_bounds(limits[ends[0]])[0])
    high = bucket_bounds(limits[ends[1]])[1]
    middle = max(1, key)
    below, above = math.log(middle / low), math.log(max(high, middle) / middle)
    return Spread((below + above) / 2 / t_quantile(0.975, freedom), freedom, below, above)


def _share_error(counts: Sequence[int], sizes: Sequence[int]) -> float:
    """The standard error of a share, from ``counts`` out of ``sizes`` in each batch."""
    share = sum(counts) / sum(sizes)
    mean_size = sum(sizes) / len(sizes)
    return _standard_error(
        [(n - share * size) / mean_size for n, size in zip(counts, sizes, strict=True)]
    )


def _standard_error(deviations: Sequence[float]) -> float:
    """Standard error of a mean, from the batches' deviations, widened by their correlation."""
    count = len(deviations)
    squares = sum(deviation * deviation for deviation in deviations)
    after = sum(a * b for a, b in itertools.pairwise(deviations))
    correlation = max(0.0, after / squares) if squares else 0.0
    # the first correlation of a few values is estimated too low by about (1 + 4 r) / n (Kendall)
    likeness = min(MAX_CORRELATION, correlation + (1 + 4 * correlation) / count)
    variance = squares / (count - 1) / count * (1 + likeness) / (1 - likeness)
    return math.sqrt(variance)


def ratio_interval(
    measured: float, spread: Spread | None, base: BaselineFigure
) -> tuple[float, float] | None:
    """The confidence interval of the true ratio of a run's figure to the baseline's, by Welch's
    method for means and by Zou and Donner's (Statistics in Medicine 27, 2008) for percentiles, both
    on logarithms. A run without a spread is assumed to vary as much as the other; ``None`` if
    neither has one, or if there is no ratio."""
    spreads = [s for s in (spread, base.spread) if s is not None]
    if not spreads or measured <= 0 or base.value <= 0:
        return None
    first, second = spreads[0], spreads[-1]
    middle = math.log(measured / base.value)
    if first.below is not None or second.below is not None:
        (below, above), (base_below, base_above) = first.distances(), second.distances()
        return (math.exp(middle - math.hypot(below, base_above)),
                math.exp(middle + math.hypot(above, base_below)))  # fmt: skip
    variances = first.error**2, second.error**2
    total = sum(variances)
    if not total:
        return math.exp(middle), math.exp(middle)
    parts = sum(v * v / s.freedom for v, s in zip(variances, (first, second), strict=True))
    freedom = first.freedom if len(spreads) == 1 else max(1, int(total * total / parts))
    half = t_quantile(0.5 + CONFIDENCE / 2, freedom) * math.sqrt(total)
    return math.exp(middle - half), math.exp(middle + half)
