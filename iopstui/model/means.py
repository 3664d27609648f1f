"""Means of some numbers, without the standard library's ``statistics``: importing that takes as
long as ten of our files, at each start."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, sqrt


def fmean(values: Iterable[float]) -> float:
    """The arithmetic mean. ZeroDivisionError without a value."""
    numbers = list(values)
    return fsum(numbers) / len(numbers)


def pstdev(values: Iterable[float]) -> float:
    """The standard deviation of a whole population, not of a sample. Raises ZeroDivisionError if
    there are no values."""
    numbers = list(values)
    middle = fmean(numbers)
    return sqrt(fsum((number - middle) ** 2 for number in numbers) / len(numbers))


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two middle values. Raises IndexError if there are no
    values."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
