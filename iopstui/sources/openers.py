"""Which other programs have a device open for writing (proc_pid_fd(5), proc_pid_fdinfo(5))."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from iopstui.sources.roots import Roots
from iopstui.sources.sysattr import decode, list_names, read_bytes, read_text
from iopstui.text import printable


def writers(
    nodes: Iterable[str], roots: Roots, numbers: Iterable[tuple[int, int]] = ()
) -> tuple[str, ...]:
    """ "name (pid N)" of every other process that has one of ``nodes`` open for writing.

    ``numbers`` are device numbers (major, minor): a node of another name, as containers and
    virtual machines have, is found by these. Only processes this user may look into are seen:
    an empty answer proves nothing.
    """
    wanted = frozenset(nodes), frozenset(numbers)
    own = str(os.getpid())
    found = []
    for pid in list_names(roots.proc):
        if pid.isdecimal() and pid != own and _writes(roots.proc / pid, *wanted):
            name = printable(read_text(roots.proc / pid / "comm") or "?")
            found.append(f"{name} (pid {pid})")
    return tuple(found)


def _writes(process: Path, nodes: frozenset[str], numbers: frozenset[tuple[int, int]]) -> bool:
    for number in list_names(process / "fd"):
        link = process / "fd" / number
        try:
            node = os.readlink(link)
        except OSError:
            continue
        known = node in nodes or (bool(numbers) and _is_device(link, node, numbers))
        if known and _for_writing(process / "fdinfo" / number):
            return True
    return False


def _is_device(link: Path, node: str, numbers: frozenset[tuple[int, int]]) -> bool:
    # looking at files elsewhere could hang on a network file system that is gone
    if not node.startswith("/dev/"):
        return False
    try:
        info = os.stat(link)
    except OSError:
        return False
    number = os.major(info.st_rdev), os.minor(info.st_rdev)
    return stat.S_ISBLK(info.st_mode) and number in numbers


def _for_writing(fdinfo: Path) -> bool:
    for line in decode(read_bytes(fdinfo) or b"").splitlines():
        if line.startswith("flags:"):
            try:
                return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
            except (IndexError, ValueError):
                return True
    return True
