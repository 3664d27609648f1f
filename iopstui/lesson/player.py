"""A lesson being played: which page is shown, what was answered, what was measured.

It draws nothing and runs nothing. Whoever plays it shows ``page()``, hands ``request()`` to a
session on a run's page, and feeds it the session's events; then ``advance()``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.events import Event, FrameReady, StepFinished, StepStarted
from iopstui.fio.job_shape import shape_of
from iopstui.fio.job_text import describe, read_job
from iopstui.fio.library import find_job
from iopstui.fio.stream import size_bytes
from iopstui.lesson.facts import Surroundings
from iopstui.lesson.page import (
    DONE,
    FAILED,
    READY,
    RUNNING,
    SKIPPED,
    Block,
    ShownPage,
    Verdict,
    figures_table,
    judge,
    missing_text,
)
from iopstui.linux.process.private import private_directory, remove, write
from iopstui.linux.sysattr import parse_cpu_list
from iopstui.model.block import target as kinds
from iopstui.model.block.target import Target
from iopstui.model.block.tunable import RESET_BY_SCHEDULER, restore_rank, with_side_effects
from iopstui.model.experiment.point import Point, PointMeter, run_s
from iopstui.model.fio import jobfile
from iopstui.model.fio.report import report_parts
from iopstui.model.lesson.figures import FACTS, Figures, asked_figures, run_figures, unit_of
from iopstui.model.lesson.formula import Value
from iopstui.model.lesson.pages import (
    ASK,
    RUN_STEP,
    Ask,
    Explain,
    Lesson,
    Page,
    Report,
    Run,
    See,
)
from iopstui.model.lesson.text import Paragraph, Text, told
from iopstui.preflight.kept_scratch import KeptScratch
from iopstui.preflight.request import JobRequest

# small enough to be laid out in seconds, large enough for 4k blocks to differ
SCRATCH_BYTES = 256 << 20


class LessonRun:
    """``around`` is what is known of ``target`` (lesson/facts.py); ``size`` and
    ``destroy_data`` are those of the command line.

    ``points`` are the figures of the runs so far, ``failed`` why a run has none, ``skipped`` why
    a page could not be shown, ``answers`` what was answered; by the pages' names, ``skipped`` by
    their headers.
    """

    def __init__(
        self,
        lesson: Lesson,
        target: Target,
        around: Surroundings,
        size: str | None = None,
        destroy_data: Sequence[str] = (),
    ) -> None:
        self.lesson = lesson
        self.points: dict[str, Point] = {}
        self.documents: dict[str, Mapping[str, Any]] = {}
        self.failed: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self.answers: dict[str, str] = {}
        self.elapsed_s = 0.0
        self._target = target
        self._around = around
        self._size = size
        self._destroy_data = tuple(destroy_data)
        self._figures: dict[str, Figures] = {}
        self._own_cpus: frozenset[int] = frozenset()
        self._meter: PointMeter | None = None
        self._started = False
        self._scratch: KeptScratch | None = None
        self._private: Path | None = None
        self._asked: set[str] = set()
        self._index = -1
        self._move()

    # -- where it is

    @property
    def step(self) -> Page | None:
        """The page of the lesson file that is shown; ``None`` at the end."""
        return self.lesson.steps[self._index] if self._index < len(self.lesson.steps) else None

    @property
    def over(self) -> bool:
        """True behind the last page."""
        return self.step is None

    @property
    def running(self) -> bool:
        """True from ``request`` until the run's end was fed."""
        return self._meter is not None

    def advance(self) -> None:
        """To the next page. A question may be left unanswered, a run not made: what depends on
        it is then not said."""
        step = self.step
        if step is None or self.running:
            return
        passed_over = step.header in self.skipped
        if isinstance(step, Run) and step.name not in self.points and not passed_over:
            self.failed.setdefault(step.name, "it was not run")
        self._move()

    def answer(self, letter: str | None) -> None:
        """Answer the question that is shown. ValueError for a letter it does not have."""
        step = self.step
        if not isinstance(step, Ask):
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
            if step is None or self._shown(step):
                return

    # -- what is known

    def lookup(self, name: str) -> Value | None:
        """A figure, a fact or one of [let]; ``None`` if it is not known."""
        let = self.lesson.lets.get(name)
        if let is not None:
            return let.value(self.lookup)
        if name in FACTS:
            return self._around.facts.get(name)
        run, _, figure = name.partition(".")
        return self._figures.get(run, {}).get(figure)

    def verdict(self, name: str) -> Verdict | None:
        """What the measurements so far say to a question; ``None`` if it was not asked."""
        for step in self.lesson.steps:
            if isinstance(step, Ask) and step.name == name and name in self._asked:
                figures = self.lesson.needed(step.figures)
                return judge(step, self.answers.get(name), self.lookup, figures)
        return None

    def _shown(self, step: Page) -> bool:
        """Whether there is anything to show of it."""
        if step.when is not None and step.when.truth(self.lookup) is not True:
            return False
        if step.needs is not None and step.needs.truth(self.lookup) is not True:
            self.skipped[step.header] = self._why(step)
            return True
        if isinstance(step, Ask):
            shown = self._decidable(step) and self._askable(step)
            self._asked |= {step.name} if shown else set()
            return shown
        return isinstance(step, Run) or bool(self._blocks(step))

    def _askable(self, ask: Ask) -> bool:
        """False if the question or an answer refers to something unknown."""
        answers = [choice.text.fill(self.lookup, unit_of) for choice in ask.choices]
        return bool(self._texts(ask.paragraphs)) and None not in answers

    def _why(self, step: Page) -> str:
        texts, _ = told(step.why, self.lookup, unit_of)
        return " ".join(text.text for text in texts) or "this can't be shown here"

    def _decidable(self, ask: Ask) -> bool:
        """False if a run that decides it was not made, or will not be."""
        wanted = {name.partition(".")[0] for name in self.lesson.needed(ask.figures)}
        for run in self.lesson.runs:
            if run.name not in wanted or run.name in self.points:
                continue
            if run.name in self.failed or self._never(run):
                return False
        return True

    def _never(self, run: Run) -> bool:
        """Whether what is known already says that a run will not be made."""
        for formula in (run.when, run.needs):
            names = self.lesson.needed(formula.names) if formula is not None else ()
            others = {_run_of(name) for name in names if name not in FACTS} - {run.name}
            open_ = any(
                other.name not in self.failed and not self._never(other)
                for other in self.lesson.runs
                if other.name in others and other.name not in self.points
            )
            if formula is not None and not open_ and formula.truth(self.lookup) is not True:
                return True
        return run.header in self.skipped

    def cannot(self) -> dict[str, str]:
        """The runs that can't be made here, and why ("": because another one can't)."""
        return {
            run.name: self._why(run) if run.needs is not None else ""
            for run in self.lesson.runs
            if self._never(run)
        }

    # -- pages

    def page(self) -> ShownPage | None:
        """What is shown now; ``None`` at the end."""
        step = self.step
        if step is None:
            return None
        number, total = self._index + 1, len(self.lesson.steps)
        if step.header in self.skipped:
            why = (Text(self.skipped[step.header]),)
            return ShownPage(step.kind, step.name, step.title, why, number, total, state=SKIPPED)
        return ShownPage(
            step.kind,
            step.name,
            step.title,
            tuple(self._blocks(step)),
            number,
            total,
            choices=tuple(self._choices(step)) if isinstance(step, Ask) else (),
            chosen=self.answers.get(step.name) if step.kind == ASK else None,
            state=self._state(step) if step.kind == RUN_STEP else "",
            look=step.look if isinstance(step, Run) else (),
        )

    def _state(self, step: Page) -> str:
        if self.running:
            return RUNNING
        if step.name in self.points:
            return DONE
        return FAILED if step.name in self.failed else READY

    def _choices(self, ask: Ask) -> Iterator[tuple[str, str]]:
        for choice in ask.choices:
            yield choice.letter, choice.text.fill(self.lookup, unit_of) or ""

    def _blocks(self, step: Page) -> list[Block]:
        blocks: list[Block] = []
        if isinstance(step, Explain):
            verdicts = [self.verdict(name) for name in step.answers]
            blocks += [Text(verdict.text) for verdict in verdicts if verdict is not None]
        if isinstance(step, See):
            runs = [run for run in step.runs if run in self.points]
            if not runs:
                return []
            blocks.append(figures_table(step, runs, self.lookup))
        blocks += self._texts(step.paragraphs)
        if isinstance(step, Run):
            blocks += self._about(step)
        if isinstance(step, Report):
            blocks += self._report(step)
        return blocks

    def _texts(self, paragraphs: Sequence[Paragraph]) -> list[Text]:
        texts, missing = told(paragraphs, self.lookup, unit_of)
        # of a run that was not made its own page has said so
        runs = self.points.keys() | {""}
        note = missing_text(name for name in missing if _run_of(name) in runs or name in FACTS)
        return [*texts, note] if note is not None and texts else texts

    def _about(self, run: Run) -> list[Text]:
        """What will be run, or what came of it."""
        if run.name in self.failed:
            return [Text(f"This run failed: {self.failed[run.name]}")]
        try:
            knobs = [f"{name}={value}" for name, value in self._filled(run.knobs)]
            what = describe(self.job_text(run))
        except UsageError as error:
            return [Text(error.message)]
        lines = [what, f"{run.settle:g} s to settle, {run.seconds:g} s measured"]
        set_ = [f"{name}={value}" for name, value in self._filled(run.options)]
        for label, parts in (("fio options: ", set_), ("tunables: ", knobs)):
            if parts:
                lines.append(label + ", ".join(parts))
        return [Text("\n".join(lines), kept=True)]

    def _report(self, step: Report) -> list[Text]:
        document = self.documents.get(step.run)
        if not document:
            return []
        explained = dict(step.parts)
        texts: list[Text] = []
        for part, lines in report_parts(document):
            texts.append(Text("\n".join(lines), kept=True))
            texts += self._texts(explained.get(part, ()))
        return texts

    # -- runs

    def job_text(self, run: Run) -> str:
        """The job file of a run with its options. UsageError if there is none."""
        text = run.fio + "\n" if run.fio is not None else read_job(self._job_path(run))
        return jobfile.changed(text, dict(self._filled(run.options)))

    def _job_path(self, run: Run) -> Path:
        if "/" in run.job and not run.job.startswith("/"):
            return find_job(str(Path(self.lesson.path).parent / run.job))
        return find_job(run.job)

    def _filled(self, pairs: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
        for name, template in pairs:
            value = template.fill(self.lookup, lambda _: "0")
            if value is None:
                unknown = ", ".join(n for n in sorted(template.names) if self.lookup(n) is None)
                raise UsageError(f"{name} can't be set: {unknown} is not known here.")
            yield name, value

    def request(self, interval_s: float = 1.0) -> JobRequest:
        """What a session that samples every ``interval_s`` has to run for the page that is shown;
        from now on it waits for its events. Raises UsageError."""
        run = self.step
        if not isinstance(run, Run) or run.header in self.skipped:
            raise UsageError("No run is shown.")
        text = self.job_text(run)
        length_ms = round(1000 * run_s(run.settle, run.seconds, interval_s))
        overrides = dict(self._filled(run.options))
        overrides |= {"runtime": f"{length_ms}ms", "time_based": "1"}
        request = JobRequest(
            self._job_file(run),
            overrides,
            self._size,
            self._destroy_data,
            run.bind,
            tuple(self._knobs_of(run)),
            self._kept_scratch(),
            size_bytes(self.lesson.size or "") or SCRATCH_BYTES,
        )
        self.failed.pop(run.name, None)
        self._figures[run.name] = asked_figures(shape_of(text))
        cpus = {s.options.get("cpus_allowed", "") for s in jobfile.effective(text)}
        self._own_cpus = frozenset(parse_cpu_list(cpus.pop()) if len(cpus) == 1 else ())
        self._meter = PointMeter(run.settle, self._target.opened, run.seconds)
        self._started = False
        self.elapsed_s = 0.0
        return request

    def feed(self, event: Event) -> bool:
        """Take an event of the session; True if it ended the run that is waited for."""
        run, meter = self.step, self._meter
        if meter is None or not isinstance(run, Run):
            return False
        match event:
            case StepStarted():
                self._started = True
            case FrameReady() if self._started:
                meter.add(event.frame)
                if event.frame.fio is not None:
                    self.elapsed_s += event.frame.fio.seconds or 0.0
            case StepFinished() if self._started or event.error:
                self._finish(run, meter, event)
                return True
        return False

    def give_up(self, why: str) -> None:
        """The run that is shown can't be made, or its session has ended."""
        if self.step is not None:
            self.failed[self.step.name] = why
        self._meter = None

    def _finish(self, run: Run, meter: PointMeter, event: StepFinished) -> None:
        self._meter = None
        point = meter.point()
        if event.error or event.interrupted or point is None:
            stopped = "it was stopped" if event.interrupted else "fio ended before it had settled"
            self.failed[run.name] = f"{event.error} {event.hint}".strip() or stopped
            return
        self.points[run.name] = point
        self.documents[run.name] = event.document
        self._figures[run.name] |= run_figures(point, event.document, self._own_cpus)

    def _job_file(self, run: Run) -> str:
        """The path of a job; one that stands in the lesson itself is written to a file first."""
        if run.fio is None:
            return str(self._job_path(run)) if "/" in run.job else run.job
        if self._private is None:
            self._private = private_directory()
        return str(write(self._private, f"{run.name}.fio", f"{run.fio}\n".encode()))

    def _kept_scratch(self) -> Any:
        """The scratch directory that all runs share, so that its files are laid out once."""
        if self._target.kind != kinds.DIRECTORY:
            return None
        if self._scratch is None:
            self._scratch = KeptScratch([Path(place.path) for place in self._target.places])
        return self._scratch.scratch

    def _knobs_of(self, run: Run) -> Iterator[tuple[str, str]]:
        """A run's tunables; those that only other runs change have their original values."""
        own = dict(self._filled(run.knobs))
        wanted = {**dict(self.found_knobs()), **own}
        if "scheduler" in own:
            # the kernel sets these anew with another scheduler; that is part of the change
            for name in RESET_BY_SCHEDULER:
                if name not in own:
                    wanted.pop(name, None)
        for name in sorted(wanted, key=restore_rank):
            yield name, wanted[name]

    def found_knobs(self) -> tuple[tuple[str, str], ...]:
        """The values that the tunables of this lesson had when it began, in the order in which
        they have to be restored: for ``LiveSession.set_tunable``, if the session goes on."""
        turned = with_side_effects(name for run in self.lesson.runs for name, _ in run.knobs)
        known = self._around.knobs
        return tuple(
            (name, known[name]) for name in sorted(turned, key=restore_rank) if name in known
        )

    def look_again(self, around: Surroundings) -> None:
        """Go on after a break in which the target's tunables may have changed."""
        self._around = around

    def close(self) -> None:
        """Remove the scratch files. The session that ran the jobs must be idle or closed."""
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
        if self._private is not None:
            remove(self._private)
            self._private = None


def _run_of(name: str) -> str:
    return name.partition(".")[0]
