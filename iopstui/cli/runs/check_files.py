"""Files of --junit and --summary at the end of a command, and exporters beside it."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.discovery import feature_modules
from iopstui.errors import IopstuiError, UsageError
from iopstui.model.experiment.verdict import Verdict
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.output.check_report import CheckedRun
    from iopstui.session.live import LiveSession


def with_check_files(arguments: argparse.Namespace, title: str, run: Callable[[], Verdict]) -> int:
    """Call ``run`` and return its exit code. The checks are written to the files that ``arguments``
    name, even if ``run`` fails. Raises UsageError before the start if a file cannot be written."""
    junit, summary = getattr(arguments, "junit", None), getattr(arguments, "summary", None)
    if junit is None and summary is None:
        return exit_code(run())
    for name in filter(None, (junit, summary)):
        _check_writable(Path(name))
    start_s, error = time.monotonic(), "The program ended before the command did."
    verdict = Verdict()
    try:
        verdict = run()
        error = "Interrupted." if verdict.interrupted else ""
        return exit_code(verdict)
    except IopstuiError as failure:
        error = failure.message
        raise
    finally:
        from iopstui.output.check_report import CheckedRun

        checked = CheckedRun(title, verdict.checks, time.monotonic() - start_s, error)
        _write(checked, junit, summary)


def _write(run: CheckedRun, junit: str | None, summary: str | None) -> None:
    from iopstui.output.check_report import junit_xml, summary_markdown

    if junit is not None:
        from iopstui.safety.output_files import write_whole

        try:
            write_whole(Path(junit), lambda file: file.write(junit_xml(run).encode()), True)
        except OSError as error:
            raise _cannot_write(Path(junit), error.strerror) from error
    if summary is not None:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(summary_markdown(run))
        except OSError as error:
            raise _cannot_write(Path(summary), error.strerror) from error


def exit_code(verdict: Verdict) -> int:
    """The exit code of a command with these checks. Raises the error with which the command
    ended."""
    if verdict.error is not None:
        raise verdict.error
    return verdict.exit_code


def _check_writable(path: Path) -> None:
    """Raise UsageError if the file cannot be written later."""
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


Export = Callable[["LiveSession"], object]


@contextmanager
def exporting_sessions(arguments: argparse.Namespace, keep: bool = False) -> Iterator[Export]:
    """Yields a function to call with each session before its start. Raises UsageError for a file or
    a port that cannot be used. ``keep``: exported files stay after the end."""
    with ExitStack() as stack:
        exports = [
            stack.enter_context(sink.exporting_sessions(arguments, keep))
            for sink in feature_modules("session_sink")
        ]
        yield lambda session: [export(session) for export in exports]
