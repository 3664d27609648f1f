"""Which CPU each job of the running fio is on, and how busy it is (proc(5), sched(7))."""

from __future__ import annotations

import os

from iopstui.model.samples import JobThread

MOST = 64
# fio's own: its main thread and the helper that prints the status
OWN_THREADS = 2
TICKS = os.sysconf("SC_CLK_TCK")
# of /proc/PID/stat, counted from behind the name: utime, stime ... processor, policy
_UTIME, _STIME, _NICE, _THREADS, _PROCESSOR, _POLICY = 11, 12, 16, 17, 36, 38


class JobThreads:
    """Follows the jobs of one fio. ``sample`` costs less than 0.1 ms a job; above ``MOST`` jobs
    only the first ones are followed."""

    def __init__(self, fio_pid: int) -> None:
        self.fio_pid = fio_pid
        self._known: dict[int, int] = {}

    def sample(self) -> tuple[JobThread, ...]:
        """The jobs that run now; empty before they start and when fio is gone."""
        found = []
        for pid, place in self._places()[:MOST]:
            try:
                found.append(self._one(pid, place))
            except (OSError, ValueError, IndexError):
                self._known.pop(pid, None)
        return tuple(found)

    def _one(self, pid: int, place: str) -> JobThread:
        with open(f"{place}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        busy_s = (int(fields[_UTIME]) + int(fields[_STIME])) / TICKS
        index = self._known.setdefault(pid, len(self._known))
        allowed = tuple(sorted(os.sched_getaffinity(pid)))
        waited = _cpu_wait_ns(place, int(fields[_THREADS]) if "/task/" not in place else 1)
        return JobThread(
            index, pid, int(fields[_PROCESSOR]), allowed, busy_s, waited,
            int(fields[_NICE]), int(fields[_POLICY]),
        )  # fmt: skip

    def _places(self) -> list[tuple[int, str]]:
        """fio's children, or with the option ``thread`` the threads that are not its own, and
        where /proc has each."""
        tasks = f"/proc/{self.fio_pid}/task"
        try:
            with open(f"{tasks}/{self.fio_pid}/children") as file:
                children = sorted(int(word) for word in file.read().split())
            if children:
                return [(pid, f"/proc/{pid}") for pid in children]
            threads = sorted(int(name) for name in os.listdir(tasks))
        except (OSError, ValueError):
            return []
        return [(tid, f"{tasks}/{tid}") for tid in threads[OWN_THREADS:]]


def _cpu_wait_ns(place: str, threads: int) -> int | None:
    """How long the job was runnable and waited for a CPU; of a process with workers, all of them.
    ``None`` where the kernel does not account it (CONFIG_SCHED_INFO)."""
    places = [place]
    if threads > 1:
        places = [f"{place}/task/{tid}" for tid in os.listdir(f"{place}/task")]
    total = 0
    for one in places:
        try:
            with open(f"{one}/schedstat", "rb") as file:
                total += int(file.read().split()[1])
        except (OSError, ValueError, IndexError):
            if one == place:
                return None
    return total
