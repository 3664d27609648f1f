"""A sweep over host counts: its points and results. The fitted law is in
model/experiment/scaling.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    EXIT_VERDICT,
    UsageError,
)
from iopstui.fleet.merging.merger import Merger
from iopstui.fleet.merging.sums import HostSums
from iopstui.format import counted, or_dash
from iopstui.model.experiment.plan import parse_axis
from iopstui.model.experiment.scaling import MIN_POINTS, Scaling, analyse_scaling
from iopstui.model.figures.latency import SHOWN

AXIS, STOPPED = "hosts", "stopped"
# of a screen, on which stopping is no interruption: what failed before counts for more. Without one
# (cli/fleet/host_sweep.py) a signal ends it, and that is its exit code whatever was before
_CODES_BY_SEVERITY = (EXIT_OK, EXIT_INTERRUPTED, EXIT_VERDICT, EXIT_JOB_FAILED)


@dataclass(frozen=True, slots=True)
class ScalePoint:
    """A run on ``hosts`` hosts: the totals, and I/Os per second of each host by name
    (``expectations_met`` is ``None`` without any)."""

    hosts: int
    sums: HostSums
    iops_by_host: Mapping[str, float] = field(default_factory=dict)
    expectations_met: bool | None = None

    @property
    def iops(self) -> float:
        """I/Os per second of all."""
        total = self.sums.total
        return total.iops if total is not None else 0.0

    @property
    def bw(self) -> float:
        """Bytes per second of all."""
        total = self.sums.total
        return total.bw if total is not None else 0.0

    def percentiles(self) -> Mapping[str, int]:
        """Return the percentiles in ns; empty without latencies."""
        total = self.sums.total
        return total.main.percentiles if total is not None else {}

    def figures(self, first: ScalePoint) -> dict[str, float | int | None]:
        """All figures by name; ``first`` is the first point of the curve."""
        rates, ranks = self.iops_by_host.values(), self.percentiles()
        return {
            "hosts": self.hosts, "iops": self.iops, "bw": self.bw,
            **{name: ranks.get(name) for name in SHOWN},
            "iops_host": self.iops / self.hosts, "iops_lowest": min(rates, default=None),
            "iops_highest": max(rates, default=None), "linear": self.efficiency(first),
        }  # fmt: skip

    def efficiency(self, first: ScalePoint) -> float | None:
        """The share that a host has of what one had at the first point; ``None``: it had
        nothing."""
        first_share = first.iops / first.hosts
        return self.iops / self.hosts / first_share if first_share else None


def linear_text(share: float | None) -> str:
    """The share that a host has of what one had at the first point, in percent."""
    return or_dash(share and 100 * share, "{:.3g} %")


def scale_point(hosts: int, merger: Merger, expectations_met: bool | None = None) -> ScalePoint:
    """Point of a finished run; ``expectations_met`` as in ``ScalePoint``."""
    sums = merger.run_sums()
    iops_by_host = {}
    participants = ((name, host) for name, host in merger.hosts.items() if host.frames)
    for name, host in sorted(participants):
        total = host.run_sums().total
        iops_by_host[name] = total.iops if total is not None else 0.0
    return ScalePoint(hosts, sums, iops_by_host, expectations_met)


def parse_host_counts(text: str, hosts: int) -> list[int]:
    """How many hosts each point of ``hosts=LIST`` has, in the order in which they are run; there
    are ``hosts``. UsageError."""
    axis = parse_axis(text)
    if axis.name != AXIS:
        raise UsageError(f"A fleet sweep varies hosts=, not {axis.name}=.",
                         "To vary job options, use one host: iopstui sweep",
                         )  # fmt: skip
    counts = []
    for value in axis.values:
        if not (value.isdecimal() and 1 <= int(value) <= hosts):
            raise UsageError(
                f"--axis hosts={value}: there {'is' if hosts == 1 else 'are'} "
                f"{counted(hosts, 'host')}.",
                f"A point can have 1 to {hosts} hosts: --axis hosts={default_host_counts(hosts)}",
            )
        counts.append(int(value))
    return counts


def default_host_counts(hosts: int) -> str:
    """The values of an axis that doubles up to all of them: "1,2,4,6"; of few hosts each number,
    so that the law can be fitted."""
    if hosts <= MIN_POINTS:
        return ",".join(map(str, range(1, hosts + 1)))
    counts = [1]
    while counts[-1] * 2 < hosts:
        counts.append(counts[-1] * 2)
    return ",".join(map(str, [*counts, hosts]))


@dataclass(frozen=True, slots=True)
class SweepPosition:
    """Position of a run in a sweep: ``counts`` are all points' hosts, ``number`` says which, from
    0."""

    counts: tuple[int, ...]
    number: int

    @property
    def hosts(self) -> int:
        """How many hosts the point has."""
        return self.counts[self.number]


@dataclass(frozen=True, slots=True)
class ScalingCurve:
    """A sweep so far. ``point_number`` is the point that runs, from 0; ``None``: it is over, and
    ``end_reason`` says why before all points were run. ``points`` are those that count, by their
    number, ``notes`` the reasons of those that don't. ``code`` is the exit code, ``exit_lines`` are
    printed when the screen is left."""

    job: str
    counts: tuple[int, ...]
    point_number: int | None = 0
    points: Mapping[int, ScalePoint] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    end_reason: str = ""
    code: int = EXIT_OK
    exit_lines: tuple[str, ...] = ()

    @property
    def measured_points(self) -> list[ScalePoint]:
        """The points that count, as they were run."""
        return [self.points[number] for number in sorted(self.points)]

    @property
    def end_text(self) -> str:
        """Why the sweep has ended; "" if it has not."""
        return f"ended early: {self.end_reason}" if self.end_reason else ""

    @property
    def is_last(self) -> bool:
        """Whether the last point was begun."""
        return self.point_number == len(self.counts) - 1

    def scaling(self) -> Scaling:
        """Scaling law of all points."""
        return analyse_scaling([(point.hosts, point.iops) for point in self.measured_points])

    def with_point(
        self, point: ScalePoint | None, code: int, messages: Sequence[str]
    ) -> ScalingCurve:
        """Return the curve with the result of the running point."""
        number = self.point_number or 0
        worst_code = max(self.code, code, key=_severity)
        if point is None:
            note = messages[0] if messages and code != EXIT_INTERRUPTED else STOPPED
            return replace(self, notes={**self.notes, number: note}, code=worst_code)
        return replace(self, points={**self.points, number: point}, code=worst_code)

    def with_end(self, reason: str) -> ScalingCurve:
        """Return the curve when no more points are run; ``reason`` counts unless its last point
        has ended normally."""
        number = self.point_number
        has_result = number in self.points or self.notes.get(number or 0, STOPPED) != STOPPED
        end_reason = "" if self.is_last and has_result else reason
        return replace(self, point_number=None, end_reason=end_reason)


def _severity(code: int) -> int:
    return _CODES_BY_SEVERITY.index(code) if code in _CODES_BY_SEVERITY else len(_CODES_BY_SEVERITY)
