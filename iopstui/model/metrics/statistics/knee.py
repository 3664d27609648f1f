"""The knee of a load curve: the point with the most throughput for its latency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.model.metrics.statistics.paired_comparison import CONFIDENCE, compare_paired

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
