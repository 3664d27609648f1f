"""Name an exhausted limit of a process or the machine, and explain how to raise it."""

from __future__ import annotations

import errno
import os

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
"""How many open files a command needs; the screen needs the most."""
DESCRIPTORS = 1024


def hint_for_limit(error: OSError, otherwise: str) -> str:
    """The hint for an OSError that a limit has caused; ``otherwise`` for any other."""
    return _HINTS.get(error.errno or 0, otherwise)


def exhausted_limit(error: BaseException) -> str:
    """Which limit has caused an error, and how to raise it; "" for any other error."""
    number = error.errno or 0 if isinstance(error, OSError) else 0
    is_unmapped = isinstance(error, ImportError) and str(error).endswith(_UNMAPPED)
    if isinstance(error, MemoryError) or is_unmapped:
        number = errno.ENOMEM
    # Python does not keep the kernel's reason
    elif isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        number = errno.EAGAIN
    return f"{os.strerror(number)}. {_HINTS[number]}" if number in _HINTS else ""


def ensure_descriptors() -> str:
    """If the limit of open files is too low for any command, raise it within the hard limit.
    Returns "" if it suffices then, else what is wrong and how to raise it. Near the limit every
    import and every open may fail."""
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
