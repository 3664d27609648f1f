"""Refusals of the system: exhausted limits, memory (the OOM killer), missing rights."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from iopstui.linux.kernel_files import read_text
from iopstui.text import printable

_HINTS = {
    errno.EFBIG: "This shell limits the size of files: ulimit -f unlimited",
    errno.EMFILE: "This shell limits the number of open files: ulimit -n 1024",
    errno.ENFILE: "The machine limits the number of open files: sysctl fs.file-max",
    errno.EAGAIN: "The number of processes is limited: ulimit -u, or pids.max of the cgroup",
    errno.ENOMEM: "Memory is short or limited: free -m, ulimit -v",
}
_UNMAPPED = "failed to map segment from shared object"
"""The loader's message if there is no memory for a module (glibc)."""

MIN_DESCRIPTORS = 48
"""How many open files a command may need; the screen needs the most."""
DESCRIPTORS = 1024


def hint_for_limit(error: OSError, otherwise: str) -> str:
    """The hint for an OSError that a limit has caused; ``otherwise`` for any other error."""
    return _HINTS.get(error.errno or 0, otherwise)


def exhausted_limit(error: BaseException) -> str:
    """Which limit has caused an error, and how to raise it; "" for any other error."""
    number = error.errno or 0 if isinstance(error, OSError) else 0
    is_unmapped = isinstance(error, ImportError) and str(error).endswith(_UNMAPPED)
    if isinstance(error, MemoryError) or is_unmapped:
        number = errno.ENOMEM
    # Python hides the kernel's reason here
    elif isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        number = errno.EAGAIN
    return f"{os.strerror(number)}. {_HINTS[number]}" if number in _HINTS else ""


def ensure_descriptors() -> str:
    """If the limit of open files is too low for any command, raise it within the hard limit.
    Returns "" if the limit then suffices, else what is wrong and how to raise it. Near the limit
    every import and every open may fail."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < MIN_DESCRIPTORS and soft != hard:
        soft = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= MIN_DESCRIPTORS:
        return ""
    return (
        f"At most {soft} files may be open, and iopstui needs {MIN_DESCRIPTORS}.\n"
        f"  {_HINTS[errno.EMFILE]}"
    )


_OOM_KILLS = re.compile(r"(?m)^oom_kill ([0-9]{1,18})$")

VMSTAT = Path("/proc/vmstat")


def oom_kills(vmstat: Path = VMSTAT) -> int | None:
    """How many processes the OOM killer has ended since the machine started; ``None``: the kernel
    does not count them."""
    found = _OOM_KILLS.search(read_text(vmstat) or "")
    return None if found is None else int(found[1])


def oom_text(before: int | None, vmstat: Path = VMSTAT) -> str:
    """Text about a process that was killed: that the OOM killer has ended processes since
    ``before`` was read; "" if it has not, or if this is unknown."""
    now = oom_kills(vmstat)
    if now is None or before is None or now <= before:
        return ""
    processes = "a process" if now - before == 1 else f"{now - before} processes"
    return (
        f"; the kernel's OOM killer ended {processes} during the run: memory, or the memory limit "
        "of a cgroup, was used up"
    )


PERMISSION_ERRNOS = (errno.EACCES, errno.EPERM)


def open_error(path: str) -> OSError | None:
    """Try to open a device for reading; return the error, if any. Mode bits are not enough: a
    container's device rules may refuse even root."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        return error
    return None


def how_to_open(path: str) -> str:
    """Explain how this user can get the missing permission, with a command if there is one."""
    import shlex

    quoted = printable(shlex.quote(path))
    if os.geteuid() != 0:
        return f"Run iopstui with sudo, or as a member of the group that owns it: ls -lL {quoted}"
    return (
        "Even root is refused, so a container's device rules or a security module forbid it. "
        "Run iopstui on the host, or give the container the device (docker run "
        f"--device={quoted})"
    )
