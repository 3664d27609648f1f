"""What share of all syncs is slow, those of seconds that did not occur in the run included?

The seconds of an uneven disk differ, and a short run may have missed the slow ones. So the seconds
that were measured are taken as a sample: each is so many times as slow as the others (by its 90th
percentile), by a ln-normal factor whose mean and spread are known only roughly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import NormalDist

from iopstui.model import histogram

SCALE_PERCENT = 90.0
POINTS = 11
"""Equally likely values of each unknown."""
OF_95 = 0.025
_NORMAL = NormalDist()
_QUANTILES = tuple(_NORMAL.inv_cdf((n + 0.5) / POINTS) for n in range(POINTS))


def unevenness(seconds: Sequence[Mapping[int, int]]) -> tuple[float, float] | None:
    """The mean and the standard deviation of the seconds' slowness, as natural logarithms of ns.
    ``None`` with fewer than three seconds."""
    scales = _scales(seconds)
    if len(scales) < 3:
        return None
    mean = sum(scales) / len(scales)
    return mean, math.sqrt(sum((each - mean) ** 2 for each in scales) / (len(scales) - 1))


def share_of_all(seconds: Sequence[Mapping[int, int]], limit: float) -> tuple[float, float] | None:
    """The 95 % interval of the share of all syncs that take longer than ``limit`` (ns), from the
    histograms of single seconds."""
    known = unevenness(seconds)
    if known is None:
        return None
    mean, spread = known
    above = _Above(seconds, mean)
    count = len(_scales(seconds))
    shares = sorted(
        above.expected(math.log(limit) - mean - shift * wide / math.sqrt(count), wide)
        for wide in (spread * factor for factor in _spread_factors(count - 1))
        for shift in _QUANTILES
    )
    rank = OF_95 * len(shares)
    return shares[int(rank)], shares[-1 - int(rank)]


def _scales(seconds: Sequence[Mapping[int, int]]) -> list[float]:
    found = (histogram.percentiles(bins, (SCALE_PERCENT,)).get(SCALE_PERCENT) for bins in seconds)
    return [math.log(max(1, key)) for key in found if key is not None]


def _spread_factors(freedom: int) -> list[float]:
    """By how much the true spread may exceed the one that was seen: sqrt(f / chi2), at equally
    likely values (Wilson and Hilferty)."""
    part = 2 / (9 * freedom)
    return [max(0.05, 1 - part + z * math.sqrt(part)) ** -1.5 for z in _QUANTILES]


class _Above:
    """The share of syncs above a distance from their second's scale (of logarithms), by all
    seconds together."""

    def __init__(self, seconds: Sequence[Mapping[int, int]], mean: float) -> None:
        values: list[tuple[float, int]] = []
        for bins in seconds:
            scale = _scales((bins,))
            values += [(math.log(max(1, key)) - scale[0], n) for key, n in bins.items() if scale]
        values.sort()
        self._places = [place for place, _ in values]
        self._below = [0, *accumulate(n for _, n in values)]

    def share(self, distance: float) -> float:
        """Of the syncs that are further above."""
        return 1 - self._below[bisect_right(self._places, distance)] / self._below[-1]

    def expected(self, distance: float, spread: float) -> float:
        """Over the seconds to come, whose scale differs from the mean with this spread."""
        return sum(self.share(distance - spread * z) for z in _FINE) / len(_FINE)


_FINE = tuple(_NORMAL.inv_cdf((n + 0.5) / 200) for n in range(200))
