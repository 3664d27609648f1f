"""A device as a queue with one server and Poisson arrivals, whose share of slow I/Os is known."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from iopstui.features.limit.model import Run, Search, Second

SETTLE_S, OVERHEAD_S = 2.0, 3.0
ALLOWED = 0.01


@dataclass
class Queue:
    """``mean_s`` is the mean time of one I/O, with exponential distribution, or ``constant``. A
    share ``floor`` of all I/Os is slow at any rate."""

    mean_s: float
    bound_s: float
    constant: bool = False
    floor: float = 0.0

    def run(self, rng: random.Random, rate: float, seconds: float, capacity: float) -> Run:
        """A run at a rate, starting with an empty queue."""
        ios, slow = [0] * round(seconds), [0] * round(seconds)
        now = free = 0.0
        while (now := now + rng.expovariate(rate)) < SETTLE_S + len(ios):
            free = max(free, now) + (
                self.mean_s if self.constant else rng.expovariate(1 / self.mean_s)
            )
            if now >= SETTLE_S:
                second = int(now - SETTLE_S)
                ios[second] += 1
                slow[second] += free - now > self.bound_s or rng.random() < self.floor
        done = min(rate, 1 / self.mean_s)
        counted = tuple(Second(*pair) for pair in zip(ios, slow, strict=True))
        return Run(rate, done, counted, ALLOWED, self.bound_s, capacity)

    @property
    def limit(self) -> float:
        """The rate at which 1 % of the I/Os are slow: M/M/1 exactly, M/D/1 by Erlang's sum."""
        allowed = (ALLOWED - self.floor) / (1 - self.floor)
        if not self.constant:
            return 1 / self.mean_s - math.log(1 / allowed) / self.bound_s
        low, high = 0.0, 1 / self.mean_s
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self._share(middle) > allowed else (middle, high)
        return low

    def _share(self, rate: float) -> float:
        from decimal import Decimal, localcontext

        with localcontext() as context:
            context.prec = 120
            each, wait = Decimal(self.mean_s), Decimal(self.bound_s) - Decimal(self.mean_s)
            total, factorial = Decimal(0), Decimal(1)
            for k in range(int(wait / each) + 1):
                factorial *= max(1, k)
                power = Decimal(rate) * (wait - k * each)
                total += ((-power) ** k if k else Decimal(1)) / factorial * power.exp()
            return float(1 - (1 - Decimal(rate) * each) * total)


def search_on(
    queue: Queue, seed: int, time_s: float, later: Queue | None = None, burst_s: float = math.inf
) -> tuple[Search, float]:
    """A whole search of at most ``time_s`` seconds. Returns it and the seconds that it took. After
    ``burst_s`` the device is replaced by ``later``."""
    rng, most = random.Random(seed), 1 / queue.mean_s
    search = Search(0.75 * most, 0.02 * most, most)
    spent = 5 + SETTLE_S + OVERHEAD_S
    while (step := search.next()) is not None:
        length = step.seconds + SETTLE_S + OVERHEAD_S
        if spent + length > time_s:
            break
        spent += length
        device = later if later is not None and spent > burst_s else queue
        search.add(device.run(rng, step.rate, step.seconds, search.capacity))
    return search, spent
