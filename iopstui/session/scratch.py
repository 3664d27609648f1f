"""The scratch directory: where jobs write when no device or file is named.

It is created exclusively (mkdtemp), readable by its owner alone, and removed on every way
out: by ``close``, by the guard of fio if iopstui dies, and after a crash of both by the next
start, which finds its path in the state directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import UsageError

PREFIX = ".iopstui-"
DEFAULT_BYTES = 512 << 20
KEEP_FREE = 0.05
MIB = 1 << 20


def state_directory() -> Path:
    """$XDG_STATE_HOME/iopstui (mode 0700), where what must survive a crash is kept."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(base) / "iopstui"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@dataclass(slots=True)
class Scratch:
    """A scratch directory and the note of it in the state directory (``None``: no note)."""

    path: Path
    note: Path | None

    def used_bytes(self) -> int:
        """Bytes allocated below it so far."""
        total = 0
        with contextlib.suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
        return total

    def close(self) -> None:
        """Remove the directory, then the note."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self.note is not None and not self.path.exists():
            self.note.unlink(missing_ok=True)


def make_scratch(directory: Path) -> Scratch:
    """A new scratch directory inside ``directory``; UsageError where none can be made."""
    try:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=directory))
    except OSError as error:
        raise UsageError(
            f"Can't make a scratch file in {directory}: {error.strerror}.",
            "Name a directory you can write to, or a block device: iopstui run TARGET ...",
        ) from error
    note = None
    # without a state directory only the crash of both processes at once leaves the file
    with contextlib.suppress(OSError):
        note = _write_note(path)
    return Scratch(path, note)


def _write_note(path: Path) -> Path:
    content = {"scratch": str(path), "pid": os.getpid(), "start": start_time(os.getpid())}
    note = state_directory() / f"scratch-{path.name.removeprefix(PREFIX)}.json"
    fd = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump(content, file)
    return note


def start_time(pid: int) -> int | None:
    """When a process began, in clock ticks since boot (proc(5) starttime); None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def abandoned() -> Iterator[Scratch]:
    """Scratch directories whose iopstui no longer runs (it was killed together with its guard)."""
    try:
        notes = sorted(state_directory().glob("scratch-*.json"))
    except OSError:
        return
    for note in notes:
        try:
            content = json.loads(note.read_text())
            path = Path(content["scratch"])
            owner = start_time(int(content["pid"]))
            alive = owner is not None and owner == content["start"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if not alive and _is_ours(path):
            yield Scratch(path, note)


def _is_ours(path: Path) -> bool:
    """A note is only believed if what it names looks like a scratch directory of this user."""
    if not path.name.startswith(PREFIX) or not path.is_absolute():
        return False
    try:
        info = path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not path.is_symlink() and path.is_dir() and info.st_uid == os.getuid()


def remove_abandoned() -> list[Path]:
    """Remove what a crash left; the paths removed."""
    removed = []
    for scratch in abandoned():
        existed = scratch.path.exists()
        scratch.close()
        if existed and not scratch.path.exists():
            removed.append(scratch.path)
    return removed


def room_for(directory: Path) -> int:
    """Bytes that may be used on this file system with 5 % of it left free."""
    space = os.statvfs(directory)
    spare = space.f_bavail * space.f_frsize - int(KEEP_FREE * space.f_blocks * space.f_frsize)
    return max(0, spare)


def supports_direct(directory: Path) -> bool:
    """Whether files here can be opened with O_DIRECT (open(2)); tmpfs before Linux 6.6 can't."""
    try:
        fd, name = tempfile.mkstemp(prefix=PREFIX, dir=directory)
    except OSError:
        return True
    os.close(fd)
    try:
        os.close(os.open(name, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    finally:
        os.unlink(name)
    return True
