"""A figure held against the same one of an earlier run: batches of a run, and the ratio of two.

Seconds of a run follow each other closely, so its spread is that of batches of them, inflated by
what is left of their correlation (docs/statistics.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.statistics import CONFIDENCE, t_quantile

FEWEST = 5
MOST = 20
HIGHEST_CORRELATION = 0.8


@dataclass(frozen=True, slots=True)
class Spread:
    """How sure a run's figure is from within: its standard error as a share of it, and the degrees
    of freedom of that."""

    error: float
    freedom: int


@dataclass(frozen=True, slots=True)
class BaselineFigure:
    """A figure of an earlier run: its ``value`` in the field's unit, its ``spread`` (``None``: a
    single final figure), of which file (``name``) and over how many ``seconds``."""

    value: float
    spread: Spread | None
    name: str
    seconds: float = 0.0


class BatchMeans:
    """One figure over the frames of a run, also in up to ``MOST`` equal batches: neighbours are
    joined when there would be more."""

    def __init__(self, path: Sequence[str]) -> None:
        self._path = tuple(path)
        self.whole = Meter(path)
        self._batches: list[Meter] = []
        self._each, self._held = 1, 0

    def add(self, frame: Frame) -> None:
        """Count one frame."""
        if self.whole.add(frame) is None:
            return
        if not self._held:
            if len(self._batches) == MOST:
                self._halve()
            self._batches.append(Meter(self._path))
        self._batches[-1].add(frame)
        self._held = (self._held + 1) % self._each

    def _halve(self) -> None:
        pairs = zip(self._batches[::2], self._batches[1::2], strict=True)
        for one, other in pairs:
            one.join(other)
        self._batches = self._batches[::2]
        self._each *= 2

    @property
    def spread(self) -> Spread | None:
        """``None`` with fewer than ``FEWEST`` batches, or where the figure is not above 0."""
        whole = self._batches if not self._held else self._batches[:-1]
        return spread([value for one in whole if (value := one.value) is not None])


def spread(values: Sequence[float]) -> Spread | None:
    """Of the figures of equal batches in their order."""
    count = len(values)
    if count < FEWEST:
        return None
    mean = sum(values) / count
    if mean <= 0:
        return None
    off = [value - mean for value in values]
    squares = sum(one * one for one in off)
    after = sum(a * b for a, b in itertools.pairwise(off))
    # the first correlation of few values is estimated too low by about 1 / n (Kendall)
    likeness = (after / squares if squares else 0.0) + 1 / count
    likeness = min(HIGHEST_CORRELATION, max(0.0, likeness))
    variance = squares / (count - 1) / count * (1 + likeness) / (1 - likeness)
    return Spread(math.sqrt(variance) / mean, count - 1)


def ratio_interval(
    measured: float, own: Spread | None, base: BaselineFigure, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """The interval that holds the true ratio of a run's figure to the baseline's with this
    confidence (Welch, of the logarithms). One that has no spread of its own is taken to be as
    uneven as the other; ``None`` if neither has one, or where there is no ratio."""
    known = [one for one in (own, base.spread) if one is not None]
    if not known or measured <= 0 or base.value <= 0:
        return None
    one, other = known[0], known[-1]
    variances = one.error**2, other.error**2
    total = sum(variances)
    middle = math.log(measured / base.value)
    if not total:
        return math.exp(middle), math.exp(middle)
    parts = sum(v * v / s.freedom for v, s in zip(variances, (one, other), strict=True))
    freedom = one.freedom if len(known) == 1 else max(1, int(total * total / parts))
    half = t_quantile(0.5 + confidence / 2, freedom) * math.sqrt(total)
    return math.exp(middle - half), math.exp(middle + half)
