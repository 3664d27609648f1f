"""A sweep of a fleet: its plan, which has the number of hosts as an axis, the figures of its
points, and the conclusions. (The scaling law is in scaling.py.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from iopstui.errors import UsageError
from iopstui.format import counted, or_dash
from iopstui.model.experiment.load_curve import (
    LoadCurve,
    conclusions,
    curves_along,
    disturbed_line,
    expectation_lines,
    load_axis,
    load_curves,
)
from iopstui.model.experiment.plan import HOSTS, OPTION, Axis, Plan, PlannedPoint, check_axes
from iopstui.model.experiment.point import FIGURE, POINT, Point, row
from iopstui.model.experiment.scaling import MIN_POINTS, Scaling, analyse_scaling
from iopstui.model.figures.figure import Figure
from iopstui.text import printable


def _first(values: Sequence[Any]) -> Any:
    return values[0]


def _all(values: Sequence[bool | None]) -> bool | None:
    return None if None in values else all(values)


def _means(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The means of the hosts that took part in every run."""
    names = [name for name in values[0] if all(name in run for run in values)]
    return {name: sum(run[name] for run in values) / len(values) for name in names}


@dataclass(frozen=True, slots=True)
class HostPoint(Point):
    """The totals of a run on ``hosts`` hosts (perhaps fewer than planned)."""

    hosts: int = row("", "hosts that took part", join=min, default=1)
    iops_by_host: Mapping[str, float] = row(
        "1/s", "I/Os per second of each host", join=_means, default=dict)  # fmt: skip
    linear: float | None = row(
        "share", "IOPS of a host, of those that one had at the first point", title="linear",
        width=7, form=lambda share: or_dash(share and 100 * share, "{:.3g} %"),
    )  # fmt: skip
    met: bool | None = row("", "whether all expectations were met", join=_all)

    @property
    def iops_host(self) -> float:
        """I/Os per second of a host, their mean."""
        return self.iops / self.hosts


def _lowest(event: Any) -> float | None:
    return min(event.point.iops_by_host.values(), default=None)


def _highest(event: Any) -> float | None:
    return max(event.point.iops_by_host.values(), default=None)


_OWN = {one.name: one for one in fields(HostPoint)}
OF_HOSTS: Mapping[str, Figure] = {figure.name: figure for figure in (
    Figure("iops_host", "1/s", "I/Os per second of a host, their mean", "point/iops_host",
           title="a host"),
    Figure("iops_lowest", "1/s", "I/Os per second of the slowest host", _lowest,
           title="lowest", rank=7),
    Figure("iops_highest", "1/s", "I/Os per second of the fastest host", _highest,
           title="highest", width=7, rank=7),
    _OWN["linear"].metadata[FIGURE]("linear", part="point/linear"),
)}  # fmt: skip
"""Figures that only a fleet's points have."""


class HostPlan(Plan):
    """A sweep of a fleet. Each run counts from its first to its last second, without settling;
    ``measure`` is the job's runtime (0: not known)."""

    __slots__ = ()

    @property
    def host_axis(self) -> Axis | None:
        """The axis of hosts; ``None``: all hosts run every point."""
        return next((axis for axis in self.axes if axis.kind == HOSTS), None)

    @property
    def columns(self) -> tuple[Figure, ...]:
        """The figures of all hosts together, then those per host."""
        names = ("iops", "bw", "p50_ns", "p99_ns", *(["p999_ns"] if len(self.axes) == 1 else ()))
        of_hosts = ("iops_host", "iops_lowest", "iops_highest")
        linear = ("linear",) if self.host_axis is not None else ()
        return (*(POINT[name] for name in names), *(OF_HOSTS[name] for name in of_hosts + linear))

    def conclude(self, points: Sequence[Any]) -> tuple[str, ...]:
        """The scaling law of each curve over hosts, then the conclusions of any sweep."""
        axis, lines = self.host_axis, []
        for curve in curves_along(self, axis, points) if axis is not None else ():
            fixed = " ".join(f"{name}={printable(value)}" for name, value in curve.fixed)
            said = curve_scaling(curve).sentences()
            lines += [f"{fixed}: {text}" if fixed else text for text in said]
        if load_axis(self) is not None or axis is None:
            lines += conclusions(points, load_curves(self, points))
        elif disturbed := disturbed_line(points):
            lines.append(disturbed)
        met = [event.point.met for event in points if event.point.met is not None]
        return tuple(lines + expectation_lines(met))


def curve_scaling(curve: LoadCurve[Any]) -> Scaling:
    """The scaling law of a curve over hosts, by the number of hosts that took part."""
    return analyse_scaling([(event.point.hosts, event.point.iops) for event in curve.points])


@dataclass(frozen=True, slots=True)
class SweptPoint:
    """A run of a fleet that is a point of ``plan``."""

    plan: Plan
    step: PlannedPoint

    @property
    def hosts(self) -> int | None:
        """It runs on this many of the hosts, the first ones; ``None``: on all."""
        value = self.step.settings_of(HOSTS).get(HOSTS)
        return None if value is None else int(value)

    @property
    def options(self) -> dict[str, str]:
        """fio options that replace the job's."""
        return {**self.plan.options, **self.step.settings_of(OPTION)}


def check_host_axes(axes: Sequence[Axis], options: Mapping[str, str], hosts: int) -> None:
    """UsageError for axes that a fleet with this number of ``hosts`` can't vary."""
    check_axes(axes, options, fleet=True)
    for axis in axes:
        if axis.kind == HOSTS:
            above = next((value for value in axis.values if int(value) > hosts), None)
            if above is not None:
                raise UsageError(
                    f"hosts={above}: there {'is' if hosts == 1 else 'are'} "
                    f"{counted(hosts, 'host')}.",
                    f"A point can have 1 to {hosts} hosts: hosts={usual_counts(hosts)}",
                )
        elif axis.kind != OPTION:
            raise UsageError(
                f"A fleet varies the number of hosts and fio's options, not {axis.name}.",
                "For example: hosts=1,2,4 and iodepth=1,16",
            )


def usual_counts(hosts: int) -> str:
    """The values of an axis that doubles up to all hosts: "1,2,4,6"; with few hosts every number,
    so that the law can be fitted."""
    if hosts <= MIN_POINTS:
        return ",".join(map(str, range(1, hosts + 1)))
    counts = [1]
    while counts[-1] * 2 < hosts:
        counts.append(counts[-1] * 2)
    return ",".join(map(str, [*counts, hosts]))
