"""The state of a lesson that is being played, and the pages that it shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iopstui.features.lessons.model.formula import FACTS, FIO, RUN, Figures, Lookup, Value, unit_of
from iopstui.features.lessons.model.pages import (
    Choice,
    FiguresPage,
    Lesson,
    Page,
    Paragraph,
    QuestionPage,
    RunPage,
    VisibleParagraph,
    format_value,
    visible_paragraphs,
)
from iopstui.features.lessons.play.facts import TargetFacts
from iopstui.format import MISSING
from iopstui.model.experiment.disturbance import moved_between
from iopstui.model.experiment.point import Point
from iopstui.tables import Table

READY, RUNNING, DONE, FAILED, SKIPPED = "ready", "running", "done", "failed", "skipped"


Block = VisibleParagraph | Table


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page as it is shown. ``kind`` is one of the kinds in model/pages.py. ``choices`` has pairs
    (letter, text) of a question; ``chosen`` is the answer given. ``state`` is that of a run (READY
    ... FAILED), or SKIPPED for any page that can't be shown here. ``look`` has pairs (pane,
    sentence)."""

    kind: str
    name: str
    title: str
    blocks: tuple[Block, ...]
    number: int
    total: int
    choices: tuple[tuple[str, str], ...] = ()
    chosen: str | None = None
    state: str = ""
    look: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """What the measurement says about a question. ``right`` are the letters of the correct answers;
    ``correct`` is ``None`` if the given answer can't be judged, or none was given."""

    chosen: str | None
    right: tuple[str, ...]
    correct: bool | None
    text: str


def judge(
    question: QuestionPage,
    chosen: str | None,
    lookup: Lookup,
    figures: Iterable[str],
    disturbed: str = "",
) -> AnswerVerdict:
    """Compare an answer with the measurement; ``figures`` decide. If their runs were disturbed,
    there is no verdict, and ``disturbed`` says by what."""
    verdicts = {choice.letter: choice.right.as_boolean(lookup) for choice in question.choices}
    right = tuple(letter for letter, value in verdicts.items() if value)
    by_letter = {choice.letter: choice for choice in question.choices}
    # an answer is wrong only if another one is right; otherwise the measurement decided nothing
    correct = verdicts.get(chosen) if chosen and right else None
    answer_text = f"You said {_choice_text(by_letter[chosen], lookup)}. " if chosen else ""
    right_texts = " and ".join(_choice_text(by_letter[letter], lookup) for letter in right)
    measured = any(name not in FACTS for name in figures)
    if disturbed:
        text = f"{answer_text}Not graded: {disturbed}"
        return AnswerVerdict(chosen, (), None, text)
    if chosen and correct:
        others = [_choice_text(by_letter[letter], lookup) for letter in right if letter != chosen]
        text = answer_text + ("The measurement confirms it." if measured else "Correct.")
        text += f" And so is {' and '.join(others)}." if others else ""
    elif right:
        text = f"{answer_text}{'Measured' if measured else 'It is'}: {right_texts}."
    elif any(value is None for value in verdicts.values()):
        text = f"{answer_text}This cannot be decided here: a required figure is unknown."
    else:
        text = f"{answer_text}This measurement confirms none of the answers."
    return AnswerVerdict(chosen, right, correct, text)


def disturbed_text(by_run: Mapping[str, str], explained: Collection[str] = ()) -> str:
    """Which runs were disturbed, and by what, unless they are ``explained``; "" if none was."""
    runs = "; ".join(
        f"run {run} was disturbed" + ("" if run in explained else f" ({why})")
        for run, why in by_run.items()
    )
    return f"{runs}." if runs else ""


def _choice_text(choice: Choice, lookup: Lookup) -> str:
    text = choice.text.fill(lookup, unit_of) or MISSING
    return f"{choice.letter}) {text.rstrip('.')}"


def figures_table(page: FiguresPage, runs: Sequence[str], lookup: Lookup) -> Table:
    """The figures of these ``runs``, with a column for each run. A figure that no run has is left
    out."""
    rows = []
    for figure in page.figures:
        values = [lookup(f"{run}.{figure}") for run in runs]
        if any(value is not None for value in values):
            unit = unit_of(f"run.{figure}")
            cells = [MISSING if value is None else format_value(value, unit) for value in values]
            rows.append((_meaning(figure), *cells))
    return Table(("", *runs), tuple(rows))


def _meaning(figure: str) -> str:
    return RUN[figure].meaning if figure in RUN else figure.removeprefix(f"{FIO}.")


def missing_text(names: Iterable[str]) -> VisibleParagraph | None:
    """A message about figures that were not measured."""
    unknown = sorted(names)
    if not unknown:
        return None
    return VisibleParagraph(f"(Not shown because unknown: {', '.join(unknown)}.)")


class LessonState:
    """What is known so far in a lesson. ``target_facts`` are those of facts.py. ``points``,
    ``documents`` and ``figures`` are those of the runs so far; ``failed`` says why a run has none.
    ``answers`` are the given answers, ``shown_questions`` the questions that were asked. The keys
    of all these are the pages' names. ``skipped`` says why pages were not shown, by page header."""

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
        """A figure, a fact or a formula in [let]; ``None`` if it is not known."""
        definition = self.lesson.lets.get(name)
        if definition is not None:
            return definition.value(self.lookup)
        if name in FACTS:
            return self.target_facts.facts.get(name)
        run, _, figure = name.partition(".")
        return self.figures.get(run, {}).get(figure)

    def disturbances(self, names: Iterable[str]) -> dict[str, str]:
        """What disturbed the runs on whose figures ``names`` depend, by run."""
        used = {_run_name(name) for name in self.lesson.needed_names(names) if name not in FACTS}
        runs = [run.name for run in self.lesson.runs if run.name in used & self.points.keys()]
        points = {run: self.points[run] for run in runs}
        found = {run: "; ".join(p.disturbed) for run, p in points.items() if p.disturbed}
        moved = moved_between(list(points.values()))
        return {runs[-1]: moved} if moved and not found else found

    def verdict(self, name: str, explained: Collection[str] = ()) -> AnswerVerdict | None:
        """The verdict on a question from the measurements so far; ``None`` if it was not asked. It
        does not say what disturbed the runs that are ``explained``."""
        for step in self.lesson.steps:
            if (
                isinstance(step, QuestionPage)
                and step.name == name
                and name in self.shown_questions
            ):
                figures = self.lesson.needed_names(step.figures)
                disturbed = disturbed_text(self.disturbances(figures), explained)
                return judge(step, self.answers.get(name), self.lookup, figures, disturbed)
        return None

    def verdicts(self, names: Iterable[str]) -> list[AnswerVerdict]:
        """The verdicts on a page's questions. What disturbed a run is only in the first of them."""
        found: list[AnswerVerdict] = []
        explained = set[str]()
        for name in names:
            verdict = self.verdict(name, explained)
            if verdict is not None:
                found.append(verdict)
                explained |= self.disturbances(self.figures_of_question(name)).keys()
        return found

    def figures_of_question(self, name: str) -> frozenset[str]:
        """The figures that decide a question."""
        pages = (step for step in self.lesson.steps if isinstance(step, QuestionPage))
        return next((page.figures for page in pages if page.name == name), frozenset())

    def is_askable(self, question: QuestionPage) -> bool:
        """Whether all figures in the question and its answers are known."""
        answers = [choice.text.fill(self.lookup, unit_of) for choice in question.choices]
        return bool(self.texts(question.paragraphs)) and None not in answers

    def skip_reason(self, step: Page) -> str:
        """The reason why a page can't be shown here, as the lesson gives it."""
        texts, _ = visible_paragraphs(step.why, self.lookup, unit_of)
        return " ".join(text.text for text in texts) or "not available here"

    def is_decidable(self, question: QuestionPage) -> bool:
        """Whether the runs that decide the question have been made, or still can be."""
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
        """Paragraphs with figures filled in, without those that draw conclusions from a disturbed
        run."""
        disturbed = self.disturbances(name for text in paragraphs for name in text.names)
        if not disturbed:
            return self.texts(paragraphs)

        def lookup(name: str) -> Value | None:
            needed = {_run_name(figure) for figure in self.lesson.needed_names([name])}
            return None if needed & disturbed.keys() else self.lookup(name)

        return visible_paragraphs(paragraphs, lookup, unit_of)[0]

    def texts(self, paragraphs: Sequence[Paragraph]) -> list[VisibleParagraph]:
        """Paragraphs with figures filled in, and a note on missing figures."""
        texts, missing = visible_paragraphs(paragraphs, self.lookup, unit_of)
        # no note on figures of a missing run, whose own page has explained that
        runs = self.points.keys() | {""}
        note = missing_text(name for name in missing if _run_name(name) in runs or name in FACTS)
        return [*texts, note] if note is not None and texts else texts


def _run_name(name: str) -> str:
    return name.partition(".")[0]
