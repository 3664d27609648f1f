"""The CPU of each thread of the running fio, and its CPU time (proc(5), sched(7))."""

from __future__ import annotations

import os
from dataclasses import dataclass

from iopstui.linux.process.processes import task_stat
from iopstui.model.samples import JobThread

MAX_THREADS = 64
MAX_WORKERS = 64
MAX_PROCESSES = 256
# fio's own threads: its main thread and the helper that prints the status
OWN_THREADS = 2
TICKS = os.sysconf("SC_CLK_TCK")
# threads that io_uring starts in a job's process: workers, and the thread that polls the queue
_IO_URING = b"iou-"
# fields of /proc/PID/stat, counted after the name: state, utime, stime ... processor, policy
_STATE = 0
_UTIME, _STIME, _NICE, _THREADS, _PROCESSOR, _POLICY = 11, 12, 16, 17, 36, 38


@dataclass(slots=True)
class _Workers:
    """How long a job's workers waited for a CPU: ``total_ns`` so far, and the ``last`` value of
    each worker that still runs. Workers come and go, so the difference of their sums would be
    wrong."""

    total_ns: int
    last: dict[str, int]


class JobThreads:
    """Follows the jobs of one fio. ``sample`` costs less than 0.1 ms per job; only the first
    ``MAX_THREADS`` jobs are followed. The waits of more than ``MAX_WORKERS`` workers are estimated
    from that many."""

    def __init__(self, fio_pid: int) -> None:
        self.fio_pid = fio_pid
        self._indexes: dict[int, int] = {}
        self._workers: dict[int, _Workers] = {}
        self._workers_left = MAX_WORKERS

    def block_io(self) -> tuple[int, int] | None:
        """Bytes that block devices have read and written for all of fio's processes so far;
        ``None`` if that can't be read, or for more than ``MAX_PROCESSES``. When a process ends, its
        count is added to its parent's (wait(2)), which is therefore read first; if a job ends in
        between, everything is read again."""
        for _ in range(2):
            try:
                with open(f"/proc/{self.fio_pid}/task/{self.fio_pid}/children") as file:
                    children = file.read().split()
                if len(children) > MAX_PROCESSES:
                    return None
                counts = [_block_io(pid) for pid in (str(self.fio_pid), *children)]
                return sum(read for read, _ in counts), sum(written for _, written in counts)
            except (OSError, ValueError, IndexError):
                continue
        return None

    def sample(self) -> tuple[JobThread, ...]:
        """The jobs that run now; empty before the jobs start and after fio has ended."""
        jobs: list[JobThread] = []
        self._workers_left = MAX_WORKERS
        tasks = f"/proc/{self.fio_pid}/task"
        try:
            with open(f"{tasks}/{self.fio_pid}/children") as file:
                children = sorted(int(word) for word in file.read().split())
            if not children:
                return self._threads(tasks)
        except (OSError, ValueError):
            return ()
        for pid in children[:MAX_THREADS]:
            try:
                jobs.append(self._process(pid))
            except (OSError, ValueError, IndexError):
                self._indexes.pop(pid, None)
        return tuple(jobs)

    def _process(self, pid: int) -> JobThread:
        """A job that is a process of its own; its other threads are workers."""
        _, fields = task_stat(f"/proc/{pid}")
        workers = []
        if int(fields[_THREADS]) > 1:
            tasks = f"/proc/{pid}/task"
            workers = [f"{tasks}/{tid}" for tid in os.listdir(tasks) if tid != str(pid)]
        return self._job(pid, f"/proc/{pid}", fields, workers)

    def _threads(self, tasks: str) -> tuple[JobThread, ...]:
        """Find fio's threads with the option ``thread``: all threads except fio's own and
        io_uring's."""
        jobs: list[tuple[int, list[bytes]]] = []
        workers: dict[bytes, list[str]] = {}
        for tid in sorted(map(int, os.listdir(tasks)))[OWN_THREADS:]:
            try:
                name, fields = task_stat(f"{tasks}/{tid}")
            except OSError:
                self._indexes.pop(tid, None)
                continue
            if name.startswith(_IO_URING):
                # "iou-wrk-1234" is a worker of task 1234
                workers.setdefault(name.rpartition(b"-")[2], []).append(f"{tasks}/{tid}")
            else:
                jobs.append((tid, fields))
        threads = []
        for tid, fields in jobs[:MAX_THREADS]:
            try:
                job_workers = workers.get(str(tid).encode(), [])
                threads.append(self._job(tid, f"{tasks}/{tid}", fields, job_workers))
            except (OSError, ValueError, IndexError):
                self._indexes.pop(tid, None)
        return tuple(threads)

    def _job(self, pid: int, place: str, fields: list[bytes], workers: list[str]) -> JobThread:
        busy_s = (int(fields[_UTIME]) + int(fields[_STIME])) / TICKS
        index = self._indexes.setdefault(pid, len(self._indexes))
        allowed = tuple(sorted(os.sched_getaffinity(pid)))
        waited = _cpu_wait_ns(place)
        return JobThread(
            index, pid, int(fields[_PROCESSOR]), allowed, busy_s, waited,
            self._workers_wait_ns(pid, workers), int(fields[_NICE]), int(fields[_POLICY]),
            fields[_STATE].decode("ascii", "replace"),
        )  # fmt: skip

    def _workers_wait_ns(self, pid: int, workers: list[str]) -> int | None:
        """How long all workers of a job waited for a CPU so far; ``None`` if it never had
        workers."""
        before = self._workers.get(pid)
        if before is None and not workers:
            return None
        sampled = workers[: self._workers_left]
        self._workers_left -= len(sampled)
        now = {place: waited for place in sampled if (waited := _cpu_wait_ns(place)) is not None}
        if before is None:
            before = self._workers[pid] = _Workers(sum(now.values()), now)
        increase = sum(max(0, waited - before.last.get(place, 0)) for place, waited in now.items())
        before.total_ns += increase * len(workers) // max(1, len(now))
        before.last = now
        return before.total_ns


def _block_io(pid: str) -> tuple[int, int]:
    """read_bytes and write_bytes of a process and its threads (proc_pid_io(5))."""
    fd = os.open(f"/proc/{pid}/io", os.O_RDONLY | os.O_CLOEXEC)
    try:
        words = os.read(fd, 500).split()
    finally:
        os.close(fd)
    return int(words[words.index(b"read_bytes:") + 1]), int(words[words.index(b"write_bytes:") + 1])


def _cpu_wait_ns(place: str) -> int | None:
    """How long a task was ready to run and waited for a CPU; ``None`` if the kernel does not
    account it (CONFIG_SCHED_INFO), or the task is gone."""
    try:
        # os.read takes half the time of a file object; this runs for each of many jobs each second
        fd = os.open(f"{place}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 100).split()[1])
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return None
