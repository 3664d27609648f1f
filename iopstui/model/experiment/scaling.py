"""How throughput grows with the number of hosts: the universal scalability law, fitted.

X(N) = λN / (1 + σ(N-1) + κN(N-1)): λ is the throughput of one host, σ the share of the work that
waits for others (contention), κ the cost of each pair (coherency). If κ > 0, throughput is highest
at sqrt((1-σ)/κ) and falls beyond it. Source: N. J. Gunther, Guerrilla Capacity Planning (2007), 4.

The law is linear in 1/λ, σ/λ and κ/λ for N/X, so it is fitted by least squares of the relative
deviations, with no parameter below 0. That is exact: there is no iteration that might not
converge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from operator import mul

from iopstui.format import counted, number

MIN_POINTS = 4
"""The law has three parameters, so it fits any three points."""
MAX_FIT_ERROR = 0.10
"""A fit that is off by more at any point is rejected."""
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
        """I/Os per second of this number of hosts."""
        crosstalk = self.coherency * hosts * (hosts - 1)
        return self.rate * hosts / (1 + self.contention * (hosts - 1) + crosstalk)

    @property
    def knee(self) -> float | None:
        """Hosts of the highest throughput, 1 or more; ``None``: it never falls."""
        if self.coherency <= 0:
            return None
        return max(1.0, math.sqrt(max(0.0, 1 - self.contention) / self.coherency))

    def residuals(self, points: Points) -> list[float]:
        """Measured over fitted, less 1."""
        return [measured / self.at(hosts) - 1 for hosts, measured in points]


def fit_law(points: Points) -> ScalingLaw | None:
    """The law that deviates least; ``None`` for fewer than three numbers of hosts, or if none has a
    finite rate. Throughputs are above 0."""
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
    """The x that solves ``rows`` x = 1 by least squares, with x = 0 where not ``free``; ``None``
    without a unique solution."""
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
        """Hosts; ``None`` also where none is claimed."""
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
    """Scaling law of measured (hosts, I/Os per second); points without throughput are left out."""
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
    """Check whether a single point decides if there is a knee, and where."""
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
