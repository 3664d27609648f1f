"""The state of a lesson being played: machine facts, figures of its runs, answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iopstui.features.lessons.model.figures import FACTS, Figures, unit_of
from iopstui.features.lessons.model.formula import Value
from iopstui.features.lessons.model.pages import Lesson, Page, QuestionPage, RunPage
from iopstui.features.lessons.model.text import Paragraph, VisibleParagraph, visible_paragraphs
from iopstui.features.lessons.play.facts import TargetFacts
from iopstui.features.lessons.play.page import AnswerVerdict, disturbed_text, judge, missing_text
from iopstui.model.experiment.disturbance import moved_between
from iopstui.model.experiment.point import Point


class LessonState:
    """``target_facts`` are those of facts.py. ``points``, ``documents`` and ``figures`` come from
    the runs so far; ``failed`` says why a run has none. ``answers`` were given, and
    ``shown_questions`` were asked. All these are by the pages' names. ``skipped`` says why pages
    were not shown, by their headers."""

    def __init__(self, lesson: Lesson, facts: TargetFacts) -> None:
        self.lesson = lesson
        self.target_facts = facts
        self.points: dict[str, Point] = {}
        self.documents: dict[str, Mapping[str, Any]] = {}
        self.figures: dict[str, Figures] = {}
        self.failed: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self.answers: dict[str, str] = {}
        self.shown_questions: set[str] = set()

    def lookup(self, name: str) -> Value | None:
        """A figure, a fact or one of [let]; ``None`` if it is not known."""
        definition = self.lesson.lets.get(name)
        if definition is not None:
            return definition.value(self.lookup)
        if name in FACTS:
            return self.target_facts.facts.get(name)
        run, _, figure = name.partition(".")
        return self.figures.get(run, {}).get(figure)

    def disturbances(self, names: Iterable[str]) -> dict[str, str]:
        """What disturbed the runs whose figures ``names`` are, by run."""
        used = {_run_name(name) for name in self.lesson.needed_names(names) if name not in FACTS}
        runs = [run.name for run in self.lesson.runs if run.name in used & self.points.keys()]
        points = {run: self.points[run] for run in runs}
        found = {run: "; ".join(p.disturbed) for run, p in points.items() if p.disturbed}
        moved = moved_between(list(points.values()))
        return {runs[-1]: moved} if moved and not found else found

    def verdict(self, name: str) -> AnswerVerdict | None:
        """Answer a question from the measurements so far; ``None`` if it was not asked."""
        for step in self.lesson.steps:
            if (
                isinstance(step, QuestionPage)
                and step.name == name
                and name in self.shown_questions
            ):
                figures = self.lesson.needed_names(step.figures)
                disturbed = disturbed_text(self.disturbances(figures))
                return judge(step, self.answers.get(name), self.lookup, figures, disturbed)
        return None

    def is_askable(self, question: QuestionPage) -> bool:
        """False if the question or an answer refers to something unknown."""
        answers = [choice.text.fill(self.lookup, unit_of) for choice in question.choices]
        return bool(self.texts(question.paragraphs)) and None not in answers

    def skip_reason(self, step: Page) -> str:
        """The reason why a page can't be shown here, as the lesson gives it."""
        texts, _ = visible_paragraphs(step.why, self.lookup, unit_of)
        return " ".join(text.text for text in texts) or "not available here"

    def is_decidable(self, question: QuestionPage) -> bool:
        """False if a run that decides the question was not made, or will not be."""
        run_names = {name.partition(".")[0] for name in self.lesson.needed_names(question.figures)}
        for run in self.lesson.runs:
            if run.name not in run_names or run.name in self.points:
                continue
            if run.name in self.failed or self._is_impossible(run):
                return False
        return True

    def _is_impossible(self, run: RunPage) -> bool:
        """Whether the figures so far exclude a run."""
        for formula in (run.when, run.needs):
            names = self.lesson.needed_names(formula.names) if formula is not None else ()
            run_names = {_run_name(name) for name in names if name not in FACTS} - {run.name}
            undecided = any(
                other.name not in self.failed and not self._is_impossible(other)
                for other in self.lesson.runs
                if other.name in run_names and other.name not in self.points
            )
            if (
                formula is not None
                and not undecided
                and formula.as_boolean(self.lookup) is not True
            ):
                return True
        return run.header in self.skipped

    def impossible_runs(self) -> dict[str, str]:
        """The runs that can't be made here, and why ("": because another one can't)."""
        return {
            run.name: self.skip_reason(run) if run.needs is not None else ""
            for run in self.lesson.runs
            if self._is_impossible(run)
        }

    def conclusions(self, paragraphs: Sequence[Paragraph]) -> list[VisibleParagraph]:
        """Paragraphs, filled in, without those that draw conclusions from a disturbed run."""
        disturbed = self.disturbances(name for text in paragraphs for name in text.names)
        if not disturbed:
            return self.texts(paragraphs)

        def lookup(name: str) -> Value | None:
            needed = {_run_name(figure) for figure in self.lesson.needed_names([name])}
            return None if needed & disturbed.keys() else self.lookup(name)

        return visible_paragraphs(paragraphs, lookup, unit_of)[0]

    def texts(self, paragraphs: Sequence[Paragraph]) -> list[VisibleParagraph]:
        """Paragraphs, filled in, and a note on those that are missing."""
        texts, missing = visible_paragraphs(paragraphs, self.lookup, unit_of)
        # the page of a missing run has explained that already
        runs = self.points.keys() | {""}
        note = missing_text(name for name in missing if _run_name(name) in runs or name in FACTS)
        return [*texts, note] if note is not None and texts else texts


def _run_name(name: str) -> str:
    return name.partition(".")[0]
