"""The pages that a lesson shows: text and tables, independent of the screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from iopstui.features.lessons.model.figures import FACTS, FIO, RUN, unit_of
from iopstui.features.lessons.model.formula import Lookup
from iopstui.features.lessons.model.pages import Choice, FiguresPage, QuestionPage
from iopstui.features.lessons.model.text import VisibleParagraph, format_value
from iopstui.format import MISSING
from iopstui.tables import Table

READY, RUNNING, DONE, FAILED, SKIPPED = "ready", "running", "done", "failed", "skipped"


Block = VisibleParagraph | Table


@dataclass(frozen=True, slots=True)
class ShownPage:
    """One page as it is shown. ``kind`` is one of those in model/pages.py. ``choices`` has pairs
    (letter, text) of a question, ``chosen`` is the answer given. ``state`` is that of a run (READY
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
    """What the measurement answers to a question. ``right`` has the letters that are correct by it;
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
    """Compare an answer with what was measured; ``figures`` decide it. There is no verdict if their
    runs were disturbed; ``disturbed`` says by what."""
    verdicts = {choice.letter: choice.right.as_boolean(lookup) for choice in question.choices}
    right = tuple(letter for letter, value in verdicts.items() if value)
    by_letter = {choice.letter: choice for choice in question.choices}
    # an answer is wrong only if another one is right: else the measurement decided nothing
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


def disturbed_text(by_run: Mapping[str, str]) -> str:
    """Say which runs were disturbed and by what; "" if none was."""
    runs = "; ".join(f"run {run} was disturbed ({why})" for run, why in by_run.items())
    return f"{runs}." if runs else ""


def _choice_text(choice: Choice, lookup: Lookup) -> str:
    text = choice.text.fill(lookup, unit_of) or MISSING
    return f"{choice.letter}) {text.rstrip('.')}"


def figures_table(page: FiguresPage, runs: Sequence[str], lookup: Lookup) -> Table:
    """The figures of those ``runs``, with a column for each run; a figure that no run has is left
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
    """Message about figures that were not measured."""
    unknown = sorted(names)
    if not unknown:
        return None
    return VisibleParagraph(f"(Not shown because unknown: {', '.join(unknown)}.)")
