"""Lessons as text: the list of lessons, the pages, what was measured, and the check of a lesson
file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from iopstui.errors import Missing, UsageError
from iopstui.features.lessons.model.formula import FACTS, RUN, Figure
from iopstui.features.lessons.model.pages import FORMS, RUN_STEP, Lesson, QuestionPage, RunPage
from iopstui.features.lessons.play.facts import TargetFacts
from iopstui.features.lessons.play.lesson_state import READY, SKIPPED, Block, ShownPage
from iopstui.features.lessons.play.player import LessonRun
from iopstui.fio.inspect import find_fio
from iopstui.format import counted, latency, number
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.block.target import Target
from iopstui.model.experiment.point import Point
from iopstui.preflight.inspection import inspect_text
from iopstui.tables import Table
from iopstui.text import printable, with_breaks, without_breaks

WIDTH = 80


def head_lines(lesson: Lesson) -> list[str]:
    """The introduction of a lesson, before its first page."""
    return [
        *flowed(printable(lesson.title), ""),
        *flowed(f"Teaches: {printable(lesson.teaches)}", ""),
        *flowed(f"Sources: {printable(lesson.source)}", ""),
        f"{counted(len(lesson.runs), 'run')}, {lesson.seconds:.0f} s of fio in all",
    ]


def page_lines(page: ShownPage) -> list[str]:
    lines = ["", f"======== {page.number} of {page.total}: {printable(page.title)}", ""]
    if page.state == SKIPPED:
        lines += ["  Not available here:"]
    for block in page.blocks:
        lines += [*_block_lines(block), ""]
    for letter, text in page.choices:
        lines += flowed(f"{letter}) {text}", "  ", "     ")
    for pane, sentence in page.look if page.state == READY else ():
        lines += flowed(f"on the live screen, {pane}: {sentence}", "  ", "    ")
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _block_lines(block: Block) -> list[str]:
    if isinstance(block, Table):
        return ["  " + line for line in block.lines()]
    if block.kept:
        return ["    " + _printable_line(line) for line in block.text.splitlines()]
    return flowed(block.text, "  ")


def _printable_line(line: str) -> str:
    """A line with its blanks, but without control characters, which a terminal would interpret."""
    return "".join(char if char.isprintable() else "?" for char in line)


def flowed(text: str, indent: str, more: str | None = None) -> list[str]:
    """Wrap a text from elsewhere to lines of at most ``WIDTH`` columns; only a longer word exceeds
    them."""
    lines = textwrap.wrap(
        without_breaks(printable(text)), WIDTH, initial_indent=indent,
        subsequent_indent=indent if more is None else more, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
    return [with_breaks(line) for line in lines] or [indent]


def measured_line(point: Point) -> str:
    """A line with the figures of a run."""
    of = "the device's await" if point.latency_of == "await" else "mean latency"
    return (f"  measured: {number(point.iops)} IOPS, {of} "
            f"{latency(point.latency_ns)}, {point.seconds:.1f} s")  # fmt: skip


def end_lines(run: LessonRun) -> list[str]:
    """The lines at the end: how many answers were correct."""
    asks = [step.name for step in run.lesson.steps if isinstance(step, QuestionPage)]
    verdicts = [v for v in map(run.verdict, asks) if v is not None]
    answered = [v for v in verdicts if v.chosen]
    lines = ["", "=" * 8 + " the end"]
    if answered:
        good = sum(1 for v in answered if v.correct)
        lines.append(f"{good} of {counted(len(answered), 'answer')} confirmed by the measurement.")
        unknown = sum(1 for v in answered if v.correct is None)
        if unknown:
            lines.append(f"{unknown} could not be checked here.")
    return lines


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
    """List all figures and facts that a lesson's file can use."""
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
    """Show the pages of a valid lesson, without running anything."""
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
    # report a missing job, or an option that fio does not know, already now
    yield from check_runs(run, tuple(run for run in lesson.runs if run.name not in cannot))
    yield f"{lesson.path}: no mistakes found"


# Have fio check a lesson's runs before the first one starts.


def check_runs(lesson: LessonRun, runs: tuple[RunPage, ...]) -> Iterator[str]:
    """Let fio parse the job of each of these runs. Raises UsageError for an option that fio does
    not accept, or for a missing job. Yields a message if fio is not installed."""
    texts = [(run, lesson.jobs.job_text(run)) for run in runs]
    try:
        fio = find_fio()
    except Missing as error:
        yield f"the options of its runs were not checked: {error.message}"
        return
    private = private_directory()
    try:
        for run, text in texts:
            try:
                inspect_text(fio, private, text, f"[{run.header}]", private)
            except UsageError as error:
                raise UsageError(f"{lesson.lesson.path}: {error.message}", error.hint) from error
    finally:
        remove(private)
