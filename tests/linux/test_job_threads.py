"""Jobs of a fio that is played: processes, or threads of one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from iopstui.linux.process.job_threads import OWN_THREADS, JobThreads

FORKS = """
import os, sys
pids = []
for _ in range(3):
    pids.append(os.fork())
    if pids[-1] == 0:
        sys.stdin.read()
        os._exit(0)
print(*pids, flush=True)
sys.stdin.read()
for _ in range(3):
    os.wait()
"""
THREADS = """
import sys, threading
for _ in range(4):
    threading.Thread(target=sys.stdin.read if _ == 0 else threading.Event().wait,
                     daemon=True).start()
print("ready", flush=True)
threading.Event().wait(60)
"""


@contextmanager
def played(source: str) -> Iterator[tuple[int, str]]:
    """The process and the line it says when it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdin is not None
        yield process.pid, process.stdout.readline()
        process.stdin.close()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_each_job_process_with_its_cpus() -> None:
    with played(FORKS) as (pid, said):
        jobs = JobThreads(pid)
        first = jobs.sample()
        assert [j.pid for j in first] == sorted(map(int, said.split()))
        assert [j.index for j in first] == [0, 1, 2]
        usable = tuple(sorted(os.sched_getaffinity(0)))
        assert all(j.allowed == usable and j.cpu >= 0 and j.busy_s >= 0 for j in first)
        assert [j.index for j in jobs.sample()] == [0, 1, 2]


def test_threads_of_one_process_without_fio_s_own() -> None:
    with played(THREADS) as (pid, _):
        found = JobThreads(pid).sample()
        assert len(found) == 5 - OWN_THREADS
        assert pid not in [job.pid for job in found]


def test_a_fio_that_is_gone_has_no_jobs() -> None:
    with played(FORKS) as (pid, _):
        jobs = JobThreads(pid)
        assert len(jobs.sample()) == 3
    assert jobs.sample() == ()
