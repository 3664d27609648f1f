"""Notes in the state directory on changes that must be undone even if iopstui is killed.

A note is on disk before the change it describes, names the process that wrote it, and is removed
when the change is undone. If its process is gone, a crash has left it. Notes of other machines
(machines of a cluster may share a home directory) are left alone: whether their process runs can't
be seen from here, and the things they name are not here. Everything goes through a descriptor of
the checked directory, so that another user who renames a directory above it, or puts a symbolic
link there, can't change where a note is written or read."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from iopstui.linux.process.private import check_place
from iopstui.linux.process.processes import start_time

MAX_NOTE = 1 << 20
MAX_TEXTS = 20
_UNFINISHED_SUFFIX = ".new-"
_STALE_AFTER_S = 3600.0
# largest PID: PID_MAX_LIMIT of 64-bit kernels (proc(5))
_MORE_THAN_PIDS = 1 << 22


def state_directory() -> Path:
    """$XDG_STATE_HOME/iopstui (mode 0700), the place for data that must survive a crash.

    Raises OSError if it can't be made or belongs to somebody else (a note there could be
    another user's)."""
    path = _state_path()
    with _open_directory():
        return path


def _state_path() -> Path:
    """Path of the state directory, existing or not. OSError if no environment variable or user
    entry gives it."""
    # sudo and su may keep the environment of the user who called them
    for base in (
        os.environ.get("XDG_STATE_HOME", ""),
        _state_directory(os.environ.get("HOME", "")),
    ):
        # the XDG base directory specification: a relative path is to be ignored
        if os.path.isabs(base) and (not _redirectable(base) or base == _home()):
            return Path(base) / "iopstui"
    home = _home()
    if not home:
        raise FileNotFoundError(errno.ENOENT, "this user has no home directory, and "
                                              "XDG_STATE_HOME is not set")  # fmt: skip
    return Path(home) / "iopstui"


def _state_directory(home: str) -> str:
    # a missing home is not created (users of daemons have /nonexistent)
    return f"{home}/.local/state" if os.path.isdir(home) else ""


def _home() -> str:
    try:
        import pwd

        return _state_directory(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return ""


def _redirectable(base: str) -> bool:
    """Whether another user could replace the directory. Homes writable by their group are accepted:
    many systems give each user a group of their own."""
    try:
        check_place(base, stat.S_IWOTH)
    except (OSError, ValueError):
        return True
    return False


@contextmanager
def _open_directory() -> Iterator[int]:
    """A descriptor of the state directory, created if necessary, accessible only to us. Raises
    OSError."""
    path = _state_path()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if path.is_symlink():
            raise PermissionError(f"{path} is a symbolic link") from error
        raise
    try:
        info = os.fstat(fd)
        if info.st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        if stat.S_IMODE(info.st_mode) & 0o077:
            os.fchmod(fd, 0o700)
        yield fd
    finally:
        os.close(fd)


def boot_id() -> str:
    """The identity of this boot of the machine. (A process number means nothing after a reboot.)"""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def machine_identity() -> str:
    """The identity of this machine: machine-id(5) and the host name, because copies of one disk
    share the id."""
    try:
        machine_id = Path("/etc/machine-id").read_text().strip()
    except (OSError, UnicodeDecodeError):
        machine_id = ""
    return f"{machine_id} {os.uname().nodename}"


@dataclass(slots=True)
class Note:
    """A note in the journal: ``content`` is a JSON object chosen by its writer."""

    path: Path
    content: dict[str, Any]

    def update(self, content: Mapping[str, Any]) -> None:
        """Replace the content; afterwards either the new or the old one is on disk. Raises
        OSError."""
        self.content = dict(content)
        with _open_directory() as directory:
            _write(directory, self.path.name, self.content)

    def remove(self) -> None:
        """Remove the note once its change is undone."""
        with contextlib.suppress(FileNotFoundError), _open_directory() as directory:
            os.unlink(self.path.name, dir_fd=directory)


def write_note(kind: str, content: Mapping[str, Any]) -> Note:
    """Write a new note of this process; it is on disk when this returns. Raises OSError."""
    name = f"{kind}-{os.urandom(8).hex()}.json"
    with _open_directory() as directory:
        _write(directory, name, content)
    return Note(_state_path() / name, dict(content))


def write_text(prefix: str, text: str) -> Path:
    """Write a new file in the state directory, for people to read. Only the newest files with this
    ``prefix`` are kept. Raises OSError."""
    name = f"{prefix}{os.urandom(4).hex()}.txt"
    with _open_directory() as directory:
        earlier = [found for found in os.listdir(directory) if found.startswith(prefix)]
        for old in sorted(earlier, key=partial(_changed_s, directory))[: 1 - MAX_TEXTS]:
            with contextlib.suppress(OSError):
                os.unlink(old, dir_fd=directory)
        with open(_create_file(directory, name), "w", errors="replace") as file:
            file.write(text)
    return _state_path() / name


def _changed_s(directory: int, name: str) -> float:
    with contextlib.suppress(OSError):
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime
    return 0.0


def _create_file(directory: int, name: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, 0o600, dir_fd=directory)


def _write(directory: int, name: str, content: Mapping[str, Any]) -> None:
    owner = {"pid": os.getpid(), "start": start_time(os.getpid()), "boot": boot_id(),
             "machine": machine_identity()}  # fmt: skip
    new = _UNFINISHED_SUFFIX + os.urandom(8).hex()
    try:
        with open(_create_file(directory, new), "w") as file:
            import json

            json.dump({"owner": owner, **content}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=directory)
        raise
    with contextlib.suppress(OSError):
        os.fsync(directory)


def has_notes() -> bool:
    """Whether any process, running or not, has left a note."""
    try:
        with _open_directory() as directory:
            names = os.listdir(directory)
    except OSError:
        return False
    return any(name.endswith(".json") or name.startswith(_UNFINISHED_SUFFIX) for name in names)


def abandoned_notes(kind: str) -> Iterator[Note]:
    """Notes of this kind whose process no longer runs. Unreadable ones are skipped."""
    return (note for note, owner in _journal_notes(kind) if owner is None)


def _journal_notes(kind: str) -> Iterator[tuple[Note, int | None]]:
    """All notes of this kind, each with the process that wrote it (None if it is gone)."""
    notes = []
    try:
        with _open_directory() as directory:
            for name in sorted(os.listdir(directory)):
                if name.startswith(_UNFINISHED_SUFFIX):
                    _forget(directory, name)
                elif name.startswith(f"{kind}-") and name.endswith(".json"):
                    note = _read(directory, name)
                    notes += [note] if note is not None else []
    except OSError:
        return
    yield from notes


def _read(directory: int, name: str) -> tuple[Note, int | None] | None:
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(name, flags, dir_fd=directory), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
                return None
            import json

            content = json.loads(file.read(MAX_NOTE))
        owner = content.pop("owner")
        pid = owner["pid"]
        if not (isinstance(pid, int) and 0 < pid < _MORE_THAN_PIDS and _is_encodable(content)):
            return None
        if owner.get("machine", machine_identity()) != machine_identity():
            return None
        alive = owner["boot"] == boot_id() and start_time(pid) == owner["start"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Note(_state_path() / name, content), pid if alive else None


def _is_encodable(content: object) -> bool:
    """Whether all texts in ``content`` can be file names, as in the notes we write."""
    if isinstance(content, dict):
        return all(_is_encodable(key) and _is_encodable(value) for key, value in content.items())
    if isinstance(content, list):
        return all(map(_is_encodable, content))
    # raises UnicodeEncodeError, a ValueError
    return not isinstance(content, str) or b"\0" not in os.fsencode(content)


def _forget(directory: int, name: str) -> None:
    """Remove an unfinished note, whose process was killed while it wrote it: it is useless."""
    with contextlib.suppress(OSError):
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if time.time() - info.st_mtime > _STALE_AFTER_S:
            os.unlink(name, dir_fd=directory)
