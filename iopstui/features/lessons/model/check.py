"""Check that the formulas of a lesson only use names that exist and figures already measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iopstui.features.lessons.model.figures import FACT_NAMESPACES, FACTS, FIO, RUN
from iopstui.features.lessons.model.pages import (
    AnswerPage,
    FiguresPage,
    Lesson,
    Page,
    QuestionPage,
    ReportPage,
    RunPage,
)
from iopstui.features.lessons.model.section import Section, suggest_names


def check_names(lesson: Lesson, sections: Sequence[Section]) -> None:
    """Check that formulas use existing names, and figures that are measured by then."""
    all_runs = {run.name for run in lesson.runs}
    finished: set[str] = set()
    lets: set[str] = set()
    of_let = next((section for section in sections if section.header == "let"), None)
    for key, formula in lesson.lets.items():
        assert of_let is not None
        _check_figures(of_let, key, formula.names, all_runs, all_runs, lets)
        lets.add(key)
    by_step = [section for section in sections if section.header not in ("lesson", "let")]
    questions: dict[str, QuestionPage] = {}
    answered: set[str] = set()
    for section, step in zip(by_step, lesson.steps, strict=True):
        if isinstance(step, QuestionPage):
            questions[step.name] = step
        for key, names in _figures_by_key(step):
            known_runs = all_runs if key.startswith("right ") else finished
            needed = lesson.needed_names(names) | set(names)
            _check_figures(section, key, needed, known_runs, all_runs, set(lesson.lets))
        if isinstance(step, RunPage):
            finished.add(step.name)
        for run in _shown_runs(step):
            if run not in finished:
                section.fail(f"there is no run {run!r} before it", suggest_names(run, finished))
        for name in step.answers if isinstance(step, AnswerPage) else ():
            if name not in questions:
                section.fail(
                    f"answers: no [ask: {name}] comes before it", suggest_names(name, questions)
                )
            late = _run_names(lesson.needed_names(questions[name].figures)) - finished
            if late:
                section.fail(f"answers: {name} is decided by run {late.pop()}, which comes later")
            answered.add(name)
    for name in questions.keys() - answered:
        section = next(
            section for section in by_step if section.header.partition(":")[2].strip() == name
        )
        section.fail("nothing answers this question",
                     f"Add an [explain: ...] after the runs with: answers = {name}")  # fmt: skip


def _shown_runs(step: Page) -> tuple[str, ...]:
    if isinstance(step, FiguresPage):
        return step.runs
    return (step.run,) if isinstance(step, ReportPage) else ()


def _run_names(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names if name not in FACTS}


def _figures_by_key(step: Page) -> Iterator[tuple[str, Iterable[str]]]:
    """(key, the figures it asks for) of everything on a page."""
    for key, formula in (("when", step.when), ("needs", step.needs)):
        if formula is not None:
            yield key, formula.names
    for key, paragraphs in (("why", step.why), ("text", step.paragraphs)):
        for paragraph in paragraphs:
            yield key, paragraph.names
    if isinstance(step, QuestionPage):
        for choice in step.choices:
            yield choice.letter, choice.text.names
            yield f"right {choice.letter}", choice.right.names
    if isinstance(step, RunPage):
        for key, pairs in (("set", step.options), ("knob", step.knobs)):
            for _, template in pairs:
                yield key, template.names
    if isinstance(step, ReportPage):
        for part, paragraphs in step.parts:
            for paragraph in paragraphs:
                yield part, paragraph.names


def _check_figures(
    section: Section,
    key: str,
    names: Iterable[str],
    finished: Iterable[str],
    all_runs: Iterable[str],
    lets: Iterable[str],
) -> None:
    finished, all_runs, lets = set(finished), set(all_runs), set(lets)
    for name in sorted(names):
        first, _, figure = name.partition(".")
        if name in FACTS or name in lets:
            continue
        if first in FACT_NAMESPACES:
            section.fail(f"{key}: there is no {name}", suggest_names(name, FACTS))
        if not figure:
            section.fail(f"{key}: {name!r} is not a figure",
                         "A figure is RUN.FIGURE, e.g. deep.iops, or one of [let] "
                         "before it.")  # fmt: skip
        if first not in all_runs:
            section.fail(
                f"{key}: {name}: there is no [run: {first}]", suggest_names(first, all_runs)
            )
        if first not in finished:
            section.fail(
                f"{key}: {name}: [run: {first}] comes later, so nothing is known about it yet"
            )
        if figure not in RUN and not figure.startswith(f"{FIO}."):
            section.fail(
                f"{key}: {name}: no run has a figure {figure!r}", suggest_names(figure, RUN)
            )
