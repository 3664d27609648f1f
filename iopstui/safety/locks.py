"""Locks that allow only one iopstui at a time to run jobs on a device or file; and the locks that
the next run takes over.

The lock is flock(2) on the file itself; for a device, on the named node and on the kernel's own
node of its number (a device may have many nodes). Nobody can forge or redirect it, it needs no lock
file, it works between root and other users, and the kernel releases it with the last process of a
run. udev and partitioning tools honour it too (systemd's "Locking Block Device Access"): they leave
a disk alone while it is measured."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Interrupted, IopstuiError, Missing, Refused
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.limits import how_to_open
from iopstui.linux.process.processes import parent, start_time
from iopstui.model.block.device import BlockDevice
from iopstui.text import printable

# udev holds a shared lock for a moment while it examines a disk
_TIMEOUT_S = 1.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock that this process holds: the open descriptor, and whether it is a shared lock."""

    fd: int
    shared: bool


def same_file(fd: int, other_fd: int) -> bool:
    """Whether both descriptors are of the same file: device, inode and device number are equal."""
    return identity(os.fstat(fd)) == identity(os.fstat(other_fd))


def identity(info: os.stat_result) -> tuple[int, int, int]:
    """The identity of a file, independent of its name: device, inode and device number."""
    return info.st_dev, info.st_ino, info.st_rdev


def require_rights(path: str, *, write: bool) -> None:
    """Raise Missing if this user may not read (with ``write``: and write) the job's files or
    devices.

    The file is opened for reading only: closing a device that was open for writing makes udev look
    at it."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        raise _no_right(path, error, "read") from error
    if write and not os.access(path, os.W_OK):
        raise _no_right(path, PermissionError(errno.EACCES, "Permission denied"), "write")


def lock(path: str, roots: Roots, *, shared: bool = False, adopted: Sequence[HeldLock] = ()) -> int:
    """An open descriptor that locks ``path`` until it is closed, also in children. ``shared``: for
    the disk of a partition. ``adopted``: locks of the run that is replaced; a lock on the same file
    is duplicated, so it is never released in between. Raises Refused if another process has the
    lock, Missing if this user may not read the file. On a file system without locks nothing is
    locked."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise _no_right(path, error, "read") from error
    try:
        for held in adopted:
            if held.shared == shared and same_file(held.fd, fd):
                own_fd = os.dup(held.fd)
                os.close(fd)
                return own_fd
        _acquire(fd, path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, roots)
    except BaseException:
        os.close(fd)
        raise
    return fd


def lock_node(
    device: BlockDevice, roots: Roots, *, shared: bool = False, adopted: Sequence[HeldLock] = ()
) -> int | None:
    """Lock a device by its number: at the kernel's own node, which all programs share, whatever
    node they open; without that node (a container's /dev), at the device's file in sysfs.

    ``None`` if there is neither. Raises as ``lock``."""
    node = roots.dev / device.name
    try:
        info = os.stat(node)
    except OSError:
        info = None
    number = os.makedev(device.major, device.minor) if device.major >= 0 else None
    if info is None or not stat.S_ISBLK(info.st_mode) or info.st_rdev != number:
        node = roots.sys / "class/block" / device.name.replace("/", "!") / "dev"
        if not node.is_file():
            return None
    return lock(str(node), roots, shared=shared, adopted=adopted)


def _acquire(fd: int, path: str, kind: int, roots: Roots) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
                return
        if time.monotonic() > deadline:
            raise Refused(
                f"Cannot start a second job on {printable(path)}: {lock_holder(fd, roots)}.",
                "Two jobs at once would disturb each other. Wait, or watch without a job: "
                f"iopstui live {printable(path)}",
            )
        time.sleep(_POLL_S)


def lock_holder(fd: int, roots: Roots) -> str:
    """Name of the process that has locked the open file."""
    pid = _holder_pid(fd, roots)
    return _holder_text(pid, roots) if pid else "another program has locked it"


def lock_owner(fd: int, roots: Roots) -> tuple[str, bool]:
    """Name of the process that has locked the open file, and whether it is an iopstui."""
    pid = _holder_pid(fd, roots)
    name, is_iopstui = _identify(pid, roots) if pid else ("", False)
    if is_iopstui:
        return f"another iopstui (process {pid})", True
    return (f"{printable(name)} (process {pid})" if name else "another program"), False


def _holder_pid(fd: int, roots: Roots) -> str:
    """The process that has locked the open file (proc_locks(5)); "" if it can't be seen."""
    info = os.fstat(fd)
    file = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    try:
        lines = (roots.proc / "locks").read_text().splitlines()
    except (OSError, ValueError):
        lines = []
    for fields in map(str.split, lines):
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == file:
            return fields[4]
    return ""


def _holder_text(pid: str, roots: Roots) -> str:
    name, is_iopstui = _identify(pid, roots)
    if not name:
        return "a job left by an earlier iopstui is being stopped"
    if is_iopstui:
        return f"another iopstui (pid {pid}) runs one on it"
    return f"{printable(name)} (pid {pid}) has locked it"


def _identify(pid: str, roots: Roots) -> tuple[str, bool]:
    """The name of a process, and whether it is an iopstui; "" if it is gone."""
    try:
        command = Path(roots.proc / pid / "cmdline").read_bytes().split(b"\0")
        name = (roots.proc / pid / "comm").read_text().strip()
    except (OSError, ValueError):
        return "", False
    return name, any(os.path.basename(argument).startswith(b"iopstui") for argument in command)


def _no_right(path: str, error: OSError, right: str) -> IopstuiError:
    path_text = printable(path)
    if error.errno in (errno.EACCES, errno.EPERM):
        return Missing(
            f"The job needs permission to {right} {path_text} (watching without a job works).",
            f"{how_to_open(path)}. Jobs in a directory work without it.",
        )
    return Refused(f"Cannot open {path_text}: {error.strerror}.", "See: iopstui devices")


class ActiveRun:
    """The active run: duplicates of its locks and of its exclusively opened devices (``holds``),
    and its processes, which are all below its guard, the process ``guard_pid``.

    The duplicates stay until ``close``, even if the active run ends meanwhile. ``is_given_up``: the
    next run is no longer wanted; then ``owns``, which is called for each process, raises
    Interrupted."""

    def __init__(
        self,
        locks: Sequence[HeldLock],
        holds: Sequence[int],
        guard_pid: int,
        is_given_up: Callable[[], bool] = bool,
    ) -> None:
        self._is_given_up = is_given_up
        self._resources = ExitStack()
        self._guard = (guard_pid, start_time(guard_pid))
        self.locks = tuple(HeldLock(self._duplicate(held.fd), held.shared) for held in locks)
        self.holds = tuple(map(self._duplicate, holds))

    def _duplicate(self, fd: int) -> int:
        duplicate = os.dup(fd)
        self._resources.callback(os.close, duplicate)
        return duplicate

    def owns(self, pid: int) -> bool:
        """Whether this process now belongs to the active run."""
        if self._is_given_up():
            raise Interrupted("The run was cancelled.")
        guard_pid, began = self._guard
        while pid > 1 and pid != guard_pid:
            pid = parent(pid)
        return pid == guard_pid and began is not None and start_time(pid) == began

    def close(self) -> None:
        """Close the duplicates; may be called twice."""
        self._resources.close()
        self.locks = self.holds = ()
