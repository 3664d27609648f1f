"""Student's t distribution."""

from __future__ import annotations

import math
from functools import lru_cache


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
