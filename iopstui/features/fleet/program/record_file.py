"""The file of `fleet --record`: the lines of all hosts, up to a size limit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from iopstui.errors import UsageError, note_incomplete
from iopstui.features.fleet.fleet_events import FLEET, FLEET_OVER, FleetRunStarted
from iopstui.features.fleet.session import state_for_exit_code
from iopstui.output.jsonl import dumps
from iopstui.text import printable

LABEL = "fleet"


def run_started_object(event: FleetRunStarted, interval_s: float) -> dict[str, Any]:
    """The line that begins a run in a recording; for a point of a sweep it has the whole sweep."""
    point = event.point
    sweep: dict[str, Any] = {}
    if point is not None:
        plan = point.plan
        sweep = {
            "axes": {axis.name: list(axis.values) for axis in plan.axes},
            "repeats": plan.repeats, "measure_s": plan.measure, "point": point.step.index,
        }  # fmt: skip
    return {
        "event": FLEET, "host": LABEL, "wall_ms": event.wall_s * 1000, "run": event.number,
        "job": event.job, "watching": event.watching, "interval_s": interval_s,
        "hosts": list(event.hosts), **sweep,
    }  # fmt: skip


def run_over_object(code: int, messages: Sequence[str]) -> dict[str, Any]:
    """The final line: its exit code and message."""
    return {
        "event": FLEET_OVER, "host": LABEL, "wall_ms": time.time() * 1000, "code": code,
        "how": state_for_exit_code(code), "said": list(messages),
    }  # fmt: skip


class RecordFile:
    """A new file. UsageError if it cannot be created. If a write fails, ``report`` gets a message
    once, what was written stays, and the run continues."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self._path = path
        self._report = report
        try:
            self._file: TextIO | None = path.open("x", encoding="ascii")
        except OSError as error:
            raise UsageError(f"--record {printable(str(path))}: {error.strerror}.",
                             "Choose a new file in a directory you can write to.",
                             ) from error  # fmt: skip

    def write_row(self, row: dict[str, Any]) -> None:
        """Write a line of JSON, unless it is nested too deeply: that is no row of iopstui."""
        with contextlib.suppress(RecursionError):
            self.write(dumps(row) + "\n")

    def write(self, text: str) -> None:
        """Whole lines."""
        if self._file is not None:
            try:
                self._file.write(text)
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """No more comes."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._report_failure(error)

    def _give_up(self, error: OSError) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
        self._report_failure(error)

    def _report_failure(self, error: OSError) -> None:
        name = printable(str(self._path))
        note_incomplete(f"the recording is incomplete: {name}: {error.strerror}")
        kept = "what was written is kept"
        with contextlib.suppress(OSError):
            if not self._path.stat().st_size:
                # an empty file would block the next run
                self._path.unlink()
                kept = "nothing was written"
        self._report(
            f"the recording {name} has stopped: {error.strerror}. The run continues, and {kept}"
        )
