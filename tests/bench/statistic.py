"""Medians and intervals that assume no distribution."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """The median, and the interval of order statistics that has the true median with at least this
    confidence (sign test); the whole range if there are too few values."""
    ordered = sorted(values)
    n = len(ordered)
    low = 0
    while low + 1 < n / 2:
        outside = 2 * sum(comb(n, k) for k in range(low + 2)) / 2**n
        if outside > 1 - confidence:
            break
        low += 1
    return median(ordered), ordered[low], ordered[n - 1 - low]
