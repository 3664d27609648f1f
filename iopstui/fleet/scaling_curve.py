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
from iopstui.format import counted
from iopstui.model.experiment.plan import parse_axis
from iopstui.model.experiment.scaling import MIN_POINTS, Scaling, scaling

AXIS, STOPPED = "hosts", "stopped"
# of a screen, on which stopping is no interruption: what failed before counts for more. Without one
# (cli/fleet/host_sweep.py) a signal ends it, and that is its exit code whatever was before
_CODES_BY_SEVERITY = (EXIT_OK, EXIT_INTERRUPTED, EXIT_VERDICT, EXIT_JOB_FAILED)


@dataclass(frozen=True, slots=True)
class ScalePoint:
    """A run on ``hosts`` hosts: the totals, and I/Os per second of each host by name. ``met``:
    all expectations were met (``None``: there were none)."""

    hosts: int
    sums: HostSums
    each: Mapping[str, float] = field(default_factory=dict)
    met: bool | None = None

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
        return total.main[1].percentiles() if total is not None else {}

    def linear(self, first: ScalePoint) -> float | None:
        """The share that a host has of what one had at the first point; ``None``: it had
        nothing."""
        before = first.iops / first.hosts
        return self.iops / self.hosts / before if before else None


def scale_point(hosts: int, merger: Merger, met: bool | None = None) -> ScalePoint:
    """Point of a finished run; ``met`` as in ``ScalePoint``."""
    sums = merger.rated()
    iops_by_host = {}
    took_part = ((name, host) for name, host in merger.hosts.items() if host.frames)
    for name, host in sorted(took_part):
        total = host.rated().total
        iops_by_host[name] = total.iops if total is not None else 0.0
    return ScalePoint(hosts, sums, iops_by_host, met)


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
    """A sweep as it stands. ``at`` is the number of the point that runs, from 0; ``None``: it is
    over, and ``why`` says what has ended it before all points were run. ``points`` are those that
    count, by their number, ``notes`` is what was said of those that are none. ``code`` is the exit
    code, ``words`` are printed when the screen is left."""

    job: str
    counts: tuple[int, ...]
    at: int | None = 0
    points: Mapping[int, ScalePoint] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    why: str = ""
    code: int = EXIT_OK
    words: tuple[str, ...] = ()

    @property
    def measured(self) -> list[ScalePoint]:
        """The points that count, as they were run."""
        return [self.points[number] for number in sorted(self.points)]

    @property
    def ended(self) -> str:
        """Why the sweep has ended; "" if it has not."""
        return f"ended early: {self.why}" if self.why else ""

    @property
    def last(self) -> bool:
        """Whether the last point was begun."""
        return self.at == len(self.counts) - 1

    def scaling(self) -> Scaling:
        """Scaling law of all points."""
        return scaling([(point.hosts, point.iops) for point in self.measured])

    def with_point(
        self, point: ScalePoint | None, code: int, messages: Sequence[str]
    ) -> ScalingCurve:
        """Return the curve with the result of the running point."""
        at = self.at or 0
        worse = max(self.code, code, key=_badness)
        if point is None:
            why = messages[0] if messages and code != EXIT_INTERRUPTED else STOPPED
            return replace(self, notes={**self.notes, at: why}, code=worse)
        return replace(self, points={**self.points, at: point}, code=worse)

    def over(self, why: str) -> ScalingCurve:
        """Return the curve when no more points are run; ``why`` counts unless its last point has
        ended normally."""
        has_result = self.at in self.points or self.notes.get(self.at or 0, STOPPED) != STOPPED
        return replace(self, at=None, why="" if self.last and has_result else why)


def _badness(code: int) -> int:
    return _CODES_BY_SEVERITY.index(code) if code in _CODES_BY_SEVERITY else len(_CODES_BY_SEVERITY)
