"""A lesson as data: its pages in order, and the formulas in its texts. file.py makes one from a
file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from iopstui.features.lessons.model.formula import Formula
from iopstui.features.lessons.model.text import Paragraph, Template

TELL, ASK, RUN_STEP, SEE, EXPLAIN, REPORT = "tell", "ask", "run", "see", "explain", "report"
PANES = ("iops", "latency", "heat", "fio", "kernel", "cpus", "queues", "findings")
# the parts of fio's report, as report.py names them
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
    """Text alone."""

    kind = TELL


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An answer; ``right`` is a formula that decides whether it is correct."""

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
        """All figures that decide it."""
        return frozenset(name for choice in self.choices for name in choice.right.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage(Page):
    """A fio run. Its job is ``job``, a shipped job's name or a path, or else ``fio``, the text of a
    job file. ``options`` (texts that may contain facts) and ``knobs`` are set for it. ``look`` has
    pairs (pane, sentence)."""

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
    """A table with the ``figures`` (names from figures.py) of the ``runs``."""

    kind = SEE

    runs: tuple[str, ...]
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPage(Page):
    """A text; before it, the questions that it ``answers`` are judged."""

    kind = EXPLAIN

    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage(Page):
    """fio's own report of a run, part by part: (name of ``PARTS``, what it means)."""

    kind = REPORT

    run: str
    parts: tuple[tuple[str, tuple[Paragraph, ...]], ...]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson. ``lets`` are its named formulas, ``size`` is that of scratch files, ``path`` is its
    file."""

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
        """Return its fio runs, in order."""
        return tuple(step for step in self.steps if isinstance(step, RunPage))

    @property
    def seconds(self) -> float:
        """Total running time of fio if every run is made."""
        return sum(run.settle + run.seconds for run in self.runs)

    def needed_names(self, names: Iterable[str]) -> frozenset[str]:
        """All measured figures and facts behind ``names``: names in [let] are replaced by what
        their formulas use."""
        resolved: set[str] = set()
        for name in names:
            formula = self.lets.get(name)
            resolved |= self.needed_names(formula.names) if formula is not None else {name}
        return frozenset(resolved)
