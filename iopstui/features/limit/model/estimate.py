"""At which rate is the share of slow I/Os what the bound allows? An estimate with an interval.

A p99 keeps its bound as long as at most 1 % of the I/Os are slower. So each run at a rate gives a
count of slow I/Os. Slow I/Os come in groups (one that waits makes the next ones wait), so they are
counted by second, and a run counts for only as many independent I/Os as the spread of its seconds
allows. Some I/Os are slow at any rate; above that floor, the logit of the share is assumed to be
linear in the logarithm of the rate near the bound, which nearly holds for queues."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from iopstui.model.metrics.statistics import t_quantile

GRID = 120
"""Rates that are tried as the limit."""
STEEPNESS = tuple(0.5 * 1.5**n for n in range(18))
"""The powers of the rate with which the odds of a slow I/O may grow: 0.5 to 490."""
FLOORS = (0.0, 0.1, 0.3, 0.6)
"""Slow I/Os that no queue causes, as a share of the allowed ones: they come at every rate."""
NEAR_SHARES = 0.1, 10.0
"""Runs whose share of slow I/Os is within this multiple of the allowed one say how they group."""
BEND = 0.15
"""A run may miss the straight line by this share of its distance from the bound."""
GROUP = 1.0
"""How many slow I/Os follow one another, in units of the I/Os that arrive within the bound, divided
by the share of time in which the device is idle (heavy traffic: a reflected Brownian motion)."""
MIN_IDLE = 0.03
STALLED = 0.9
"""A second with this share of a run's slow I/Os stands alone."""
DECIDED = 6.6
"""Twice the log-likelihood ratio at which one run alone decides: 99 %."""
BEHIND = 0.03
"""A device that completes fewer I/Os than asked for, by this share, can't carry the rate."""


@dataclass(frozen=True, slots=True)
class Second:
    """The I/Os that were completed in one second, and how many of them were ``slow``, which means
    that they took longer than the bound."""

    ios: int
    slow: int


@dataclass(frozen=True)
class Run:
    """A run at one rate, in I/Os per second: ``asked`` for, and ``rate`` as completed. ``allowed``
    is the share that may be slow (0.01), ``bound_s`` the bound."""

    asked: float
    rate: float
    seconds: tuple[Second, ...]
    allowed: float
    bound_s: float
    capacity: float
    """I/Os per second that the device completes at most, as far as is known."""

    @cached_property
    def ios(self) -> int:
        """All I/Os."""
        return sum(second.ios for second in self.seconds)

    @cached_property
    def slow(self) -> int:
        """Those that took longer than the bound."""
        return sum(second.slow for second in self.seconds)

    @property
    def share(self) -> float:
        """The share of slow I/Os; 1 where the device fell behind."""
        return 1.0 if self.is_behind else self.slow / self.ios if self.ios else 0.0

    @property
    def is_behind(self) -> bool:
        """Whether clearly fewer I/Os were completed than asked for: the others wait longer and
        longer."""
        chance = 4 / math.sqrt(max(1, self.ios))
        return self.rate < self.asked * (1 - BEHIND - chance)

    @property
    def load(self) -> float:
        """The rate at which I/Os arrived: the one asked for, unless fio's rate was clearly
        different."""
        chance = 3 / math.sqrt(max(1, self.ios))
        sent = not self.is_behind and abs(self.rate / self.asked - 1) > chance
        return self.rate if sent else self.asked

    @property
    def grouping(self) -> float:
        """How many I/Os count as one, by queueing theory: the busier the device, the longer a queue
        lasts, and all I/Os that wait in it are slow together."""
        idle = max(MIN_IDLE, 1 - self.asked / self.capacity)
        return 1 + GROUP * self.asked * self.bound_s / idle

    @cached_property
    def spread(self) -> tuple[float, float]:
        """The variance of the seconds' counts of slow I/Os: as it is, and as it would be if each
        I/O were slow independently."""
        count, share = len(self.seconds), self.slow / self.ios if self.ios else 0.0
        squares = sum((second.slow - share * second.ios) ** 2 for second in self.seconds)
        return squares, max(0, count - 1) / max(1, count) * self.slow * (1 - share)

    @property
    def is_stalled(self) -> bool:
        """Whether one second has most of the slow I/Os: something held the device up once."""
        most = max((second.slow for second in self.seconds), default=0)
        alone = len(self.seconds) > 2 and most > STALLED * self.slow
        return alone and most > 10 * self.grouping and self.slow > self.allowed * self.ios

    @property
    def is_saturated(self) -> bool:
        """Whether, apart from the share that may be slow, most I/Os are slow: the queue grows
        during the run."""
        return self.share > (1 + self.allowed) / 2

    @property
    def is_near(self) -> bool:
        """Whether the run says how slow I/Os come in groups near the bound."""
        low, high = NEAR_SHARES
        return low * self.allowed <= self.share <= high * self.allowed and not self.is_behind

    def evidence(self) -> float:
        """Twice the log-likelihood ratio against the allowed share: above 0 the run speaks against
        the bound being kept, below 0 for it."""
        n, share = self.ios / self.grouping, self.share
        ratio = 2 * (_likelihood(share, n, share) - _likelihood(share, n, self.allowed))
        return ratio if share > self.allowed else -ratio

    @property
    def keeps(self) -> bool | None:
        """Whether the run kept the bound; ``None`` if it is too close, or has too few independent
        I/Os, to tell."""
        evidence = self.evidence()
        return None if abs(evidence) < DECIDED else evidence < 0


def _likelihood(share: float, n: float, expected: float) -> float:
    """The log-likelihood of observing a ``share`` among ``n`` if ``expected`` is the true share."""
    slow = share * math.log(expected) if share else 0.0
    fast = (1 - share) * math.log(1 - expected) if share < 1 else 0.0
    return n * (slow + fast)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _curve(logit: float, least: float) -> float:
    """The share of slow I/Os: the ``least`` share, and those that queue, whose log odds are
    ``logit``."""
    queued = 1 / (1 + math.exp(-logit)) if logit > -30 else 1e-13
    return min(1 - 1e-9, least + queued)


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of the limit: it lies between ``low`` and ``high`` with 95 % confidence, and
    ``best`` is the likeliest. An end beyond which nothing was measured is ``None``. ``steepness``
    is the power of the rate with which the odds of a slow I/O grow."""

    low: float | None
    high: float | None
    best: float
    steepness: float

    @property
    def half_width(self) -> float:
        """Half of the interval, as a share of its middle."""
        if self.low is None or self.high is None:
            return math.inf
        return (self.high - self.low) / (self.high + self.low)


def estimate(runs: Sequence[Run]) -> Estimate | None:
    """Estimate the limit from all runs; ``None`` if there are none."""
    if not runs:
        return None
    weights = _weights(runs, 1.0)
    fitted = _Fit(runs, weights)
    near = [run for run in runs if run.is_near]
    if len(near) > 2:
        # if the runs scatter around the line more than their seconds explain, each counts for less
        excess = fitted.scatter(near) / (len(near) - 2)
        if excess > 1:
            fitted = _Fit(runs, _weights(runs, excess))
    freedom = max(4, sum(len(run.seconds) - 1 for run in near))
    return fitted.interval(t_quantile(0.975, freedom) ** 2)


def _weights(runs: Sequence[Run], excess: float) -> list[float]:
    """For how many independent I/Os each run counts. It is computed from all runs together: if each
    had its own grouping, runs that happened to see a long queue would count least."""
    near = [run for run in runs if run.is_near]
    squares = sum(run.spread[0] for run in near)
    expected = sum(run.grouping * run.spread[1] for run in near)
    excess *= max(1.0, squares / expected) if expected else 1.0
    weights = []
    for run in runs:
        n = run.ios / run.grouping / excess
        share = (run.share * run.ios + 0.5) / (run.ios + 1)
        distance = BEND * (_logit(share) - _logit(run.allowed))
        most = 1 / distance**2 / (share * (1 - share)) if distance else math.inf
        # in a growing queue, the longer the run, the more I/Os are slow: it only says "beyond"
        weights.append(min(n, 1.0) if run.is_saturated else min(n, most))
    return weights


class _Fit:
    """The likelihood of every limit on a grid, each with the steepness that fits best."""

    def __init__(self, runs: Sequence[Run], weights: Sequence[float]) -> None:
        self._runs, self._weights = runs, weights
        self._logs = [math.log(run.load) for run in runs]
        first, last = min(self._logs) - 0.3, max(self._logs) + 0.3
        self._limits = [first + (last - first) * n / (GRID - 1) for n in range(GRID)]
        self._ends = min(self._logs), max(self._logs)
        self._allowed = runs[0].allowed
        ends = [(_logit(self._allowed * (1 - floor)), floor) for floor in FLOORS]
        self._curves = [(steepness, *end) for steepness in STEEPNESS for end in ends]
        self._profile = [self._best_curve(limit) for limit in self._limits]
        top = max(range(GRID), key=lambda n: self._profile[n][0])
        # of a plateau its middle
        level = self._profile[top][0] - 0.05
        flat = [n for n in range(GRID) if self._profile[n][0] >= level]
        self.best = sum(self._limits[n] for n in flat) / len(flat)
        self.most, self.steepness, self.floor = self._profile[top]

    def _best_curve(self, limit: float) -> tuple[float, float, float]:
        """The likelihood of the likeliest curve through this limit, its steepness and its floor."""
        data = [(weight, run.share, log - limit)
                for run, weight, log in zip(self._runs, self._weights, self._logs, strict=True)
                ]  # fmt: skip
        best = -math.inf, 0.0, 0.0
        for steepness, middle, floor in self._curves:
            total, least = 0.0, floor * self._allowed
            for weight, slow, distance in data:
                share = _curve(middle + steepness * distance, least)
                total += weight * (slow * math.log(share) + (1 - slow) * math.log1p(-share))
                if total < best[0]:  # the other runs cannot add to it
                    break
            else:
                best = max(best, (total, steepness, floor))
        return best

    def scatter(self, near: Sequence[Run]) -> float:
        """The squared distance of runs from the curve, in units of their own errors."""
        total = 0.0
        middle, least = _logit(self._allowed * (1 - self.floor)), self.floor * self._allowed
        for run, weight, log in zip(self._runs, self._weights, self._logs, strict=True):
            if run in near:
                share = _curve(middle + self.steepness * (log - self.best), least)
                total += weight * (run.share - share) ** 2 / (share * (1 - share))
        return total

    def interval(self, drop: float) -> Estimate:
        """The interval of all limits whose log-likelihood is near the best one's: at most half of
        ``drop`` below it."""
        inside = [limit for limit, (value, *_) in zip(self._limits, self._profile, strict=True)
                  if 2 * (self.most - value) <= drop]  # fmt: skip
        step = self._limits[1] - self._limits[0]
        low, high = min(inside) - step, max(inside) + step
        return Estimate(
            None if low < self._ends[0] else math.exp(low),
            None if high > self._ends[1] else math.exp(high),
            math.exp(self.best), self.steepness,
        )  # fmt: skip
