"""The CPUs and the priority of iopstui's own threads (sched_setaffinity(2), setpriority(2)).

Both belong to a single thread and are inherited by the threads and processes it starts.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterator
from functools import lru_cache


@lru_cache(maxsize=1)
def initial_cpus() -> frozenset[int]:
    """The CPUs that iopstui was started on, before it confined itself; fio gets these."""
    return frozenset(os.sched_getaffinity(0))


def current_cpus() -> frozenset[int]:
    """The CPUs that the calling thread may run on."""
    return frozenset(os.sched_getaffinity(0))


def pin(cpus: Collection[int]) -> None:
    """Confine all threads of iopstui to ``cpus``. Raises OSError if none of them can be used."""
    initial_cpus()
    for thread in _threads():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cpus)


@contextlib.contextmanager
def unpinned() -> Iterator[None]:
    """Let threads and processes started meanwhile use every CPU that iopstui was given."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, initial_cpus())
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


def renice_others(nice: int) -> None:
    """Lower the priority of all threads but this one, and so of all threads they start, to
    ``nice``; one that is lower already stays."""
    for thread in _threads():
        if thread != threading.get_native_id():
            with contextlib.suppress(ProcessLookupError):
                if os.getpriority(os.PRIO_PROCESS, thread) < nice:
                    os.setpriority(os.PRIO_PROCESS, thread, nice)


def _threads() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/task")]
