"""Frames of made-up latencies: one frame per second, with the I/Os of that second."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence

from iopstui.model import histogram
from iopstui.model.fio.interval import DirectionInterval, FioInterval
from iopstui.model.metrics.frame import Frame

UNIT = 100_000
"""Nanoseconds: about the median latency."""


def frame(latencies: Sequence[int], number: int = 0) -> Frame:
    """One second of fio with these latencies (ns)."""
    bins = Counter(map(histogram.bucket_key, latencies))
    count = len(latencies)
    mean = sum(latencies) / count if count else None
    found = histogram.percentiles(bins)
    total = DirectionInterval(
        count, 4096 * count, float(count), 4096.0 * count, None, mean, mean,
        {histogram.percentile_name(p): ns for p, ns in found.items()},
        max(latencies, default=None), bins, "clat", {"clat": count, "lat": count},
    )  # fmt: skip
    fio = FioInterval(
        1.0, {"read": total}, total, (), {}, None, None, None, number, None, None, False, False,
        False, True, False,
    )  # fmt: skip
    return Frame(number, 1, float(number), 1000.0 * number, 1.0, frozenset(), fio, None, None)


def run(
    rng: random.Random, seconds: int, iops: int, like: float = 0.5, stalls: float = 0.0
) -> Iterator[Frame]:
    """A run whose seconds follow each other as an AR(``like``) process with a deviation of 5 %.

    ``stalls`` times a second, 32 successive I/Os wait for the same stall, which takes 20 ms on
    average."""
    level = rng.gauss(0, 1)
    for number in range(seconds):
        count = max(1, round(iops * (1 + 0.05 * level)))
        middle = UNIT * math.exp(-0.05 * level)
        latencies = [int(middle * rng.lognormvariate(0, 0.5)) for _ in range(count)]
        if stalls:
            at = rng.expovariate(stalls / count)
            while at < count:
                wait = int(rng.expovariate(1) * 200 * UNIT)
                for place in range(int(at), min(count, int(at) + 32)):
                    latencies[place] += wait
                at += rng.expovariate(stalls / count)
        yield frame(latencies, number)
        level = like * level + rng.gauss(0, math.sqrt(1 - like * like))
