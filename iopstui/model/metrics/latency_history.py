"""Bounded history of latency histograms per second for the heat map, with gaps.

fio's bins (1.6 % wide) are put into coarser steps of the same logarithmic kind, so that an hour
of seconds and a day of minutes fit into a few megabytes that never grow."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from copy import copy

from iopstui.model.histogram import Bins, add

STEPS_PER_DECADE = 48
RAW_SAMPLES = 3600
FOLD_S = 60.0
FOLDED_SAMPLES = 1440
MAX_32, MAX_64 = (1 << 32) - 1, (1 << 64) - 1

Steps = Mapping[int, int]


def step_of(latency_ns: int) -> int:
    return math.floor(STEPS_PER_DECADE * math.log10(max(latency_ns, 1)))


def middle_of(step: int) -> float:
    """The latency (ns) in the middle of a step."""
    return float(10 ** ((step + 0.5) / STEPS_PER_DECADE))


class _Ring:
    """Intervals with their counts by step, in a few long arrays: thousands of small objects would
    take twice the memory and fragment it."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.starts, self.ends = array("d"), array("d")
        self._steps, self._counts = array("h"), array("I")
        # where each interval's steps end, including dropped intervals
        self._step_ends = array("q")
        self._dropped_steps = 0

    def add(self, start: float, end: float, steps: Steps) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self._steps.extend(steps)
        if max(steps.values(), default=0) > MAX_32 and self._counts.typecode == "I":
            # counts of 64 bits, once one needs them
            self._counts = array("Q", self._counts)
        self._counts.extend(min(count, MAX_64) for count in steps.values())
        self._step_ends.append(self._dropped_steps + len(self._steps))
        surplus = len(self.starts) - self._capacity
        if surplus > self._capacity // 8:
            first = self._first_step(surplus)
            for column in (self.starts, self.ends, self._step_ends):
                del column[:surplus]
            for part in (self._steps, self._counts):
                del part[:first]
            self._dropped_steps += first

    def _first_step(self, index: int) -> int:
        return self._step_ends[index - 1] - self._dropped_steps if index else 0

    def copy(self) -> _Ring:
        ring = copy(self)
        for name in ("starts", "ends", "_steps", "_counts", "_step_ends"):
            setattr(ring, name, getattr(self, name)[:])
        return ring

    def between(self, low: float, high: float) -> list[int]:
        """Indices of the intervals whose middle lies in the span; without any, of the interval that
        covers the span's middle."""
        middle = (low + high) / 2
        inside, covering = [], []
        index = bisect_left(self.ends, low)
        while index < len(self.starts) and self.starts[index] < high:
            begin, end = self.starts[index], self.ends[index]
            if low <= (begin + end) / 2 < high:
                inside.append(index)
            if begin <= middle < end:
                covering.append(index)
            index += 1
        return inside or covering

    def sum(self, indices: Iterable[int]) -> dict[int, int]:
        """The counts of these intervals by step."""
        total: dict[int, int] = {}
        for index in indices:
            entries = slice(self._first_step(index), self._first_step(index + 1))
            for step, count in zip(self._steps[entries], self._counts[entries], strict=True):
                total[step] = total.get(step, 0) + count
        return total


class LatencyHistory:
    """History of latency histograms. ``add`` needs increasing ``t``; older or equal times are
    dropped."""

    def __init__(
        self,
        raw_samples: int = RAW_SAMPLES,
        fold_s: float = FOLD_S,
        folded_samples: int = FOLDED_SAMPLES,
    ) -> None:
        self._raw = _Ring(raw_samples)
        self._folded = _Ring(folded_samples)
        self._fold_s = fold_s
        self._fold: dict[int, int] = {}
        self._fold_start = 0.0
        self._steps: dict[int, int] = {}

    @property
    def end(self) -> float | None:
        """When the newest histogram ended."""
        return self._raw.ends[-1] if self._raw.ends else None

    def copy(self) -> LatencyHistory:
        """A copy of the current history, unaffected by later additions."""
        history = copy(self)
        history._raw, history._folded = self._raw.copy(), self._folded.copy()
        history._fold, history._steps = dict(self._fold), dict(self._steps)
        return history

    def add(self, t: float, seconds: float, bins: Bins) -> None:
        """Add the histogram (ns -> I/Os) of the interval that ended at ``t``. An empty one is a
        gap."""
        end = self.end
        if seconds <= 0 or not bins or (end is not None and t <= end):
            return
        start = t - seconds if end is None else max(t - seconds, end)
        step_by_bin = self._steps
        if not bins.keys() <= step_by_bin.keys():
            step_by_bin.update({key: step_of(key) for key in bins if key not in step_by_bin})
        # saves a method call for each of hundreds of bins a second
        at = [*map(step_by_bin.__getitem__, bins)]
        steps = dict.fromkeys(at, 0)
        for step, count in zip(at, bins.values(), strict=True):
            steps[step] += count
        self._raw.add(start, t, steps)
        if self._fold and start >= self._fold_start + self._fold_s:
            self._folded.add(self._fold_start, end or start, self._fold)
            self._fold = {}
        if not self._fold:
            self._fold_start = start
        add(self._fold, steps)

    def column(self, low: float, high: float) -> dict[int, int] | None:
        """I/Os by step between two moments; ``None`` where nothing was measured."""
        raw = self._raw
        older = bool(raw.starts) and low < raw.starts[0] and bool(self._folded.starts)
        ring = self._folded if older else raw
        indices = ring.between(low, high)
        return ring.sum(indices) if indices else None
