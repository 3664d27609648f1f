"""Experiments without fio: the test sends the events of their runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import ui_fakes as fakes

from iopstui.errors import IopstuiError
from iopstui.events import (
    Event,
    ExperimentFinished,
    ExperimentStarted,
    FrameReady,
    PointFinished,
    PointStarted,
)
from iopstui.experiment.background import PreparedExperiment
from iopstui.experiment.preview import Preview
from iopstui.experiment.setup import ExperimentSetup, length_text
from iopstui.model.experiment.plan import Plan, expand_plan, parse_axis, parse_variant
from iopstui.model.experiment.point import Point, littles_law
from iopstui.model.experiment.run_request import RunRequest
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.draw.style import UTF8, Charset

SWEEP = Plan(("randread-4k",), {}, (parse_axis("iodepth=1,2,4..64"),), settle=2, measure=8)
CURVES = Plan(("randread-4k",), {}, (parse_axis("iodepth=1,4,16"), parse_axis("numjobs=1,2,4")))
COMPARE = Plan(
    ("randread-4k",), {}, variants=(parse_variant("iodepth=1"), parse_variant("iodepth=16")),
    repeats=4, settle=1, measure=4,
)  # fmt: skip


def point(depth: int, jobs: int = 1, at_once: int = 12, more: float = 0.0) -> Point:
    """A point of a device that serves ``at_once`` I/Os at the same time, each in 100 µs."""
    n = depth * jobs
    latency = 100_000 * max(1.0, n / at_once) * (1 + more)
    iops = n / (latency / 1e9)
    return Point(
        8.0, int(8 * iops), iops, iops * 4096, iops, 0.0, latency, "lat", latency, 2 * latency,
        3 * latency, aqu_sz=float(n), util=99.0, cpu_us=20.0, busy={0: 20.0 + n, 1: 10.0},
        completions={0: 0.75, 1: 0.25},
    )  # fmt: skip


def point_finished(plan: Plan, index: int, t: float = 0.0) -> PointFinished:
    step = list(expand_plan(plan))[index]
    values = {setting.name: setting.value for setting in step.settings}
    depth, jobs = int(values.get("iodepth", "1")), int(values.get("numjobs", "1"))
    # runs of a comparison differ a little
    measured = point(depth, jobs, more=0.003 * (index % 3) if plan.variants else 0.0)
    return PointFinished(
        t, index, plan.points, step.label, step.job, tuple(values.items()), step.variant,
        step.repeat, measured, littles_law(measured, depth * jobs, paced=False),
    )  # fmt: skip


def point_started(plan: Plan, index: int, t: float = 0.0) -> PointStarted:
    seconds_left = (plan.points - index) * (plan.settle + plan.measure + 1.5)
    return PointStarted(t, index, plan.points, list(expand_plan(plan))[index].label, seconds_left)


def run_events(plan: Plan, points: int) -> list[Event]:
    """The experiment's own events up to point number ``points``."""
    events: list[Event] = [ExperimentStarted(0.0, plan)]
    for index in range(points):
        events += [point_started(plan, index), point_finished(plan, index)]
    return events


def frame_event(t: float, iops: float, step: int = 1) -> FrameReady:
    """One second of a run."""
    fio = replace(fakes.interval(int(t), 60), total=fakes.direction(iops, 80_000))
    interval = replace(fakes.frame(int(t), fio, frozenset(), ("nvme0n1",), 2), step=step)
    return FrameReady(interval.t, interval)


@dataclass
class FakeRunningExperiment:
    """A running experiment whose events the test sends."""

    plan: Plan
    tell: Callable[[Event], None]
    active: bool = True
    stops: int = 0
    waited: bool = False
    fed: list[Event] = field(default_factory=list)

    def feed(self, event: Event) -> None:
        self.fed.append(event)

    def stop(self) -> None:
        self.stops += 1

    def end(self, completed: int, **outcome: str | bool) -> None:
        self.active = False
        self.tell(ExperimentFinished(0.0, completed, self.plan.points, **outcome))  # type: ignore[arg-type]

    def wait(self, seconds: float) -> None:
        self.waited = True


@dataclass
class FakeLaboratory:
    """A laboratory that raises ``refusal``, if there is one, instead of answering."""

    refusal: IopstuiError | None = None
    kept: str = ""
    hosts: int = 0
    seconds: float | None = None
    looked: list[Plan] = field(default_factory=list)
    begun: list[tuple[Plan, bool]] = field(default_factory=list)
    under: FakeRunningExperiment | None = None

    def preview(self, plan: Plan) -> PreparedExperiment:
        self.looked.append(plan)
        if self.refusal is not None:
            raise self.refusal
        preview = Preview({"randread-4k": "randread 4k QD 1 × 1 job"}, False, {}, 0)
        setup = ExperimentSetup(plan, fakes.ON_DISK, None, fakes.DEVICES, RunRequest(), preview)
        lines = (f"{length_text(plan)} · reads only", "Reads: /dev/nvme0n1 (writes nothing)")
        return PreparedExperiment(setup, None, lines, self.kept)

    def start(
        self, ready: PreparedExperiment, emit: Callable[[Event], None], t: float, anew: bool = False
    ) -> FakeRunningExperiment:
        self.begun.append((ready.setup.plan, anew))
        self.under = FakeRunningExperiment(ready.setup.plan, emit)
        emit(ExperimentStarted(t, ready.setup.plan))
        return self.under

    def variants(self) -> tuple[str, str]:
        return "rq_affinity=1", "rq_affinity=2"


def make(
    background: FakeLaboratory, fake: fakes.FakeController | None = None, charset: Charset = UTF8
) -> IopstuiApp:
    controller = fake or fakes.FakeController()
    return IopstuiApp(
        Backend(
            lambda path: controller,
            lambda: fakes.DEVICES,
            fakes.JOBS,
            background=lambda config: background,
        ),
        FirstView(["/dev/nvme0n1"], overrides={"iodepth": "4", "bs": "8k"}),
        Appearance(charset),
    )
