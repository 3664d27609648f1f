"""Identify the process that created something; PIDs alone are ambiguous after exit (proc(5))."""

from __future__ import annotations

import os
import pwd
import threading
import time
from collections.abc import Callable
from functools import lru_cache

from iopstui.format import cut
from iopstui.linux.kernel_files import decode, read_bytes
from iopstui.text import printable

COMMAND_WIDTH = 48
_DEAD = (b"Z", b"X", b"x")


def start_time(pid: int) -> int | None:
    """When a process began, in clock ticks since boot (starttime); None if it is gone or a zombie
    (its exit code was not read yet)."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in _DEAD else None


def cpu_s(pid: int) -> float | None:
    """User and system time of one of our processes so far, in seconds and more precise than proc(5)
    (clock_getcpuclockid(3)); None if it is gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def thread_cpu_s(thread: threading.Thread) -> float:
    """CPU time of one of our threads so far, in seconds; 0 before its start and after its end."""
    tid = thread.native_id
    try:
        # pthread_getcpuclockid(3) would crash with a thread that has just ended
        return time.clock_gettime((~tid << 3) | 6) if tid is not None else 0.0
    except OSError:
        return 0.0


def parent(pid: int) -> int:
    """PID of a process's parent; 0 if it has none or is gone."""
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def state(pid: int) -> str:
    """The state of a process: R, S, D, T, Z ... (proc(5)); "" if it is gone."""
    return b"".join(_stat(pid)[:1]).decode("ascii", "replace")


def written_bytes(pid: int) -> int | None:
    """Bytes that a process passed to write(2) and similar calls so far (wchar); ``None`` if
    unknown."""
    return _io_count(pid, "wchar:")


def stored_bytes(pid: int) -> int | None:
    """Bytes that a process caused to be sent to a device so far, through the page cache or not
    (write_bytes, proc_pid_io(5)); ``None`` if unknown."""
    return _io_count(pid, "write_bytes:")


def _io_count(pid: int, name: str) -> int | None:
    try:
        with open(f"/proc/{pid}/io") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def moved_bytes(place: str) -> int:
    """Bytes moved so far for the process or thread with this directory in /proc: the bytes that
    devices have read and written for it, plus the bytes that it passed to read(2), write(2) and the
    like (proc_pid_io(5)); 0 if unknown."""
    counters = ("rchar:", "wchar:", "read_bytes:", "write_bytes:")
    try:
        with open(f"{place}/io") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(counters))
    except (OSError, ValueError, IndexError):
        return 0


def waits_for_cpu(pid: int) -> bool:
    """Whether the process runs, or would run if it had a CPU."""
    return _stat(pid)[:1] == [b"R"]


def process_of(pid: int, proc: str = "/proc") -> int:
    """The process of a thread; 0 if it is a process itself, or gone."""
    try:
        with open(f"{proc}/{pid}/status", "rb") as file:
            number = next(int(line.split()[1]) for line in file if line.startswith(b"Tgid:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return 0
    return number if number != pid else 0


def is_within(pid: int, top: int, parent_of: Callable[[int], int]) -> bool:
    """Whether a process is ``top`` or one below it. ``parent_of`` returns 0 for a process that is
    gone."""
    seen: set[int] = set()
    while pid > 0 and pid not in seen:
        if pid == top:
            return True
        seen.add(pid)
        pid = parent_of(pid)
    return False


def children(pid: int, proc: str = "/proc") -> tuple[int, ...]:
    """Direct children of a process's main thread; see ``children_of``."""
    return children_of(f"{proc}/{pid}/task/{pid}")


def children_of(place: str) -> tuple[int, ...]:
    """Direct children of the thread with this directory in /proc (proc_pid_task(5)); empty if it is
    gone or the kernel does not list them."""
    try:
        with open(f"{place}/children") as file:
            return tuple(int(pid) for pid in file.read().split())
    except OSError:
        return ()


def task_stat(place: str) -> tuple[bytes, list[bytes]]:
    """The name of the process or thread with this directory in /proc, and the fields of its stat
    from the third on (proc(5)). Raises OSError."""
    # the name is in brackets and may contain anything
    with open(f"{place}/stat", "rb") as file:
        head, _, fields = file.read().rpartition(b")")
    return head.partition(b"(")[2], fields.split()


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the third on; empty if it is gone."""
    try:
        fields = task_stat(f"/proc/{pid}")[1]
    except OSError:
        return []
    return fields if len(fields) > 19 else []


def is_hidden(pid: int) -> bool:
    """Whether this process exists but belongs to another user, so that ``/proc`` (hidepid) does not
    show it."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        pass
    return False


def command_of(place: str, width: int = COMMAND_WIDTH) -> str:
    """The command line of the process with this directory in /proc, cut to ``width`` characters; ""
    for a kernel thread, or if the process is gone."""
    words = decode(read_bytes(f"{place}/cmdline") or b"").split("\0")
    text = printable(" ".join(filter(None, [os.path.basename(words[0]), *words[1:]])))
    return cut(text, width)


def user_of(place: str) -> str:
    """The user of the process with this directory in /proc; "" if it is gone."""
    try:
        return _user_name(os.stat(place).st_uid)
    except OSError:
        return ""


@lru_cache(256)
def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
