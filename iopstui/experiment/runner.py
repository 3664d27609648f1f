"""Run the points of a plan one after another in one session, each with its own fio.

``ExperimentRunner.run`` blocks its caller. If the session is the runner's own, every event of it
and of the experiment goes to the sink, in order, in the caller's thread. If it is ``borrowed`` from
a screen, the screen passes the session's events on with ``feed``, and the sink gets only those of
the experiment."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from iopstui.errors import EXIT_JOB_FAILED, IopstuiError, JobFailed, UsageError
from iopstui.events import (
    Event,
    ExperimentFinished,
    ExperimentStarted,
    FrameReady,
    PointFailed,
    PointFinished,
    PointStarted,
    StepFinished,
)
from iopstui.experiment.progress import ProgressFile
from iopstui.fio.job_shape import shape_of
from iopstui.fio.job_text import read_job
from iopstui.fio.library import find_job
from iopstui.format import counted
from iopstui.linux.activity.io_users import disturbance_meter
from iopstui.model.block import target as kinds
from iopstui.model.block.target import Target
from iopstui.model.block.tunable import TunableRequest, restore_rank, with_side_effects
from iopstui.model.experiment.expectation import Expectation, ExpectationChecker, Outcome
from iopstui.model.experiment.load_curve import measured_points
from iopstui.model.experiment.plan import BIND, KNOB, OPTION, SIZE, Plan, PlannedPoint, expand_plan
from iopstui.model.experiment.point import (
    LittlesLaw,
    Point,
    PointMeter,
    SettlingFilter,
    littles_law,
    run_length_s,
)
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.model.findings.evidence import SYNCHRONOUS, JobShape
from iopstui.model.fio import jobfile
from iopstui.model.rates import median
from iopstui.preflight.staging import LentScratch, SharedScratch
from iopstui.safety.scratch import DEFAULT_BYTES, files_of, usable_bytes_for_all
from iopstui.session.live import LiveSession
from iopstui.session.run_loop import RunLoop, Sink
from iopstui.session.tick.outcomes import outcome_text

# time for starting and ending fio, and for the interval in which settling ends
OVERHEAD_S = 2.5
MEASURED_SHARE = 0.9


class ExperimentRunner:
    """Drives one plan; ``conditions`` apply to all of its runs. ``points`` are the results so far;
    results saved in ``progress`` are not measured again. ``t`` is the present time of a borrowed
    session."""

    def __init__(
        self,
        session: LiveSession,
        plan: Plan,
        job_target: Target | None,
        conditions: RunRequest,
        sink: Sink,
        progress: ProgressFile | None = None,
        expectations: Sequence[Expectation] = (),
        borrowed: bool = False,
        t: float = 0.0,
    ) -> None:
        self.plan = plan
        self.loop = RunLoop(session, sink, borrowed, t)
        self.points = PlanEvents(plan, self._emit, lambda: self.t)
        self._session = session
        self._job_target = job_target
        self._conditions = conditions
        self._sink = sink
        self.progress = progress
        self._expectations = tuple(expectations)
        self._scratch: dict[str, SharedScratch] = {}
        self._max_scratch_bytes: int | None = None
        self._overheads: list[float] = []
        self._seed = new_seed()

    @property
    def t(self) -> float:
        """The time of the session's newest event."""
        return self.loop.t

    @property
    def interrupted(self) -> bool:
        """Whether the user has stopped it."""
        return self.loop.interrupted

    def run(self) -> None:
        """Run all points. Raises the error of the first point that can't be run, or of the first
        failed run of a comparison; earlier results are in ``points``. Afterwards no scratch file is
        left, and the session is closed or (if borrowed) has its tunables restored."""
        self.loop.start()
        before = self._current_settings() if self.loop.borrowed else ()
        error = IopstuiError("")
        try:
            self.points.start()
            self.loop.end_job()
            self._run_all()
        except IopstuiError as failed:
            error = failed
            raise
        finally:
            # the sink may fail, for example because of a closed pipe
            try:
                self._end(error)
            finally:
                self._restore(before)

    def _restore(self, before: Sequence[tuple[str, str]]) -> None:
        """Remove scratch files; close the session, or restore the tunables of a borrowed one."""
        try:
            if self.loop.borrowed:
                self._session.reapply_tunables(before)
            self.loop.close()
        finally:
            self._close_scratch()

    def _end(self, error: IopstuiError) -> None:
        done, total = len(self.points.figures), len(self.points.steps)
        incomplete = 0 < done < total and (self.interrupted or bool(error.message))
        progress_path = str(self.progress.path) if self.progress is not None and incomplete else ""
        self.points.end(error.message, error.hint, self.interrupted, progress_path)

    def _current_settings(self) -> tuple[tuple[str, str], ...]:
        """The present values of the tunables that the plan changes, in the order in which to
        restore them."""
        names = {axis.name for axis in self.plan.axes if axis.kind == KNOB}
        for variant in self.plan.variants:
            names |= {setting.name for setting in variant.settings if setting.kind == KNOB}
        changed = with_side_effects(names)
        values = {knob.name: knob.now for knob in self._session.knobs() if knob.name in changed}
        return tuple((name, values[name]) for name in sorted(values, key=restore_rank))

    def _run_all(self) -> None:
        self._max_scratch_bytes = common_scratch_bytes(self.plan, self._job_target)
        before = self._already_measured()
        while not self.interrupted and (step := self.points.next()) is not None:
            earlier = before.get(step.index)
            if earlier is not None:
                shape = shape_of(point_job_text(self.plan, step))
                outcomes = self._earlier_outcomes(step)
                self._finish_point(step, earlier, shape, outcomes, earlier=True)
            else:
                self._run_point(step)

    def _already_measured(self) -> dict[int, Point]:
        """Points that need not be measured again. In a comparison only whole repeats count: runs
        are pairs only if they follow one another."""
        points = dict(self.progress.points) if self.progress else {}
        if not self.plan.variants:
            return points
        steps = self.points.steps
        incomplete = {step.repeat for step in steps if step.index not in points}
        return {step.index: points[step.index] for step in steps if step.repeat not in incomplete}

    def _emit(self, event: Event) -> None:
        """Send an event of the experiment itself to the sink, and record it."""
        self._session.note(event)
        self._sink(event)

    def _run_point(self, step: PlannedPoint) -> None:
        began = time.monotonic()
        self.points.begin_point(step, self.remaining_s())
        length = self.plan.settle, self.plan.measure
        # read once: the file may change meanwhile, and the figures belong to what ran
        text = point_job_text(self.plan, step)
        shape = shape_of(text)
        session = self._session
        meter = PointMeter(*length, disturbance_meter(session.target, shape, session.devices))
        judge, settling = ExpectationChecker(self._expectations), SettlingFilter(*length)

        def take(event: Event) -> None:
            if isinstance(event, FrameReady):
                meter.add(event.frame)
                if settling.counts(event.frame):
                    judge.add(event.frame)

        request, lent = self.request(step, text), self._scratch_of(step.job)
        finished = self.loop.run(lambda: self._session.run_request(request, lent), take)
        if not self._is_complete(step, finished):
            return
        point = self._measured_point(step, meter)
        self._overheads.append(time.monotonic() - began - self.plan.settle - self.plan.measure)
        outcomes = judge.outcomes()
        if self.progress is not None:
            self.progress.add(step.index, point, outcomes)
        self._finish_point(step, point, shape, outcomes)

    def _is_complete(self, step: PlannedPoint, finished: StepFinished | None) -> bool:
        """Whether the run was completed; False if it was interrupted, or if it failed and the sweep
        goes on. Raises the error of any other failed run."""
        leaves_out_failures = not self.plan.variants and not self._session.budget.exceeded
        error = finished.error if finished is not None else ""
        if finished and error and finished.exit_code == EXIT_JOB_FAILED and leaves_out_failures:
            # other values may work (bs=1000 fails with direct=1)
            self.points.fail_point(step, error)
            return False
        return self.loop.complete(finished)

    def _measured_point(self, step: PlannedPoint, meter: PointMeter) -> Point:
        """The figures of a run, with a warning if it was shorter than planned. Raises JobFailed
        if nothing was measured."""
        point = meter.point()
        if point is None:
            raise JobFailed(f"{step.label}: fio ended before the settle time.",
                            "Use a shorter settle time.")  # fmt: skip
        if point.seconds < MEASURED_SHARE * self.plan.measure:
            self._session.notice(
                "warning",
                f"{step.label}: only {point.seconds:.2g} of {self.plan.measure:g} s were measured; "
                "fio ended early, or its jobs stalled",
            )
        return point

    def _earlier_outcomes(self, step: PlannedPoint) -> list[Outcome]:
        judged = self.progress.judged.get(step.index, []) if self.progress else []
        return [
            Outcome(expectation, *figures)
            for expectation, figures in zip(self._expectations, judged, strict=False)
        ]

    def _finish_point(
        self, step: PlannedPoint, point: Point, shape: JobShape, outcomes: Sequence[Outcome],
        earlier: bool = False,
    ) -> None:  # fmt: skip
        law = littles_law(point, shape.in_flight, shape.paced, shape.engine in SYNCHRONOUS)
        self.points.finish_point(step, point, law, outcomes, earlier)

    def verdict(self) -> Verdict:
        """Whether each expectation was met, and whether every point was measured."""
        judged, failed = self.plan.judge(self.points.measured()), len(self.points.failed)
        checks = [
            Check(f"{label}: {outcome.expectation.text}", outcome.passed, outcome_text(outcome))
            for label, outcome in judged
        ]
        if failed:
            checks.append(Check("all points", False, f"{counted(failed, 'run')} failed"))
        unknown = [outcome for _, outcome in judged if outcome.measured is None]
        error = None
        if unknown and not (self.interrupted or failed):
            error = UsageError(f"--expect {unknown[0].expectation.text!r} cannot be checked: the "
                               "points have no such figure.")  # fmt: skip
        return Verdict(tuple(checks), self.interrupted, failed, error)

    def remaining_s(self) -> float:
        """Estimate the seconds until the last point is done, from the overhead of the points so
        far."""
        points = self.progress.points if self.progress else self.points.figures
        finished = points.keys() | self.points.failed.keys()
        missing = sum(1 for step in self.points.steps if step.index not in finished)
        # without the first point's overhead, which includes the layout of the files
        overhead = median(self._overheads[1:]) if self._overheads[1:] else OVERHEAD_S
        return missing * (self.plan.settle + self.plan.measure + overhead)

    def request(self, step: PlannedPoint, text: str) -> RunRequest:
        """The request for a point's run; ``text`` is its job file."""
        request = point_request(self.plan, self._conditions, step, self._session.interval_s)
        blocks = jobfile.other_blocks(text, self._seed + step.index)
        return replace(request, overrides={**request.overrides, **blocks})

    def _scratch_of(self, job: str) -> LentScratch | None:
        """The scratch directory of a job: made for its first point, then used by all of them. A
        sweep runs one job after another and needs one directory at a time; a comparison needs all
        of them."""
        target = self._job_target
        if target is None or target.kind != kinds.DIRECTORY:
            return None
        if job not in self._scratch:
            if not self.plan.variants:
                self._close_scratch()
            self._scratch[job] = SharedScratch([Path(place.path) for place in target.places])
        return LentScratch(self._scratch[job].scratch, self._max_scratch_bytes)

    def _close_scratch(self) -> None:
        while self._scratch:
            self._scratch.popitem()[1].close()


def point_request(
    plan: Plan, conditions: RunRequest, step: PlannedPoint, interval_s: float
) -> RunRequest:
    length_s = run_length_s(plan.settle, plan.measure, interval_s)
    overrides = {
        **plan.options,
        **step.settings_of(OPTION),
        "runtime": f"{round(1000 * length_s)}ms",
        "time_based": "1",
    }
    bind = step.settings_of(BIND).get("bind")
    # change the scheduler first, because that resets other tunables
    own_knobs = (TunableRequest(*knob) for knob in step.settings_of(KNOB).items())
    knobs = sorted((*conditions.knobs, *own_knobs), key=lambda knob: knob.name != "scheduler")
    return replace(
        conditions,
        job=step.job,
        overrides=overrides,
        size=step.settings_of(SIZE).get("size", conditions.size),
        bind=conditions.bind if bind is None else bind == "queues",
        knobs=tuple(knobs),
    )


def new_seed() -> int:
    """A random seed, from which an experiment counts up with each run. It is large, because fio
    multiplies it with a job's number: the second job with seed 1 has the blocks of the first job
    with seed 2."""
    return random.randrange(1 << 29, 1 << 30)


def point_job_text(plan: Plan, step: PlannedPoint) -> str:
    """The job file of a point, with the options that the plan sets."""
    text = read_job(find_job(step.job))
    return jobfile.with_overrides(text, {**plan.options, **step.settings_of(OPTION)})


def common_scratch_bytes(plan: Plan, job_target: Target | None) -> int | None:
    """The maximum size of each scratch file, so that the files of every point fit and have the same
    size; ``None`` without scratch files."""
    if job_target is None or job_target.kind != kinds.DIRECTORY:
        return None
    file_counts: dict[tuple[str, str], int] = {}
    for step in expand_plan(plan):
        key = step.job, step.settings_of(OPTION).get("numjobs", "")
        if key not in file_counts:
            file_counts[key] = files_of(point_job_text(plan, step))
    job_count = len({job for job, _ in file_counts}) if plan.variants else 1
    space = min(
        DEFAULT_BYTES, usable_bytes_for_all([Path(place.path) for place in job_target.places])
    )
    return space // max(file_counts.values()) // job_count


# Keep track of a plan's points and emit their events, on one machine or many.


PlanEvent = ExperimentStarted | PointStarted | PointFinished | PointFailed | ExperimentFinished


class PlanEvents:
    """The results of ``plan`` so far: ``figures`` of points by index, and ``failed`` with the
    reasons why points have none. ``emit`` gets the events, ``t`` returns the present time (s)."""

    def __init__(
        self, plan: Plan, emit: Callable[[PlanEvent], None], t: Callable[[], float]
    ) -> None:
        self.plan = plan
        self.steps = tuple(expand_plan(plan))
        self.figures: dict[int, Point] = {}
        self.failed: dict[int, str] = {}
        self._emit, self.t = emit, t
        self._done: list[PointFinished] = []
        self._tried: list[PointFinished | PointFailed] = []
        self._left = list(self.steps)

    def start(self) -> None:
        self._emit(ExperimentStarted(self.t(), self.plan, self.plan.name))

    def next(self) -> PlannedPoint | None:
        """The point to run now; ``None`` if no further point is needed."""
        return self.plan.next(self._tried, self._left)

    @property
    def ended_early(self) -> bool:
        """Whether there are points that were not tried."""
        return bool(self._left)

    def begin_point(self, step: PlannedPoint, left_s: float) -> None:
        """Emit that a point begins. The experiment will take ``left_s`` more seconds."""
        self._emit(PointStarted(self.t(), step.index, len(self.steps), step.label, left_s))

    def finish_point(
        self,
        step: PlannedPoint,
        point: Point,
        law: LittlesLaw,
        outcomes: Sequence[Outcome] = (),
        earlier: bool = False,
    ) -> None:
        """Emit the figures of a point; ``earlier``: it was measured before an interruption."""
        self.figures[step.index] = point
        event = PointFinished(
            self.t(), step.index, len(self.steps), step.label, step.job, settings_of(step),
            step.variant, step.repeat, point, law, tuple(outcomes), earlier,
        )  # fmt: skip
        self._done.append(event)
        self._add(step, event)

    def fail_point(self, step: PlannedPoint, error: str) -> None:
        self.failed[step.index] = error
        self._add(step, PointFailed(self.t(), step.index, len(self.steps), step.label, step.job,
                                    settings_of(step), step.repeat, error))  # fmt: skip

    def _add(self, step: PlannedPoint, event: PointFinished | PointFailed) -> None:
        self._tried.append(event)
        self._left.remove(step)
        self._emit(event)

    def measured(self) -> list[PointFinished]:
        """The measured points; in a sweep, the mean of each point's runs."""
        return self._done if self.plan.variants else measured_points(self.plan, self._done)

    def end(self, error: str = "", hint: str = "", stopped: bool = False, kept: str = "") -> None:
        """Emit that the experiment is over; ``error`` and ``hint`` say why it ended early, ``kept``
        is the file from which it can be resumed."""
        points = self.measured()
        self._emit(ExperimentFinished(
            self.t(), len(self.figures), len(self.steps), stopped, error, hint, kept,
            len(self.failed), self.ended_early and not (stopped or error),
            self.plan.conclude(points) if points else (),
        ))  # fmt: skip


def settings_of(step: PlannedPoint) -> tuple[tuple[str, str], ...]:
    """The settings of a point, as (name, value)."""
    return tuple((setting.name, setting.value) for setting in step.settings)
