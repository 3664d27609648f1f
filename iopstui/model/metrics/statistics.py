"""Statistics of runs: steady state, knees of load curves, comparisons and their power.

Samples of one run follow each other closely (they are autocorrelated), so seconds are never treated
as independent here: figures of whole runs are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

# The knee of a load curve: the point with the most throughput for its latency.


FIRST, LAST = "first", "last"


@dataclass(frozen=True, slots=True)
class Knee:
    """Knee of a load curve: ``index`` of the point with the most throughput for its latency.
    ``edge`` is "first" or "last" if this is the curve's first or last point, so that the real knee
    may lie outside the measured range; else ""."""

    index: int
    edge: str = ""


def knee(points: Sequence[tuple[float, float]]) -> Knee | None:
    """The knee of (throughput, latency) points in the order of rising load.

    It maximises power = throughput / latency (Kleinrock, "Power and deterministic rules of thumb",
    1979). For a device that serves N* requests at once this is the depth N* itself: below it
    throughput grows at the same latency, above it only latency grows. ``None`` with fewer than
    three points or a figure that is not positive."""
    if len(points) < 3 or any(x <= 0 or r <= 0 for x, r in points):
        return None
    power = [x / r for x, r in points]
    best = max(range(len(power)), key=power.__getitem__)
    edge = FIRST if best == 0 else LAST if best == len(power) - 1 else ""
    return Knee(best, edge)


def knee_within(powers: Sequence[Sequence[float]]) -> tuple[int, int] | None:
    """The first and last point that may be the knee of a curve whose points were run several times.

    ``powers`` has a row for each point: throughput / latency of each repeat, all > 0, repeats in
    the same order. A point is excluded if its power is shown to be below that of the point with
    the highest mean: one-sided paired t on the logarithms, 5 % shared out among the points
    (Bonferroni), so that the true knee is among the rest in 95 % of all sweeps (comparisons with
    the best: Hsu, Annals of Statistics 9, 1981). ``None`` with fewer than two repeats or points."""
    if len(powers) < 2 or min(map(len, powers)) < 2:
        return None
    means = [sum(map(math.log, row)) / len(row) for row in powers]
    best = max(range(len(means)), key=means.__getitem__)
    level = (1 - CONFIDENCE) / (len(powers) - 1)
    candidates = []
    for index, row in enumerate(powers):
        difference = None if index == best else compare_paired(row, powers[best])
        if difference is None or difference.mean <= 0 or difference.p / 2 >= level:
            candidates.append(index)
    return candidates[0], candidates[-1]


# Differences of two variants whose runs were made in pairs.


CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """How a figure differs between two variants, run by run.

    ``mean`` is the relative difference (0.1: the second is 10 % higher) or, if ``relative`` is
    False, the plain one; ``low`` and ``high`` its confidence interval; ``p`` the probability of a
    difference at least this large if there is none; ``runs`` the number of pairs."""

    mean: float
    low: float
    high: float
    p: float
    runs: int
    relative: bool

    @property
    def shown(self) -> bool:
        """True if the interval does not contain 0."""
        return self.low > 0 or self.high < 0


def _steps(first: Sequence[float], second: Sequence[float], relative: bool) -> list[float]:
    """The difference of each pair; ``relative``: of the logarithms."""
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

    Student's paired t over the pairs' differences (``relative``: of their logarithms): slow drift
    cancels within a pair. ``None`` with fewer than two pairs, or if a relative difference is
    undefined.

    ``resolution`` is the width of the steps that the figures come in (relative: as a share of
    them). A few equal differences of such figures look certain and are not: the rounding alone
    spreads them by a step / √6.

    ``sequential``: interval and probability are valid for any reason to stop at this pair
    (anytime_p); ``None`` with fewer than MIN_RUNS."""
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
    """Half the width of the interval, in standard errors."""
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
    """The probabilities adjusted for looking at all of them (Holm, 1979), in their order: if one
    below 0.05 counts as a difference, at most 5 % of all comparisons (not of all figures) have a
    false alarm."""
    order = sorted(range(len(probabilities)), key=probabilities.__getitem__)
    adjusted = [0.0] * len(probabilities)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, probabilities[index] * (len(order) - rank)))
        adjusted[index] = highest
    return adjusted


# The smallest difference that a number of repeats can detect, before and after the runs.
#
# All spreads and differences here are of natural logarithms: a spread of 0.03 is 3 %.


POWER = 0.8
"""Probability of finding a difference that counts as detectable: four times out of five (Cohen,
Statistical Power Analysis for the Behavioral Sciences, 1988)."""
MAX_REPEATS = 1000
_STEPS = 200
_MAX_DEVIATIONS = 8.0
"""Beyond this many standard deviations a normal distribution counts as 0."""
_NEGLIGIBLE = 1e-15
_ROOT = math.sqrt(2)


def power(difference: float, spread: float, repeats: int, alpha: float = 1 - CONFIDENCE) -> float:
    """The probability (0..1) that a paired t-test at the level ``alpha`` finds ``difference``.

    ``spread`` is the standard deviation of the pairs' differences. The result is the probability of
    the noncentral t distribution beyond the test's limit. ValueError with fewer than two
    repeats."""
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
    """Power, integrated over the estimated spread: for each spread, how often the mean is beyond
    the limit."""
    total = 0.0
    for share, weight in _spreads(freedom):
        # half of erfc(-x / sqrt(2)) is the share of a normal distribution below x
        beyond = math.erfc((limit * share - shift) / _ROOT)
        total += weight * (beyond + math.erfc((limit * share + shift) / _ROOT))
    return total / 2


def _power_over_means(freedom: int, limit: float, shift: float) -> float:
    """Power, integrated over the mean: for each mean, how often the estimated spread is small
    enough. With few repeats the limit is far out, and values beyond it come from the smallest
    spreads, so an integral over spreads would need tiny steps."""
    below = _BELOW[freedom]
    # the integrand has a corner at -shift
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
    """Estimated spreads, as shares of the true one (chi / sqrt(freedom)), with their weights in an
    integral."""
    width = 8 / math.sqrt(2 * freedom)
    points = _simpson(max(0.0, 1 - width), 1 + width)
    terms = ((share, weight * _chi(share, freedom)) for share, weight in points)
    return tuple((share, weight) for share, weight in terms if weight > _NEGLIGIBLE)


def _chi(share: float, freedom: int) -> float:
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
"""By degrees of freedom: how often chi / sqrt(freedom) is below a given value."""


# cached, because the screen repeats the same calculation again and again
@lru_cache(maxsize=64)
def smallest_detectable(spread: float, repeats: int, alpha: float = 1 - CONFIDENCE) -> float:
    """The smallest difference that is found with probability ``POWER``."""
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
    """The standard deviation of the pairs' differences of logarithms; ``None`` with fewer than two
    pairs, or a figure that is not positive."""
    if len(pairs) < 2 or any(value <= 0 for pair in pairs for value in pair):
        return None
    steps = [math.log(b) - math.log(a) for a, b in pairs]
    mean = sum(steps) / len(steps)
    return math.sqrt(sum((step - mean) ** 2 for step in steps) / (len(steps) - 1))


# A sequential t-test: it may be checked after every run and stopped at any time.
#
# The runs' t-statistic is compared with a mixture of true effects: a difference in standard
# deviations, normally distributed around 0 with variance MIXTURE. If there is no difference, the
# likelihood ratio is a martingale for any unknown spread, so the probability that it ever exceeds
# 1/alpha is at most alpha (Ville, 1939). Inverted, it is a confidence sequence: all its intervals
# together contain the truth with probability 1 - alpha. Lai, "On confidence sequences", Annals of
# Statistics 4, 1976; Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian
# means with unknown variance", Sequential Analysis 44, 2025.


MIXTURE = 4.0
"""The variance of the mixture. Of the values tried (1, 2, 4, 8) this one gives about the narrowest
intervals after 4 to 20 runs."""
MIN_RUNS = 6
"""No result with fewer runs. Intervals are finite from 4 on, but a disturbance with a rhythm can
hit only one variant in 2 of the 2^n random orders: 3 % with 6 runs."""


def anytime_limit(runs: int, alpha: float) -> float:
    """The |t| of ``runs`` differences at which the test ends at level ``alpha``; infinite if there
    are too few."""
    if runs < 2:
        return math.inf
    shrunk = 1 + runs * MIXTURE
    root = (math.sqrt(shrunk) / alpha) ** (2 / runs)
    if root >= shrunk:
        return math.inf
    return math.sqrt((runs - 1) * (root - 1) / (1 - root / shrunk))


def anytime_p(t: float, runs: int) -> float:
    """A p-value (0..1) that stays valid if one looks after each run and stops at any time: 1 /
    likelihood ratio. It is used like the p-value of a plain t-test."""
    shrunk = 1 + runs * MIXTURE
    square = t * t / (runs - 1)
    log = 0.5 * math.log(shrunk) + runs / 2 * (math.log1p(square / shrunk) - math.log1p(square))
    return min(1.0, math.exp(log))


def runs_needed(spread: float, within: float, alpha: float, max_runs: int) -> int | None:
    """How many pairs of runs narrow the interval of their mean difference to +- ``within`` or less,
    if differences have the standard deviation ``spread``. ``None``: more than ``max_runs``."""
    for runs in range(MIN_RUNS, max_runs + 1):
        if anytime_limit(runs, alpha) * spread <= within * math.sqrt(runs):
            return runs
    return None


# Whether a run was in steady state.


ROUNDS = 5
ROUND_S = 60.0
RANGE_LIMIT = 0.20
SLOPE_LIMIT = 0.10


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Whether a run was in steady state. SNIA Solid State Storage Performance Test Specification,
    "Steady State": over a window of five rounds the figures range over at most 20 % of their
    average, and their least-squares line rises or falls by at most 10 % of it.

    ``range`` and ``slope`` are these shares (0.2 is 20 %), ``round_s`` the length of a round in
    seconds, ``mean`` the average of the five rounds in counts a second. ``steady`` is ``None`` if
    unknown (``round_s`` is then 0); ``changing`` is the fio option that changes the load, if that
    is the reason. ``sections`` are the job sections at work in this stage of the run (empty if
    there is only one stage)."""

    steady: bool | None
    range: float = 0.0
    slope: float = 0.0
    round_s: float = 0.0
    mean: float = 0.0
    changing: str = ""
    sections: tuple[str, ...] = ()


def steadiness(
    intervals: Sequence[tuple[float, float]], round_s: float | None = None
) -> Steadiness:
    """Judge whether a run was in steady state. ``intervals`` are (seconds, count) in order, e.g. of
    completed I/Os.

    Without ``round_s`` a round is a minute, as in the specification, or a fifth of a run shorter
    than five minutes. At least five intervals are needed, and five rounds."""
    total = sum(seconds for seconds, _ in intervals)
    if len(intervals) < ROUNDS or total <= 0 or (round_s or 0.0) * ROUNDS > total:
        return Steadiness(None)
    round_s = round_s or min(ROUND_S, total / ROUNDS)
    rates = _rounds(intervals, total - ROUNDS * round_s, round_s)
    mean = sum(rates) / ROUNDS
    if mean <= 0:
        return Steadiness(None)
    spread = (max(rates) - min(rates)) / mean
    slope = abs(_slope(rates)) * (ROUNDS - 1) / mean
    return Steadiness(spread <= RANGE_LIMIT and slope <= SLOPE_LIMIT, spread, slope, round_s, mean)


def _rounds(
    intervals: Sequence[tuple[float, float]], start: float, round_s: float
) -> tuple[float, ...]:
    """The rate of each round; an interval across a boundary is divided by time."""
    counts = [0.0] * ROUNDS
    at = 0.0
    for seconds, count in intervals:
        for number in range(ROUNDS):
            low = start + number * round_s
            overlap = min(at + seconds, low + round_s) - max(at, low)
            if overlap > 0 and seconds > 0:
                counts[number] += count * overlap / seconds
        at += seconds
    return tuple(count / round_s for count in counts)


def _slope(values: Sequence[float]) -> float:
    """The least-squares line's rise from one value to the next."""
    middle = (len(values) - 1) / 2
    above = sum((x - middle) * y for x, y in enumerate(values))
    return above / sum((x - middle) ** 2 for x in range(len(values)))


# Student's t distribution.


def t_two_sided(t: float, freedom: int) -> float:
    """The probability that Student's t is at least this far from 0."""
    return _beta(freedom / (freedom + t * t), freedom / 2, 0.5)


@lru_cache(maxsize=64)
def t_quantile(probability: float, freedom: int) -> float:
    """Student's t that is exceeded with probability 1 - ``probability`` (0.5 to below 1). Cached: a
    comparison needs the same value for all its figures."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"not within 0.5 and 1: {probability}")
    two_sided = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while t_two_sided(high, freedom) > two_sided:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if t_two_sided(middle, freedom) > two_sided:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by
    Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 1000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + step * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + step / c
            c = c if abs(c) > tiny else tiny
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result
