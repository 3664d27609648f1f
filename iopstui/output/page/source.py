"""The interface of a feature that reports on its own kind of files (``report_source``,
discovery.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from iopstui.events import ExpectationChecked
from iopstui.tables import Column


@dataclass(frozen=True, slots=True)
class Expected:
    """The ``texts`` of --expect, the tolerance (0.1 is 10 %), and the file of --baseline."""

    texts: Sequence[str] = ()
    tolerance: float = 0.0
    baseline: str | None = None


@dataclass
class Judged:
    """The outcomes of the expectations by run (``step``), and why the first failed run failed."""

    outcomes: list[ExpectationChecked] = field(default_factory=list)
    failed: str = ""


class TableRows(Protocol):
    """The rows of a table. They are made while they are written, because there may be many."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns; ``wall_ms`` is followed by the same time as text."""

    def __iter__(self) -> Iterator[list[Any]]: ...

    def print_omissions(self) -> None:
        """Print on standard error which data the rows leave out."""


class ReportSource(Protocol):
    """A module that reports on its own kind of files."""

    def takes(self, path: Path) -> bool:
        """Whether the module reports on this file."""

    def only_file(self, paths: Sequence[Path]) -> Path:
        """The one file to report on. Raises UsageError if there are several and it can't combine
        them."""

    def judged(self, path: Path, expected: Expected) -> Judged:
        """Check the expectations for the runs in the file. Raises UsageError for a figure that the
        file lacks."""

    def rendered(
        self, path: Path, kind: str, redact: bool, outcomes: Sequence[ExpectationChecked]
    ) -> str:
        """The report as "html", "md" or "json", with these ``outcomes`` of --expect."""

    def rows(self, path: Path, redact: bool) -> TableRows:
        """The report as a table."""
