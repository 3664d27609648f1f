"""Collect the logs of a job (write_bw_log= and similar) in a private place, then move them.

fio truncates existing files, and follows links. So it writes into a private directory, and
afterwards a log gets its intended name only if nothing else has that name.

With ``--io-log`` fio logs each I/O there, for the list of the slowest. fio keeps that log in memory
without a limit until its jobs end, so a run is ended when the log becomes too large."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iopstui.errors import Refused, UsageError
from iopstui.format import first_of
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.load import read_available
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import FILE_LOGS, PREFIX_LOGS
from iopstui.model.fio.log_lines import log_name
from iopstui.text import printable

EACH_IO = "each-io"
_EACH_IO_OPTIONS = {"log_offset": "1", "log_avg_msec": "0", "per_job_logs": "1"}
_LOG_OPTIONS = (*_EACH_IO_OPTIONS, "log_max_value", "log_hist_msec", "log_window_value")
_NO_LATENCY_OPTIONS = ("disable_clat", "gtod_reduce")
"""With these options fio measures no completion latencies, so it writes no log of them."""
IO_LOG_BYTES = 150
"""The bytes that fio needs to log an I/O: 48 in each of the three latency logs."""
MAX_LOG_BYTES = 2 << 30


class FioLogs:
    """Destination of fio's logs. ``directory`` is ``None`` for a job without logs. ``each_io``: log
    each I/O for ``slow_ios``."""

    def __init__(self, text: str, label: str, cwd: Path, each_io: bool = False) -> None:
        self.text = text
        self.directory: Path | None = None
        self._destinations: dict[str, Path] = {}
        self._names: list[str] = []
        self._memory_limit = 0
        requested = _named_logs(text)
        if each_io:
            _refuse_another_log(text)
        elif not requested:
            return
        self._check(text, label, cwd)
        self.directory = private_directory()
        self.text = "\n".join(self._line(line, label, cwd) for line in text.split("\n"))
        if each_io:
            self._memory_limit = min(MAX_LOG_BYTES, (read_available(Roots()) or MAX_LOG_BYTES) // 4)

    @property
    def options(self) -> dict[str, str]:
        """Options of fio for a log of each I/O; empty if none is wanted."""
        if not self._memory_limit or self.directory is None:
            return {}
        return {"write_lat_log": str(self.directory / EACH_IO), **_EACH_IO_OPTIONS}

    def overrun(self, ios: int) -> str:
        """Why the run has to end after this number of I/Os (fio keeps their log in memory); "" if
        it may go on."""
        if not self._memory_limit or ios * IO_LOG_BYTES <= self._memory_limit:
            return ""
        return (
            f"fio's log of its {ios:,} I/Os takes about {self._memory_limit >> 20} MiB of memory, "
            "the most that --io-log may take; make the run shorter, or use --probe instead"
        )

    def slow_ios(self, one_file: bool) -> dict[str, Any]:
        """The slowest I/Os of the run, for its summary; empty if fio logged none."""
        if not self.options or self.directory is None:
            return {}
        from iopstui.model.metrics.slow.slow_ios import SlowIos, slow_ios_object

        ios = SlowIos()
        for path in sorted(self.directory.glob(f"{EACH_IO}_clat.*")):
            log = log_name(path.name)
            with contextlib.suppress(OSError), open(path, "rb") as lines:
                ios.read(log.job if log is not None else 0, lines)
        return slow_ios_object(ios, one_file) if ios.count else {}

    @property
    def announcement(self) -> str:
        """Where the job's own logs will be after the run, in words; "" for none."""
        names = list(dict.fromkeys(map(printable, self._names)))
        return f"after the run fio's logs are written: {first_of(names, 4)}" if names else ""

    def publish(self) -> list[str]:
        """Give each log its intended name. Returns a sentence for each log for which that
        failed."""
        problems: list[str] = []
        try:
            files = sorted(self.directory.iterdir()) if self.directory is not None else []
        except FileNotFoundError:
            # the run was held and never started: its guard has removed everything
            return problems
        for file in files:
            number, _, suffix = file.name.partition(".")[0].partition("_")
            destination = self._destinations.get(number)
            if destination is None:
                continue
            target = Path(
                f"{destination}{file.name.removeprefix(number)}" if suffix else destination
            )
            try:
                _copy(file, target)
            except OSError as error:
                problems.append(f"{printable(str(target))} can't be written: {error.strerror}")
        return problems

    def close(self) -> None:
        """Remove the directory. May be called twice."""
        if self.directory is not None:
            remove(self.directory)
            self.directory = None

    def _line(self, line: str, label: str, cwd: Path) -> str:
        name, _, value = line.partition("=")
        if name not in (*PREFIX_LOGS, *FILE_LOGS):
            return line
        number = str(len(self._destinations))
        self._destinations[number] = path = cwd / (value or label)
        shown = os.path.join(os.path.realpath(path.parent), path.name)
        self._names.append(f"{shown}{'' if name in FILE_LOGS else '_*.log'}")
        return f"{name}={self.directory}/{number}"

    def _check(self, text: str, label: str, cwd: Path) -> None:
        for value, is_full_name in _named_logs(text):
            log_path = cwd / (value or label)
            _check_directory(log_path.parent)
            existing = [log_path] if is_full_name and os.path.lexists(log_path) else []
            if not is_full_name:
                with contextlib.suppress(OSError):
                    existing = [path for path in log_path.parent.iterdir()
                             if path.name.startswith(f"{log_path.name}_")
                             and path.name.endswith(".log")]  # fmt: skip
            if existing:
                raise Refused(
                    f"The job's log would overwrite {printable(str(existing[0]))}, which exists.",
                    "Give the log another name.",
                )


def _refuse_another_log(text: str) -> None:
    for section in jobfile.sections(text):
        for name, value in section.options.items():
            if name in _NO_LATENCY_OPTIONS and value != "0":
                raise UsageError(
                    f"The job switches off what --io-log lists: {name}.",
                    f"Leave out --io-log or {name}.",
                )
            if name in (*PREFIX_LOGS, *_LOG_OPTIONS):
                raise UsageError(
                    f"The job has logs of its own ({name}=), and fio's log options apply to all "
                    "logs of a job.",
                    "Leave out --io-log; a latency log: iopstui report NAME_clat.1.log",
                )


def _check_directory(directory: Path) -> None:
    if not os.access(directory, os.W_OK | os.X_OK):
        why = "can't be written"
        try:
            os.stat(directory)
        except (FileNotFoundError, NotADirectoryError):
            why = "does not exist"
        except OSError as error:
            why = f"can't be examined: {error.strerror}"
        raise UsageError(
            f"The job writes a log into the directory {printable(str(directory))}, which {why}.",
            "Create it, or write the log elsewhere.",
        )


def _named_logs(text: str) -> Sequence[tuple[str, bool]]:
    """Every option that names a log, with its value and whether that is the log's whole name."""
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
