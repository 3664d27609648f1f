"""A lesson as data: its pages in order, and their texts with figures and conditions.

A blank line ends a paragraph. ``{deep.iops}`` shows a figure in its unit, ``{a.iops / b.iops :x}``
a formula in the form after the colon. A paragraph after ``when FORMULA:`` is shown only if the
formula is true, one after ``otherwise:`` only if none of the conditions right before it is true. A
paragraph whose lines begin with ``|`` keeps its line breaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from iopstui import format as units
from iopstui.features.lessons.model.formula import (
    Formula,
    FormulaError,
    Lookup,
    Value,
    parse_formula,
)
from iopstui.text import printable

FORMS = {
    "n": 'a count or rate: "45.6k"',
    "t": 'a time from ns: "1.29 ms"',
    "b": 'bytes: "128 KiB"',
    "b/s": 'bytes a second: "266 MiB/s"',
    "x": 'a factor: "3.2 times"',
    "%": 'a share as percent: 0.12 is "12 %"',
    "+%": 'a difference as percent: 0.12 is "+12 %"',
    "pct": 'percent already: 12 is "12 %"',
    "1": 'one decimal: "15.9"',
    "0": 'a whole number: "16"',
}
UnitOf = Callable[[str], str]

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_WHEN = re.compile(r"when\s+([^:]+):\s*(.*)", re.DOTALL)
_FORM = re.compile(r"(.*?)\s*:\s*(\S*)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextFormula:
    """A formula in a text, and the form in which its result is shown ("": in the figure's unit)."""

    formula: Formula
    form: str


@dataclass(frozen=True, slots=True)
class Template:
    """A text as a sequence of literal parts and formulas."""

    parts: tuple[str | TextFormula, ...]

    @property
    def names(self) -> frozenset[str]:
        """All figures that the text shows."""
        return frozenset(
            n for part in self.parts if isinstance(part, TextFormula) for n in part.formula.names
        )

    def fill(self, lookup: Lookup, unit_of: UnitOf) -> str | None:
        """The text with its figures filled in; ``None`` if one of them is not known."""
        out = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            value = part.formula.value(lookup)
            if value is None:
                return None
            name = part.formula.name
            out.append(format_value(value, part.form or (unit_of(name) if name else "n")))
        return "".join(out)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph. ``when`` is the condition to show it (``None``: always); ``otherwise``: it is
    shown if no condition before it was true. ``kept`` are its lines if they must not be wrapped;
    otherwise it is flowing text."""

    template: Template
    when: Formula | None = None
    otherwise: bool = False
    kept: bool = False

    @property
    def names(self) -> frozenset[str]:
        """All figures that the paragraph and its condition use."""
        return self.template.names | (self.when.names if self.when else frozenset())


@dataclass(frozen=True, slots=True)
class VisibleParagraph:
    """A paragraph ready to be shown; ``kept``: its lines must not be wrapped."""

    text: str
    kept: bool = False


def parse_template(text: str) -> Template:
    """Parse a text with figures. Raises FormulaError for an unmatched brace or an invalid
    formula."""
    parts: list[str | TextFormula] = []
    at = 0
    for match in _PART.finditer(text):
        parts.append(text[at : match.start()])
        at = match.end()
        if match[0] in ("{{", "}}"):
            parts.append(match[0][0])
        elif match[1] is None:
            raise FormulaError(
                f"a brace without its partner in {_text_around(text, match.start())}"
            )
        else:
            parts.append(_parse_slot(match[1]))
    parts.append(text[at:])
    return Template(tuple(part for part in parts if part != ""))


def _text_around(text: str, at: int) -> str:
    return repr(text[max(0, at - 20) : at + 20])


def _parse_slot(text: str) -> TextFormula:
    match = _FORM.fullmatch(text)
    formula, form = (match[1], match[2]) if match else (text, "")
    if match and form not in FORMS:
        raise FormulaError(f"{{{text}}}: the form {form!r} is not one of {', '.join(FORMS)}")
    return TextFormula(parse_formula(formula), form)


def parse_paragraphs(text: str) -> tuple[Paragraph, ...]:
    """Parse paragraphs. Raises FormulaError for a mistake."""
    paragraphs: list[Paragraph] = []
    for block in re.split(r"\n[ \t]*\n", text.strip()):
        if block.strip():
            paragraphs.append(_parse_paragraph(block.strip(), paragraphs))
    return tuple(paragraphs)


def _parse_paragraph(block: str, before: Sequence[Paragraph]) -> Paragraph:
    when, otherwise = None, False
    match = _WHEN.match(block)
    if match is not None:
        when, block = parse_formula(match[1]), match[2].strip()
    elif block.startswith("otherwise:"):
        if not before or not (before[-1].when or before[-1].otherwise):
            raise FormulaError('"otherwise:" needs a paragraph with "when" right before it')
        otherwise, block = True, block.removeprefix("otherwise:").strip()
    if not block:
        raise FormulaError("a condition without a text after it")
    lines = [line.strip() for line in block.splitlines()]
    is_verbatim = all(line.startswith("|") for line in lines)
    if is_verbatim:
        text = "\n".join(line[1:].removeprefix(" ").rstrip() for line in lines)
    else:
        text = " ".join(lines)
    return Paragraph(parse_template(text), when, otherwise, is_verbatim)


def visible_paragraphs(
    paragraphs: Sequence[Paragraph], lookup: Lookup, unit_of: UnitOf
) -> tuple[list[VisibleParagraph], frozenset[str]]:
    """The paragraphs whose conditions are true, with their figures filled in; and the missing
    figures because of which other paragraphs could not be judged or filled in."""
    out: list[VisibleParagraph] = []
    missing: set[str] = set()
    none_held: bool | None = True
    in_group = False
    for paragraph in paragraphs:
        if paragraph.when is not None:
            condition = paragraph.when.as_boolean(lookup)
            none_held, in_group = _is_none_true(none_held if in_group else True, condition), True
        else:
            condition, in_group = none_held if paragraph.otherwise else True, False
        text = paragraph.template.fill(lookup, unit_of) if condition else None
        if text is not None:
            out.append(VisibleParagraph(text, paragraph.kept))
        elif condition is None or condition:
            missing |= {name for name in paragraph.names if lookup(name) is None}
    return out, frozenset(missing)


def _is_none_true(before: bool | None, condition: bool | None) -> bool | None:
    """Whether no condition so far was true; ``None`` if that is unknown."""
    if before is False or condition is True:
        return False
    return None if before is None or condition is None else True


def format_value(value: Value, form: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if form == "t":
        return units.latency(value)
    if form in ("b", "b/s"):
        return units.size(value) + form[1:]
    if form == "x":
        return f"{_plain_text(value)} times"
    if form in ("%", "+%", "pct"):
        percent = value if form == "pct" else 100 * value
        return f"{_percent_text(percent, form == '+%')} %"
    if form == "1":
        return f"{value:.1f}"
    if form == "0":
        return f"{value:.0f}"
    return _plain_text(value) if abs(value) < 1000 else units.number(value)


def _percent_text(value: float, signed: bool) -> str:
    digits = 0 if abs(value) >= 9.95 else 1 if abs(value) >= 0.1 or not value else 2
    return f"{value:{'+' if signed else ''}.{digits}f}"


def _plain_text(value: float) -> str:
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"


TELL, ASK, RUN_STEP, SEE, EXPLAIN, REPORT = "tell", "ask", "run", "see", "explain", "report"
PANES = ("iops", "latency", "heat", "fio", "kernel", "cpus", "queues", "findings")
# the parts of fio's report, as named in report.py
PARTS = ("job", "version", "starting", "result", "rate", "slat", "clat", "lat", "percentiles",
         "bw", "iops", "lat_shares", "cpu", "depths", "submit", "complete", "issued", "target",
         "group", "group_rate", "disk_head", "disk")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a lesson. It is skipped unless ``when`` is true; if ``needs`` is false, ``why`` is
    shown instead."""

    kind: ClassVar[str]

    name: str
    title: str
    paragraphs: tuple[Paragraph, ...] = ()
    when: Formula | None = None
    needs: Formula | None = None
    why: tuple[Paragraph, ...] = ()

    @property
    def header(self) -> str:
        return f"{self.kind}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage(Page):
    """A page with only text."""

    kind = TELL


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An answer to choose; ``right`` is a formula that decides whether it is correct."""

    letter: str
    text: Template
    right: Formula


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPage(Page):
    """A question: the user predicts before the runs, and the ``AnswerPage`` that names this page
    judges it."""

    kind = ASK

    choices: tuple[Choice, ...]

    @property
    def figures(self) -> frozenset[str]:
        """All figures that decide which answer is correct."""
        return frozenset(name for choice in self.choices for name in choice.right.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage(Page):
    """A fio run. Its job is ``job`` (a shipped job's name or a path), or else ``fio`` (the text of
    a job file). ``options`` (texts that may contain facts) and ``knobs`` are set for it. ``look``
    has pairs (pane, sentence) on where to look."""

    kind = RUN_STEP

    job: str
    fio: str | None
    options: tuple[tuple[str, Template], ...]
    knobs: tuple[tuple[str, Template], ...]
    bind: bool
    settle: float
    seconds: float
    look: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiguresPage(Page):
    """A table with the ``figures`` (names from formula.py) of the ``runs``."""

    kind = SEE

    runs: tuple[str, ...]
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPage(Page):
    """A text; before it come verdicts on the questions that it ``answers``."""

    kind = EXPLAIN

    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage(Page):
    """fio's own report of a run, with an explanation of each part: (name of ``PARTS``, what it
    means)."""

    kind = REPORT

    run: str
    parts: tuple[tuple[str, tuple[Paragraph, ...]], ...]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson. ``lets`` are its named formulas, ``size`` is the size of scratch files, ``path`` is
    its file."""

    name: str
    path: str
    title: str
    teaches: str
    source: str
    minutes: float
    steps: tuple[Page, ...]
    lets: Mapping[str, Formula] = field(default_factory=dict)
    size: str | None = None

    @property
    def runs(self) -> tuple[RunPage, ...]:
        """Its fio runs, in order."""
        return tuple(step for step in self.steps if isinstance(step, RunPage))

    @property
    def seconds(self) -> float:
        """The total running time of fio if every run is made."""
        return sum(run.settle + run.seconds for run in self.runs)

    def needed_names(self, names: Iterable[str]) -> frozenset[str]:
        """All measured figures and facts on which ``names`` depend: a name in [let] is replaced by
        what its formula uses."""
        resolved: set[str] = set()
        for name in names:
            formula = self.lets.get(name)
            resolved |= self.needed_names(formula.names) if formula is not None else {name}
        return frozenset(resolved)
