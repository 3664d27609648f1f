"""A sweep of a fleet: its plan with hosts as an axis, its figures, and how they grow with
hosts.

X(N) = λN / (1 + σ(N-1) + κN(N-1)): λ is the throughput of one host, σ the share of the work that
waits for others (contention), κ the cost of each pair (coherency). If κ > 0, throughput is highest
at sqrt((1-σ)/κ) and falls beyond it. Source: N. J. Gunther, Guerrilla Capacity Planning (2007), 4.

The law is linear in 1/λ, σ/λ and κ/λ for N/X, so it is fitted by least squares of the relative
deviations, with no parameter below 0. That is exact: there is no iteration that might not
converge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain, combinations
from operator import mul
from typing import Any

from iopstui.errors import UsageError
from iopstui.format import counted, number, or_dash
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
from iopstui.model.figures.figure import Figure
from iopstui.text import printable

MIN_POINTS = 4
"""The law has three parameters, so it fits any three points."""
MAX_FIT_ERROR = 0.10
"""A fit that is off by more than this share at any point is rejected."""
KNEE_FACTOR = 2.0
"""Leaving out one point may move the knee by at most this factor; knee and limit may be at most
this many times the largest measured number of hosts."""

Points = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class ScalingLaw:
    """The fitted law: ``rate`` λ in I/Os per second, ``contention`` σ, ``coherency`` κ."""

    rate: float
    contention: float
    coherency: float

    def at(self, hosts: float) -> float:
        """I/Os per second that this number of hosts reaches."""
        crosstalk = self.coherency * hosts * (hosts - 1)
        return self.rate * hosts / (1 + self.contention * (hosts - 1) + crosstalk)

    @property
    def knee(self) -> float | None:
        """The number of hosts (1 or more) with the highest throughput; ``None`` if throughput never
        falls."""
        if self.coherency <= 0:
            return None
        return max(1.0, math.sqrt(max(0.0, 1 - self.contention) / self.coherency))

    def residuals(self, points: Points) -> list[float]:
        """The measured rate of each point over the fitted one, minus 1."""
        return [measured / self.at(hosts) - 1 for hosts, measured in points]


def fit_law(points: Points) -> ScalingLaw | None:
    """The law that deviates least from the points; ``None`` for fewer than three numbers of hosts,
    or if none has a finite rate. Throughputs are above 0."""
    if len({hosts for hosts, _ in points}) < 3:
        return None
    first = min(points)
    unit = first[0] / first[1]
    weighted = []
    for hosts, measured in points:
        weight = measured * unit / hosts
        weighted.append((weight, weight * (hosts - 1), weight * hosts * (hosts - 1)))
    # scale columns to length 1, or the equations would lose digits
    scales = [math.hypot(*column) or 1.0 for column in zip(*weighted, strict=True)]
    rows = [[value / scale for value, scale in zip(row, scales, strict=True)] for row in weighted]
    best: tuple[float, list[float]] | None = None
    # coefficients must not be negative: try each set of them with the others at 0, keep the best
    # fit
    for free in chain.from_iterable(combinations(range(3), count) for count in (1, 2, 3)):
        solution = _least_squares(rows, free)
        if solution is None or min(solution) < 0:
            continue
        off = sum((1 - sum(map(mul, row, solution))) ** 2 for row in rows)
        if best is None or off < best[0]:
            best = off, solution
    if best is None:
        return None
    inverse_rate, contention, coherency = (
        value / scale for value, scale in zip(best[1], scales, strict=True)
    )
    return (
        ScalingLaw(1 / (inverse_rate * unit), contention / inverse_rate, coherency / inverse_rate)
        if inverse_rate > 0
        else None
    )


def _least_squares(rows: Sequence[Sequence[float]], free: Sequence[int]) -> list[float] | None:
    """The least-squares solution x of ``rows`` x = 1, with x = 0 for columns that are not ``free``;
    ``None`` without a unique solution."""
    size = len(free)
    table = [
        [sum(row[i] * row[j] for row in rows) for j in free] + [sum(row[i] for row in rows)]
        for i in free
    ]
    for place in range(size):
        pivot = max(range(place, size), key=lambda line: abs(table[line][place]))
        table[place], table[pivot] = table[pivot], table[place]
        if abs(table[place][place]) < 1e-13:
            return None
        for line in range(size):
            if line != place:
                factor = table[line][place] / table[place][place]
                table[line] = [
                    a - factor * b for a, b in zip(table[line], table[place], strict=True)
                ]
    solution = [0.0, 0.0, 0.0]
    for place, name in enumerate(free):
        solution[name] = table[place][size] / table[place][place]
    return solution


@dataclass(frozen=True, slots=True)
class Scaling:
    """Conclusions about a scaling curve: its ``law`` and knee if they are credible, otherwise
    ``doubt``. ``knees`` are the lowest and highest knee when any one point is left out."""

    points: tuple[tuple[int, float], ...]
    law: ScalingLaw | None
    doubt: str
    knees: tuple[float, float] | None = None

    @property
    def knee(self) -> float | None:
        """The number of hosts at the knee; ``None`` if there is no knee or none is claimed."""
        return self.law.knee if self.law is not None and not self.doubt else None

    @property
    def max_hosts(self) -> int:
        """The largest number of hosts that was measured; 0 without any."""
        return max((hosts for hosts, _ in self.points), default=0)

    @property
    def knee_is_beyond(self) -> bool:
        """Whether the knee is beyond the measured numbers of hosts."""
        return self.knee is not None and self.knee > self.max_hosts

    def sentences(self) -> list[str]:
        if self.law is None:
            return [f"no scaling law fits: {self.doubt}"]
        law = self.law
        worst = max(map(abs, law.residuals(self.points)))
        lines = [
            f"scaling law (USL): one host {number(law.rate)} IOPS, contention σ "
            f"{100 * law.contention:.3g} %, coherency κ {100 * law.coherency:.3g} %; largest "
            f"deviation {100 * worst:.2g} %"
        ]
        if self.doubt:
            return [*lines, f"No knee shown: {self.doubt}"]
        return [*lines, self._knee()]

    def _limit(self) -> str:
        """The limit for many hosts, in words; "" if it is far from the measured points."""
        law = self.law
        if law is None or not law.contention:
            return ""
        limit = law.rate / law.contention
        is_near = limit <= KNEE_FACTOR * max(measured for _, measured in self.points)
        return f", and never more than {number(limit)} IOPS" if is_near else ""

    def _knee(self) -> str:
        law = self.law
        assert law is not None
        if self.knee is None:
            return f"no knee: by this curve, throughput never falls with more hosts{self._limit()}"
        low, high = self.knees or (self.knee, self.knee)
        between = f" ({low:.3g} to {high:.3g} leaving out any one point)"
        if self.knee_is_beyond:
            return (
                f"by this curve the maximum is at {self.knee:.3g} hosts{between} "
                f"(extrapolated; {self.max_hosts} were measured)"
            )
        return (
            f"knee: maximum at {self.knee:.3g} hosts{between}, {number(law.at(self.knee))} "
            "IOPS; it falls with more hosts"
        )


def analyse_scaling(points: Points) -> Scaling:
    """The scaling law of measured (hosts, I/Os per second); points without throughput are left
    out."""
    valid = tuple(sorted((hosts, measured) for hosts, measured in points if measured > 0))
    if len(valid) < MIN_POINTS:
        verb = "is" if len(valid) == 1 else "are"
        have = f"there {verb} {counted(len(valid), 'point')}"
        return Scaling(valid, None, f"it needs {MIN_POINTS} points, but {have}")
    law = fit_law(valid)
    if law is None:
        return Scaling(valid, None, "no curve of this kind fits the points")
    off = law.residuals(valid)
    worst = max(range(len(valid)), key=lambda place: abs(off[place]))
    if abs(off[worst]) > MAX_FIT_ERROR:
        return Scaling(
            valid, law,
            f"the curve does not fit, with {counted(valid[worst][0], 'host')} it is off by "
            f"{100 * abs(off[worst]):.2g} %",
        )  # fmt: skip
    return _with_knees(valid, law)


def _with_knees(points: tuple[tuple[int, float], ...], law: ScalingLaw) -> Scaling:
    """Check how far the knee can be trusted: it must not be far beyond the measured points, and
    leaving out a single point must not remove it or move it much."""
    laws = [fit_law([*points[:place], *points[place + 1 :]]) for place in range(len(points))]
    knees = [other.knee if other is not None else None for other in laws]
    found_knees = [knee for knee in knees if knee is not None]
    if law.knee is None:
        return Scaling(points, law, "")
    if len(found_knees) < len(knees):
        return Scaling(points, law, "without one of the points the curve has no knee")
    if law.knee > KNEE_FACTOR * points[-1][0]:
        return Scaling(
            points, law,
            f"the curve puts it at {law.knee:.3g} hosts, too far from the {points[-1][0]} that "
            "were measured",
        )  # fmt: skip
    best = max(points, key=lambda point: point[1])[0]
    if law.knee < points[-1][0] == best:
        return Scaling(
            points, law,
            f"the curve puts it at {law.knee:.3g} hosts, but {best} hosts had the most IOPS",
        )  # fmt: skip
    low, high = min(found_knees), max(found_knees)
    if high > KNEE_FACTOR * low:
        return Scaling(
            points, law,
            f"it moves between {low:.3g} and {high:.3g} hosts if one point is left out",
        )  # fmt: skip
    return Scaling(points, law, "", (low, high))


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
        "share", "mean IOPS of a host as a share of the first point's", title="linear",
        width=7, form=lambda share: or_dash(share and 100 * share, "{:.3g} %"),
    )  # fmt: skip
    met: bool | None = row("", "whether all expectations were met", join=_all)

    @property
    def iops_host(self) -> float:
        """Mean I/Os per second of one host."""
        return self.iops / self.hosts


def _lowest(event: Any) -> float | None:
    return min(event.point.iops_by_host.values(), default=None)


def _highest(event: Any) -> float | None:
    return max(event.point.iops_by_host.values(), default=None)


_OWN = {one.name: one for one in fields(HostPoint)}
OF_HOSTS: Mapping[str, Figure] = {figure.name: figure for figure in (
    Figure("iops_host", "1/s", "mean I/Os per second of a host", "point/iops_host",
           title="a host"),
    Figure("iops_lowest", "1/s", "I/Os per second of the slowest host", _lowest,
           title="lowest", rank=7),
    Figure("iops_highest", "1/s", "I/Os per second of the fastest host", _highest,
           title="highest", width=7, rank=7),
    _OWN["linear"].metadata[FIGURE]("linear", part="point/linear"),
)}  # fmt: skip
"""Figures that only a fleet's points have."""


class HostPlan(Plan):
    """A plan for a sweep of a fleet. Each run counts from its first to its last second, without
    settling; ``measure`` is the job's runtime (0: not known)."""

    __slots__ = ()

    @property
    def host_axis(self) -> Axis | None:
        """The axis of hosts; ``None``: all hosts run every point."""
        return next((axis for axis in self.axes if axis.kind == HOSTS), None)

    @property
    def columns(self) -> tuple[Figure, ...]:
        """The figures of all hosts together, then the figures per host."""
        names = ("iops", "bw", "p50_ns", "p99_ns", *(["p999_ns"] if len(self.axes) == 1 else ()))
        of_hosts = ("iops_host", "iops_lowest", "iops_highest")
        linear = ("linear",) if self.host_axis is not None else ()
        return (*(POINT[name] for name in names), *(OF_HOSTS[name] for name in of_hosts + linear))

    def conclude(self, points: Sequence[Any]) -> tuple[str, ...]:
        """The scaling law of each curve over hosts, then the usual conclusions of a sweep."""
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
        """The number of hosts that run the point, the first ones named; ``None``: all of them."""
        value = self.step.settings_of(HOSTS).get(HOSTS)
        return None if value is None else int(value)

    @property
    def options(self) -> dict[str, str]:
        """fio options that replace the job's."""
        return {**self.plan.options, **self.step.settings_of(OPTION)}


def check_host_axes(axes: Sequence[Axis], options: Mapping[str, str], hosts: int) -> None:
    """Raise UsageError for axes that a fleet with this number of ``hosts`` can't vary."""
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
    """The default values of the axis, doubling up to all hosts: "1,2,4,6"; with few hosts every
    number, so that the law can be fitted."""
    if hosts <= MIN_POINTS:
        return ",".join(map(str, range(1, hosts + 1)))
    counts = [1]
    while counts[-1] * 2 < hosts:
        counts.append(counts[-1] * 2)
    return ",".join(map(str, [*counts, hosts]))
