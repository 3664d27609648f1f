"""Differences of two variants whose runs were made in pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.model.metrics.statistics.sequential import MIN_RUNS, anytime_limit, anytime_p
from iopstui.model.metrics.statistics.student_t import t_quantile, t_two_sided

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """How a figure differs between two variants, run by run.

    ``mean`` is the relative difference (0.1: the second is 10 % higher) or, if ``relative`` is
    False, the plain one; ``low`` and ``high`` its confidence interval; ``p`` the probability of
    a difference at least this large where there is none; ``runs`` the number of pairs.
    """

    mean: float
    low: float
    high: float
    p: float
    runs: int
    relative: bool

    @property
    def shown(self) -> bool:
        """True if the interval excludes no difference."""
        return self.low > 0 or self.high < 0


def _steps(first: Sequence[float], second: Sequence[float], relative: bool) -> list[float]:
    """The pairs' differences; ``relative``: those of their logarithms."""
    pairs = zip(first, second, strict=True)
    return [math.log(b) - math.log(a) if relative else b - a for a, b in pairs]


def compare_paired(
    first: Sequence[float],
    second: Sequence[float],
    relative: bool = True,
    confidence: float = CONFIDENCE,
    resolution: float = 0.0,
    sequential: bool = False,
) -> Difference | None:
    """Compare figures of runs that were made in pairs, one of each variant, close in time.

    Student's paired t over the pairs' differences, for ``relative`` over the differences of
    their logarithms: what drifts slowly cancels within a pair. ``None`` with fewer than two
    pairs, or where a relative difference has nothing to relate to.

    ``resolution`` is the width of the steps that the figures come in (relative: as a share of
    them). A few equal differences of such figures look certain and are not: the rounding alone
    spreads them by a step / √6.

    ``sequential``: interval and probability hold however one came to stop at this pair
    (model/metrics/statistics/sequential.py); ``None`` with fewer than sequential.MIN_RUNS.
    """
    count = len(first)
    if count != len(second):
        raise ValueError("pairs need two figures each")
    if count < (MIN_RUNS if sequential else 2) or (
        relative and any(value <= 0 for value in (*first, *second))
    ):
        return None
    steps = _steps(first, second, relative)
    mean = sum(steps) / count
    variance = sum((step - mean) ** 2 for step in steps) / (count - 1)
    error = math.sqrt(max(variance, resolution**2 / 6) / count)
    limit = _limit(confidence, count, sequential)
    p = _probability(mean, error, count, sequential)
    low, high = mean - limit * error, mean + limit * error
    if relative:
        mean, low, high = math.expm1(mean), math.expm1(low), math.expm1(high)
    return Difference(mean, low, high, p, count, relative)


def _limit(confidence: float, count: int, sequential: bool) -> float:
    """How many standard errors the interval reaches to each side."""
    if sequential:
        return anytime_limit(count, 1 - confidence)
    return t_quantile(0.5 + confidence / 2, count - 1)


def _probability(mean: float, error: float, count: int, sequential: bool) -> float:
    if not error:
        return 0.0 if mean else 1.0
    if sequential:
        return anytime_p(mean / error, count)
    return t_two_sided(mean / error, count - 1)


def holm(probabilities: Sequence[float]) -> list[float]:
    """The probabilities adjusted for looking at all of them (Holm, 1979), in their order: one
    below 0.05 is then a false alarm in at most 5 % of all comparisons, not of all figures."""
    order = sorted(range(len(probabilities)), key=probabilities.__getitem__)
    adjusted = [0.0] * len(probabilities)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, probabilities[index] * (len(order) - rank)))
        adjusted[index] = highest
    return adjusted
