"""How often is a disk called slow for its load that is not, and how soon one that is?

The nights are made up (tests/helpers/made_siblings.py); the judgement is the program's own.
"""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor

from made_siblings import Night, like_disks, random_loads

from iopstui.model.findings.siblings import SiblingWatch

HOURS = 8.0
MOST_ALARMS = 0.001
"""Of nights in which no disk is slow."""
SLOW_IN_TRUTH = 1.15


def false_alarm(seed: int, hours: float = HOURS) -> bool | None:
    """Whether a disk is called slow in a night in which none is. ``None``: one is called slow that
    was: it collected garbage for most of the last five minutes."""
    rng = random.Random(seed)
    count = rng.choice((5, 6, 8, 8, 8, 12))
    night, watch, disks = Night(rng, count), SiblingWatch(), like_disks(count)
    right: bool | None = False
    for frame in night.frames(hours):
        watch.feed(frame, disks)
        if watch.odd is not None:
            if night.true_times(watch.odd.disk) < SLOW_IN_TRUTH:
                return True
            right = None
    return right


def seconds_until_found(seed: int, odd: float, seconds: float = 300.0) -> float | None:
    """When the first of eight disks with random loads is called slow, which takes ``odd`` times as
    long; ``None``: not in this time. ValueError: another one is."""
    watch, disks = SiblingWatch(), like_disks()
    for frame in random_loads(random.Random(seed), seconds, odd):
        watch.feed(frame, disks)
        if watch.odd is not None:
            if watch.odd.disk != "d0":
                raise ValueError(f"{watch.odd.disk} in run {seed}")
            return frame.t
    return None


def siblings_table(nights: int, first: int = 0) -> bool:
    """Print it; True if more is wrong than docs/statistics.md says."""
    with ProcessPoolExecutor() as pool:
        seeds = range(first, first + nights)
        said = list(pool.map(false_alarm, seeds, chunksize=4))
    wrong = [seed for seed, alarm in zip(seeds, said, strict=True) if alarm]
    print(f"\nnights of {HOURS:g} hours with a false alarm: {len(wrong)} of {nights}", *wrong)
    print(f"nights with a disk that was slow for minutes, and named: {said.count(None)}")
    print("\n| one of eight takes | found within 5 minutes |\n|---|---|")
    for odd in (1.3, 1.5, 2.0):
        times = [seconds_until_found(seed, odd) for seed in range(first, first + 100)]
        found = len(times) - times.count(None)
        print(f"| {odd} times as long | {found} of 100 |")
    return len(wrong) > max(1, MOST_ALARMS * nights)
