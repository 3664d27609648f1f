"""Group the repeated runs of a sweep by point, and summarise each point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from iopstui.model.experiment.plan import Plan, PlannedPoint, expand_plan
from iopstui.model.experiment.point import LITTLE_TOLERANCE, LittlesLaw, Point, joined
from iopstui.model.metrics.statistics.paired_comparison import CONFIDENCE
from iopstui.model.metrics.statistics.student_t import t_quantile

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A job and its settings: what makes two runs those of one point."""


def point_indexes(plan: Plan) -> dict[Key, int]:
    """The place of each point of a sweep, from 0: as if every point were run once and in order."""
    return {point_key(step): step.index for step in points_in_order(plan)}


def points_in_order(plan: Plan) -> list[PlannedPoint]:
    """A sweep's points, each once, the first axis varying fastest."""
    return list(expand_plan(replace(plan, seed=None, repeats=1)))


def point_key(step: PlannedPoint) -> Key:
    """A key that distinguishes the point from the others."""
    return step.job, tuple((setting.name, setting.value) for setting in step.settings)


@dataclass(frozen=True, slots=True)
class MeanWithInterval:
    """A figure over runs: the geometric mean, and its 95 % interval (Student's t on the
    logarithms; ``None`` of a single run)."""

    value: float
    within: tuple[float, float] | None


def geometric_mean(values: Sequence[float]) -> MeanWithInterval:
    """Mean of one or more figures; the plain mean without an interval if one is not positive."""
    count = len(values)
    if any(value <= 0 for value in values):
        return MeanWithInterval(sum(values) / count, None)
    logs = [math.log(value) for value in values]
    middle = sum(logs) / count
    if count < 2:
        return MeanWithInterval(values[0], None)
    variance = sum((log - middle) ** 2 for log in logs) / (count - 1)
    half = t_quantile(0.5 + CONFIDENCE / 2, count - 1) * math.sqrt(variance / count)
    return MeanWithInterval(math.exp(middle), (math.exp(middle - half), math.exp(middle + half)))


def merge_runs(points: Sequence[Point]) -> Point:
    """Merge runs of one point: IOPS and mean latency with their intervals, seconds and I/Os summed,
    the worst and best interval of all, and the means of the rest."""
    if len(points) == 1:
        return points[0]
    iops = geometric_mean([point.iops for point in points])
    latencies = [point.latency_ns for point in points if point.latency_ns is not None]
    latency = geometric_mean(latencies) if len(latencies) == len(points) else None
    return Point(**joined(points) | {
        "iops": iops.value, "iops_within": iops.within,
        "latency_ns": latency.value if latency else None,
        "latency_within": latency.within if latency else None,
    })  # fmt: skip


def littles_law_of_runs(point: Point, runs: Sequence[LittlesLaw]) -> LittlesLaw:
    """Little's law on the mean of several runs; the reason for a failure comes from one of them."""
    requested, measured = runs[0].asked, point.in_flight
    if requested is None or measured is None:
        return replace(runs[0], seen=measured)
    if abs(measured - requested) <= LITTLE_TOLERANCE * requested:
        return LittlesLaw(requested, measured, True)
    return LittlesLaw(requested, measured, False, next((run.why for run in runs if run.why), ""))
