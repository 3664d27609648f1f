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
        other = CpuHistory()
        other._samples = self._samples.copy()
        return other

    def add(self, t: float, seconds: float, rates: Mapping[int, float | None]) -> None:
        """Add an interval: completions per second by CPU (``None``: not counted)."""
        known = {cpu: rate for cpu, rate in sorted(rates.items()) if rate is not None}
        end = self.end
        if not known or seconds <= 0 or (end is not None and t <= end):
            return
        before = self._samples[-1].cpus if self._samples else ()
        cpus = tuple(known)
        # the same tuple for all samples of the same CPUs
        cpus = before if cpus == before else cpus
        self._samples.append(_Sample(t - seconds, t, cpus, array("f", known.values())))
        most = min(MAX_SAMPLES, max(60, MAX_VALUES // len(known)))
        while len(self._samples) > most:
            self._samples.popleft()

    def columns(self, start: float, column_s: float, count: int) -> list[dict[int, float] | None]:
        """For each of ``count`` columns from ``start`` on: the share (0..1) that each CPU has of
        all completions of the samples whose middle lies in it, CPUs with none left out; ``None``
        where there is no sample, empty where nothing was completed."""
        sums: list[dict[int, float] | None] = [None] * count
        for one in self._samples:
            at = int(((one.start + one.end) / 2 - start) // column_s)
            if 0 <= at < count:
                found = sums[at]
                if found is None:
                    found = sums[at] = {}
                seconds = one.end - one.start
                for cpu, rate in zip(one.cpus, one.values, strict=True):
                    if rate > 0:
                        found[cpu] = found.get(cpu, 0.0) + rate * seconds
        return [_shares(found) for found in sums]

    @property
    def cpus(self) -> Sequence[int]:
        """CPUs of the newest sample, in order."""
        return self._samples[-1].cpus if self._samples else ()


def _shares(found: dict[int, float] | None) -> dict[int, float] | None:
    if not found:
        return found
    total = sum(found.values())
    return {cpu: value / total for cpu, value in found.items()}
