"""Processes that the kernel's OOM killer ended (oom_kill of /proc/vmstat; proc_vmstat(5))."""

from __future__ import annotations

import re
from pathlib import Path

from iopstui.linux.sysattr import read_text

_OOM_KILLS = re.compile(r"(?m)^oom_kill ([0-9]{1,18})$")

VMSTAT = Path("/proc/vmstat")


def oom_kills(vmstat: Path = VMSTAT) -> int | None:
    """How many there were since the machine started; ``None``: the kernel does not count them."""
    found = _OOM_KILLS.search(read_text(vmstat) or "")
    return None if found is None else int(found[1])


def oom_text(before: int | None, vmstat: Path = VMSTAT) -> str:
    """Text about a process that was killed: whether the OOM killer has ended processes since
    ``before`` was read; "" if not, or unknown."""
    now = oom_kills(vmstat)
    if now is None or before is None or now <= before:
        return ""
    processes = "a process" if now - before == 1 else f"{now - before} processes"
    return (
        f"; the kernel's OOM killer ended {processes} during the run: memory, or the memory limit "
        "of a cgroup, was used up"
    )
