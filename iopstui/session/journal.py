"""Notes in the state directory: what must be undone even if iopstui is killed.

A note is on disk before the thing it speaks of happens, carries the process that wrote it,
and is removed when the thing is undone. One whose process is gone was left by a crash.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def state_directory() -> Path:
    """$XDG_STATE_HOME/iopstui (mode 0700), where what must survive a crash is kept.

    Raises OSError if it can't be made or belongs to somebody else (a note there could be
    another user's).
    """
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(base) / "iopstui"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = path.lstat()
    if info.st_uid != os.getuid() or path.is_symlink():
        raise PermissionError(f"{path} belongs to another user")
    return path


def start_time(pid: int) -> int | None:
    """When a process began, in clock ticks since boot (proc(5) starttime); None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def boot_id() -> str:
    """Names this boot of the machine (a process number means nothing after the next)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(slots=True)
class Note:
    """One note: ``content`` is a JSON object of the writer's."""

    path: Path
    content: dict[str, Any]

    def update(self, content: Mapping[str, Any]) -> None:
        """Replace the content: afterwards the new one is on disk, or the old one still is."""
        self.content = dict(content)
        _write(self.path, self.content)

    def remove(self) -> None:
        """Undone: nothing to remember any more."""
        self.path.unlink(missing_ok=True)


def write_note(kind: str, content: Mapping[str, Any]) -> Note:
    """A new note of this process; on disk when this returns. Raises OSError."""
    directory = state_directory()
    fd, name = tempfile.mkstemp(prefix=f"{kind}-", suffix=".json", dir=directory)
    os.close(fd)
    note = Note(Path(name), dict(content))
    _write(note.path, note.content)
    return note


def _write(path: Path, content: Mapping[str, Any]) -> None:
    owner = {"pid": os.getpid(), "start": start_time(os.getpid()), "boot": boot_id()}
    fd, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    with os.fdopen(fd, "w") as file:
        json.dump({"owner": owner, **content}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, path)
    with contextlib.suppress(OSError):
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def abandoned(kind: str) -> Iterator[Note]:
    """Notes of this kind whose process no longer runs. Ones that can't be read are passed over."""
    try:
        paths = sorted(state_directory().glob(f"{kind}-*.json"))
    except OSError:
        return
    for path in paths:
        try:
            content = json.loads(path.read_text())
            owner = content.pop("owner")
            alive = owner["boot"] == boot_id() and start_time(int(owner["pid"])) == owner["start"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if not alive:
            yield Note(path, content)
