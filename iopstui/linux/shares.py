"""File systems that are not on a disk of this machine: what the kernel knows about them."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from iopstui.errors import UsageError
from iopstui.linux.devices.usage.mounts import MountEntry, read_own_mounts
from iopstui.linux.kernel_files import Roots
from iopstui.text import printable

# Check whether a path's file system answers, with a time limit, before anything else accesses it.
#
# A file system whose server is gone may block every call on it for ever. So a separate process
# tries it; if it never returns, it is left behind.


ANSWER_TIMEOUT_S = 5.0
"""Long enough for a mount by autofs, too."""
KILL_TIMEOUT_S = 0.2
"""How long to wait for a killed process to end."""
MAX_LINKS = 40
"""As many symbolic links as the kernel follows (path_resolution(7))."""
_SERVED_TYPES = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs", "lustre", "autofs", "gfs2",
    "ocfs2", "beegfs", "gpfs", "pvfs2", "coda", "orangefs",
})  # fmt: skip


def require_answer(path: Path, roots: Roots, limit_s: float = ANSWER_TIMEOUT_S) -> None:
    """UsageError if ``path`` leads to a file system of a server or program that does not answer.

    Costs one readlink for each part of the path, and a process only if there is such a mount."""
    mount = find_hung_mount(path, roots, limit_s)
    if mount is None:
        return
    unused = "" if str(path) == mount.mountpoint else f", so {printable(str(path))} can't be used"
    raise UsageError(
        f"{mount_text(mount)} does not answer within {limit_s:g} s{unused}.", how_to_unmount(mount)
    )


def require_answers(paths: Sequence[Path], roots: Roots) -> None:
    """UsageError if one of the paths leads to a file system that does not answer
    (``require_answer``). Costs next to nothing on a machine without network file systems."""
    if any(map(is_network_mount, read_own_mounts(roots))):
        for path in dict.fromkeys(paths):
            require_answer(path, roots)


def find_hung_mount(
    path: Path, roots: Roots, limit_s: float = ANSWER_TIMEOUT_S
) -> MountEntry | None:
    """The mount on the way to ``path`` that does not answer; ``None`` if all is well."""
    mount = find_network_mount(path, read_own_mounts(roots))
    return mount if mount is not None and find_hung_paths([path], limit_s) else None


def find_hung_paths(paths: Sequence[Path], limit_s: float = ANSWER_TIMEOUT_S) -> list[Path]:
    """The paths whose file systems do not answer within the limit. An error is an answer, too. All
    are tried at the same time, each by a separate process."""
    probes: list[tuple[Path, int, int]] = []
    try:
        for path in paths:
            reader, writer = os.pipe2(os.O_CLOEXEC)
            pid = os.fork()
            if pid == 0:
                _touch_and_exit(path, writer)
            os.close(writer)
            probes.append((path, pid, reader))
        deadline = time.monotonic() + limit_s
        return [
            path
            for path, _, reader in probes
            if not _has_ended(reader, deadline - time.monotonic())
        ]
    finally:
        for _, pid, reader in probes:
            # kill it also on an interrupt; a process that waits in the kernel ends when it can
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0 if _has_ended(reader, KILL_TIMEOUT_S) else os.WNOHANG)
            os.close(reader)


def find_network_mount(path: Path, mounts: Sequence[MountEntry]) -> MountEntry | None:
    """The first mount of a server or a program on the way to ``path`` (absolute), through symbolic
    links. Such mounts are not accessed."""
    todo, resolved, links = _reversed_parts(str(path)), "/", 0
    while True:
        mount = _mount_of(resolved, mounts)
        if mount is not None and is_network_mount(mount):
            return mount
        if not todo:
            return None
        part = todo.pop()
        if part == "..":
            resolved = os.path.dirname(resolved)
            continue
        candidate = os.path.join(resolved, part)
        inside = _mount_of(candidate, mounts)
        try:
            # a mount point is no link, and asking whether it is would access it
            link = "" if inside is not mount else os.readlink(candidate)
        except OSError:
            link = ""
        if not link:
            resolved = candidate
            continue
        links += 1
        if links > MAX_LINKS:
            return None
        resolved = "/" if link.startswith("/") else resolved
        todo += _reversed_parts(link)


def is_network_mount(mount: MountEntry) -> bool:
    """Whether a server or a program serves a mount's files. (fuseblk counts as well: its files are
    on a local disk, but a program serves them.)"""
    return mount.fstype in _SERVED_TYPES or mount.fstype.startswith("fuse")


def mount_text(mount: MountEntry) -> str:
    """A mount as text: where it is, its type and its server."""
    source = "" if mount.source in ("none", mount.fstype) else f" of {mount.source}"
    return printable(f"{mount.mountpoint} ({mount.fstype}{source})")


def how_to_unmount(mount: MountEntry) -> str:
    """How to get rid of a mount that does not answer."""
    return (
        "Check the server and the network. If it will not come back: "
        f"umount -f -l {printable(mount.mountpoint)}"
    )


def _reversed_parts(path: str) -> list[str]:
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _mount_of(path: str, mounts: Sequence[MountEntry]) -> MountEntry | None:
    """The longest mount point above the path; of several equal ones the last."""
    longest: MountEntry | None = None
    for mount in mounts:
        above = mount.mountpoint.rstrip("/")
        inside = path == (above or "/") or path.startswith(above + "/")
        if inside and (longest is None or len(mount.mountpoint) >= len(longest.mountpoint)):
            longest = mount
    return longest


def _touch_and_exit(path: Path, writer: int) -> None:
    """Touch the path, in the child. The files of the parent must be closed first, or readers of its
    output would wait for this process."""
    try:
        os.dup2(writer, 0)
        os.closerange(1, 1 << 16)
        while not os.path.exists(path) and path != path.parent:
            path = path.parent
        # cached attributes need no server, so ask for free space, which does
        os.statvfs(path)
    finally:
        os._exit(0)


def _has_ended(reader: int, limit_s: float) -> bool:
    """Whether the process at the other end of the pipe ends within the limit."""
    return bool(select.select([reader], [], [], max(0.0, limit_s))[0])


# Work on files whose server may go away during the work.
#
# A call on such a file may never return, and cannot be interrupted. So it runs in a thread that can
# be left behind.


T = TypeVar("T")


def call_with_timeout(
    places: Collection[Path],
    work: Callable[[], T],
    discard: Callable[[T], None],
    roots: Roots,
    limit_s: float = ANSWER_TIMEOUT_S,
) -> T:
    """Return the result of ``work``, or raise its exception. UsageError if it takes longer than the
    limit and a mount on the way to one of the places (absolute; ``work`` may add to them) does not
    answer; if the work ends later, its result goes to ``discard``. A machine without such mounts
    needs no thread."""
    if not any(map(is_network_mount, read_own_mounts(roots))):
        return work()
    task = _Task(work, discard)
    try:
        while not task.ended(limit_s):
            for place in tuple(places):
                require_answer(place, roots, limit_s)
        return task.result()
    finally:
        task.abandon()


class _Task(Generic[T]):
    def __init__(self, work: Callable[[], T], discard: Callable[[T], None]) -> None:
        self._work, self._discard = work, discard
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._abandoned = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)
        self._thread.start()

    def ended(self, limit_s: float) -> bool:
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def result(self) -> T:
        """The call's result; raises the exception of the call."""
        if self._error is not None:
            raise self._error
        return self._results.pop()

    def abandon(self) -> None:
        """Give up waiting for the result, if it has not been fetched."""
        with self._lock:
            self._abandoned = True
            self._drop()

    def _run(self) -> None:
        try:
            result = self._work()
        except BaseException as error:
            self._error = error
            return
        with self._lock:
            self._results.append(result)
            if self._abandoned:
                self._drop()

    def _drop(self) -> None:
        while self._results:
            self._discard(self._results.pop())
