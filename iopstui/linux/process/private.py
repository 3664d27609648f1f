"""Private directories for job files and for fio's output and messages during a run.

Such a directory is made in a place that nobody else can rename or replace (in memory if possible)
and is kept open and locked (flock(2)) while it is used. Every file in it is created and read
through that descriptor, never through a link, so that root never writes to a file that another user
has put there."""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iopstui.errors import Missing
from iopstui.linux.counters.signal_flag import shielded
from iopstui.linux.process.limits import hint_for_limit
from iopstui.linux.process.processes import start_time
from iopstui.linux.process.programs import new_directory, temporary_directory

PREFIX = "iopstui-"
SHARED_MEMORY = "/dev/shm"
# needs little room: fio's documents are removed as they are read
NEEDED_BYTES = 4 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

_locked: dict[Path, int] = {}


def private_directory() -> Path:
    """A new directory only this user can enter, in memory if possible. Its name contains the owner,
    so that ``abandoned_directories`` finds it after a crash. Raises Missing (with each place tried
    and its problem) if no place is suitable."""
    refused: list[str] = []
    for place in _candidate_directories():
        try:
            with shielded():
                return _make_directory(place)
        except OSError as error:
            refused.append(f"{place} ({error.strerror or error})")
    raise Missing(
        f"No usable directory for iopstui's own files (job file, fio's output): "
        f"{', '.join(refused)}.",
        f"Make room in {SHARED_MEMORY}, or name a directory: "
        'XDG_RUNTIME_DIR="$(mktemp -d -p DIRECTORY)" iopstui ...',
    )


def abandoned_directories() -> list[Path]:
    """Private directories of this user whose iopstui no longer runs."""
    directories = []
    for place in dict.fromkeys(_candidate_directories()):
        with contextlib.suppress(OSError):
            check_place(place)
            with os.scandir(place) as entries:
                directories += [Path(entry.path) for entry in entries if _is_abandoned(entry)]
    return directories


def write(private: Path, name: str, data: bytes) -> Path:
    """Write the file ``name`` (replacing an earlier one) and return its path. ``Missing`` is
    raised if it cannot be written, for lack of space for example."""
    try:
        with open(create(private, name), "wb") as file:
            file.write(data)
    except OSError as error:
        raise no_room_error(private, error) from error
    return private / name


def write_text(private: Path, name: str, text: str) -> Path:
    """Write text in which surrogates stand for undecodable bytes (of a job file)."""
    return write(private, name, text.encode("utf-8", "surrogateescape"))


def create(private: Path, name: str) -> int:
    """Create the empty file ``name``; return a descriptor to read and write it. Raises OSError."""
    with _open_directory(private) as directory:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        flags = _FILE | os.O_RDWR | os.O_CREAT | os.O_EXCL
        return os.open(name, flags, 0o600, dir_fd=directory)


def open_private_file(private: Path, name: str, *, write: bool = False) -> int:
    """Open a file in the directory; return a descriptor to read it (``write``: and write). OSError,
    also if it is not a regular file."""
    with _open_directory(private) as directory:
        fd = os.open(name, _FILE | (os.O_RDWR if write else os.O_RDONLY), dir_fd=directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a file", name)
    return fd


def no_room_error(private: Path, error: OSError) -> Missing:
    """The error for a file in the directory that can't be written."""
    return Missing(
        f"Cannot write iopstui's own files (job file, fio's output) in {private.parent}: "
        f"{error.strerror or error}.",
        hint_for_limit(error, f"Make room in {private.parent}."),
    )


def remove(private: Path) -> None:
    """Remove the directory with everything in it."""
    # before the lock is released, so that no other process thinks that the directory is abandoned
    if not _removed(private):
        import shutil

        shutil.rmtree(private, ignore_errors=True)
    fd = _locked.pop(private, None)
    if fd is not None:
        os.close(fd)


def _removed(private: Path) -> bool:
    """Remove the directory and the files in it. False if it still exists because it contains
    directories."""
    try:
        with _open_directory(private) as directory:
            for name in os.listdir(directory):
                os.unlink(name, dir_fd=directory)
        os.rmdir(private)
    except OSError:
        return not private.exists()
    return True


@atexit.register
def remove_all() -> None:
    """At the end of the program, remove all private directories, however it ends."""
    for private in tuple(_locked):
        remove(private)


def check_place(place: str | Path, write_bits: int = stat.S_IWGRP | stat.S_IWOTH) -> None:
    """Raise OSError if another user could redirect files made in this place: the directory and all
    directories above it that exist must belong to root or us, and must not be writable by others
    (mode bits ``write_bits``) unless they are sticky."""
    absolute, real = Path(os.path.abspath(place)), Path(os.path.realpath(place))
    for path in {absolute, *absolute.parents, real, *real.parents}:
        try:
            info = path.stat()
        except FileNotFoundError:
            continue
        if info.st_uid not in _trusted_uids():
            raise PermissionError(errno.EPERM, f"{path} belongs to another user")
        if info.st_mode & write_bits and not info.st_mode & stat.S_ISVTX:
            raise PermissionError(errno.EPERM, f"others can write to {path}")


def read_trusted(path: Path, most: int, anyones: bool = False) -> str:
    """The text of a file of at most ``most`` bytes. Raises OSError, also for a file that may not be
    trusted: root reads only files that nobody else can change, except for ``anyones`` files."""
    # O_NONBLOCK: don't wait for the writer of a pipe
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise OSError("it is not a file")
        if os.geteuid() == 0 and not anyones:
            if info.st_uid != 0 or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError(
                    "root reads only files that root owns and nobody else can write"
                )
            check_place(path)
        data = file.read(most + 1)
    if len(data) > most:
        limit = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
        raise OSError(f"it is longer than {limit}")
    return data.decode("utf-8-sig")


def _trusted_uids() -> set[int]:
    """Root and this user. In a user namespace the real root may appear as overflowuid."""
    uids = {0, os.geteuid()}
    with contextlib.suppress(OSError, ValueError):
        if int(Path("/proc/self/uid_map").read_text().split()[2]) < 0xFFFFFFFF:
            uids.add(int(Path("/proc/sys/kernel/overflowuid").read_text()))
    return uids


def _candidate_directories() -> Iterator[str]:
    """Directories to try, in this order: XDG_RUNTIME_DIR if it is valid (the XDG base directory
    specification: absolute, ours, mode 0700), a file system in memory, the directory for temporary
    files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and _is_runtime(runtime):
        yield os.path.realpath(runtime)
    yield SHARED_MEMORY
    with contextlib.suppress(OSError):  # the directory does not exist
        yield os.path.realpath(temporary_directory())


def _is_runtime(path: str) -> bool:
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return False
    is_own = stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()
    return is_own and not info.st_mode & 0o077


def _make_directory(place: str) -> Path:
    check_place(place)
    space = os.statvfs(place)
    # some file systems don't say how large they are
    if space.f_blocks and space.f_bavail * space.f_frsize < NEEDED_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    prefix = f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}-"
    path = new_directory(place, prefix)
    try:
        fd = _descriptor(path)
    except BaseException:
        os.rmdir(path)
        raise
    with contextlib.suppress(OSError):  # not every file system supports locks
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _locked[path] = fd
    return path


def _descriptor(path: Path) -> int:
    """Open a directory of ours that is no link and that other users can't enter. Raises OSError."""
    fd = os.open(path, _DIRECTORY)
    info = os.fstat(fd)
    if info.st_uid != os.geteuid() or info.st_mode & 0o077:
        os.close(fd)
        raise PermissionError(errno.EPERM, f"{path} belongs to another user or is open to others")
    return fd


@contextmanager
def _open_directory(private: Path) -> Iterator[int]:
    fd = _locked.get(private)
    if fd is not None:
        yield fd
        return
    fd = _descriptor(private)
    try:
        yield fd
    finally:
        os.close(fd)


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    parts = entry.name.removeprefix(PREFIX).split("-", 2)
    if (
        not entry.name.startswith(PREFIX)
        or len(parts) != 3
        or not all(part.isdecimal() and len(part) < 20 for part in parts[:2])
    ):
        return False
    info = entry.stat(follow_symlinks=False)
    is_own = stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid()
    return is_own and start_time(int(parts[0])) != int(parts[1]) and not _is_locked(entry.path)


def _is_locked(path: str) -> bool:
    """Whether the directory is locked. (Its process number may be of another container.)"""
    try:
        fd = os.open(path, _DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EAGAIN)
    finally:
        os.close(fd)
    return False
