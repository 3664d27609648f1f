"""Play a lesson: its current page, its texts, its runs, answers and measurements.

It draws nothing and runs nothing itself. The caller shows ``page()``; on a run's page it passes
``request()`` to a session, and the session's events to ``feed``; then it calls ``advance()``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.events import Event, FrameReady, StepFinished, StepStarted
from iopstui.features.lessons.model.formula import requested_figures, run_figures, unit_of
from iopstui.features.lessons.model.pages import (
    ASK,
    RUN_STEP,
    AnswerPage,
    FiguresPage,
    Lesson,
    Page,
    QuestionPage,
    ReportPage,
    RunPage,
    VisibleParagraph,
)
from iopstui.features.lessons.model.report import report_parts
from iopstui.features.lessons.play.facts import TargetFacts
from iopstui.features.lessons.play.lesson_state import (
    DONE,
    FAILED,
    READY,
    RUNNING,
    SKIPPED,
    Block,
    LessonState,
    ShownPage,
    disturbed_text,
    figures_table,
)
from iopstui.fio.job_shape import shape_of
from iopstui.fio.job_text import describe_job, read_job
from iopstui.fio.library import find_job
from iopstui.linux.kernel_files import parse_cpu_list
from iopstui.linux.process.cpu_users import CpuUsers
from iopstui.linux.process.private import private_directory, remove, write
from iopstui.model.block import target as kinds
from iopstui.model.block.target import Target
from iopstui.model.block.tunable import (
    RESET_BY_SCHEDULER,
    TunableRequest,
    restore_rank,
    with_side_effects,
)
from iopstui.model.experiment.disturbance import DisturbanceMeter
from iopstui.model.experiment.point import PointMeter, run_length_s
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.model.sizes import size_bytes
from iopstui.preflight.staging import LentScratch, SharedScratch

# small enough for a layout in seconds, large enough that random 4k blocks hardly repeat
SCRATCH_BYTES = 256 << 20


class LessonJobs:
    """The jobs of a lesson on ``target``; ``size`` and ``destroy_data`` come from the command
    line."""

    def __init__(
        self, state: LessonState, target: Target, size: str | None, destroy_data: Sequence[str]
    ) -> None:
        self._state = state
        self._target = target
        self._size = size
        self._destroy_data = tuple(destroy_data)
        self._scratch: SharedScratch | None = None
        self._private: Path | None = None

    def request(self, run: RunPage, interval_s: float) -> RunRequest:
        """The request for a run, in a session that samples every ``interval_s``. Raises
        UsageError."""
        length_ms = round(1000 * run_length_s(run.settle, run.seconds, interval_s))
        overrides = dict(self.fill_values(run.options))
        overrides |= {"runtime": f"{length_ms}ms", "time_based": "1"}
        knobs = tuple(TunableRequest(*knob) for knob in self._run_knobs(run))
        return RunRequest(
            self._job_file(run), overrides, self._size, self._destroy_data, run.bind, knobs
        )

    def job_text(self, run: RunPage) -> str:
        """The text of a run's job file, with its options. Raises UsageError if there is no such
        job."""
        text = run.fio + "\n" if run.fio is not None else read_job(self._job_path(run))
        return jobfile.with_overrides(text, dict(self.fill_values(run.options)))

    def fill_values(self, pairs: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
        """The names and values of options or tunables. Raises UsageError for a value that is not
        known here."""
        for name, template in pairs:
            value = template.fill(self._state.lookup, lambda _: "0")
            if value is None:
                unknown = ", ".join(
                    n for n in sorted(template.names) if self._state.lookup(n) is None
                )
                raise UsageError(f"Cannot set {name}: {unknown} is unknown here.")
            yield name, value

    def original_knobs(self) -> tuple[tuple[str, str], ...]:
        """The values that the lesson's tunables had when it began, in the order in which they must
        be restored. ``LiveSession.set_tunable`` needs them if the session continues."""
        names = with_side_effects(name for run in self._state.lesson.runs for name, _ in run.knobs)
        knobs = self._state.target_facts.knobs
        return tuple(
            (name, knobs[name]) for name in sorted(names, key=restore_rank) if name in knobs
        )

    def close(self) -> None:
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
        if self._private is not None:
            remove(self._private)
            self._private = None

    def _job_path(self, run: RunPage) -> Path:
        if "/" in run.job and not run.job.startswith("/"):
            return find_job(str(Path(self._state.lesson.path).parent / run.job))
        return find_job(run.job)

    def _job_file(self, run: RunPage) -> str:
        """The path of a job; a job inside the lesson file is written to a file first."""
        if run.fio is None:
            return str(self._job_path(run)) if "/" in run.job else run.job
        if self._private is None:
            self._private = private_directory()
        return str(write(self._private, f"{run.name}.fio", f"{run.fio}\n".encode()))

    def lent(self) -> LentScratch | None:
        """The scratch directory that all runs share, so that files are laid out only once."""
        if self._target.kind != kinds.DIRECTORY:
            return None
        if self._scratch is None:
            self._scratch = SharedScratch([Path(place.path) for place in self._target.places])
        most = size_bytes(self._state.lesson.size or "") or SCRATCH_BYTES
        return LentScratch(self._scratch.scratch, most)

    def _run_knobs(self, run: RunPage) -> Iterator[tuple[str, str]]:
        """The tunables for a run: those that it sets itself, and the original values of those that
        only other runs set."""
        run_values = dict(self.fill_values(run.knobs))
        values = {**dict(self.original_knobs()), **run_values}
        if "scheduler" in run_values:
            # the kernel resets some tunables when the scheduler changes, which is a part of the
            # change
            for name in RESET_BY_SCHEDULER:
                if name not in run_values:
                    values.pop(name, None)
        for name in sorted(values, key=restore_rank):
            yield name, values[name]


def figures_of_page(step: Page) -> set[str]:
    names = {name for text in step.paragraphs for name in text.names}
    if isinstance(step, FiguresPage):
        names |= {f"{run}.{figure}" for run in step.runs for figure in step.figures}
    if isinstance(step, RunPage):
        names.add(f"{step.name}.iops")
    return names


class LessonTexts:
    """The texts on the pages of a lesson."""

    def __init__(self, state: LessonState, jobs: LessonJobs) -> None:
        self._state = state
        self._jobs = jobs

    def blocks(self, step: Page) -> list[Block]:
        """The content of a page; empty if it depends entirely on unknown figures."""
        blocks: list[Block] = []
        if isinstance(step, AnswerPage):
            verdicts = self._state.verdicts(step.answers)
            blocks += [VisibleParagraph(verdict.text) for verdict in verdicts]
        if isinstance(step, FiguresPage):
            runs = [run for run in step.runs if run in self._state.points]
            if not runs:
                return []
            blocks.append(figures_table(step, runs, self._state.lookup))
        if isinstance(step, AnswerPage):
            blocks += self._state.conclusions(step.paragraphs)
        else:
            blocks += self._state.texts(step.paragraphs)
        blocks += self._disturbed_note(step)
        if isinstance(step, RunPage):
            blocks += self._describe_run(step)
        if isinstance(step, ReportPage):
            blocks += self._report(step)
        return blocks

    def _disturbed_note(self, step: Page) -> list[VisibleParagraph]:
        """A note that runs of the page were disturbed, unless a verdict has said so."""
        if any(self._state.verdict(name) for name in getattr(step, "answers", ())):
            return []
        text = disturbed_text(self._state.disturbances(figures_of_page(step)))
        return [VisibleParagraph(text[0].upper() + text[1:])] if text else []

    def choices(self, question: QuestionPage) -> Iterator[tuple[str, str]]:
        """The letter and text of each answer."""
        for choice in question.choices:
            yield choice.letter, choice.text.fill(self._state.lookup, unit_of) or ""

    def _describe_run(self, run: RunPage) -> list[VisibleParagraph]:
        if run.name in self._state.failed:
            return [VisibleParagraph(f"This run failed: {self._state.failed[run.name]}")]
        try:
            knobs = [f"{name}={value}" for name, value in self._jobs.fill_values(run.knobs)]
            description = describe_job(self._jobs.job_text(run))
        except UsageError as error:
            return [VisibleParagraph(error.message)]
        lines = [description, f"{run.settle:g} s to settle, {run.seconds:g} s measured"]
        set_ = [f"{name}={value}" for name, value in self._jobs.fill_values(run.options)]
        for label, parts in (("fio options: ", set_), ("tunables: ", knobs)):
            if parts:
                lines.append(label + ", ".join(parts))
        return [VisibleParagraph("\n".join(lines), kept=True)]

    def _report(self, step: ReportPage) -> list[VisibleParagraph]:
        document = self._state.documents.get(step.run)
        if not document:
            return []
        explained = dict(step.parts)
        texts: list[VisibleParagraph] = []
        for part, lines in report_parts(document):
            texts.append(VisibleParagraph("\n".join(lines), kept=True))
            texts += self._state.texts(explained.get(part, ()))
        return texts


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

    # -- the position

    @property
    def step(self) -> Page | None:
        """The shown page, as in the lesson's file; ``None`` at the end."""
        return self.lesson.steps[self._index] if self._index < len(self.lesson.steps) else None

    @property
    def run_page(self) -> RunPage | None:
        """The run of the shown page, or an earlier run that is being repeated."""
        return self._repeated or (self.step if isinstance(self.step, RunPage) else None)

    @property
    def repeatable(self) -> RunPage | None:
        """The run that can be repeated from the shown page, because it failed or was disturbed."""
        step, run = self.step, self.run_page
        if self.running or step is None:
            return None
        if run is not None:
            is_disturbed = run.name in self.points and self.points[run.name].disturbed
            return run if run.name in self.failed or is_disturbed else None
        asked = set[str]()
        for question in step.answers if isinstance(step, AnswerPage) else ():
            asked |= self.figures_of_question(question)
        disturbed = self.disturbances(asked) or self.disturbances(figures_of_page(step))
        return next((run for run in self.lesson.runs if run.name in disturbed), None)

    def repeat(self) -> None:
        """Make the next ``request`` for the run that can be repeated."""
        run = self.repeatable
        self._repeated = None if run is self.step else run

    @property
    def repeats(self) -> bool:
        """Whether a run is being repeated: from ``repeat`` until ``end_repeat``."""
        return self._repeated is not None

    def end_repeat(self) -> None:
        """Continue with the shown page."""
        self._repeated = None

    @property
    def is_over(self) -> bool:
        """Whether the last page is over."""
        return self.step is None

    @property
    def running(self) -> bool:
        """Whether a run is going on: from ``request`` until ``feed`` gets its end."""
        return self._meter is not None

    def advance(self) -> None:
        """Go to the next page. A question may stay unanswered and a run may be left out; whatever
        depends on them is not shown then."""
        step = self.step
        if step is None or self.running:
            return
        is_skipped = step.header in self.skipped
        if isinstance(step, RunPage) and step.name not in self.points and not is_skipped:
            self.failed.setdefault(step.name, "it was not run")
        self._move()

    def answer(self, letter: str | None) -> None:
        """Answer the shown question. Raises ValueError for a letter that it does not have."""
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
        """The request for the run of the shown page, in a session that samples every
        ``interval_s``. From now on, the player waits for the session's events. Raises
        UsageError."""
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
        disturbances = DisturbanceMeter(self._target, shape, CpuUsers().busiest)
        self._meter = PointMeter(run.settle, run.seconds, disturbances)
        return request

    def stop(self) -> None:
        """Note that the session was asked to stop the run. As no other run begins, this is the next
        one to end."""
        self._stopping = True

    def feed(self, event: Event) -> bool:
        """Process an event of the session. Returns True if it ended the run for which the player
        waits."""
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
        """Note that the shown run can't be made, or that its session has ended."""
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
