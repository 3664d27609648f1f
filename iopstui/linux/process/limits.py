"""Name an exhausted limit of a process or the machine, and explain how to raise it."""

from __future__ import annotations

import errno

_HINTS = {
    errno.EFBIG: "This shell limits the size of files: ulimit -f unlimited",
    errno.EMFILE: "This shell limits the number of open files: ulimit -n 1024",
    errno.ENFILE: "The machine limits the number of open files: sysctl fs.file-max",
    errno.EAGAIN: "The number of processes is limited: ulimit -u, or pids.max of the cgroup",
    errno.ENOMEM: "Memory is short or limited: free -m, ulimit -v",
}


def hint_for_limit(error: OSError, otherwise: str) -> str:
    """The hint for an OSError that a limit has caused; ``otherwise`` for any other."""
    return _HINTS.get(error.errno or 0, otherwise)
