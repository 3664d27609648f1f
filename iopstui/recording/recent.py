"""The most recent recordings, whose paths are in the state directory; and how to tell files of a
fleet."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.discovery import feature_modules
from iopstui.errors import IopstuiError
from iopstui.safety.journal import state_directory
from iopstui.untrusted import parse_json

FIRST_LINE = 4 << 20


def is_fleet(path: Path) -> bool:
    """Whether a file has JSON lines of hosts (fleet --record, merge, run --format jsonl), judged by
    its first line."""
    try:
        # opening a pipe would wait for its writer
        if not path.is_file():
            return False
        with path.open("rb") as file:
            line = file.readline(FIRST_LINE)
        # a launcher may put a prefix before each line
        start = line.find(b"{")
        row = parse_json(line[start:], is_large=False) if start >= 0 else None
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and isinstance(row.get("event"), str)


NAME = "recordings"
MAX_RECENT = 20
SUFFIX = ".iops"


@dataclass(frozen=True, slots=True)
class RecentRecording:
    """A recording: its target, when it began (ms since 1970; ``None``: it can't be read), and its
    size in bytes."""

    path: Path
    target: str
    began_ms: float | None
    size: int


def remember_recording(path: Path) -> None:
    """Remember the path of a new recording. If that fails, recording goes on anyway."""
    with contextlib.suppress(OSError):
        directory = state_directory()
        earlier = [entry for entry in _read_list(directory) if entry != path.absolute()]
        lines = [os.fsencode(entry) for entry in (*earlier[1 - MAX_RECENT :], path.absolute())]
        new = directory / f".new-{NAME}-{os.getpid()}"
        new.write_bytes(b"\0".join(lines))
        new.chmod(0o600)
        new.replace(directory / NAME)


def recent_paths(directory: Path, most: int) -> list[Path]:
    """The newest recordings that still exist, among the remembered ones and those in
    ``directory``."""
    mtimes: dict[Path, float] = {}
    for path in _candidates(directory):
        with contextlib.suppress(OSError):
            if path.is_file():
                mtimes.setdefault(path.resolve(), path.stat().st_mtime)
    return sorted(mtimes, key=lambda recording: -mtimes[recording])[:most]


def recent_recordings(directory: Path, most: int) -> list[RecentRecording]:
    """Recent recordings with their targets, after the directories of continuous recordings. Reads
    the beginning of each file."""
    directories = [one for module in feature_modules("recording_directory")
                   for one in module.recorded_directories()]  # fmt: skip
    files = (_read_recent(path) for path in recent_paths(directory, most))
    return [*directories, *(one for one in files if one is not None)]


def remembered_paths() -> list[Path]:
    """All remembered paths of recordings, whether the files still exist or not."""
    try:
        return _read_list(state_directory())
    except OSError:
        return []


def _candidates(directory: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from _read_list(state_directory())
    with contextlib.suppress(OSError):
        yield from sorted(directory.glob(f"*{SUFFIX}"))


def _read_list(directory: Path) -> list[Path]:
    try:
        text = (directory / NAME).read_bytes()
    except FileNotFoundError:
        return []
    return [Path(os.fsdecode(line)) for line in text.split(b"\0") if line.startswith(b"/")]


def _read_recent(path: Path) -> RecentRecording | None:
    from iopstui.recording.reader import Recording

    try:
        size = path.stat().st_size
        with Recording(path) as recording:
            header = recording.header
    except OSError:
        return None
    except IopstuiError:
        # JSON lines of a fleet are fine, but the home screen can't play them
        if is_fleet(path):
            return None
        return RecentRecording(path, "", None, size)
    return RecentRecording(path, header.target.name, header.started_ms, size)
