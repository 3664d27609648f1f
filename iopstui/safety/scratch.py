"""The scratch directory: the place for writes if no device or file is named.

It is created exclusively (mkdtemp), readable by its owner alone, and removed on every way
out: by ``close``, by the guard of fio if iopstui dies, and after a crash of both by the next
start, which finds its path in the state directory.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.linux.devices.kernel_files import kernel_file_system, removal_lock
from iopstui.linux.devices.usage.mounts import read_own_mounts
from iopstui.linux.process.limits import hint_for_limit
from iopstui.linux.process.programs import new_directory, random_name
from iopstui.linux.roots import Roots
from iopstui.linux.shares import find_hung_mount, mount_text
from iopstui.safety import journal
from iopstui.safety.journal import Note
from iopstui.text import printable

PREFIX = ".iopstui-"
# as mkdtemp makes them
_NAME = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}")
DEFAULT_BYTES = 512 << 20
FREE_SHARE = 0.05
MIB = 1 << 20
# those that could not be removed so far
_LEFTOVERS: list[Path] = []
_STAYING: dict[Path, str] = {}
"""Directories that nothing may touch now, and why: a mount that does not answer, or one in them."""


@dataclass(slots=True)
class Scratch:
    """A scratch directory and the note of it in the state directory (``None``: no note). ``fd`` is
    the directory held open (O_PATH), -1 if it isn't.

    With several target directories there is one in each: ``parts`` are all of them, this one
    first, and ``path`` holds links 0, 1 ... to them, by which fio spreads a job's files.
    """

    path: Path
    note: Note | None
    parts: tuple[Scratch, ...] = ()
    fd: int = -1

    @property
    def paths(self) -> tuple[Path, ...]:
        """All directories, the first one first."""
        return tuple(scratch.path for scratch in self.parts) or (self.path,)

    def used_bytes(self) -> int:
        """Bytes allocated so far below this directory (below all of them, if there are several)."""
        total = sum(scratch.used_bytes() for scratch in self.parts[1:])
        for place, _, names in os.walk(self.path):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(place, name)).st_blocks * 512
        return total

    def close(self) -> None:
        """Remove the directory, wherever it is now, then the note; the same with all others. May be
        called twice. With a mount in it, or on one that does not answer, both stay, for a later
        iopstui."""
        for scratch in self.parts[1:]:
            scratch.close()
        if _must_stay(self.path):
            return
        _remove(self.path)
        if self.fd >= 0:
            # somebody may have renamed a directory above it
            moved = Path(os.readlink(f"/proc/self/fd/{self.fd}"))
            os.close(self.fd)
            self.fd = -1
            # again with one descriptor more, where no others may be opened
            _remove(moved if moved != self.path and _is_ours(moved) else self.path)
        if os.path.lexists(self.path):
            _LEFTOVERS.append(self.path)
        elif self.note is not None:
            self.note.remove()


def leftover_messages() -> list[str]:
    """Directories that could not be removed and are still there, a sentence each."""
    return pop_staying_messages() + [
        f"cannot remove {printable(str(path))}: its directory is append-only or "
        "immutable now. Change that, then: iopstui doctor"
        for path in dict.fromkeys(_LEFTOVERS)
        if os.path.lexists(path)
    ]


def pop_staying_messages() -> list[str]:
    """Directories that were not removed because of a mount, a sentence each; every one once."""
    messages = [
        f"cannot remove {printable(str(path))}: {printable(reason)}: iopstui doctor"
        for path, reason in _STAYING.items()
    ]
    _STAYING.clear()
    return messages


def _must_stay(path: Path) -> bool:
    """Whether a mount keeps it from being removed, which is remembered. Another file system's files
    are not ours, wherever they are mounted."""
    roots = Roots()
    mount = find_hung_mount(path, roots)
    if mount is not None:
        _STAYING[path] = f"{mount_text(mount)} does not answer. When it does"
        return True
    real = os.path.realpath(path)
    for entry in read_own_mounts(roots):
        if entry.mountpoint == real or entry.mountpoint.startswith(f"{real}/"):
            _STAYING[path] = f"{entry.mountpoint} is mounted there. Unmount it, then"
            return True
    return False


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    if not _is_ours(path):
        return
    # rmtree needs two descriptors for a directory and may fail at the limit; there are only files
    with contextlib.suppress(OSError):
        for name in os.listdir(path):
            os.unlink(path / name)
        os.rmdir(path)


def make_scratches(directories: Sequence[Path]) -> Scratch:
    """Create one in each of the directories. UsageError where that fails; then none is left."""
    scratches: list[Scratch] = []
    try:
        for directory in directories:
            scratches.append(make_scratch(directory))
        if len(scratches) == 1:
            return scratches[0]
        for index, scratch in enumerate(scratches):
            os.symlink(scratch.path, scratches[0].path / str(index))
    except BaseException as error:
        for scratch in scratches:
            scratch.close()
        if isinstance(error, OSError):
            raise UsageError(
                f"Cannot create a link in {scratches[0].path}: {error.strerror}."
            ) from error
        raise
    return Scratch(scratches[0].path, scratches[0].note, tuple(scratches), scratches[0].fd)


def make_scratch(directory: Path) -> Scratch:
    """Create a scratch directory inside ``directory``; UsageError where that fails."""
    path = None
    if flag := removal_lock(directory):
        kind = "immutable" if flag == "i" else "append-only"
        raise UsageError(
            f"Refusing to create a scratch file in {directory}: the directory is {kind}, so "
            "the file could not be removed.",
            f"Choose another directory, or: chattr -{flag} {shlex.quote(str(directory))}",
        )
    if kernel := kernel_file_system(directory):
        raise UsageError(
            f"Refusing to create a scratch file in {directory}: it belongs to a kernel file "
            f"system ({kernel}).",
            "Choose a directory you can write to, or a block device: iopstui run TARGET ...",
        )
    try:
        path = new_directory(directory, PREFIX)
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if path is not None:
            with contextlib.suppress(OSError):
                path.rmdir()
        hint = "Choose a directory you can write to, or a block device: iopstui run TARGET ..."
        raise UsageError(f"Cannot create a scratch file in {directory}: {error.strerror}.",
                         hint_for_limit(error, hint)) from error  # fmt: skip
    note = None
    # without a state directory only the crash of both processes at once leaves the file
    with contextlib.suppress(OSError):
        note = journal.write_note("scratch", {"scratch": str(path)})
    return Scratch(path, note, fd=fd)


def abandoned_scratches() -> Iterator[Scratch]:
    """Scratch directories whose iopstui no longer runs (it was killed together with its guard)."""
    for note in journal.abandoned_notes("scratch"):
        path = Path(str(note.content.get("scratch", "")))
        if path.is_absolute() and is_scratch_name(path.name) and not _must_stay(path):
            if not _is_ours(path):
                continue
            yield Scratch(path, note)


def is_scratch_name(name: str) -> bool:
    """Whether a scratch directory can be called so."""
    return _NAME.fullmatch(name) is not None


def _is_ours(path: Path) -> bool:
    """A note is only believed if what it names looks like a scratch directory of this user."""
    if not is_scratch_name(path.name) or not path.is_absolute():
        return False
    try:
        info = path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not path.is_symlink() and path.is_dir() and info.st_uid == os.getuid()


def usable_bytes(directory: Path) -> int:
    """Bytes available on this file system with 5 % left free. UsageError if the directory can't
    be examined."""
    try:
        space = os.statvfs(directory)
    except OSError as error:
        raise UsageError(
            f"Cannot determine the free space of {directory}: {error.strerror}.",
            "Choose a directory you can write to, or a block device: iopstui run TARGET ...",
        ) from error
    free_bytes = space.f_bavail * space.f_frsize - int(FREE_SHARE * space.f_blocks * space.f_frsize)
    return max(0, free_bytes)


def usable_bytes_for_all(directories: Sequence[Path]) -> int:
    """Bytes that may be used in all directories together if each gets the same, as fio shares a
    job's size out. Those in one file system share its room."""
    spaces = [usable_bytes(directory) for directory in directories]
    systems = [os.stat(directory).st_dev for directory in directories]
    shares = (space // systems.count(system) for space, system in zip(spaces, systems, strict=True))
    return len(directories) * min(shares)


def supports_direct(directory: Path) -> bool:
    """Whether files here can be opened with O_DIRECT (open(2)); tmpfs before Linux 6.6 can't."""
    name = os.path.join(directory, random_name(PREFIX))
    try:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
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
