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


def test_how_long_a_job_waited_for_a_cpu_is_the_kernel_s_figure() -> None:
    def waited(pid: int) -> int:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1])

    with played(FORKS) as (pid, said):
        jobs = JobThreads(pid)
        for one, job in zip(map(int, said.split()), jobs.sample(), strict=True):
            before = waited(one)
            assert job.cpu_wait_ns is not None and 0 <= job.cpu_wait_ns <= before


def test_a_job_s_workers_wait_for_a_cpu_too() -> None:
    workers = "import threading,sys\n" + "".join(
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n" for _ in range(3)
    )
    source = (
        "import os, sys\npid = os.fork()\nif pid == 0:\n"
        + "".join(f"    {line}\n" for line in workers.splitlines())
        + "    print(os.getpid(), flush=True)\n    sys.stdin.read()\n    os._exit(0)\n"
        "sys.stdin.read()\nos.wait()\n"
    )
    with played(source) as (pid, said):
        job = JobThreads(pid).sample()[0]
        tasks = os.listdir(f"/proc/{int(said)}/task")
        total = 0
        for task in tasks:
            with open(f"/proc/{int(said)}/task/{task}/schedstat") as file:
                total += int(file.read().split()[1])
        assert len(tasks) == 4 and job.cpu_wait_ns is not None and job.cpu_wait_ns <= total


def test_how_the_scheduler_treats_a_job() -> None:
    source = (
        FORKS.replace(
            "        sys.stdin.read()",
            """        os.nice(7)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        os.write(ready[1], b"x")
        sys.stdin.read()""",
        )
        .replace("pids = []", "pids = []\nready = os.pipe()")
        .replace(
            "print(*pids",
            "os.read(ready[0], 1), os.read(ready[0], 1), os.read(ready[0], 1)\nprint(*pids",
        )
    )
    with played(source) as (pid, _):
        niced = os.getpriority(os.PRIO_PROCESS, 0) + 7
        for job in JobThreads(pid).sample():
            assert (job.nice, job.policy) == (min(niced, 19), os.SCHED_IDLE)
