"""Compare two variants by the figures of whole runs, and say which difference can be detected.

Every repeat has one run of each variant, close in time: a pair. The mean over the pairs is tested.
One figure is the primary one and is tested by itself; the others are secondary and are corrected
for their number (Holm). docs/statistics.md has the error rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from iopstui.model.experiment.disturbance import disturbance_text, one_sided_text
from iopstui.model.experiment.plan import IOPS, Plan, PlannedPoint
from iopstui.model.experiment.point import POINT, Point
from iopstui.model.histogram import MAX_RELATIVE_ERROR
from iopstui.model.metrics.statistics import (
    CONFIDENCE,
    MAX_REPEATS,
    Difference,
    compare_paired,
    holm,
    repeats_for,
    runs_needed,
    smallest_detectable,
    spread_of,
)

HIGHER, LOWER, NEITHER = "higher", "lower", "neither"

MIN_REPEATS = 5
"""Repeats needed for a claim. With fewer there are so few orders that a disturbance with a fixed
rhythm often hits only one variant: with 3 repeats, up to 27 % of claims are false."""

# percentiles are the midpoints of fio's buckets
RESOLUTION = 2 * MAX_RELATIVE_ERROR

Runs = Mapping[int, Point]


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure to compare: ``of`` names the figure in a point. ``better`` is the direction of
    improvement; ``relative``: differences are shares of the figure, not absolute; ``resolution`` is
    the smallest difference that can be told apart, in the same terms; ``option`` is the name on the
    command line ("": it can't be the primary figure)."""

    name: str
    of: str
    better: str
    relative: bool = True
    resolution: float = 0.0
    option: str = ""

    @property
    def unit(self) -> str:
        return POINT[self.of].unit

    def text(self, value: float) -> str:
        return POINT[self.of].form(value)

    def read(self, point: Point) -> float | None:
        value: float | None = getattr(point, self.of)
        return value


METRICS = (
    Metric(IOPS, "iops", HIGHER, option="iops"),
    Metric("mean latency", "latency_ns", LOWER, option="mean"),
    Metric("p50", "p50_ns", LOWER, resolution=RESOLUTION, option="p50"),
    Metric("p99", "p99_ns", LOWER, resolution=RESOLUTION, option="p99"),
    Metric("p99.9", "p999_ns", LOWER, resolution=RESOLUTION, option="p99.9"),
    Metric("CPU per I/O", "cpu_us", LOWER, option="cpu"),
    Metric("I/Os per joule", "ios_per_joule", HIGHER, option="joule"),
    Metric("busiest CPU's completions", "most_completions", NEITHER, relative=False),
)


PRIMARY_FIGURES = {metric.option: metric.name for metric in METRICS if metric.option}
"""Names on the command line of the possible primary figures."""


def metric_named(name: str) -> Metric:
    """The metric of this name, which must exist."""
    return next(metric for metric in METRICS if metric.name == name)


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """A figure of two variants: their means over the pairs, the difference (``None``: unknown), and
    ``p``, corrected as ``compare`` says. The means are geometric if the difference is relative, so
    that it is exactly their ratio. ``disturbed`` describes disturbances of some runs that may have
    caused the difference."""

    metric: Metric
    first: float
    second: float
    difference: Difference | None
    p: float
    primary: bool = False
    disturbed: str = ""

    @property
    def shown(self) -> bool:
        """True if the runs show a difference. With fewer than MIN_REPEATS repeats it is never
        True."""
        difference = self.difference
        return difference is not None and difference.runs >= MIN_REPEATS and self.p < 1 - CONFIDENCE

    @property
    def better(self) -> bool | None:
        """Whether the second variant is better; ``None`` if undecided."""
        if not self.shown or self.difference is None or self.metric.better == NEITHER:
            return None
        if self.disturbed:
            return None
        return (self.difference.mean > 0) == (self.metric.better == HIGHER)


def variant_runs(plan: Plan, events: Iterable[Any]) -> list[dict[int, Point]]:
    """The points of finished runs (events.PointFinished) of each variant, by repeat."""
    runs: list[dict[int, Point]] = [{} for _ in plan.variants]
    for event in events:
        runs[event.variant][event.repeat] = event.point
    return runs


class Comparison(Plan):
    """A plan of variants. It may end once the differences are known precisely enough."""

    __slots__ = ()

    def next(self, done: Sequence[Any], left: Sequence[PlannedPoint]) -> PlannedPoint | None:
        """Return the next run; ``None`` if no further repeat is needed."""
        step = left[0] if left else None
        if step is None or self.until is None or not step.repeat:
            return step
        begins_repeat = step.index % len(self.variants) == 0
        runs = variant_runs(self, done)
        enough = begins_repeat and differences_are_precise(runs, self.until, self.figure)
        return None if enough else step


def paired_runs(first: Runs, second: Runs) -> list[tuple[Point, Point]]:
    """The pairs of runs with the same repeat number, in order."""
    return [(first[n], second[n]) for n in sorted(first) if n in second]


def compare(
    runs: Sequence[Runs], sequential: bool = False, primary: str = IOPS
) -> list[list[FigureComparison]]:
    """Compare each later variant with the first; ``runs`` are points by repeat. ``sequential``:
    claims are valid even if one looks after every repeat. The primary figure is corrected for the
    number of variants, the others together for their number times the number of variants (Holm). A
    figure that a run lacks is left out."""
    groups = [list(_differences(runs[0], variant, sequential, primary)) for variant in runs[1:]]
    flat = [
        comparison for group in groups for comparison in group if comparison.difference is not None
    ]
    adjusted: dict[int, float] = {}
    for first in (True, False):
        family = [comparison for comparison in flat if comparison.primary is first]
        values = holm([comparison.difference.p for comparison in family if comparison.difference])
        adjusted |= zip(map(id, family), values, strict=True)
    return [
        [replace(comparison, p=adjusted.get(id(comparison), 1.0)) for comparison in group]
        for group in groups
    ]


def primary_figure(tested: Sequence[FigureComparison]) -> FigureComparison | None:
    """The primary figure; ``None`` if a run lacks it."""
    return next((comparison for comparison in tested if comparison.primary), None)


def differences_are_precise(runs: Sequence[Runs], within: float, primary: str = IOPS) -> bool:
    """Whether the difference of each variant in the primary figure is known to +-``within`` (a
    share) at 95 % confidence."""
    primaries = [primary_figure(group) for group in compare(runs, True, primary)]
    differences = [
        comparison.difference if comparison is not None else None for comparison in primaries
    ]
    return all(
        difference is not None
        and math.log1p(difference.high) - math.log1p(difference.low)
        <= 2 * math.log1p(within) * (1 + 1e-12)
        for difference in differences
    )


def _differences(
    first: Runs, second: Runs, sequential: bool, primary: str
) -> list[FigureComparison]:
    points = paired_runs(first, second)
    disturbed = disturbance_text([point for pair in points for point in pair])
    disturbed += one_sided_text(points)
    tested = []
    for metric in METRICS:
        values = [(metric.read(a), metric.read(b)) for a, b in points]
        present = [(a, b) for a, b in values if a is not None and b is not None]
        if not present or len(present) < len(values):
            continue
        firsts, seconds = [a for a, _ in present], [b for _, b in present]
        difference = compare_paired(
            firsts, seconds, metric.relative, resolution=metric.resolution, sequential=sequential
        )
        relative = difference.relative if difference else metric.relative
        means = mean(firsts, relative), mean(seconds, relative)
        is_primary = metric.name == primary
        tested.append(
            FigureComparison(metric, *means, difference, 1.0, is_primary, disturbed=disturbed)
        )
    return tested


def mean(values: Sequence[float], geometric: bool) -> float:
    """Mean of one or more values; with ``geometric`` the geometric mean, if all are positive."""
    if geometric and all(value > 0 for value in values):
        return math.exp(sum(map(math.log, values)) / len(values))
    return sum(values) / len(values)


@dataclass(frozen=True, slots=True)
class CpuShift:
    """A CPU under two variants: its load in percent and its share (0..1) of the completions, means
    over the runs. ``shown``: the runs show that the load differs; ``moved``: that the share
    differs."""

    cpu: int
    load: tuple[float, float]
    completions: tuple[float, float]
    shown: bool
    moved: bool

    @property
    def moved_by(self) -> float:
        """By how much its share of the completions differs between the two variants."""
        return abs(self.completions[1] - self.completions[0])


def cpu_shifts(first: Runs, second: Runs, sequential: bool = False) -> list[CpuShift]:
    """All CPUs that have figures under both variants, the largest change of load first. The tests
    are corrected for the number of CPUs."""
    points = paired_runs(first, second)
    if not points:
        return []
    cpus = sorted(set.intersection(*(set(a.busy) & set(b.busy) for a, b in points)))
    loads = {
        cpu: ([a.busy[cpu] for a, _ in points], [b.busy[cpu] for _, b in points]) for cpu in cpus
    }
    completions = {
        cpu: (
            [a.completions.get(cpu, 0.0) for a, _ in points],
            [b.completions.get(cpu, 0.0) for _, b in points],
        )
        for cpu in cpus
    }
    differing, moved = _differing_cpus(loads, sequential), _differing_cpus(completions, sequential)
    shifts = [
        CpuShift(
            cpu,
            _mean_of_each(loads[cpu]),
            _mean_of_each(completions[cpu]),
            cpu in differing,
            cpu in moved,
        )
        for cpu in cpus
    ]
    return sorted(shifts, key=lambda s: (-abs(s.load[1] - s.load[0]), s.cpu))


def _mean_of_each(sides: tuple[Sequence[float], Sequence[float]]) -> tuple[float, float]:
    return sum(sides[0]) / len(sides[0]), sum(sides[1]) / len(sides[1])


def _differing_cpus(
    sides: Mapping[int, tuple[Sequence[float], Sequence[float]]], sequential: bool
) -> set[int]:
    """The CPUs whose loads or shares differ between the two variants, corrected for the number of
    CPUs."""
    if any(len(first) < MIN_REPEATS for first, _ in sides.values()):
        return set()
    tests = {
        cpu: compare_paired(*samples, relative=False, sequential=sequential)
        for cpu, samples in sides.items()
    }
    p_values = {cpu: test.p for cpu, test in tests.items() if test is not None}
    adjusted = zip(p_values, holm(list(p_values.values())), strict=True)
    return {cpu for cpu, p in adjusted if p < 1 - CONFIDENCE}


ASSUMED_NOISE = 0.03
"""Assumed noise from run to run: that of a quiet disk (docs/statistics.md)."""
NOISE_KNOWN_FROM = 3
"""Repeats needed to use the measured noise: two give only one difference."""
ROUND_SHARES = (
    0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07,
    0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0,
)  # fmt: skip
TOO_FEW_REPEATS = f"at least {MIN_REPEATS} repeats are needed to claim a difference"
VariantRuns = Sequence[Mapping[int, Point]]


def planned_sensitivity(plan: Plan, spread: float | None) -> str:
    """Describe the difference that the planned repeats can detect. ``spread`` is the run-to-run
    noise as the user knows it (0.03: 3 %); ``None``: ASSUMED_NOISE."""
    noise = f"{_percent_text(ASSUMED_NOISE if spread is None else spread)} noise"
    if spread is None:
        noise += f" (estimate, updated after repeat {NOISE_KNOWN_FROM})"
    return _expected_text(plan, ASSUMED_NOISE if spread is None else spread, noise)


def sensitivity_so_far(plan: Plan, runs: VariantRuns) -> str:
    """Return the sensitivity with the noise of the first NOISE_KNOWN_FROM repeats; "" if not
    known."""
    spread = measured_noise(runs, plan.figure)
    if spread is None:
        return ""
    return _expected_text(plan, spread, f"{_percent_text(spread)} noise (measured so far)")


def final_sensitivity(plan: Plan, runs: VariantRuns, repeats: int) -> str:
    """Describe the difference that ``repeats`` could detect, and how many repeats a smaller one
    needs; "" if unknown."""
    spread = measured_noise(runs, plan.figure)
    if spread is None:
        return ""
    return _detectable_text(plan, repeats, spread, f"{_percent_text(spread)} noise (measured)")


def why_stopped(plan: Plan, runs: VariantRuns, repeats: int, reached: bool) -> str:
    """Why a comparison with ``plan.until`` ended after ``repeats``."""
    subject = f"the difference in {plan.figure} is"
    within = f"known to within ±{_percent_text(plan.until or 0.0)}"
    if reached:
        return f"{subject} {within} after {repeats} repeats"
    at = "interrupted after" if repeats < plan.repeats else "after"
    text = f"{at} {repeats} of at most {plan.repeats} repeats {subject} not {within}"
    spread = measured_noise(runs, plan.figure)
    if spread is None:
        return text
    noise = f"with {_percent_text(spread)} noise (measured)"
    return f"{text}; {noise} that takes {_runs_text(plan, spread)}"


def _expected_text(plan: Plan, spread: float, noise: str) -> str:
    if plan.until is None:
        return _detectable_text(plan, plan.repeats, spread, noise)
    return (
        f"With {noise} it takes {_runs_text(plan, spread)} until the difference in {plan.figure} "
        f"is known to within ±{_percent_text(plan.until)}. At most {plan.repeats} are run."
    )


def _runs_text(plan: Plan, spread: float) -> str:
    pair_spread, within = spread * math.sqrt(2), math.log1p(plan.until or 0.0)
    needed = runs_needed(pair_spread, within, 1 - CONFIDENCE, MAX_REPEATS)
    return f"more than {MAX_REPEATS} repeats" if needed is None else f"about {needed} repeats"


def measured_noise(runs: VariantRuns, figure: str) -> float | None:
    """The noise of a figure from run to run, within a variant and a repeat, as a share; the largest
    value of all variants. ``None`` with fewer than two complete repeats."""
    read = metric_named(figure).read
    spreads = []
    for variant in runs[1:]:
        values = [(read(a), read(b)) for a, b in paired_runs(runs[0], variant)]
        present = [(a, b) for a, b in values if a is not None and b is not None]
        spreads.append(spread_of(present) if len(present) == len(values) else None)
    noise = [spread / math.sqrt(2) for spread in spreads if spread is not None]
    return max(noise) if len(noise) == len(spreads) and noise else None


def _detectable_text(plan: Plan, repeats: int, spread: float, noise: str) -> str:
    """ "With 5 repeats and 3 % noise this can detect a 10 % difference in IOPS. For 7 % use 6
    repeats." "Detect" means: found in four of five comparisons."""
    if repeats < MIN_REPEATS:
        return f"With {repeats} repeats no difference is claimed: {TOO_FEW_REPEATS}."
    metric = metric_named(plan.figure)
    alpha = (1 - CONFIDENCE) / (len(plan.variants) - 1)
    # a figure with a resolution differs by at least one step, however quiet the disk is
    pair_spread = max(spread * math.sqrt(2), metric.resolution / math.sqrt(6))
    least = smallest_detectable(pair_spread, repeats, alpha)
    detected = next((share for share in ROUND_SHARES if math.log1p(share) >= least), None)
    missed = next((share for share in reversed(ROUND_SHARES) if math.log1p(share) < least), None)
    size = (
        f"a {_percent_text(detected)} difference"
        if detected
        else f"only more than {_percent_text(ROUND_SHARES[-1])}"
    )
    text = f"With {repeats} repeats and {noise} this can detect {size} in {plan.figure}."
    if missed is None:
        return text
    enough = repeats_for(math.log1p(missed), pair_spread, alpha)
    use = f"more than {MAX_REPEATS}" if enough is None else f"{enough}"
    return f"{text} For {_percent_text(missed)} use {use} repeats."


def _percent_text(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
