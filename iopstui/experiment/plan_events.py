"""The points of a plan: which one is next, and the events of each, on one machine or on many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iopstui.events import (
    ExperimentFinished,
    ExperimentStarted,
    PointFailed,
    PointFinished,
    PointStarted,
)
from iopstui.model.experiment.expectation import Outcome
from iopstui.model.experiment.load_curve import measured_points
from iopstui.model.experiment.plan import Plan, PlannedPoint, expand_plan
from iopstui.model.experiment.point import LittlesLaw, Point

PlanEvent = ExperimentStarted | PointStarted | PointFinished | PointFailed | ExperimentFinished


class PlanEvents:
    """What has come of ``plan`` so far: ``figures`` by the index of a point, ``failed`` says why
    one has none. ``emit`` takes the events, ``t`` gives their times (s)."""

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
        """It begins."""
        self._emit(ExperimentStarted(self.t(), self.plan, self.plan.name))

    def next(self) -> PlannedPoint | None:
        """The point to run now; ``None``: the plan needs no more."""
        return self.plan.next(self._tried, self._left)

    @property
    def ended_early(self) -> bool:
        """Whether there are points that were not tried."""
        return bool(self._left)

    def begin_point(self, step: PlannedPoint, left_s: float) -> None:
        """A point begins; all that are left take ``left_s``."""
        self._emit(PointStarted(self.t(), step.index, len(self.steps), step.label, left_s))

    def finish_point(
        self,
        step: PlannedPoint,
        point: Point,
        law: LittlesLaw,
        outcomes: Sequence[Outcome] = (),
        earlier: bool = False,
    ) -> None:
        """A point is measured; ``earlier``: before an interruption."""
        self.figures[step.index] = point
        event = PointFinished(
            self.t(), step.index, len(self.steps), step.label, step.job, settings_of(step),
            step.variant, step.repeat, point, law, tuple(outcomes), earlier,
        )  # fmt: skip
        self._done.append(event)
        self._add(step, event)

    def fail_point(self, step: PlannedPoint, error: str) -> None:
        """A point was tried and has no figures."""
        self.failed[step.index] = error
        self._add(step, PointFailed(self.t(), step.index, len(self.steps), step.label, step.job,
                                    settings_of(step), step.repeat, error))  # fmt: skip

    def _add(self, step: PlannedPoint, event: PointFinished | PointFailed) -> None:
        self._tried.append(event)
        self._left.remove(step)
        self._emit(event)

    def measured(self) -> list[PointFinished]:
        """What was measured, runs of one point as their mean."""
        return self._done if self.plan.variants else measured_points(self.plan, self._done)

    def end(self, error: str = "", hint: str = "", stopped: bool = False, kept: str = "") -> None:
        """It is over; ``error`` and ``hint`` say why before its time, ``kept`` is the file from
        which it can go on."""
        points = self.measured()
        self._emit(ExperimentFinished(
            self.t(), len(self.figures), len(self.steps), stopped, error, hint, kept,
            len(self.failed), self.ended_early and not (stopped or error),
            self.plan.conclude(points) if points else (),
        ))  # fmt: skip


def settings_of(step: PlannedPoint) -> tuple[tuple[str, str], ...]:
    """The settings of a point, as (name, value)."""
    return tuple((setting.name, setting.value) for setting in step.settings)
