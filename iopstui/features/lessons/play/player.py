"""Play a lesson: its current page, answers and measurements.

It draws nothing and runs nothing itself. The caller shows ``page()``; on a run's page it passes
``request()`` to a session, and the session's events to ``feed``; then it calls ``advance()``."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.errors import UsageError
from iopstui.events import Event, FrameReady, StepFinished, StepStarted
from iopstui.features.lessons.model.figures import requested_figures, run_figures
from iopstui.features.lessons.model.pages import (
    ASK,
    RUN_STEP,
    AnswerPage,
    Lesson,
    Page,
    QuestionPage,
    RunPage,
)
from iopstui.features.lessons.model.text import VisibleParagraph
from iopstui.features.lessons.play.facts import TargetFacts
from iopstui.features.lessons.play.jobs import LessonJobs
from iopstui.features.lessons.play.lesson_state import LessonState
from iopstui.features.lessons.play.page import DONE, FAILED, READY, RUNNING, SKIPPED, ShownPage
from iopstui.features.lessons.play.texts import LessonTexts, figures_of_page
from iopstui.fio.job_shape import shape_of
from iopstui.linux.sysattr import parse_cpu_list
from iopstui.model.block.target import Target
from iopstui.model.experiment.disturbance import DisturbanceMeter
from iopstui.model.experiment.point import PointMeter
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile


class LessonRun(LessonState):
    """Plays a lesson. ``facts`` are those of ``target`` (facts.py); ``size`` and ``destroy_data``
    come from the command line."""

    def __init__(
        self,
        lesson: Lesson,
        target: Target,
        facts: TargetFacts,
        size: str | None = None,
        destroy_data: Sequence[str] = (),
    ) -> None:
        super().__init__(lesson, facts)
        self.elapsed_s = 0.0
        self._target = target
        self.jobs = LessonJobs(self, target, size, destroy_data)
        self._texts = LessonTexts(self, self.jobs)
        self._own_cpus: frozenset[int] = frozenset()
        self._meter: PointMeter | None = None
        self._started = False
        self._stopping = False
        self._repeated: RunPage | None = None
        self._index = -1
        self._move()

    # -- where it is

    @property
    def step(self) -> Page | None:
        """The page that is shown, as in the lesson file; ``None`` at the end."""
        return self.lesson.steps[self._index] if self._index < len(self.lesson.steps) else None

    @property
    def run_page(self) -> RunPage | None:
        """The run of the page that is shown, or an earlier one that is repeated."""
        return self._repeated or (self.step if isinstance(self.step, RunPage) else None)

    @property
    def repeatable(self) -> RunPage | None:
        """The run that can be repeated from the page shown: it failed, or it was disturbed."""
        step, run = self.step, self.run_page
        if self.running or step is None:
            return None
        if run is not None:
            is_disturbed = run.name in self.points and self.points[run.name].disturbed
            return run if run.name in self.failed or is_disturbed else None
        names = set(figures_of_page(step))
        for question in step.answers if isinstance(step, AnswerPage) else ():
            names |= self._figures_of_question(question)
        disturbed = self.disturbances(names)
        return next((run for run in self.lesson.runs if run.name in disturbed), None)

    def _figures_of_question(self, name: str) -> frozenset[str]:
        pages = (step for step in self.lesson.steps if isinstance(step, QuestionPage))
        return next((page.figures for page in pages if page.name == name), frozenset())

    def repeat(self) -> None:
        """The next ``request`` is for the run that can be repeated."""
        run = self.repeatable
        self._repeated = None if run is self.step else run

    @property
    def repeats(self) -> bool:
        """True from ``repeat`` until ``end_repeat``."""
        return self._repeated is not None

    def end_repeat(self) -> None:
        """Go on with the page that is shown."""
        self._repeated = None

    @property
    def is_over(self) -> bool:
        """True after the last page."""
        return self.step is None

    @property
    def running(self) -> bool:
        """True from ``request`` until ``feed`` got the run's end."""
        return self._meter is not None

    def advance(self) -> None:
        """Go to the next page. A question may be left unanswered, and a run may be left out: what
        depends on it is not shown then."""
        step = self.step
        if step is None or self.running:
            return
        is_skipped = step.header in self.skipped
        if isinstance(step, RunPage) and step.name not in self.points and not is_skipped:
            self.failed.setdefault(step.name, "it was not run")
        self._move()

    def answer(self, letter: str | None) -> None:
        """Answer the question that is shown. ValueError for a letter it does not have."""
        step = self.step
        if not isinstance(step, QuestionPage):
            raise ValueError("no question is shown")
        if letter is None:
            self.answers.pop(step.name, None)
        elif letter not in {choice.letter for choice in step.choices}:
            raise ValueError(f"there is no answer {letter!r}")
        else:
            self.answers[step.name] = letter

    def _move(self) -> None:
        while self._index < len(self.lesson.steps):
            self._index += 1
            step = self.step
            if step is None or self._is_shown(step):
                return

    def _is_shown(self, step: Page) -> bool:
        """Whether there is anything to show on a page."""
        if step.when is not None and step.when.as_boolean(self.lookup) is not True:
            return False
        if step.needs is not None and step.needs.as_boolean(self.lookup) is not True:
            self.skipped[step.header] = self.skip_reason(step)
            return True
        if isinstance(step, QuestionPage):
            is_shown = self.is_decidable(step) and self.is_askable(step)
            self.shown_questions |= {step.name} if is_shown else set()
            return is_shown
        return isinstance(step, RunPage) or bool(self._texts.blocks(step))

    # -- pages

    def page(self) -> ShownPage | None:
        """The current page; ``None`` at the end."""
        step = self.step
        if step is None:
            return None
        number, total = self._index + 1, len(self.lesson.steps)
        if step.header in self.skipped:
            reason = (VisibleParagraph(self.skipped[step.header]),)
            return ShownPage(step.kind, step.name, step.title, reason, number, total, state=SKIPPED)
        return ShownPage(
            step.kind,
            step.name,
            step.title,
            tuple(self._texts.blocks(step)),
            number,
            total,
            choices=tuple(self._texts.choices(step)) if isinstance(step, QuestionPage) else (),
            chosen=self.answers.get(step.name) if step.kind == ASK else None,
            state=self._run_state(step) if step.kind == RUN_STEP else "",
            look=step.look if isinstance(step, RunPage) else (),
        )

    def _run_state(self, step: Page) -> str:
        if self.running:
            return RUNNING
        if step.name in self.points:
            return DONE
        return FAILED if step.name in self.failed else READY

    # -- runs

    def request(self, interval_s: float = 1.0) -> RunRequest:
        """The request for the run on the page shown, for a session that samples every
        ``interval_s``. From now on the player waits for the session's events. Raises UsageError."""
        run = self.run_page
        if run is None or run.header in self.skipped:
            raise UsageError("No run is shown.")
        text = self.jobs.job_text(run)
        request = self.jobs.request(run, interval_s)
        self.failed.pop(run.name, None)
        shape = shape_of(text)
        self.points.pop(run.name, None)
        self.figures[run.name] = requested_figures(shape)
        cpus = {s.options.get("cpus_allowed", "") for s in jobfile.effective_sections(text)}
        self._own_cpus = frozenset(parse_cpu_list(cpus.pop()) if len(cpus) == 1 else ())
        self._started = self._stopping = False
        self.elapsed_s = 0.0
        disturbances = DisturbanceMeter(self._target, shape)
        self._meter = PointMeter(run.settle, run.seconds, disturbances)
        return request

    def stop(self) -> None:
        """Note that the session was asked to stop the run. No other one begins, so this is the next
        run to end."""
        self._stopping = True

    def feed(self, event: Event) -> bool:
        """Handle an event of the session. Returns True if it ended the run that the player waits
        for."""
        run, meter = self.run_page, self._meter
        if meter is None or run is None:
            return False
        match event:
            case StepStarted():
                self._started = True
            case FrameReady() if self._started:
                meter.add(event.frame)
                if event.frame.fio is not None:
                    self.elapsed_s += event.frame.fio.seconds or 0.0
            case StepFinished() if self._started or self._stopping or event.error:
                self._finish(run, meter, event)
                return True
        return False

    def give_up(self, reason: str) -> None:
        """The run that is shown can't be made, or its session has ended."""
        if self.run_page is not None:
            self.failed[self.run_page.name] = reason
        self._meter = None

    def _finish(self, run: RunPage, meter: PointMeter, event: StepFinished) -> None:
        self._meter = None
        point = meter.point()
        if event.error or event.interrupted or point is None:
            stopped = "it was stopped" if event.interrupted else "fio ended before the settle time"
            self.failed[run.name] = f"{event.error} {event.hint}".strip() or stopped
            return
        self.points[run.name] = point
        self.documents[run.name] = event.document
        self.figures[run.name] |= run_figures(point, event.document, self._own_cpus)

    def close(self) -> None:
        """Remove the scratch files. The session that ran the jobs must be idle or closed."""
        self.jobs.close()
