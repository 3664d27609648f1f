"""The rows of other features' files as CSV or Parquet, written while they are made."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from iopstui import __version__
from iopstui.linux.process.packages import require_packages
from iopstui.output.csv_out import cell_text
from iopstui.output.page.source import ReportSource
from iopstui.recording.redact import REDACTED
from iopstui.text import printable


class _Encoded:
    """A text's way to a file of bytes. (One of the standard library's would close that.)"""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, text: str) -> None:
        """A row."""
        self._out.write(text.encode())


def _csv(source: ReportSource, path: Path, redact: bool, out: BinaryIO) -> None:
    rows = source.rows(path, redact)
    writer = csv.writer(_Encoded(out), lineterminator="\n")
    writer.writerow(column.id for column in rows.columns)
    for cells in rows:
        writer.writerow(map(cell_text, cells))
    rows.print_omissions()


def _parquet(source: ReportSource, path: Path, redact: bool, out: BinaryIO) -> None:
    """Missing (exit 5) without pyarrow."""
    from iopstui.features.reports.rows import PACKAGE, ParquetTable, instant

    require_packages(PACKAGE)
    about = {"version": __version__, "file": REDACTED if redact else printable(path.name)}
    rows = source.rows(path, redact)
    when = [column.id for column in rows.columns].index("wall_ms")
    with ParquetTable(out, rows.columns, about) as table:
        for cells in rows:
            # the time itself in place of its text
            cells[when + 1] = instant(cells[when]) if cells[when + 1] else None
            table.row(cells)
    rows.print_omissions()


TABLES: Mapping[str, Callable[[ReportSource, Path, bool, BinaryIO], None]] = {
    "csv": _csv, "parquet": _parquet
}  # fmt: skip
"""What is a table."""
