"""Load curves from the points of a sweep: knees, whether they are credible, what is recommended,
and Little's law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from iopstui.format import counted, first_of, latency, mib, number
from iopstui.model.experiment.disturbance import (
    FULL_CPU_PERCENT,
    disturbance_text,
    moved_between,
    span_text,
    uncertainty_text,
)
from iopstui.model.experiment.plan import HOSTS, JOB, Axis, Plan, point_indexes
from iopstui.model.experiment.point import LittlesLaw, Point, littles_law_of_runs, merge_runs
from iopstui.model.experiment.ramp import ENOUGH_SHARE, LOAD_OPTIONS
from iopstui.model.metrics.statistics import FIRST, LAST, Knee, knee, knee_within
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.model.experiment.expectation import Outcome

RISING = (HOSTS, *LOAD_OPTIONS)
"""Axes whose points form a curve: larger values are more load."""
CPU_WAIT_SHARE = 0.2
"""From this share of the I/Os in flight on, waiting for a CPU is named as a limit of a point."""
NOISE_DIP = 0.10
"""Without repeats, IOPS that fall and rise again between points by this share count as noise."""
OTHER_IO_SHARE = 0.10
MIN_OTHER_BYTES = 1 << 20
"""Bytes/s: what the device may move beside fio's I/O (metadata, a log) without being load."""
ONCE = "Each point ran once: 3 repeats would show how sure this is"
LITTLES_LAW = "Little's law"
_SIZE_OPTIONS = frozenset({"bs", "blocksize"})
_WORK_OPTIONS = frozenset({"rw", "readwrite", "rwmixread", "rwmixwrite", "job"})


class _Measured(Protocol):
    """A finished run (events.PointFinished), or a point with the mean of its runs. ``index`` is its
    position among the runs, or among the points."""

    @property
    def index(self) -> int: ...
    @property
    def job(self) -> str: ...
    @property
    def repeat(self) -> int: ...
    @property
    def settings(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def point(self) -> Point: ...
    @property
    def little(self) -> LittlesLaw: ...
    @property
    def outcomes(self) -> tuple[Outcome, ...]: ...


class _Failed(Protocol):
    """A run that failed (events.PointFailed)."""

    @property
    def job(self) -> str: ...
    @property
    def settings(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def error(self) -> str: ...


PointT = TypeVar("PointT", bound=_Measured)


class LoadCurve(Generic[PointT]):
    """Points that differ only in the value of one axis, in the order of that axis. ``fixed`` are
    the settings they share, ``runs`` the runs of each point."""

    def __init__(
        self,
        axis: Axis,
        fixed: Sequence[tuple[str, str]],
        points: Sequence[PointT],
        runs: Sequence[Sequence[PointT]],
    ) -> None:
        self.axis = axis
        self.fixed = tuple(fixed)
        self.points = tuple(points)
        self.runs = tuple(map(tuple, runs))

    @property
    def uncertain_knee(self) -> Knee | None:
        """The knee, whether or not it is credible."""
        if any(event.point.latency_ns is None for event in self.points):
            return None
        return knee([(e.point.iops, e.point.latency_ns or 0.0) for e in self.points])

    @property
    def doubt(self) -> str:
        """Why the knee is not credible; "" if nothing speaks against it."""
        return (
            why_not_credible([event.point for event in self.points], self.names)
            if self.uncertain_knee
            else ""
        )

    @property
    def knee(self) -> Knee | None:
        """The knee; ``None`` if there is none, or the curve is not credible."""
        return None if self.doubt else self.uncertain_knee

    @property
    def knee_within(self) -> tuple[int, int] | None:
        """The first and last point that may be the knee (95 %); ``None`` without repeats."""
        common = set.intersection(*({run.repeat for run in runs} for runs in self.runs))
        powers = [
            [run.point.iops / (run.point.latency_ns or 1.0) for run in runs if run.repeat in common]
            for runs in self.runs
        ]
        return knee_within(powers) if self.uncertain_knee is not None else None

    @property
    def names(self) -> list[str]:
        """The name of each point, by its value: "iodepth=8"."""
        return [f"{self.axis.name}={dict(e.settings)[self.axis.name]}" for e in self.points]


def load_axis(plan: Plan) -> Axis | None:
    """The axis that varies the load: iodepth, else numjobs."""
    return next((axis for name in LOAD_OPTIONS for axis in plan.axes if axis.name == name), None)


def horizontal_axis(plan: Plan) -> Axis:
    """The horizontal axis of the curves: the hosts, else the load, else the first axis, else the
    jobs."""
    if not plan.axes:
        return Axis(JOB, "job", plan.jobs)
    hosts = next((axis for axis in plan.axes if axis.kind == HOSTS), None)
    return hosts or load_axis(plan) or plan.axes[0]


def runs_by_point(plan: Plan, runs: Sequence[PointT]) -> dict[int, list[PointT]]:
    """The runs of each point, by the point's position in the plan, in order."""
    place = point_indexes(plan)
    groups: dict[int, list[PointT]] = {}
    for run in sorted(runs, key=lambda run: run.repeat):
        groups.setdefault(place[(run.job, tuple(run.settings))], []).append(run)
    return dict(sorted(groups.items()))


def measured_points(plan: Plan, runs: Sequence[PointT]) -> list[PointT]:
    """The measured points in the plan's order; several runs of a point become their mean. ``index``
    is the point's position in the plan."""
    return [_mean_run(place, group) for place, group in runs_by_point(plan, runs).items()]


def _mean_run(place: int, runs: Sequence[PointT]) -> PointT:
    point = merge_runs([run.point for run in runs])
    law = (
        littles_law_of_runs(point, [run.little for run in runs])
        if len(runs) > 1
        else runs[0].little
    )
    outcomes = tuple(
        _mean_outcome(group) for group in zip(*(run.outcomes for run in runs), strict=True)
    )
    mean = replace(cast(Any, runs[0]), index=place, point=point, little=law, outcomes=outcomes)
    return cast(PointT, mean)


def _mean_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """Outcome of one expectation over all runs of a point: the mean is judged."""
    measured = [outcome.measured for outcome in outcomes if outcome.measured is not None]
    shares = [outcome.share for outcome in outcomes if outcome.share is not None]
    return replace(
        outcomes[0],
        measured=sum(measured) / len(measured) if len(measured) == len(outcomes) else None,
        share=sum(shares) / len(shares) if shares else None,
        low=None, high=None, why="",
    )  # fmt: skip


def load_curves(plan: Plan, runs: Sequence[PointT]) -> list[LoadCurve[PointT]]:
    """A curve along the load axis for each combination of the other settings; empty without a load
    axis."""
    axis = load_axis(plan)
    return [] if axis is None else curves_along(plan, axis, runs)


def curves_along(plan: Plan, axis: Axis, runs: Sequence[PointT]) -> list[LoadCurve[PointT]]:
    """The points as curves along one axis: values of a load in rising order, other values in the
    given order."""
    groups: dict[tuple[tuple[str, str], ...], list[tuple[PointT, list[PointT]]]] = {}
    for place, point_runs in runs_by_point(plan, runs).items():
        fixed = tuple(setting for setting in point_runs[0].settings if setting[0] != axis.name)
        groups.setdefault(fixed, []).append((_mean_run(place, point_runs), point_runs))
    order = sorted(axis.values, key=int) if axis.name in RISING else list(axis.values)
    curves = []
    for fixed, group in groups.items():
        group.sort(key=lambda pair: order.index(dict(pair[0].settings)[axis.name]))
        curves.append(
            LoadCurve(
                axis, fixed, [point for point, _ in group], [point_runs for _, point_runs in group]
            )
        )
    return curves


def recommended_load(curve: LoadCurve[PointT]) -> str:
    """The load that ``curve_text`` recommends for the most IOPS: "iodepth=16"."""
    return curve.names[_choice(curve)[1]]


def _choice(curve: LoadCurve[PointT]) -> tuple[int, int]:
    """The indices of the point with the best ratio, and of the one for the most IOPS: the same
    one if no other has clearly more."""
    points = [event.point for event in curve.points]
    place, most = _recommended_index(points, curve.uncertain_knee), _most_index(points)
    is_more = most != place and points[most].iops >= (1 + NOISE_DIP) * points[place].iops > 0
    return place, _least_with_enough(points) if is_more else place


def curve_text(curve: LoadCurve[PointT]) -> str:
    """The recommended load, its gain and cost, the load for the most IOPS if that is another, and
    how certain this is; "" for a single point."""
    if len(curve.points) < 2:
        return ""
    points, names = [event.point for event in curve.points], curve.names
    place, enough = _choice(curve)
    fixed = " ".join(f"{name}={printable(value)}" for name, value in curve.fixed)
    doubtful = 2 * sum(bool(point.disturbed) for point in points) > len(points)
    start = "Can't tell for sure; as measured" if doubtful else ""
    start = f"{start}, with {fixed}" if start and fixed else start or (fixed and f"With {fixed}")
    take = f"{start}, take" if start else "Take"
    at = f"{names[place]}{_reason(curve)}: {_figures(points[place])}"
    if enough != place:
        why = _why_enough(points, names, enough, _most_index(points))
        text = f"{take} {names[enough]} for the most IOPS{why}: {_figures(points[enough])}"
        text += f"; or {at}, {_less_than(points[enough], points[place])}"
    else:
        text = f"{take} {at}{_beside_the_least(points, names, place)}"
        text += _beside_the_most(points, names, place)
    cpu, alike = cpu_limit_text(points, names, (enough, place)), _alike_text(curve, enough)
    return " ".join(filter(None, (f"{text}.", alike, cpu, f"{_certainty(curve)}.")))


def _alike_text(curve: LoadCurve[PointT], index: int) -> str:
    """A sentence on the points whose IOPS the repeats can't tell from those of the point at
    ``index``; "" if there are none."""
    within = [event.point.iops_within for event in curve.points]
    at = within[index]
    if at is None:
        return ""
    alike = [
        curve.names[n].partition("=")[2]
        for n, other in enumerate(within)
        if n != index and other and other[0] <= at[1] and at[0] <= other[1]
    ]
    if not alike:
        return ""
    *values, last = alike
    others = f"{', '.join(values)} and {last}" if values else last
    that = "those" if values else "that"
    return f"The 95 % interval of the IOPS of {curve.names[index]} overlaps {that} of {others}."


def cpu_limit_text(
    points: Sequence[Point], names: Sequence[str], recommended: Sequence[int]
) -> str:  # fmt: skip
    """A sentence if a good part of the I/Os of a recommended point, or those of most points, waited
    for a CPU, so that another disk may do no more here; "" otherwise."""
    held = [n for n, point in enumerate(points) if (cpu_wait_share(point) or 0.0) >= CPU_WAIT_SHARE]
    place = next((n for n in recommended if n in held), None)
    if place is None and 2 * len(held) <= len(points):
        return ""
    of_all = f"At {len(held)} of {counted(len(points), 'point')}"
    where = of_all if place is None else f"At {names[place]}"
    shown = held if place is None else [place]
    shares = [100 * (cpu_wait_share(points[n]) or 0.0) for n in shown]
    full = all(cpus_are_full(points[n]) for n in shown)
    return (
        f"{where} {span_text(min(shares), max(shares))} of the I/Os in flight wait for a CPU, not "
        f"for the disk{': the CPUs are full' if full else ''}."
    )


def cpu_wait_share(point: Point) -> float | None:
    """The share (0..1) of the I/Os in flight that waited for a CPU; ``None``: not known."""
    if point.wait_cpu is None or not point.in_flight:
        return None
    return min(1.0, point.wait_cpu / point.in_flight)


def cpus_are_full(point: Point) -> bool:
    """Whether all CPUs were busy nearly all the time."""
    loads = point.busy.values()
    return bool(loads) and sum(loads) / len(loads) >= FULL_CPU_PERCENT


def _most_index(points: Sequence[Point]) -> int:
    return max(range(len(points)), key=lambda n: points[n].iops)


def _why_enough(points: Sequence[Point], names: Sequence[str], enough: int, most: int) -> str:
    """Why the point at index ``enough`` stands for the most IOPS, which ``most`` has; and whether
    larger loads may have more."""
    is_last = most == len(points) - 1
    if enough != most:
        return f"{_ENOUGH[:-1]}, those of {names[most]}{', the largest measured' * is_last})"
    if _still_rises(points, most):
        return " (still rising: try larger values)"
    return " (the largest measured: try larger values)" if is_last else ""


def _still_rises(points: Sequence[Point], most: int) -> bool:
    """Whether the point with the most IOPS is the largest load, and clearly above all others."""
    before = max((point.iops for point in points[:most]), default=0.0)
    return most == len(points) - 1 and points[most].iops > (1 + NOISE_DIP) * before > 0


def further_loads(plan: Plan, curves: Sequence[LoadCurve[PointT]]) -> str:
    """The axis to measure next where the last load of the only curve of a complete sweep is the
    best one, as one types it: its last two loads, then two and four times the last one. Where its
    first load is the best one: a fourth and half of that one, then the first two. "" elsewhere."""
    axis = load_axis(plan)
    if axis is None or len(plan.axes) != 1 or len(curves) != 1 or len(curves[0].points) < 2:
        return ""
    points = [event.point for event in curves[0].points]
    first, second, *_ = loads = sorted(map(int, axis.values))
    if _choice(curves[0])[1] == len(points) - 1:
        *_, before, last = loads
        return f"{axis.name}={before},{last},{2 * last},{4 * last}"
    knee = curves[0].uncertain_knee
    if knee is None or knee.edge != FIRST or first == 1:
        return ""
    smaller = sorted({max(1, first // 4), first // 2})
    return f"{axis.name}={','.join(map(str, (*smaller, first, second)))}"


def _beside_the_least(points: Sequence[Point], names: Sequence[str], place: int) -> str:
    """The gain and cost of the point at index ``place`` compared with the least load."""
    if place == 0:
        return ""
    at, least = points[place], points[0]
    iops = f"{at.iops / least.iops:.1f} times the IOPS" if least.iops else "the IOPS"
    return f"; {iops}{_latency_growth(least, at, ' and')} of {names[0]}"


def _beside_the_most(points: Sequence[Point], names: Sequence[str], place: int) -> str:
    """The gain and cost, compared with the point at index ``place``, of the point with the most
    IOPS beyond it (of the largest load if no point has more)."""
    at, beyond = points[place], range(place + 1, len(points))
    if not beyond or not at.iops:
        return ""
    most = max(beyond, key=lambda n: points[n].iops)
    if points[most].iops <= at.iops:
        most = beyond[-1]
    percent = 100 * (points[most].iops / at.iops - 1)
    word = " (most IOPS)" if most == _most_index(points) and percent >= 0.5 else ""
    growth = _latency_growth(at, points[most], ",")
    return f"; {names[most]}{word}: {percent:+.0f} % IOPS{growth}"


def _less_than(most: Point, at: Point) -> str:
    """What the point ``at`` gives up and saves, compared with the point with the most IOPS."""
    text = f"{100 * (1 - at.iops / most.iops):.0f} % fewer IOPS"
    if not most.latency_ns or at.latency_ns is None:
        return text
    return f"{text} with {100 * at.latency_ns / most.latency_ns:.0f} % of the latency"


def _recommended_index(points: Sequence[Point], knee: Knee | None) -> int:
    """The index of the knee of points in order of load; without a knee, of the least load that
    reaches nearly all IOPS."""
    if knee is not None:
        return knee.index
    return _least_with_enough(points)


def _least_with_enough(points: Sequence[Point]) -> int:
    """The index of the least load that reaches nearly all IOPS."""
    most = max(point.iops for point in points)
    return next(n for n, point in enumerate(points) if point.iops >= ENOUGH_SHARE * most)


_ENOUGH = f" (the smallest value with {100 * ENOUGH_SHARE:.0f} % of the highest IOPS)"


def _reason(curve: LoadCurve[PointT]) -> str:
    """Why this point is recommended. At an end of the curve the reason is the end, not the
    ratio."""
    knee = curve.uncertain_knee
    if knee is None:
        return _ENOUGH
    if knee.edge:
        points = [event.point for event in curve.points]
        if knee.edge == FIRST:
            may_be_less = curve.axis.name in LOAD_OPTIONS and not curve.names[0].endswith("=1")
            return f" (the smallest measured{': try smaller values' * may_be_less})"
        rises = "; still rising" if _still_rises(points, knee.index) else ""
        return f" (the largest measured{rises})"
    return " (best ratio of IOPS to latency)"


def _latency_growth(before: Point, after: Point, joined: str) -> str:
    """By what factor the latency grew; "" if one of the two is unknown."""
    if not before.latency_ns or after.latency_ns is None:
        return ""
    return f"{joined} {after.latency_ns / before.latency_ns:.1f} times the latency"


def _certainty(curve: LoadCurve[PointT]) -> str:
    """How far to trust the recommended point."""
    points = [event.point for event in curve.points]
    knee, within = curve.uncertain_knee, curve.knee_within
    if doubt := uncertainty_text(points) or curve.doubt:
        return f"Not sure: {doubt}"
    if knee is None:
        return f"A rough choice: only {counted(len(points), 'value')} measured"
    if knee.edge == LAST:
        return "Up to there IOPS grow faster than latency: try larger values"
    if within is None:
        return ONCE
    first, last = (dict(curve.points[index].settings)[curve.axis.name] for index in within)
    if first == last:
        return "For the best ratio the repeats exclude every other measured value (95 %)"
    return f"For the best ratio the repeats leave open any value from {first} to {last} (95 %)"


def interval_text(within: tuple[float, float] | None, show: Callable[[float], str]) -> str:
    """An interval, "12.1k-13.4k"; "" if there is none."""
    return "" if within is None else "-".join(show(value).replace(" ", "") for value in within)


def little_lines(points: Sequence[_Measured]) -> Iterator[str]:
    """Lines on whether N = X * R (Little's law) holds, and if not, why."""
    judged = [event for event in points if event.little.holds is not None]
    if not judged:
        return
    bad = [event for event in judged if not event.little.holds]
    yield (
        f"{LITTLES_LAW}, N = X*R (I/Os in flight = IOPS x mean latency): {len(judged) - len(bad)} "
        f"of {counted(len(judged), 'point')} within 10 % of the requested depth x jobs"
        + ("" if not bad else " (the others are marked with !)")
    )
    reasons: dict[str, list[_Measured]] = {}
    for event in bad:
        reasons.setdefault(event.little.why, []).append(event)
    for why, events in reasons.items():
        yield f"  {_numbers(events)}: {why}"


def failure_lines(plan: Plan, failed: Sequence[_Failed]) -> list[str]:
    """Which points failed and why, a line for each reason."""
    place = point_indexes(plan)
    reasons: dict[str, list[int]] = {}
    for failure in failed:
        failed_numbers = reasons.setdefault(failure.error, [])
        number = place[(failure.job, tuple(failure.settings))] + 1
        failed_numbers += [number] if number not in failed_numbers else []
    return [
        f"failed: {', '.join(f'#{number}' for number in sorted(numbers))}: {why}"
        for why, numbers in reasons.items()
    ]


def disturbed_line(points: Sequence[_Measured]) -> str:
    """Name the disturbed points and the disturbances; "" without any."""
    text = disturbance_text([event.point for event in points], "point")
    disturbed = [event for event in points if event.point.disturbed]
    which = "" if len(disturbed) in (0, len(points)) else f"{_numbers(disturbed)}: "
    return text and f"disturbed: {which}{text}"


def _numbers(points: Sequence[_Measured]) -> str:
    return first_of([f"#{event.index + 1}" for event in points], 12)


def best_value_text(points: Sequence[_Measured]) -> str:
    """The recommendation for points without a load axis; "" if there is nothing to choose."""
    settings = [dict(event.settings) for event in points]
    names = [*map(_settings_text, points)]
    varied = [name for name in settings[0] if len({s[name] for s in settings}) > 1]
    varied += ["job"] if len({event.job for event in points}) > 1 else []
    return recommended_value([event.point for event in points], names, varied)


def most_so_far_text(points: Sequence[_Measured]) -> str:
    """Text on the point with the most IOPS so far, while other points are still to come."""
    most = max(points, key=lambda event: event.point.iops)
    name = _settings_text(most) or printable(most.job)
    return f"Most IOPS so far: {name}, {_figures(most.point)}; the answer follows at the end."


def _settings_text(event: _Measured) -> str:
    return " ".join(f"{name}={printable(value)}" for name, value in event.settings)


def conclusions(
    points: Sequence[_Measured], curves: Sequence[LoadCurve[PointT]], complete: bool = True
) -> list[str]:
    """Conclusions from the whole sweep, in sentences; ``points`` from ``measured_points``.
    ``complete``: no point is missing, so a value can be recommended."""
    lines = [*map(curve_text, curves)]
    if not curves and points:
        lines.append(best_value_text(points) if complete else most_so_far_text(points))
    lines = [text for text in (*lines, disturbed_line(points)) if text]
    unsteady = [event for event in points if event.point.steady is False]
    if unsteady:
        every = len(unsteady) == len(points) > 1
        which = f"all {len(points)} points" if every else _numbers(unsteady)
        lines.append(
            f"not in steady state (SNIA's rule, within the measured seconds): {which}; "
            "measure longer"
        )
    judged = [event.outcomes for event in points if event.outcomes]
    met = [all(outcome.passed for outcome in outcomes) for outcomes in judged]
    return [*lines, *expectation_lines(met), *little_lines(points)]


def expectation_lines(met: Sequence[bool]) -> list[str]:
    """A line on how many points met their expectations; empty if no point has any."""
    points = counted(len(met), "point")
    return [f"expectations: met at {sum(met)} of {points}"] if met else []


# -- whether a curve is credible


def why_not_credible(points: Sequence[Point], names: Sequence[str]) -> str:
    """Why points in order of load (with ``names``) are no credible curve; "" if they may be."""
    pairs = list(zip(points, names, strict=True))
    if any(point.disturbed for point in points):
        return f"disturbed at {first_of([name for point, name in pairs if point.disturbed], 3)}"
    moved = moved_between(points)
    if moved:
        return moved
    busy = [name for point, name in pairs if other_load(point)]
    if busy:
        most = max(other_load(point) for point in points)
        return (
            f"at {first_of(busy, 3)} the device moved up to {100 * most:.0f} % more than "
            "fio did (other load, or what file system and page cache add); see `iopstui watch`"
        )
    place = _lowest_valley(points)
    if place is None:
        return ""
    low, after = points[place], max(point.iops for point in points[place + 1 :])
    before = max(point.iops for point in points[:place])
    return (
        f"IOPS fall at {names[place]} ({number(before)}, {number(low.iops)}, then {number(after)} "
        f"again), by more than {_noise_text(low)}: something else changed in between; "
        + ("measure again" if low.runs > 1 else "check with 3 repeats")
    )


def other_load(point: Point) -> float:
    """By what share the device moved more bytes than fio; 0 if negligible or unknown."""
    if point.device_bw is None or point.bw <= 0:
        return 0.0
    more = point.device_bw - point.bw
    return more / point.bw if more > max(OTHER_IO_SHARE * point.bw, MIN_OTHER_BYTES) else 0.0


def _noise_text(point: Point) -> str:
    return "its repeats differ" if point.runs > 1 else f"{100 * NOISE_DIP:.0f} %"


def _iops_bounds(point: Point) -> tuple[float, float]:
    if point.iops_within is not None:
        return point.iops_within
    # how much lower one of two equal single runs may be by chance
    return point.iops * (1 - NOISE_DIP / 2), point.iops * (1 + NOISE_DIP / 2)


def _lowest_valley(points: Sequence[Point]) -> int | None:
    """The lowest point that is below an earlier and a later point by more than noise."""
    bounds = [_iops_bounds(point) for point in points]
    valleys = [
        place
        for place, (_, high) in enumerate(bounds)
        if any(low > high for low, _ in bounds[:place])
        and any(low > high for low, _ in bounds[place + 1 :])
    ]
    return min(valleys, key=lambda place: points[place].iops, default=None)


# -- which point?


def recommended_value(points: Sequence[Point], names: Sequence[str], varied: Sequence[str]) -> str:
    """A sentence that recommends the point with the most IOPS, or bytes if block sizes differ; ""
    for a single point."""
    if len(points) < 2:
        return ""
    sizes = not _SIZE_OPTIONS.isdisjoint(varied)
    amounts = [point.bw if sizes else point.iops for point in points]
    unit, best = "MiB/s" if sizes else "IOPS", max(amounts)
    near = [n for n, amount in enumerate(amounts) if amount >= (1 - NOISE_DIP) * best]
    place = amounts.index(best)
    doubt, runs = uncertainty_text(points), min(point.runs for point in points)
    sure = f"Not sure: {doubt}" if doubt else ONCE if runs == 1 else f"Means of {runs} runs"
    if not _WORK_OPTIONS.isdisjoint(varied):
        most = f"Most {unit}: {names[place]}, {_figures(points[place])}"
        return f"{most}. The points do different work: this recommends none of them. {sure}."
    if len(near) == len(points):
        return f"Take any value: {unit} differ by less than 10 %. {sure}."
    close = [names[n] for n in near if n != place]
    like = (
        f"; within 10 %: {', '.join(close[:3])}{' ...' if len(close) > 3 else ''}" if close else ""
    )
    cpu = cpu_limit_text(points, names, (place,))
    text = f"Take {names[place]}: {_figures(points[place])}, the most {unit}{like}."
    return " ".join(filter(None, (text, cpu, f"{sure}.")))


def _figures(point: Point) -> str:
    size = f", {mib(point.bw)} MiB/s" if point.bw else ""
    return f"{number(point.iops)} IOPS{size} at {latency(point.latency_ns)} (mean)"
