"""What a feature that reports on files of its own offers (``report_source``, discovery.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from iopstui.tables import Column


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

    def rendered(self, path: Path, kind: str, redact: bool) -> str:
        """The report as "html", "md" or "json"."""

    def rows(self, path: Path, redact: bool) -> TableRows:
        """The report as a table."""
