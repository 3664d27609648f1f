"""Output of `iopstui lesson` without playing: the list, a check, and the names for files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iopstui.format import counted
from iopstui.lesson.check_runs import check_runs
from iopstui.lesson.facts import TargetFacts
from iopstui.lesson.player import LessonRun
from iopstui.model.block.target import Target
from iopstui.model.lesson.figures import FACTS, RUN, Figure
from iopstui.model.lesson.pages import RUN_STEP, Lesson, QuestionPage
from iopstui.model.lesson.text import FORMS
from iopstui.output.lesson.pages import flowed, head_lines
from iopstui.text import printable


def list_lessons(
    lessons: Sequence[Lesson], target: Target, around: TargetFacts
) -> Iterator[str]:  # fmt: skip
    """List every lesson with its subject and the parts that work on this target."""
    for lesson in lessons:
        yield f"{lesson.name}  {printable(lesson.title)}"
        yield from flowed(lesson.teaches, "    ")
        cannot = LessonRun(lesson, target, around).impossible_runs()
        runs = len(lesson.runs)
        ending = "" if lesson.minutes == 1 else "s"
        length = f"about {lesson.minutes:g} minute{ending}, {lesson.seconds:.0f} s of it measuring"
        if not cannot:
            yield from flowed(f"{length}; everything can be measured here", "    ")
        else:
            some = f"{runs - len(cannot)} of {counted(runs, 'run')}"
            effect = "no run" if len(cannot) == runs else some
            why = " ".join(dict.fromkeys(reason for reason in cannot.values() if reason))
            yield from flowed(f"{length}; {effect} possible here: {why}", "    ")
    yield ""
    yield f"(here: {printable(target.path)} on {target.device or 'no block device'})"
    yield "Start one: iopstui lesson NAME [TARGET]  (NAME: number, name or file)"


def list_figures() -> Iterator[str]:
    """Everything that a lesson file can ask for."""
    yield "figures of a run, as RUN.NAME (deep.iops):"
    yield from _figure_lines(RUN)
    yield from flowed(
        "anything in fio's JSON report about its first job row (deep.fio.read.clat_ns.stddev) or "
        "first disk (deep.fio.disk.read_ios)", f"  {'fio.PATH':<23} ", " " * 26,
    )  # fmt: skip
    yield ""
    yield "facts of the target and this machine:"
    yield from _figure_lines(FACTS)
    yield ""
    yield "formats, as {FORMULA :FORM}; by default a figure has its own format:"
    yield from (f"  {form:<4} {meaning}" for form, meaning in FORMS.items())


def _figure_lines(figures: Mapping[str, Figure]) -> Iterator[str]:
    for name, figure in figures.items():
        form = f" [{figure.unit}]" if figure.unit else ""
        yield from flowed(f"{figure.meaning}{form}", f"  {name:<23} ", " " * 26)


def check_lesson(lesson: Lesson, target: Target, around: TargetFacts) -> Iterator[str]:
    """The pages of a valid lesson, without running anything."""
    run = LessonRun(lesson, target, around)
    yield from head_lines(lesson)
    cannot = run.impossible_runs()
    for number_, step in enumerate(lesson.steps, 1):
        yield f"{number_:>3} {step.kind:<8}{step.name:<16} {printable(step.title)}"
        for label, formula in (("when", step.when), ("needs", step.needs)):
            if formula is not None:
                yield from flowed(f"{label} {formula.text}", " " * 12)
        if isinstance(step, QuestionPage):
            for choice in step.choices:
                yield from flowed(f"{choice.letter}) is right if {choice.right.text}", " " * 12)
        if step.kind == RUN_STEP and step.name in cannot:
            yield from flowed(f"not on {target.path}. {cannot[step.name]}", " " * 12)
    # a missing job, or an option that fio does not know, is reported now
    yield from check_runs(run, tuple(run for run in lesson.runs if run.name not in cannot))
    yield f"{lesson.path}: no mistakes found"
