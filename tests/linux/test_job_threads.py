"""Jobs of a fake fio: processes, or threads of one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from iopstui.linux.process import job_threads
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
    """The process number, and the line that it prints when it is ready."""
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


WORKERS = """
import os, sys, threading
pid = os.fork()
if pid == 0:
    for _ in range(3):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
sys.stdin.read()
os.wait()
"""


def schedstat(place: str) -> int:
    """The time that a thread waited for a CPU, as the kernel counts it."""
    with open(f"{place}/schedstat") as file:
        return int(file.read().split()[1])


def test_a_job_s_workers_wait_for_a_cpu_too() -> None:
    with played(WORKERS) as (pid, said):
        first, place = JobThreads(pid).sample()[0], f"/proc/{int(said)}"
        workers = [task for task in os.listdir(f"{place}/task") if task != said.strip()]
        total = sum(schedstat(f"{place}/task/{task}") for task in workers)
        assert len(workers) == 3
        assert first.cpu_wait_ns is not None and first.cpu_wait_ns <= schedstat(place)
        assert first.workers_wait_ns is not None and 0 <= first.workers_wait_ns <= total


def test_a_job_without_workers_has_no_waits_of_them() -> None:
    with played(FORKS) as (pid, _):
        assert {job.workers_wait_ns for job in JobThreads(pid).sample()} == {None}


def test_workers_that_come_and_go_never_make_the_sum_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three workers; then one has ended, one is new, one has waited longer, and one has not."""
    waits = {"1": 100, "2": 200, "3": 300}
    monkeypatch.setattr(job_threads, "_cpu_wait_ns", waits.get)
    jobs = JobThreads(1)
    jobs._workers_left = 10
    assert jobs._workers_wait_ns(7, ["1", "2", "3"]) == 600
    waits.update({"2": 250, "4": 40})
    del waits["1"]
    assert jobs._workers_wait_ns(7, ["2", "3", "4"]) == 600 + 50 + 40
    assert jobs._workers_wait_ns(7, []) == 690
    assert jobs._workers_wait_ns(8, []) is None


def test_of_many_workers_the_first_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_threads, "_cpu_wait_ns", lambda place: read.append(place) or waited)
    jobs, read, waited = JobThreads(1), [], 0
    jobs._workers_left = 2
    jobs._workers_wait_ns(7, ["a", "b", "c", "d"])
    waited, jobs._workers_left = 100, 2
    assert jobs._workers_wait_ns(7, ["a", "b", "c", "d"]) == 400
    assert read == ["a", "b"] * 2


IO_URING = """
import ctypes, os, sys, threading
name = ctypes.CDLL(None).prctl
tids = []

def job():
    tids.append(threading.get_native_id())
    threading.Event().wait()

def worker(of):
    name(15, b"iou-wrk-%d" % of, 0, 0, 0)
    ready.set()
    threading.Event().wait()

threading.Thread(target=threading.Event().wait, daemon=True).start()
for _ in range(2):
    threading.Thread(target=job, daemon=True).start()
while len(tids) < 2:
    pass
for of in (*tids, tids[1]):
    ready = threading.Event()
    threading.Thread(target=worker, args=(of,), daemon=True).start()
    ready.wait()
print(*tids, flush=True)
sys.stdin.read()
"""


def test_io_uring_s_threads_are_workers_of_a_job_and_no_jobs() -> None:
    with played(IO_URING) as (pid, said):
        jobs = JobThreads(pid)
        first = jobs.sample()
        assert [job.pid for job in first] == [int(word) for word in said.split()]
        assert None not in [job.workers_wait_ns for job in first]
        assert jobs._workers_left == job_threads.MAX_WORKERS - 3


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


def test_bytes_on_block_devices_are_those_of_all_processes() -> None:
    with played(FORKS) as (pid, said):
        jobs = JobThreads(pid)
        counted = jobs.block_io()
        if not Path(f"/proc/{pid}/io").exists():
            assert counted is None
            return
        each = [psutil.Process(one).io_counters() for one in (pid, *map(int, said.split()))]
        assert counted == (sum(io.read_bytes for io in each), sum(io.write_bytes for io in each))
    assert jobs.block_io() is None
