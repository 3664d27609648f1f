"""Check that the formulas of a lesson only use names that exist and figures already measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iopstui.model.lesson.figures import FACTS, FIO, RUN, SPACES
from iopstui.model.lesson.pages import (
    AnswerPage,
    FiguresPage,
    Lesson,
    Page,
    QuestionPage,
    ReportPage,
    RunPage,
)
from iopstui.model.lesson.section import Section, known_names


def check_names(lesson: Lesson, sections: Sequence[Section]) -> None:
    """Check that formulas use existing names, and figures that are measured by then."""
    every = {run.name for run in lesson.runs}
    done: set[str] = set()
    lets: set[str] = set()
    of_let = next((one for one in sections if one.header == "let"), None)
    for key, formula in lesson.lets.items():
        assert of_let is not None
        _check(of_let, key, formula.names, every, every, lets)
        lets.add(key)
    by_step = [one for one in sections if one.header not in ("lesson", "let")]
    asked: dict[str, QuestionPage] = {}
    answered: set[str] = set()
    for section, step in zip(by_step, lesson.steps, strict=True):
        if isinstance(step, QuestionPage):
            asked[step.name] = step
        for key, names in _names(step):
            known = every if key.startswith("right ") else done
            needed = lesson.needed_names(names) | set(names)
            _check(section, key, needed, known, every, set(lesson.lets))
        if isinstance(step, RunPage):
            done.add(step.name)
        for run in _runs_of(step):
            if run not in done:
                section.fail(f"there is no run {run!r} before it", known_names(run, done))
        for name in step.answers if isinstance(step, AnswerPage) else ():
            if name not in asked:
                section.fail(f"answers: no [ask: {name}] comes before it", known_names(name, asked))
            late = _runs_named(lesson.needed_names(asked[name].figures)) - done
            if late:
                section.fail(f"answers: {name} is decided by run {late.pop()}, which comes later")
            answered.add(name)
    for name in asked.keys() - answered:
        section = next(one for one in by_step if one.header.partition(":")[2].strip() == name)
        section.fail("nothing answers this question",
                     f"Add an [explain: ...] after the runs with: answers = {name}")  # fmt: skip


def _runs_of(step: Page) -> tuple[str, ...]:
    if isinstance(step, FiguresPage):
        return step.runs
    return (step.run,) if isinstance(step, ReportPage) else ()


def _runs_named(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names if name not in FACTS}


def _names(step: Page) -> Iterator[tuple[str, Iterable[str]]]:
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


def _check(
    section: Section,
    key: str,
    names: Iterable[str],
    done: Iterable[str],
    every: Iterable[str],
    lets: Iterable[str],
) -> None:
    done, every, lets = set(done), set(every), set(lets)
    for name in sorted(names):
        first, _, rest = name.partition(".")
        if name in FACTS or name in lets:
            continue
        if first in SPACES:
            section.fail(f"{key}: there is no {name}", known_names(name, FACTS))
        if not rest:
            section.fail(f"{key}: {name!r} is not a figure",
                         "A figure is RUN.FIGURE, e.g. deep.iops, or one of [let] "
                         "before it.")  # fmt: skip
        if first not in every:
            section.fail(f"{key}: {name}: there is no [run: {first}]", known_names(first, every))
        if first not in done:
            section.fail(
                f"{key}: {name}: [run: {first}] comes later, so nothing is known about it yet"
            )
        if rest not in RUN and not rest.startswith(f"{FIO}."):
            section.fail(f"{key}: {name}: no run has a figure {rest!r}", known_names(rest, RUN))
