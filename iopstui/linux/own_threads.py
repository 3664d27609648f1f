"""This process's own threads: clock, CPUs and priority, and background readers.

CPUs and priority are properties of a thread, inherited by the threads and processes it starts."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar


class Clock:
    """Clocks: monotonic nanoseconds for intervals, wall milliseconds for labels."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    def wall_ms(self) -> float:
        """Milliseconds since the epoch."""
        return time.time() * 1000

    def own_busy_s(self) -> float:
        """User and system time of all threads of this process so far (CLOCK_PROCESS_CPUTIME_ID)."""
        return time.process_time()


@lru_cache(maxsize=1)
def initial_cpus() -> frozenset[int]:
    """The CPUs that iopstui was started on, before it restricted itself to some; fio gets these."""
    return frozenset(os.sched_getaffinity(0))


def current_cpus() -> frozenset[int]:
    """The CPUs that the calling thread may run on."""
    return frozenset(os.sched_getaffinity(0))


def pin(cpus: Collection[int]) -> None:
    """Restrict all threads of iopstui to ``cpus``. Raises OSError if none of them can be used."""
    initial_cpus()
    for thread in _threads():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cpus)


@contextlib.contextmanager
def unpinned() -> Iterator[None]:
    """Let threads and processes started in this context use every CPU that iopstui was given."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, initial_cpus())
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


def renice_others(nice: int) -> None:
    """Lower the priority of all threads but this one, and of all threads that they start, to
    ``nice``, unless it is already lower."""
    for thread in _threads():
        if thread != threading.get_native_id():
            with contextlib.suppress(ProcessLookupError):
                if os.getpriority(os.PRIO_PROCESS, thread) < nice:
                    os.setpriority(os.PRIO_PROCESS, thread, nice)


def _threads() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/task")]


# Commands that end when the process that started them ends, however it ends.


END_TIMEOUT_S = 15.0
# prctl(PR_SET_PDEATHSIG, SIGTERM) comes too late if the parent has already ended
_TIE = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    os._exit(143)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""


def tied_command(command: Sequence[str]) -> list[str]:
    """``command``, wrapped so that it gets a SIGTERM when the thread that starts it has ended."""
    return [sys.executable, "-I", "-S", "-c", _TIE, str(os.getpid()), *command]


@contextlib.contextmanager
def tied_process(
    command: Sequence[str], cwd: Path | None = None, **streams: Any
) -> Iterator[subprocess.Popen[str]]:
    """Start ``command`` without input; end it if it still runs when the block is left. It gets time
    to undo its changes. Raises OSError."""
    process = subprocess.Popen(
        tied_command(command), cwd=cwd, stdin=subprocess.DEVNULL, text=True, **streams
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_TIMEOUT_S)
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class BackgroundReader:
    """Reads in a thread of its own, one reading at a time: a disk, drive or server that hangs
    blocks nothing else. To be used by one thread."""

    name: ClassVar[str]
    """The name of the thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def _is_reading(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _begin(self, read: Callable[..., None], *arguments: object) -> bool:
        """Begin a reading; return False while another one is under way, or if no more threads are
        allowed."""
        if self._closed or self._is_reading:
            return False
        thread = threading.Thread(target=read, args=arguments, name=self.name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the limit of threads is reached: try again later
            return False
        self._thread = thread
        return True

    def _wait(self, seconds: float | None = None) -> bool:
        """Wait up to ``seconds`` for a current reading (``None``: until it ends); False if it has
        not ended."""
        if self._thread is not None:
            self._thread.join(seconds)
        return not self._is_reading

    def close(self) -> None:
        """Begin no more readings. Does not wait for a current one."""
        self._closed = True
