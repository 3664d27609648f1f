"""The directory of a flight recording: its files, its lock, and the removal of files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import threading
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from iopstui.errors import IopstuiError, Missing, Refused, UsageError
from iopstui.features.flight.model.times import local_text
from iopstui.text import printable

# Names of the files in a flight recording's directory, such as 2026-11-27T020000Z.iops.
#
# A name says when its file begins, in UTC. If the clock was set back, a second file for the same
# second gets a number. The name of a thinned file says how many seconds are between its samples:
# ``...Z-2.10s.iops``.


_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d{6})Z(?:-(\d{1,4}))?(?:\.(\d{1,3})s)?\.iops")
_FORM = "%Y-%m-%dT%H%M%S"
_YEARS = range(1970, 9999)
"""Times near the ends of the calendar may have no local time, so only these years are accepted."""


class Name(NamedTuple):
    """The parts of a file's name. ``began_s`` is in seconds since the epoch; ``every_s`` is 0 for a
    file that has every sample."""

    began_s: int
    number: int = 1
    every_s: int = 0

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.began_s, timezone.utc).strftime(_FORM)
        number = f"-{self.number}" if self.number > 1 else ""
        return f"{moment}Z{number}{f'.{self.every_s}s' if self.every_s else ''}.iops"


def parse_name(text: str) -> Name | None:
    """The parts of a name in a flight recording; ``None`` for the name of another file."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], _FORM).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    if moment.year not in _YEARS:
        return None
    return Name(int(moment.timestamp()), int(match[2] or 1), int(match[3] or 0))


SERVICE_DIRECTORY = Path("/var/lib/iopstui-flight")
"""The directory to which the systemd unit records."""
LOCK = "recorder.lock"
HOUR_S = 3600
MOST_S = 3620.0
"""No file covers more seconds than this."""
JUMP_S = 2.0
"""If the clock is set by more than this, a new file begins, so that the wall clock never jumps
within a file."""
STEPS = ((86400.0, 60), (1200.0, 10))
"""Pairs (age in seconds of a file's end, seconds): from that age on, the file keeps one sample in
that many seconds. At the second step, the file's first second is 80 minutes old."""
PART = ".part"
"""The suffix of a thinned file while it is being written."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the recording. ``written_s`` is when it was last written (since the epoch, by the
    clock at that time). This need not be the time of its last sample: the clock may have been set
    since, and a copy is newer."""

    path: Path
    name: Name
    size: int
    written_s: float

    @property
    def latest_s(self) -> float:
        """A time after which the file has no samples."""
        return self.name.began_s + MOST_S

    def ended_s(self) -> float:
        """The time of its last sample, which is read from the file; its beginning if it can't be
        read."""
        from iopstui.recording.reader import Recording

        with contextlib.suppress(OSError, IopstuiError), Recording(self.path) as recording:
            recording.pass_over("Use", "Peaks")
            return recording.header.started_ms / 1e3 + recording.index().end
        return float(self.name.began_s)


def stored_files(place: Path) -> list[StoredFile]:
    """The files, the oldest first. If an hour has two thinned files, only the one with more
    samples."""
    found: dict[tuple[int, int], StoredFile] = {}
    for entry in _entries(place):
        name = parse_name(entry.name)
        if name is None:
            continue
        with contextlib.suppress(OSError):
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(info.st_mode):
                file = StoredFile(place / entry.name, name, info.st_size, info.st_mtime)
                other = found.get(name[:2])
                if other is None or other.name.every_s > name.every_s:
                    found[name[:2]] = file
    return [found[key] for key in sorted(found)]


def unread_part(file: StoredFile, damage: str, is_last: bool) -> str:
    """A message about the ``damage`` of a file; "" if there is none, or if the end is only
    incomplete because the file is being written."""
    if not damage or (is_last and is_recorded(file.path.parent)):
        return ""
    return f"{file.path.name}: {damage}"


def nothing_found(
    began_s: float, ended_s: float, files: list[StoredFile], unread: list[str]
) -> UsageError:  # fmt: skip
    """The error for a time without a sample. ``unread`` says what could not be read, and might have
    samples of that time."""
    span = f"from {local_text(began_s)} to {local_text(ended_s)}"
    if unread:
        return UsageError(f"No sample {span} can be read.", "\n".join(unread))
    before = [file for file in files if file.name.began_s <= ended_s]
    after = [file.name.began_s for file in files if file.name.began_s > ended_s]
    texts = [f"until {local_text(last_sample_s(before))}"] if before else []
    texts += [f"from {local_text(after[0])} on"] if after else []
    return UsageError(f"Nothing was recorded {span}.", f"It was recorded {', and '.join(texts)}.")


def last_sample_s(files: list[StoredFile]) -> float:
    """The time of the last sample in these files (since the epoch). If the clock was set back, it
    need not be in the file that began last."""
    newest_s = files[-1].name.began_s
    return max(file.ended_s() for file in files if file.latest_s >= newest_s)


def is_recorded(place: Path) -> bool:
    """Whether a recorder holds the directory's lock now."""
    try:
        fd = os.open(place / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def no_recording(place: Path) -> UsageError:
    """The error for a directory without a recording."""
    name = printable(str(place)).rstrip("/")
    what = f"{name} has no flight recording."
    if not os.path.lexists(place):
        what = f"There is no directory {name}."
    return UsageError(what, f"To record into it: sudo iopstui watch --record {name}/")


def _entries(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except NotADirectoryError as error:
        name = printable(str(place))
        raise UsageError(
            f"{name} is a file, not the directory of a flight recording.",
            f"To play a recording: iopstui replay {name}; to make a flight recording: iopstui "
            "watch --record DIR/",
        ) from error
    except PermissionError as error:
        raise Missing(
            f"Cannot read {printable(str(place))}: permission denied.",
            f"sudo iopstui ... {printable(str(place))}",
        ) from error
    except OSError as error:
        raise UsageError(f"Cannot read {printable(str(place))}: {error.strerror}.") from error


class Ring:
    """The files, for their only writer. Raises Refused if another process writes to the directory,
    UsageError if it can't be written to. Any thread may use this."""

    def __init__(self, place: Path, keep_s: float, max_bytes: int) -> None:
        self.place = place
        self.keep_s = keep_s
        self.max_bytes = max_bytes
        self.current: Path | None = None
        self.not_thinned: set[Path] = set()
        """Files that could not be read."""
        self._mutex = threading.Lock()
        self._lock_fd = -1
        self.lock()

    def lock(self) -> None:
        """Become the only writer; also called if the directory was created anew."""
        path = self.place / LOCK
        with contextlib.suppress(OSError):
            if self._lock_fd >= 0 and os.path.samestat(os.stat(path), os.fstat(self._lock_fd)):
                return
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise UsageError(
                f"Cannot record to {printable(str(self.place))}: {error.strerror}.",
                "Name a directory that you can write to.",
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise Refused(
                f"Another iopstui records to {printable(str(self.place))}.",
                "End that one first (systemctl stop iopstui-flight), or name another directory.",
            ) from error
        self.unlock()
        self._lock_fd = fd

    def unlock(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def new_path(self, wall_s: float) -> Path:
        name = Name(int(wall_s))
        taken = {file.name[:2] for file in stored_files(self.place)}
        while name[:2] in taken:
            name = name._replace(number=name.number + 1)
        return self.place / str(name)

    def remove_oldest(self) -> bool:
        """Make room by removing the oldest file. Returns False if only files of the current hour
        are left: these are never removed, even if a full disk then ends the recording."""
        with self._mutex:
            current = parse_name(self.current.name) if self.current is not None else None
            hour = None if current is None else current.began_s // HOUR_S
            for file in stored_files(self.place):
                if file.name.began_s // HOUR_S != hour and _remove(file.path):
                    return True
        return False

    def tidy(self, now_s: float) -> None:
        """Remove files that are too old at ``now_s``, then the oldest files until the total size is
        allowed."""
        with self._mutex:
            files = stored_files(self.place)
            size = sum(file.size for file in files)
            for file in files:
                is_old = file.written_s < now_s - self.keep_s
                if file.path != self.current and (is_old or size > self.max_bytes):
                    _remove(file.path)
                    size -= file.size

    def to_thin(self, now_s: float) -> tuple[StoredFile, int] | None:
        """The oldest file that is due to be thinned, and the seconds between its samples
        afterwards."""
        for file in stored_files(self.place):
            for age_s, every_s in STEPS:
                old = file.written_s < now_s - age_s and file.name.every_s < every_s
                if old and file.path not in (self.current, *self.not_thinned):
                    return file, every_s
        return None

    def remove_leftovers(self) -> None:
        """Remove the leftovers of a killed writer: partial files, originals of thinned files, and
        empty files."""
        from iopstui.recording import layout

        names = [entry.name for entry in _entries(self.place)]
        kept = {file.name for file in stored_files(self.place)}
        for text in names:
            name = parse_name(text.removesuffix(PART))
            if name is not None and (text.endswith(PART) or name not in kept):
                _remove(self.place / text)
        for file in stored_files(self.place):
            if file.size <= len(layout.MAGIC):
                _remove(file.path)


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
