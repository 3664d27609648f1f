"""Collect the logs of a job (write_bw_log= and similar) in a private place, then move them.

fio truncates what has the name already, and follows links. So it writes into a directory of its
own, and what it has written gets the name that was meant only if nothing has that name.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from iopstui.errors import Refused, UsageError
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.fio import jobfile
from iopstui.model.fio.job_rules import FILE_LOGS, PREFIX_LOGS
from iopstui.text import printable


class FioLogs:
    """Destination of fio's logs. ``directory`` is ``None`` for a job without logs."""

    def __init__(self, text: str, label: str, cwd: Path) -> None:
        self.text = text
        self.directory: Path | None = None
        self._wanted: dict[str, Path] = {}
        if not _asked(text):
            return
        self._check(text, label, cwd)
        self.directory = private_directory()
        self.text = "\n".join(self._line(line, label, cwd) for line in text.split("\n"))

    def publish(self) -> list[str]:
        """Give each log its name; sentences about those where that failed."""
        said: list[str] = []
        try:
            files = sorted(self.directory.iterdir()) if self.directory is not None else []
        except FileNotFoundError:
            # a run that was held and never started: its guard has removed everything
            return said
        for file in files:
            number, _, rest = file.name.partition(".")[0].partition("_")
            wanted = self._wanted.get(number)
            if wanted is None:
                continue
            target = Path(f"{wanted}{file.name.removeprefix(number)}" if rest else wanted)
            try:
                _copy(file, target)
            except OSError as error:
                said.append(f"{printable(str(target))} can't be written: {error.strerror}")
        return said

    def close(self) -> None:
        """Remove the directory. May be called twice."""
        if self.directory is not None:
            remove(self.directory)
            self.directory = None

    def _line(self, line: str, label: str, cwd: Path) -> str:
        name, _, value = line.partition("=")
        if name not in (*PREFIX_LOGS, *FILE_LOGS):
            return line
        number = str(len(self._wanted))
        self._wanted[number] = cwd / (value or label)
        return f"{name}={self.directory}/{number}"

    def _check(self, text: str, label: str, cwd: Path) -> None:
        for value, whole in _asked(text):
            place = cwd / (value or label)
            _check_directory(place.parent)
            taken = [place] if whole and os.path.lexists(place) else []
            if not whole:
                with contextlib.suppress(OSError):
                    taken = [one for one in place.parent.iterdir()
                             if one.name.startswith(f"{place.name}_")
                             and one.name.endswith(".log")]  # fmt: skip
            if taken:
                raise Refused(
                    f"The job's log would overwrite {printable(str(taken[0]))}, which exists.",
                    "Give the log another name.",
                )


def _check_directory(place: Path) -> None:
    if not os.access(place, os.W_OK | os.X_OK):
        why = "can't be written"
        try:
            os.stat(place)
        except (FileNotFoundError, NotADirectoryError):
            why = "does not exist"
        except OSError as error:
            why = f"can't be examined: {error.strerror}"
        raise UsageError(
            f"The job writes a log into the directory {printable(str(place))}, which {why}.",
            "Create it, or write the log elsewhere.",
        )


def _asked(text: str) -> Sequence[tuple[str, bool]]:
    """(value, whether it is the whole name) of every option that names a log."""
    return [
        (value, name in FILE_LOGS)
        for section in jobfile.sections(text)
        for name, value in section.options.items()
        if name in (*PREFIX_LOGS, *FILE_LOGS)
    ]


def _copy(source: Path, target: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(source, "rb") as log, open(os.open(target, flags, 0o644), "wb") as file:
        import shutil

        shutil.copyfileobj(log, file)
