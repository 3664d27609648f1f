"""Statistics of runs: steady state, the knee of a load curve, differences of run means.

Samples of one run follow each other closely (they are autocorrelated), so nothing here takes
seconds as independent: figures of whole runs are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from iopstui.model.metrics.sequential import MIN_RUNS, anytime_limit, anytime_p

ROUNDS = 5
ROUND_S = 60.0
RANGE_LIMIT = 0.20
SLOPE_LIMIT = 0.10
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Was a run in steady state? SNIA Solid State Storage Performance Test Specification,
    "Steady State": over a window of five rounds the figures range over at most 20 % of their
    average, and their least-squares line rises or falls by at most 10 % of it.

    ``range`` and ``slope`` are those shares (0.2 is 20 %), ``round_s`` the length of a round in
    seconds, ``mean`` the average of the five rounds in counts a second. ``steady`` is ``None``
    where nothing can be said (``round_s`` is then 0).
    """

    steady: bool | None
    range: float = 0.0
    slope: float = 0.0
    round_s: float = 0.0
    mean: float = 0.0


def steadiness(
    intervals: Sequence[tuple[float, float]], round_s: float | None = None
) -> Steadiness:
    """``intervals`` are (seconds, count) in order, e.g. of completed I/Os.

    Without ``round_s`` a round is a minute, as in the specification, where the run has five of
    them; otherwise a fifth of the run. At least five intervals are needed, and five rounds.
    """
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
    """The rate of each round; an interval across a boundary is shared out by time."""
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


FIRST, LAST = "first", "last"


@dataclass(frozen=True, slots=True)
class Knee:
    """Knee of a load curve: ``index`` of the point with the most throughput for its latency.
    ``edge`` says that this is the curve's "first" or "last" point, so that the bend itself lies
    outside of what was measured; "" if it lies inside."""

    index: int
    edge: str = ""


def knee(points: Sequence[tuple[float, float]]) -> Knee | None:
    """The knee of (throughput, latency) points in the order of rising load.

    It maximises power = throughput / latency (Kleinrock, "Power and deterministic rules of
    thumb", 1979). Of a device that serves N* requests at once this is the depth N* itself:
    below it throughput grows at the same latency, above it only latency grows. ``None`` with
    fewer than three points or a figure that is not positive.
    """
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
    the best: Hsu, Annals of Statistics 9, 1981). ``None`` with fewer than two repeats or points.
    """
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
    (model/metrics/sequential.py); ``None`` with fewer than sequential.MIN_RUNS.
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
    limit = (
        anytime_limit(count, 1 - confidence)
        if sequential else t_quantile(0.5 + confidence / 2, count - 1)
    )  # fmt: skip
    p = _probability(mean, error, count, sequential)
    low, high = mean - limit * error, mean + limit * error
    if relative:
        mean, low, high = math.expm1(mean), math.expm1(low), math.expm1(high)
    return Difference(mean, low, high, p, count, relative)


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


def t_two_sided(t: float, freedom: int) -> float:
    """The probability that Student's t is at least this far from 0."""
    return _beta(freedom / (freedom + t * t), freedom / 2, 0.5)


@lru_cache(maxsize=64)
def t_quantile(probability: float, freedom: int) -> float:
    """Student's t that is exceeded with 1 - ``probability`` (0.5 to below 1). Sought once: a
    comparison needs the same one for all its figures."""
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
    """Return the continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8)
    by Lentz's method."""
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
