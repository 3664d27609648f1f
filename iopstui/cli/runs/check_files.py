"""Write the files of --junit and --summary at the end of a command."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.errors import EXIT_INTERRUPTED, IopstuiError, UsageError
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.output.check_report import Check, CheckedRun


class CheckCollector:
    """The checks of a command as they become known, and the code that it ends with."""

    def __init__(self) -> None:
        self._checks: list[Check] = []
        self.exit_code = 0

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks in the order in which they were added."""
        return tuple(self._checks)

    def add(self, name: str, passed: bool | None, text: str) -> None:
        """Add one expectation (``name``) and its outcome (``text``)."""
        from iopstui.output.check_report import Check

        self._checks.append(Check(name, passed, text))


@contextmanager
def check_files(arguments: argparse.Namespace, title: str) -> Iterator[CheckCollector]:
    """Write the files, where ``arguments`` ask for them, however the command ends.

    UsageError before the command starts if a file cannot be written.
    """
    collector = CheckCollector()
    junit, summary = getattr(arguments, "junit", None), getattr(arguments, "summary", None)
    if junit is None and summary is None:
        yield collector
        return
    for name in filter(None, (junit, summary)):
        _check_writable(Path(name))
    start_s, error = time.monotonic(), "The program ended before the command did."
    try:
        yield collector
        error = "Interrupted." if collector.exit_code == EXIT_INTERRUPTED else ""
    except IopstuiError as failure:
        error = failure.message
        raise
    finally:
        from iopstui.output.check_report import CheckedRun

        run = CheckedRun(title, collector.checks, time.monotonic() - start_s, error)
        _write(run, junit, summary)


def _write(run: CheckedRun, junit: str | None, summary: str | None) -> None:
    from iopstui.output.check_report import junit_xml, summary_markdown

    if junit is not None:
        from iopstui.report.files import write_report_file

        write_report_file(Path(junit), lambda file: file.write(junit_xml(run).encode()))
    if summary is not None:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(summary_markdown(run))
        except OSError as error:
            raise _cannot_write(Path(summary), error.strerror) from error


def _check_writable(path: Path) -> None:
    """UsageError where a file could not be written later."""
    if path.exists() and not path.is_file():
        raise _cannot_write(path, "it is not an ordinary file")
    if not path.parent.is_dir():
        raise _cannot_write(path, "there is no such directory")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise _cannot_write(path, "permission denied")


def _cannot_write(path: Path, reason: str | None) -> UsageError:
    return UsageError(
        f"Cannot write {printable(str(path))}: {reason}.",
        "Name a file in a directory that exists and that you can write to.",
    )
