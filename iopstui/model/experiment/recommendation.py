"""Recommend a point of a sweep, also where the figures are uncertain."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.format import latency, mib, number
from iopstui.model.experiment.curve_credibility import NOISE_DIP
from iopstui.model.experiment.disturbance import uncertainty_text
from iopstui.model.experiment.point import Point

ENOUGH_SHARE = 0.95
"""Of the most IOPS: a point of less load that reaches as much is preferred."""
_SIZE_OPTIONS = frozenset({"bs", "blocksize"})
_WORK_OPTIONS = frozenset({"rw", "readwrite", "rwmixread", "rwmixwrite", "job"})


def recommended_load(points: Sequence[Point], names: Sequence[str], knee: int | None) -> str:
    """The knee of points of rising load, or the least load that reaches nearly all IOPS."""
    most = max(point.iops for point in points)
    place = knee
    why = "best ratio of throughput to latency"
    if place is None:
        place = next(n for n, point in enumerate(points) if point.iops >= ENOUGH_SHARE * most)
        why = "the least load with at least 95 % of the most IOPS"
    return (
        f"recommended: {names[place]} ({_figures(points[place])}), {why}{uncertainty_text(points)}"
    )


def recommended_value(points: Sequence[Point], names: Sequence[str], varied: Sequence[str]) -> str:
    """The point with most IOPS, or bytes where block sizes differ; "" of a single point."""
    if len(points) < 2:
        return ""
    sizes = not _SIZE_OPTIONS.isdisjoint(varied)
    amounts = [point.bw if sizes else point.iops for point in points]
    unit, best = "MiB/s" if sizes else "IOPS", max(amounts)
    near = [n for n, amount in enumerate(amounts) if amount >= (1 - NOISE_DIP) * best]
    place = amounts.index(best)
    end = uncertainty_text(points)
    if not _WORK_OPTIONS.isdisjoint(varied):
        return f"most {unit}: {names[place]} ({_figures(points[place])}){end}; the work differs"
    if len(near) == len(points):
        return f"recommended: any value; {unit} differ by less than 10 %{end}"
    close = [names[n] for n in near if n != place]
    like = (
        f"; within 10 %: {', '.join(close[:3])}{' ...' if len(close) > 3 else ''}" if close else ""
    )
    return f"recommended: {names[place]} ({_figures(points[place])}), most {unit}{like}{end}"


def _figures(point: Point) -> str:
    size = f", {mib(point.bw)} MiB/s" if point.bw else ""
    return f"{number(point.iops)} IOPS{size} at {latency(point.latency_ns)}"
