"""A lesson for the screen's tests, and a session that plays it without fio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import ui_fakes as fakes

from iopstui.errors import UsageError
from iopstui.features.lessons.model.file import parse_lesson
from iopstui.features.lessons.model.pages import Lesson
from iopstui.features.lessons.play.facts import TargetFacts
from iopstui.features.lessons.play.library import LessonOffer
from iopstui.features.lessons.play.player import LessonRun
from iopstui.features.lessons.screen_part import LessonKeys
from iopstui.model.block.target import Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.draw.style import UTF8, Charset

TEXT = """
[lesson]
title = Two runs, one question
teaches = What a run with a deeper queue brings.
source = a test
minutes = 2
job = randread-4k
settle = 1
seconds = 4

[tell: start]
title = What this is about
text =
    A page of words, the first of the lesson, {device.name} is measured.

    | kept    lines    stay as they are

[ask: guess]
title = What do you expect?
text = Which of the two has more IOPS?
a = the shallow one
right a = one.iops > deep.iops * 2
b = the deep one, or both have about the same number of them, which is what a device does that
    is limited by something else
right b = deep.iops >= one.iops * 0.5

[run: one]
title = One at a time
set = iodepth=1
look =
    kernel: aqu-sz stays below 1
    iops: the line

[run: deep]
title = Many at a time
set = iodepth=64
knob = rq_affinity=2
look =
    latency: it grows

[see: both]
title = Side by side
runs = one, deep
figures = asked, iops, latency, p50, p99, in_flight, aqu_sz, most_on

[explain: why]
title = Why
answers = guess
text =
    when known(one.iops): {one.iops} and {deep.iops} IOPS.
"""


def lesson(text: str = TEXT, name: str = "01-two-runs") -> Lesson:
    return parse_lesson(text, name, f"/lessons/{name}.ini")


@dataclass
class Session(fakes.FakeController):
    """Starts the runs of a lesson; the test ends them."""

    requests: list[RunRequest] = field(default_factory=list)
    lent: list[object] = field(default_factory=list)
    back: list[tuple[tuple[str, str], ...]] = field(default_factory=list)

    def run_request(self, request: RunRequest, lent: object) -> None:
        self.requests.append(request)
        self.lent.append(lent)
        self.title = f"randread 4k QD {request.overrides['iodepth']} × 1 job"
        self.run_job(request.job, request.overrides)

    def reapply_tunables(self, settings: Sequence[tuple[str, str]]) -> None:
        self.back.append(tuple(settings))


@dataclass
class Shelf:
    """The lessons of a session, with facts of the test."""

    target: Target | None = fakes.ON_DISK
    lessons: Sequence[Lesson] = ()
    begun: list[LessonRun] = field(default_factory=list)
    affinity: str = "1"

    def offers(self) -> list[LessonOffer]:
        if self.target is None:
            raise UsageError("There is no target.", "Name one.")
        why = {"deep": "this target has no rq_affinity"}
        lessons = self.lessons or [lesson()]
        return [LessonOffer(lesson, why if number else {}) for number, lesson in enumerate(lessons)]

    def start(self, lesson: Lesson) -> LessonRun:
        assert self.target is not None
        self.begun.append(LessonRun(lesson, self.target, self.current_facts()))
        return self.begun[-1]

    def current_facts(self) -> TargetFacts:
        facts = {"device.name": "nvme0n1", "target.kind": "device"}
        return TargetFacts(facts, {"rq_affinity": self.affinity})


def make(
    shelf: Shelf | None = None,
    session: Session | None = None,
    begin: Lesson | None = None,
    charset: Charset = UTF8,
) -> tuple[IopstuiApp, Session, Shelf]:
    lesson_shelf, controller = shelf or Shelf(), session or Session()
    app = IopstuiApp(
        Backend(
            lambda path: controller,
            lambda: fakes.DEVICES,
            fakes.JOBS,
            conditions=lambda controller: (None, RunRequest()),
        ),
        FirstView(["/dev/nvme0n1"], fakes.FIRST_JOB, {"bs": "8k"}, run_at_once=False, begin=begin),
        Appearance(charset),
    )
    lesson_keys(app).lessons = lambda session: lesson_shelf  # type: ignore[assignment, return-value]
    return app, controller, lesson_shelf


def lesson_keys(app: IopstuiApp) -> LessonKeys:
    [keys] = [part for part in app.feature_parts if isinstance(part, LessonKeys)]
    return keys
