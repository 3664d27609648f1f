"""Means of some numbers, without the standard library's ``statistics``: that takes as long to load
as ten of our files, at each start."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, sqrt


def fmean(values: Iterable[float]) -> float:
    """The arithmetic mean. ZeroDivisionError without a value."""
    numbers = list(values)
    return fsum(numbers) / len(numbers)


def pstdev(values: Iterable[float]) -> float:
    """The standard deviation of all there is, no sample's. ZeroDivisionError without a value."""
    numbers = list(values)
    middle = fmean(numbers)
    return sqrt(fsum((number - middle) ** 2 for number in numbers) / len(numbers))


def median(values: Iterable[float]) -> float:
    """The middle one, of an even count the mean of both. IndexError without a value."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
