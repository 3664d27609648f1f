"""Let the core list and open directories of flight recordings like recordings."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.errors import IopstuiError
from iopstui.features.flight.directory import SERVICE_DIRECTORY, stored_files
from iopstui.recording.recent import RecentRecording, remembered_paths

if TYPE_CHECKING:
    from iopstui.recording.replay import ReplaySession


def open_replay(path: Path, speed: float) -> ReplaySession:
    """The replay of a directory, from its newest hour on. Raises UsageError if it contains no
    recording."""
    from iopstui.features.flight.flight_replay import FlightReplay

    return FlightReplay(path, None, speed)


def recorded_directories() -> list[RecentRecording]:
    """The service's directory, and other directories that were recently recorded to, the newest
    first."""
    found = []
    for path in dict.fromkeys((SERVICE_DIRECTORY, *reversed(remembered_paths()))):
        with contextlib.suppress(IopstuiError, OSError):
            files = stored_files(path) if path.is_dir() else []
            if files:
                size = sum(file.size for file in files)
                began_ms = 1e3 * files[0].name.began_s
                found.append(RecentRecording(path, "flight recorder", began_ms, size))
    return found
