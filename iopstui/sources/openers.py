"""Which other programs have a device open for writing (proc_pid_fd(5), proc_pid_fdinfo(5))."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from iopstui.sources.roots import Roots
from iopstui.sources.sysattr import decode, list_names, read_bytes, read_text
from iopstui.text import printable


def writers(nodes: Iterable[str], roots: Roots) -> tuple[str, ...]:
    """ "name (pid N)" of every other process that has one of ``nodes`` open for writing.

    Only processes this user may look into are seen: an empty answer proves nothing.
    """
    wanted = frozenset(nodes)
    own = str(os.getpid())
    found = []
    for pid in list_names(roots.proc):
        if pid.isdecimal() and pid != own and _writes(roots.proc / pid, wanted):
            name = printable(read_text(roots.proc / pid / "comm") or "?")
            found.append(f"{name} (pid {pid})")
    return tuple(found)


def _writes(process: Path, nodes: frozenset[str]) -> bool:
    for number in list_names(process / "fd"):
        try:
            node = os.readlink(process / "fd" / number)
        except OSError:
            continue
        if node in nodes and _for_writing(process / "fdinfo" / number):
            return True
    return False


def _for_writing(fdinfo: Path) -> bool:
    for line in decode(read_bytes(fdinfo) or b"").splitlines():
        if line.startswith("flags:"):
            try:
                return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
            except (IndexError, ValueError):
                return True
    return True
