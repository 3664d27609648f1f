"""Makes `iopstui report` work on a recording of many hosts: a ``ReportSource``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.events import ExpectationChecked
from iopstui.output.page.source import Expected, Judged, TableRows
from iopstui.recording.recent import is_fleet as takes

__all__ = ("judged", "only_file", "rendered", "rows", "takes")


def only_file(paths: Sequence[Path]) -> Path:
    """The file of a report. Raises UsageError for several files."""
    if len(paths) > 1:
        raise UsageError("JSON lines cannot be combined with other files in a report.",
                         "To add up several first: iopstui merge FILE... --format jsonl > ALL",
                         )  # fmt: skip
    return paths[0]


def judged(path: Path, expected: Expected) -> Judged:
    """Whether the runs in the file met the expectations. Raises UsageError for a figure that the
    file lacks."""
    from iopstui.features.fleet.report.data import judge

    return judge(path, expected)


def rendered(
    path: Path, kind: str, redact: bool, outcomes: Sequence[ExpectationChecked] = ()
) -> str:
    """The report as text. Raises UsageError for a file without frames."""
    from iopstui.features.fleet.report import page

    return page.rendered(path, kind, redact, outcomes)


def rows(path: Path, redact: bool) -> TableRows:
    """The report as a table: for every second a row for all hosts, then a row for each host."""
    from iopstui.features.fleet.report.data import FleetRows

    return FleetRows(path, redact)
