"""What a feature that reports on files of its own offers (``report_source``, discovery.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from iopstui.events import ExpectationChecked
from iopstui.tables import Column


@dataclass(frozen=True, slots=True)
class Expected:
    """The ``texts`` of --expect, its tolerance (0.1 is 10 %), and the file of --baseline."""

    texts: Sequence[str] = ()
    tolerance: float = 0.0
    baseline: str | None = None


@dataclass
class Judged:
    """What came of each expectation, by runs (``step``), and why the first run failed that did."""

    outcomes: list[ExpectationChecked] = field(default_factory=list)
    failed: str = ""


class TableRows(Protocol):
    """The rows of a table, made while they are written: it may be long."""

    @property
    def columns(self) -> Sequence[Column]:
        """Its columns, with ``wall_ms`` and behind it the same time as text."""

    def __iter__(self) -> Iterator[list[Any]]: ...

    def print_omissions(self) -> None:
        """Print on standard error what the rows do not contain."""


class ReportSource(Protocol):
    """A module that reports on its own kind of files."""

    def takes(self, path: Path) -> bool:
        """Whether the file is of that kind."""

    def only_file(self, paths: Sequence[Path]) -> Path:
        """The file of a report. UsageError for files that it can't combine."""

    def judged(self, path: Path, expected: Expected) -> Judged:
        """Whether the runs in the file met expectations. UsageError for a figure that it lacks."""

    def rendered(
        self, path: Path, kind: str, redact: bool, outcomes: Sequence[ExpectationChecked]
    ) -> str:
        """The report as "html", "md" or "json", with these outcomes of --expect."""

    def rows(self, path: Path, redact: bool) -> TableRows:
        """The report as a table."""
