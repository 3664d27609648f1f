"""Smallest difference that a number of repeats can detect, before and after the runs.

All spreads and differences here are of natural logarithms: a spread of 0.03 is 3 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from iopstui.model.metrics.statistics.paired_comparison import CONFIDENCE
from iopstui.model.metrics.statistics.student_t import t_quantile

POWER = 0.8
"""How often a difference is found that is said to be found (Cohen, Statistical Power Analysis for
the Behavioral Sciences, 1988, his convention): four times of five."""
MAX_REPEATS = 1000
_STEPS = 200
_MAX_DEVIATIONS = 8.0
"""Standard deviations beyond which nothing is left of a normal distribution."""
_NEGLIGIBLE = 1e-15
_ROOT = math.sqrt(2)


def power(difference: float, spread: float, repeats: int, alpha: float = 1 - CONFIDENCE) -> float:
    """The probability (0..1) that a paired t-test at the level ``alpha`` finds ``difference``.

    ``spread`` is the standard deviation of the pairs' differences. It is the noncentral t's
    probability beyond the test's limit. ValueError with fewer than two repeats.
    """
    if repeats < 2:
        raise ValueError("a t-test needs two repeats")
    if spread <= 0:
        return 1.0 if difference else alpha
    freedom = repeats - 1
    limit = t_quantile(1 - alpha / 2, freedom)
    shift = abs(difference) / spread * math.sqrt(repeats)
    integrate = _power_over_means if freedom in _BELOW else _power_over_spreads
    return min(1.0, integrate(freedom, limit, shift))


def _power_over_spreads(freedom: int, limit: float, shift: float) -> float:
    """Integrated over the estimated spread: of each, how often the mean lies beyond the limit."""
    total = 0.0
    for share, weight in _spreads(freedom):
        # half of erfc(-x / sqrt(2)) is the share of a normal distribution below x
        beyond = math.erfc((limit * share - shift) / _ROOT)
        total += weight * (beyond + math.erfc((limit * share + shift) / _ROOT))
    return total / 2


def _power_over_means(freedom: int, limit: float, shift: float) -> float:
    """The same integrated over the mean: of each, how often the estimated spread is small enough.
    With few repeats the limit is far out, and what lies beyond it comes from the smallest spreads,
    among which steps by spread would have to be tiny."""
    below = _BELOW[freedom]
    # there the integrand has a corner
    ends = sorted(
        {-_MAX_DEVIATIONS, min(max(-shift, -_MAX_DEVIATIONS), _MAX_DEVIATIONS), _MAX_DEVIATIONS}
    )
    total = 0.0
    for low, high in pairwise(ends):
        for x, weight in _simpson(low, high):
            normal = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
            total += weight * normal * below(abs(x + shift) / limit)
    return total


def _simpson(low: float, high: float) -> list[tuple[float, float]]:
    """Points from ``low`` to ``high`` with their weights (Simpson's rule)."""
    step = (high - low) / _STEPS
    rules = [1 if number in (0, _STEPS) else 4 if number % 2 else 2 for number in range(_STEPS + 1)]
    return [(low + number * step, rule * step / 3) for number, rule in enumerate(rules)]


@lru_cache(maxsize=32)
def _spreads(freedom: int) -> tuple[tuple[float, float], ...]:
    """Estimated spreads, as shares of the true one (chi / sqrt(freedom)), and how much each of them
    weighs in an integral over all."""
    width = 8 / math.sqrt(2 * freedom)
    points = _simpson(max(0.0, 1 - width), 1 + width)
    terms = ((share, weight * _chi(share, freedom)) for share, weight in points)
    return tuple((share, weight) for share, weight in terms if weight > _NEGLIGIBLE)


def _chi(share: float, freedom: int) -> float:
    """The density of chi / sqrt(freedom)."""
    if share <= 0:
        return 0.0
    half = freedom / 2
    log = half * math.log(half) + math.log(2) - math.lgamma(half)
    return math.exp(log + (freedom - 1) * math.log(share) - half * share * share)


def _below_1(share: float) -> float:
    return math.erf(share / _ROOT)


def _below_2(share: float) -> float:
    return -math.expm1(-share * share)


def _below_3(share: float) -> float:
    x = share * math.sqrt(3)
    return math.erf(x / _ROOT) - math.sqrt(2 / math.pi) * x * math.exp(-x * x / 2)


_BELOW = {1: _below_1, 2: _below_2, 3: _below_3}
"""By degrees of freedom: how often chi / sqrt(freedom) is below a share."""


# the screen asks the same again and again
@lru_cache(maxsize=64)
def smallest_detectable(spread: float, repeats: int, alpha: float = 1 - CONFIDENCE) -> float:
    """The smallest difference that is found with the probability ``POWER``."""
    if spread <= 0:
        return 0.0
    low, high = 0.0, spread
    while power(high, spread, repeats, alpha) < POWER:
        low, high = high, 2 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if power(middle, spread, repeats, alpha) < POWER:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=64)
def repeats_for(difference: float, spread: float, alpha: float = 1 - CONFIDENCE) -> int | None:
    """Number of repeats that detect ``difference`` with probability ``POWER``; ``None``: more
    than MAX_REPEATS."""
    if power(difference, spread, MAX_REPEATS, alpha) < POWER:
        return None
    low, high = 1, MAX_REPEATS
    while high - low > 1:
        middle = (low + high) // 2
        if power(difference, spread, middle, alpha) < POWER:
            low = middle
        else:
            high = middle
    return high


def spread_of(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The standard deviation of the differences of the logarithms; ``None`` with fewer than two
    pairs, or a figure that is not positive."""
    if len(pairs) < 2 or any(value <= 0 for pair in pairs for value in pair):
        return None
    steps = [math.log(b) - math.log(a) for a, b in pairs]
    mean = sum(steps) / len(steps)
    return math.sqrt(sum((step - mean) ** 2 for step in steps) / (len(steps) - 1))
