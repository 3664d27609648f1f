"""Which rate to measure next, and when there is an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from iopstui.features.limit.model.estimate import DECIDED, Estimate, Run, estimate

SHORT_S, LONG_S = 5.0, 12.0
"""Measured seconds of a run that looks for the bracket, and of one near the limit."""
UP, DOWN, APART, BEYOND = 1.35, 2.0, 1.25, 1.05
NARROW = 0.045
"""Half of the interval, as a share of its middle: narrow enough to end."""
NEAR = 0.25
PLACES = (0.5, 0.2, 0.8)
"""Where in the interval the next rates are."""
MIN_NEAR = 3
SLOWED = 0.9
"""A device that falls behind at less than this share of what it did before is slower now."""
LIKELY = 3.84
"""Twice the log-likelihood ratio of 95 %."""
REPEATED = 2
"""Times in a row that runs may be disturbed before a lower rate is tried."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to run next."""

    rate: float
    seconds: float


@dataclass
class Search:
    """``first`` is the rate to begin with, ``lowest`` the one below which nobody looks, and
    ``capacity`` the most I/Os per second that the device has completed."""

    first: float
    lowest: float
    capacity: float
    runs: list[Run] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    """What a run contradicts of the runs before it."""
    disturbed: list[float] = field(default_factory=list)
    """Rates of runs that something else disturbed, since one as fast was not."""
    _found: Estimate | None = None

    @property
    def is_never_kept(self) -> bool:
        """Whether even the lowest rate certainly fails."""
        lowest = [run.evidence() for run in self.runs if run.asked <= self.lowest * 1.01]
        return sum(lowest) >= DECIDED

    def add(self, run: Run) -> None:
        """Count a run. Where it contradicts those before it, the device has changed, and what it
        did before counts no longer."""
        self.disturbed = [rate for rate in self.disturbed if rate > run.asked]
        most, self.capacity = self.capacity, max(self.capacity, run.rate)
        self.runs = [replace(each, capacity=self.capacity) for each in (*self.runs, run)]
        change, first = self._change(self.runs[-1], most)
        if change:
            self.changes.append(change)
            self.capacity = run.rate
            self.runs = [replace(each, capacity=run.rate) for each in self.runs[first:]]
        self._found = estimate(self.runs)

    def _change(self, run: Run, most: float) -> tuple[str, int]:
        """What has changed ("": nothing), and the first run that is about the device as it is."""
        if run.is_behind and run.asked < SLOWED * most:
            return (f"{most:,.0f}/s were completed, and later only {run.rate:,.0f} of "
                    f"{run.asked:,.0f}/s"), len(self.runs) - 1  # fmt: skip
        before = [n for n, other in enumerate(self.runs[:-1])
                  if other.share <= other.allowed and other.asked >= run.asked * 1.02]  # fmt: skip
        evidence = -sum(self.runs[n].evidence() for n in before)
        if run.keeps is False and evidence >= LIKELY:
            return (f"{self.runs[before[-1]].asked:,.0f}/s kept the bound, and later "
                    f"{run.asked:,.0f}/s did not"), before[-1] + 1  # fmt: skip
        return "", 0

    def estimate(self) -> Estimate | None:
        """By the runs so far."""
        return self._found

    @property
    def ceiling(self) -> float:
        """The rate from which on runs are disturbed again and again."""
        return min(self.disturbed) if len(self.disturbed) >= REPEATED else math.inf

    def next(self) -> Step | None:
        """The next run; ``None``: the answer is narrow enough, or there is none below."""
        step, ceiling = self._wanted(), self.ceiling
        if step is None or step.rate < ceiling:
            return step
        # what disturbs may do no harm at a lower rate, where hardly an I/O is slow
        kept = [run.asked for run in self.runs if run.asked < ceiling and run.share <= run.allowed]
        rate = math.sqrt(max(kept) * ceiling) if kept else ceiling / DOWN
        is_found = kept and ceiling < max(kept) * APART
        return None if is_found or rate < self.lowest else Step(rate, step.seconds)

    def _wanted(self) -> Step | None:
        """The next run, if nothing is disturbed."""
        if not self.runs:
            return Step(self.first, SHORT_S)
        found = self._found
        assert found is not None
        rates = [run.asked for run in self.runs]
        low, high = found.low, found.high
        if low is None and self._lowest_fails():
            if self.is_never_kept:
                return None
            return Step(max(self.lowest, min(rates) / DOWN), SHORT_S)
        if high is None and not any(run.share > run.allowed for run in self.runs):
            return Step(self._higher(max(rates)), SHORT_S)
        if low is None:
            # the less busy, the sooner a run says that the bound is kept
            return Step(max(self.lowest, min(rates) / APART), LONG_S)
        if high is None:
            return Step(max(rates) * BEYOND, SHORT_S)
        near = [run for run in self.runs if low / 1.1 <= run.asked <= high * 1.1]
        half = (high - low) / (high + low)
        # a line through runs on one side of the limit alone would have to be exactly straight
        sides = {run.share > run.allowed for run in near if not run.is_saturated}
        if found.half_width <= NARROW and len(near) >= MIN_NEAR and len(sides) == 2:
            return None
        place = PLACES[len(near) % len(PLACES)]
        rate = math.exp(math.log(low) + place * math.log(high / low))
        return Step(rate, LONG_S if half < NEAR else SHORT_S)

    def _higher(self, rate: float) -> float:
        """The next rate above all that kept the bound: not far beyond what the device can do."""
        if rate < 0.95 * self.capacity:
            return math.sqrt(rate * self.capacity)
        return max(rate * 1.06, 1.06 * self.capacity) if rate < self.capacity else rate * UP

    def _lowest_fails(self) -> bool:
        lowest = min(self.runs, key=lambda run: run.asked)
        return lowest.share > lowest.allowed
