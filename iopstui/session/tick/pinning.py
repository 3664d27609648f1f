"""Check that fio's jobs stay on their assigned CPUs.

The kernel frees a task whose last CPU goes offline: it may run anywhere from then on, and nobody
is told (sched_setaffinity(2), cpuset's fallback)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from iopstui.format import ranges
from iopstui.model.samples import JobThread


class Pinning:
    """Checks the CPUs of one run's jobs."""

    def __init__(self) -> None:
        self._bound: dict[int, frozenset[int]] = {}
        self._samples: dict[int, int] = {}
        self._reported: set[int] = set()

    def feed(self, jobs: Sequence[JobThread], online: Callable[[], Sequence[int]]) -> Iterator[str]:
        """State changes of the jobs since the last sample, in words; one message a job. ``online``
        reads which CPUs are, if that matters."""
        for job in jobs:
            now, samples = frozenset(job.allowed), self._samples.get(job.pid, 0)
            self._samples[job.pid] = samples + 1
            # a job binds itself a moment after it was started
            if samples < 2 and now <= self._bound.get(job.pid, now):
                self._bound[job.pid] = now
            elif job.pid not in self._reported and not now <= self._bound[job.pid]:
                self._reported.add(job.pid)
                before = self._bound[job.pid]
                offline = before.isdisjoint(online())
                yield (
                    f"job {job.index} (process {job.pid}) is no longer bound to CPU "
                    f"{ranges(before)}{', which is offline' if offline else ''}: it may now run "
                    f"on CPU {ranges(now)}"
                )
