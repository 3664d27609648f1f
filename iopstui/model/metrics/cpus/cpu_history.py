"""CPUs that completed I/O in each second: shows the effect of rq_affinity."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_SAMPLES = 1200
MAX_VALUES = 200_000
"""Samples times CPUs: on a large machine fewer seconds are kept (1 MB)."""


@dataclass(frozen=True, slots=True)
class _Sample:
    start: float
    end: float
    cpus: tuple[int, ...]
    values: array[float]


class CpuHistory:
    """History of completions by CPU. ``add`` needs increasing ``t``; older or equal times are
    dropped."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    @property
    def end(self) -> float | None:
        """When the newest sample ended."""
        return self._samples[-1].end if self._samples else None

    def copy(self) -> CpuHistory:
        """A copy of the current history, unaffected by later additions."""
        history = CpuHistory()
        history._samples = self._samples.copy()
        return history

    def add(self, t: float, seconds: float, rates: Mapping[int, float | None]) -> None:
        """Add an interval: completions per second by CPU (``None``: not counted)."""
        counted = {cpu: rate for cpu, rate in sorted(rates.items()) if rate is not None}
        end = self.end
        if not counted or seconds <= 0 or (end is not None and t <= end):
            return
        before = self._samples[-1].cpus if self._samples else ()
        cpus = tuple(counted)
        # the same tuple for all samples of the same CPUs
        cpus = before if cpus == before else cpus
        self._samples.append(_Sample(t - seconds, t, cpus, array("f", counted.values())))
        max_samples = min(MAX_SAMPLES, max(60, MAX_VALUES // len(counted)))
        while len(self._samples) > max_samples:
            self._samples.popleft()

    def columns(self, start: float, column_s: float, count: int) -> list[dict[int, float] | None]:
        """For each of ``count`` columns from ``start`` on: the share (0..1) that each CPU has of
        all completions of the samples whose middle lies in it, CPUs with none left out; ``None``
        where there is no sample, empty where nothing was completed."""
        sums: list[dict[int, float] | None] = [None] * count
        for sample in self._samples:
            at = int(((sample.start + sample.end) / 2 - start) // column_s)
            if 0 <= at < count:
                sums_by_cpu = sums[at]
                if sums_by_cpu is None:
                    sums_by_cpu = sums[at] = {}
                seconds = sample.end - sample.start
                for cpu, rate in zip(sample.cpus, sample.values, strict=True):
                    if rate > 0:
                        sums_by_cpu[cpu] = sums_by_cpu.get(cpu, 0.0) + rate * seconds
        return [_shares(column) for column in sums]

    @property
    def cpus(self) -> Sequence[int]:
        """CPUs of the newest sample, in order."""
        return self._samples[-1].cpus if self._samples else ()


def _shares(sums: dict[int, float] | None) -> dict[int, float] | None:
    if not sums:
        return sums
    total = sum(sums.values())
    return {cpu: value / total for cpu, value in sums.items()}
