"""Which other programs have a device open for writing (proc_pid_fd(5), proc_pid_fdinfo(5))."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import decode, list_names, read_bytes, read_text
from iopstui.text import printable

# looking at a file there may hang, if its server is gone
_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs", "fuse", "glusterfs"})
# proc(5): the initial PID namespace has this number (PROC_PID_INIT_INO)
_INITIAL_PIDS = "pid:[4026531836]"


def writers(
    nodes: Iterable[str], roots: Roots, numbers: Iterable[tuple[int, int]] = ()
) -> tuple[str, ...]:
    """ "name (pid N)" of every other process that has one of ``nodes`` open for writing.

    ``numbers`` are device numbers (major, minor): a node of another name or place, as containers,
    chroots and virtual machines have, is found by these. Only processes this user may look into are
    seen: an empty answer proves nothing (``unseen`` says why).
    """
    wanted = frozenset(nodes), frozenset(numbers)
    own = str(os.getpid())
    found = []
    for pid in list_names(roots.proc):
        if pid.isdecimal() and pid != own and _writes(roots.proc / pid, *wanted):
            name = printable(read_text(roots.proc / pid / "comm") or "?")
            found.append(f"{name} (pid {pid})")
    return tuple(found)


def unseen(roots: Roots) -> str:
    """Why some programs that have a device open may be invisible; "" if none is."""
    try:
        if os.readlink(roots.proc / "self/ns/pid") != _INITIAL_PIDS:
            return "this is a container, and the programs outside of it can't be seen"
    except OSError:
        return "which programs run can't be seen"
    closed = sum(
        1
        for pid in list_names(roots.proc)
        if pid.isdecimal() and not os.access(roots.proc / pid / "fd", os.R_OK | os.X_OK)
    )
    if closed:
        return f"{closed} programs of other users can't be inspected"
    return ""


def _writes(process: Path, nodes: frozenset[str], numbers: frozenset[tuple[int, int]]) -> bool:
    remote: frozenset[str] | None = None
    for number in list_names(process / "fd"):
        link = process / "fd" / number
        try:
            node = os.readlink(link)
        except OSError:
            continue
        if not node.startswith("/"):
            continue  # a socket, a pipe
        known = node in nodes
        if not known and numbers and _for_writing(process / "fdinfo" / number):
            remote = _remote_mounts(process) if remote is None else remote
            known = _is_device(link, process / "fdinfo" / number, remote, numbers)
        if known and _for_writing(process / "fdinfo" / number):
            return True
    return False


def _is_device(
    link: Path, fdinfo: Path, remote: frozenset[str], numbers: frozenset[tuple[int, int]]
) -> bool:
    if _field(fdinfo, "mnt_id") in remote:
        return False
    try:
        info = os.stat(link)
    except OSError:
        return False
    number = os.major(info.st_rdev), os.minor(info.st_rdev)
    return stat.S_ISBLK(info.st_mode) and number in numbers


def _remote_mounts(process: Path) -> frozenset[str]:
    """The mounts of a process that a server somewhere answers for (proc_pid_mountinfo(5))."""
    found = set()
    for line in decode(read_bytes(process / "mountinfo") or b"").split("\n"):
        before, _, after = line.partition(" - ")
        kind = after.partition(" ")[0]
        if kind in _REMOTE or kind.startswith("fuse."):
            found.add(before.partition(" ")[0])
    return frozenset(found)


def _field(fdinfo: Path, name: str) -> str:
    for line in decode(read_bytes(fdinfo) or b"").split("\n"):
        if line.startswith(f"{name}:"):
            return line.partition(":")[2].strip()
    return ""


def _for_writing(fdinfo: Path) -> bool:
    flags = _field(fdinfo, "flags")
    try:
        return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
    except ValueError:
        # unknown: better one too many; a descriptor that is gone writes nothing
        return bool(flags)
