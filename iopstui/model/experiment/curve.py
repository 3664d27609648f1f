"""What the points of a sweep say together: curves of load, their knees, Little's law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from iopstui.format import counted, latency, number
from iopstui.model.experiment.expectation import Outcome
from iopstui.model.experiment.plan import JOB, Axis, Plan
from iopstui.model.experiment.point import Little, Point
from iopstui.model.metrics.statistics import Knee, knee
from iopstui.text import printable

LOADS = ("iodepth", "numjobs")


class Measured(Protocol):
    """One point of a sweep (events.py, PointFinished)."""

    @property
    def index(self) -> int:
        """Its place in the plan, from 0."""
        ...

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """(name, value) of all that is varied."""
        ...

    @property
    def point(self) -> Point:
        """The figures."""
        ...

    @property
    def little(self) -> Little:
        """Whether the figures agree with Little's law."""
        ...

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What came of the expectations."""
        ...


One = TypeVar("One", bound=Measured)


class Curve(Generic[One]):
    """Points that differ in one axis alone, in its order; ``fixed`` is what they share."""

    def __init__(self, axis: Axis, fixed: Sequence[tuple[str, str]], points: Sequence[One]) -> None:
        self.axis = axis
        self.fixed = tuple(fixed)
        self.points = tuple(points)

    @property
    def knee(self) -> Knee | None:
        """Where it bends."""
        if any(event.point.latency_ns is None for event in self.points):
            return None
        return knee([(e.point.iops, e.point.latency_ns or 0.0) for e in self.points])


def load_axis(plan: Plan) -> Axis | None:
    """The axis of load: iodepth, else numjobs."""
    return next((axis for name in LOADS for axis in plan.axes if axis.name == name), None)


def drawn_axis(plan: Plan) -> Axis:
    """What curves are drawn along: the load, else the first axis, else the jobs."""
    if not plan.axes:
        return Axis(JOB, "job", plan.jobs)
    return load_axis(plan) or plan.axes[0]


def curves_of(plan: Plan, points: Sequence[One]) -> list[Curve[One]]:
    """One curve along the axis of load for every other combination; none without such an axis."""
    axis = load_axis(plan)
    return [] if axis is None else curves_along(axis, points)


def curves_along(axis: Axis, points: Sequence[One]) -> list[Curve[One]]:
    """The points as curves along one axis: numbers of load rising, other values as given."""
    groups: dict[tuple[tuple[str, str], ...], list[One]] = {}
    for event in points:
        fixed = tuple(one for one in event.settings if one[0] != axis.name)
        groups.setdefault(fixed, []).append(event)
    order = sorted(axis.values, key=int) if axis.name in LOADS else list(axis.values)
    return [
        Curve(axis, fixed, sorted(group, key=lambda e: order.index(dict(e.settings)[axis.name])))
        for fixed, group in groups.items()
    ]


def curve_text(curve: Curve[One]) -> str:
    """The knee in words, "" if there is none."""
    found = curve.knee
    if found is None:
        return ""
    fixed = " ".join(f"{name}={printable(value)}" for name, value in curve.fixed)
    at = curve.points[found.index]
    name = f"{curve.axis.name}={dict(at.settings)[curve.axis.name]}"
    text = f"knee{' with ' + fixed if fixed else ''}: "
    figures = f"{number(at.point.iops)} IOPS at {latency(at.point.latency_ns)}"
    if found.edge == "last":
        return text + (
            f"not reached; up to {name} ({figures}) throughput grows faster than latency: go deeper"
        )
    last = curve.points[-1].point
    more = f"up to {dict(curve.points[-1].settings)[curve.axis.name]} IOPS change by "
    more += f"{100 * (last.iops / at.point.iops - 1):+.0f} % and latency grows "
    more += f"{(last.latency_ns or 0) / (at.point.latency_ns or 1):.1f}-fold"
    if found.edge == "first":
        return text + f"at or below {name} ({figures}), the first point; {more}"
    return text + f"{name} ({figures}), the most throughput for its latency; {more}"


def little_lines(points: Sequence[Measured]) -> Iterator[str]:
    """Whether N = X * R held, and why not where it did not."""
    known = [event for event in points if event.little.holds is not None]
    if not known:
        return
    bad = [event for event in known if not event.little.holds]
    yield (
        f"Little's law, N = X*R (I/Os under way = IOPS x mean latency): {len(known) - len(bad)} of "
        f"{counted(len(known), 'point')} within 10 % of the depth x jobs asked for"
        + ("" if not bad else " (the others are marked with !)")
    )
    reasons: dict[str, list[Measured]] = {}
    for event in bad:
        reasons.setdefault(event.little.why, []).append(event)
    for why, events in reasons.items():
        numbers = ", ".join(f"#{event.index + 1}" for event in events[:8])
        more = f" and {len(events) - 8} more" if len(events) > 8 else ""
        yield f"  {numbers}{more}: {why}"


def conclusions(points: Sequence[Measured], curves: Sequence[Curve[One]]) -> list[str]:
    """What the whole sweep says, in sentences."""
    lines = [text for text in map(curve_text, curves) if text]
    lines += little_lines(points)
    unsteady = [f"#{event.index + 1}" for event in points if event.point.steady is False]
    if unsteady:
        lines.append(
            f"not in steady state (SNIA's rule, within the measured seconds): "
            f"{', '.join(unsteady[:12])}{' ...' if len(unsteady) > 12 else ''}; measure longer"
        )
    judged = [event.outcomes for event in points if event.outcomes]
    if judged:
        passed = sum(all(one.passed for one in outcomes) for outcomes in judged)
        lines.append(f"expectations: {passed} of {counted(len(judged), 'point')} met all of theirs")
    return lines
