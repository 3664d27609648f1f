"""The state of a sweep or a comparison for the screen, made from its events, without drawing or a
clock. A recording has the same events, so a replay shows the same state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from iopstui.events import (
    LAYOUT,
    Event,
    ExperimentFinished,
    FrameReady,
    LayoutProgress,
    PointFailed,
    PointFinished,
    PointStarted,
    StepStarted,
)
from iopstui.format import clock
from iopstui.model.experiment.comparison import NOISE_KNOWN_FROM, sensitivity_so_far, variant_runs
from iopstui.model.experiment.comparison_text import ComparisonResults, method_text
from iopstui.model.experiment.load_curve import (
    LoadCurve,
    conclusions,
    curves_along,
    failure_lines,
    further_loads,
    horizontal_axis,
    load_axis,
    load_curves,
    measured_points,
    recommended_load,
)
from iopstui.model.experiment.plan import (
    Axis,
    Key,
    Plan,
    PlannedPoint,
    expand_plan,
    point_indexes,
    point_key,
    points_in_order,
    variant_letter,
)
from iopstui.model.experiment.point import SettlingFilter
from iopstui.text import printable

REPEATS = "3"
"""So many repeats have intervals of a usable width."""


@dataclass
class Trace:
    """The curve of one run: (seconds since fio's start, IOPS) at the end of each interval, and the
    length of the settling time."""

    index: int
    variant: int
    seconds: list[tuple[float, float]] = field(default_factory=list)
    settled_s: float | None = None


@dataclass(frozen=True)
class _Conclusions:
    lines: Sequence[str] = ()
    curves: list[LoadCurve[PointFinished]] = field(default_factory=list)
    results: ComparisonResults | None = None
    load: str = ""


class ExperimentState:
    """The progress of an experiment. ``points`` are the measured runs by index, ``failed`` the
    failed runs, ``current_point`` is the running one; ``traces`` are the curves of a comparison's
    runs."""

    def __init__(self, plan: Plan, t: float, before: ExperimentState | None = None) -> None:
        self.plan = plan
        if before is not None and (before.plan.jobs, before.plan.options) != (
            plan.jobs, plan.options
        ):  # fmt: skip
            before = None
        self._before = before.recommended if before is not None else ""
        self._loads = before.loads if before is not None else {}
        self.start_t = self.t = t
        self.points: dict[int, PointFinished] = {}
        self.failed: dict[int, PointFailed] = {}
        self.current_point: PointStarted | None = None
        self.finished: ExperimentFinished | None = None
        self.traces: list[Trace] = []
        self.phase = ""
        self.iops: float | None = None
        self._settling = SettlingFilter(plan.settle, plan.measure)
        self._cached: tuple[object, _Conclusions] | None = None

    @property
    def noun(self) -> str:
        return "comparison" if self.plan.variants else "sweep"

    @property
    def total(self) -> int:
        return self.plan.points

    @property
    def active(self) -> bool:
        """Whether it is still running."""
        return self.finished is None

    @property
    def elapsed(self) -> float:
        """The seconds of the current run that fio has measured."""
        return self._settling.elapsed

    @cached_property
    def steps(self) -> tuple[PlannedPoint, ...]:
        return tuple(expand_plan(self.plan))

    @cached_property
    def axis(self) -> Axis:
        return horizontal_axis(self.plan)

    def apply(self, event: Event) -> None:
        self.t = max(self.t, event.t)
        match event:
            case FrameReady():
                self._add_frame(event)
            case PointStarted():
                self._start_point(event)
            case PointFinished():
                self.points[event.index] = event
                self.current_point, self.iops = None, None
            case PointFailed():
                self.failed[event.index] = event
                self.current_point, self.iops = None, None
            case ExperimentFinished():
                self.finished, self.current_point, self.iops = event, None, None
            case StepStarted():
                self.phase = event.phase
            case LayoutProgress():
                self.phase = "layout"

    def _start_point(self, event: PointStarted) -> None:
        self.current_point, self.iops, self.phase = event, None, ""
        self._settling = SettlingFilter(self.plan.settle, self.plan.measure)
        # drop an earlier trace: after a jump, a replay may report a run again
        self.traces = [trace for trace in self.traces if trace.index != event.index]
        if self.plan.variants and event.index < len(self.steps):
            self.traces.append(Trace(event.index, self.steps[event.index].variant))

    def _add_frame(self, event: FrameReady) -> None:
        fio = event.frame.fio
        if self.current_point is None or fio is None or not fio.seconds or not event.frame.step:
            return
        self.phase = "run"
        has_settled = self._settling.counts(event.frame)
        self.iops = fio.total.iops
        drawn, _ = event.frame.drawn
        if self.traces and drawn is not None:
            trace = self.traces[-1]
            trace.seconds.append((self._settling.elapsed, drawn))
            if has_settled and trace.settled_s is None:
                trace.settled_s = self._settling.elapsed - fio.seconds

    # -- texts

    @property
    def left_s(self) -> float | None:
        """Seconds until the end; ``None`` if that is not known."""
        if self.current_point is None or not self.active or not self.current_point.left_s:
            return None
        return max(0.0, self.current_point.left_s - (self.t - self.current_point.t))

    def progress(self, short: bool = False) -> str:
        """The progress in words: "sweep: point 3 of 9, 1:10 left"."""
        unit = self.plan.unit
        count = len(self.points)
        if self.finished is not None:
            return f"{self.noun}: {self._ending_text()}"
        number = (
            self.current_point.index + 1
            if self.current_point is not None
            else min(count + 1, self.total)
        )
        time_left = "" if self.left_s is None else f", {clock(self.left_s)} left"
        if short:
            return f"{self.noun} {number}/{self.total}{time_left}"
        return f"{self.noun}: {unit} {number} of {self.total}{time_left}"

    def _ending_text(self) -> str:
        assert self.finished is not None
        units = f"{self.plan.unit}s"
        if self.finished.error:
            outcome = "failed"
        elif self.finished.interrupted:
            outcome = "stopped"
        elif self.finished.enough:
            return f"done, {len(self.points)} of at most {self.total} {units}"
        else:
            failed = f", {self.finished.failed} of them failed" if self.finished.failed else ""
            return f"done, {self.total} {units}{failed}"
        return f"{outcome} after {len(self.points)} of {self.total} {units}"

    def activity_text(self) -> str:
        """What it does now, in words; "" once it is over."""
        if self.current_point is None or self.finished is not None:
            return "" if self.finished is not None else "between two runs"
        if self.phase == LAYOUT:
            return "creating the scratch file; not measuring yet"
        if self.iops is None:
            return "fio is starting"
        plan, at = self.plan, self.elapsed
        if plan.settle and at <= plan.settle:
            return f"settling, {at:.0f} of {plan.settle:g} s"
        if not plan.measure:
            return f"measuring for {at:.0f} s"
        return f"measuring, {min(at - plan.settle, plan.measure):.0f} of {plan.measure:g} s"

    def curves(self) -> list[LoadCurve[PointFinished]]:
        """The curves of the charts along ``axis``, one for each combination of the other
        settings."""
        return self._conclusions().curves

    def results(self) -> ComparisonResults | None:
        """The results of a comparison so far; ``None`` before the first run is done."""
        return self._conclusions().results

    def sentences(self) -> list[str]:
        """The conclusions in sentences; the final ones once the experiment is over."""
        lines = list(self._conclusions().lines)
        if self.finished is None:
            return [*self._progress_sentences(), *lines]
        if self.finished.error:
            lines.insert(0, f"{self.finished.error} {self.finished.hint}".strip())
        for failure in failure_lines(self.plan, list(self.failed.values())):
            lines.append(printable(failure))
        if len(self.points) + self.finished.failed < self.total and not self.finished.enough:
            path = printable(self.finished.kept)
            more = f"; kept in {path}; the same {self.noun} continues there" if path else ""
            lines.insert(0, f"{self._ending_text()}, not the whole plan{more}")
        before, now = self._before, self.recommended
        if now and before != now and before.partition("=")[0] == now.partition("=")[0]:
            lines.insert(1, f"The sweep before this one recommended {before}.")
        return lines

    @property
    def recommended(self) -> str:
        """The load that the only curve of a whole sweep recommends; "" elsewhere."""
        return self._conclusions().load

    @property
    def loads(self) -> Mapping[str, frozenset[str]]:
        """The loads that this sweep, or one before it of the same jobs, measured, by axis."""
        axis = load_axis(self.plan)
        if axis is None:
            return self._loads
        own = {dict(event.settings)[axis.name] for event in self.points.values()}
        return {**self._loads, axis.name: self._loads.get(axis.name, frozenset()) | own}

    @property
    def next_fields(self) -> dict[str, str]:
        """The values of the form's fields that make the result more certain: repeats, and
        further loads where the best one is at an end and no sweep before measured them all."""
        if self.active or not self.points or self.plan.variants:
            return {}
        further = further_loads(self.plan, self.curves())
        name, _, values = further.partition("=")
        if self.loads.get(name, frozenset()) >= {*values.split(",")}:
            further = ""
        fields = {"axis": further} if further and len(self.points) == self.total else {}
        return {**fields, "rounds": REPEATS} if self.plan.repeats == 1 else fields

    @property
    def answer(self) -> tuple[str, str]:
        """The jobs, and the progress with the first conclusion: ("randread-4k", "sweep: done, 7
        points: Take iodepth=16 ...")."""
        return self.jobs_text, ": ".join([self.progress(), *self.sentences()[:1]])

    @property
    def jobs_text(self) -> str:
        return printable(", ".join(self.plan.jobs))

    @property
    def repeat_advice(self) -> str:
        """What to press on the experiment's screen where its result is uncertain; "" if it is not,
        or not known yet."""
        if self.active or not self.points:
            return ""
        disturbed = any(event.point.disturbed for event in self.points.values())
        fields = self.next_fields
        if not fields and not disturbed:
            return ""
        when = "when the disturbance is over, " if disturbed else ""
        intervals = f"Repeats {REPEATS} for 95 % intervals" if "rounds" in fields else ""
        more = " and ".join(filter(None, (fields.get("axis"), intervals)))
        return f"Next: {when}n opens the form to measure again{more and f', with {more}'}"

    def _progress_sentences(self) -> list[str]:
        if not self.plan.variants:
            return []
        results = self.results()
        complete = results.complete if results is not None else 0
        more = []
        if results is not None and complete >= NOISE_KNOWN_FROM:
            more = list(filter(None, [sensitivity_so_far(self.plan, results.runs)]))
        text = (
            f"{complete} of {self.plan.repeats} repeats are complete; the result follows at the end"
        )
        return [text, *more]

    def _conclusions(self) -> _Conclusions:
        """The conclusions so far. They are computed again after each point and at the end."""
        key = len(self.points), len(self.failed), self.finished is not None
        if self._cached is None or self._cached[0] != key:
            points = [self.points[index] for index in sorted(self.points)]
            conclude = self._of_comparison if self.plan.variants else self._of_sweep
            self._cached = key, conclude(points) if points else _Conclusions()
        return self._cached[1]

    def _of_sweep(self, points: Sequence[PointFinished]) -> _Conclusions:
        # no knees before all points are measured, because curves are still incomplete
        complete = self.finished is not None
        knees = load_curves(self.plan, points) if complete else []
        measured = measured_points(self.plan, points)
        said = self.finished.said if self.finished is not None else self.plan.conclude(measured)
        lines = said or conclusions(measured, knees, complete)
        drawn = curves_along(self.plan, self.axis, points)
        is_whole = len(points) == self.total and load_axis(self.plan) is not None
        one = is_whole and len(knees) == 1 and len(knees[0].points) > 1
        load = recommended_load(knees[0]) if one else ""
        return _Conclusions([printable(line) for line in lines], drawn, load=load)

    def _of_comparison(self, points: Sequence[PointFinished]) -> _Conclusions:
        results = ComparisonResults(self.plan, variant_runs(self.plan, points))
        lines = [] if self.finished is None else list(results.verdicts())
        if lines and results.complete >= results.least:
            lines.append(f"({method_text(self.plan, '*')})")
        return _Conclusions(lines, results=results)

    def points_by_place(self) -> dict[int, PointFinished]:
        """The points of a sweep by their index; each is the mean of its runs."""
        return {
            point.index: point for point in measured_points(self.plan, list(self.points.values()))
        }

    def place(self, step: PlannedPoint | PointFailed) -> int:
        """The index of a run's point in a sweep, from 0."""
        if isinstance(step, PointFailed):
            return self._places[(step.job, step.settings)]
        return self._places[point_key(step)]

    @cached_property
    def _places(self) -> dict[Key, int]:
        return point_indexes(self.plan)

    @cached_property
    def rows(self) -> tuple[PlannedPoint, ...]:
        """A sweep's points in order, each only once."""
        return tuple(points_in_order(self.plan))


def result_text(state: ExperimentState, target: str) -> str:
    """The progress on ``target`` and the conclusions, as text without columns."""
    head = f"{state.jobs_text} on {printable(target)}: {state.progress()}"
    return "\n".join([head, *state.sentences()])


def variant_names(plan: Plan) -> list[str]:
    """The variants in words, such as "A: iodepth=1"."""
    return [printable(f"{variant_letter(n)}: {v.label}") for n, v in enumerate(plan.variants)]
