"""Which CPU each job of the running fio is on, and how busy it is (psutil)."""

from __future__ import annotations

import psutil

from iopstui.model.samples import JobThread

MOST = 64
# fio's own: its main thread and the helper that prints the status
OWN_THREADS = 2


class JobThreads:
    """Follows the jobs of one fio. ``sample`` costs about 0.1 ms a job; above ``MOST`` jobs only
    the first ones are followed."""

    def __init__(self, fio_pid: int) -> None:
        self.fio_pid = fio_pid
        self._known: dict[int, tuple[int, psutil.Process]] = {}

    def sample(self) -> tuple[JobThread, ...]:
        """The jobs that run now; empty before they start and when fio is gone."""
        found = []
        for pid, busy_s in self._pids()[:MOST]:
            try:
                found.append(self._one(pid, busy_s))
            except (psutil.Error, OSError):
                self._known.pop(pid, None)
        return tuple(found)

    def _one(self, pid: int, busy_s: float | None) -> JobThread:
        if pid not in self._known:
            self._known[pid] = (len(self._known), psutil.Process(pid))
        index, process = self._known[pid]
        with process.oneshot():
            cpu = process.cpu_num()
            if busy_s is None:
                times = process.cpu_times()
                busy_s = times.user + times.system
        allowed = tuple(sorted(process.cpu_affinity()))
        return JobThread(index, pid, cpu, allowed, busy_s)

    def _pids(self) -> list[tuple[int, float | None]]:
        """fio's children, or with the option ``thread`` the threads that are not its own, these
        with their CPU time: the number of a thread gives its whole process's."""
        try:
            with open(f"/proc/{self.fio_pid}/task/{self.fio_pid}/children") as file:
                children = sorted(int(word) for word in file.read().split())
            if children:
                return [(pid, None) for pid in children]
            threads = psutil.Process(self.fio_pid).threads()
        except (psutil.Error, OSError, ValueError):
            return []
        known = sorted((one.id, one.user_time + one.system_time) for one in threads)
        return [(tid, busy_s) for tid, busy_s in known[OWN_THREADS:]]
