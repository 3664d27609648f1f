"""How often is a disk wrongly called slow for its load, and how soon is a slow one found?

The same for weeks of a flight recording, with a question each day. Nights and weeks are simulated
(tests/helpers/made_siblings.py); the judgement is the program's own."""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor

from made_siblings import Night, like_disks, minutes_of_weeks, random_loads

from iopstui.features.flight.model.bad_times import SiblingDays, SlowedDisk
from iopstui.model.findings.siblings import SiblingWatch
from iopstui.model.metrics.frame import Frame

HOURS = 8.0
MOST_ALARMS = 0.001
"""The largest share of nights with a false alarm, among nights without a slow disk."""
SLOW_IN_TRUTH = 1.15
DAYS, DRIFT = 21, 1.4
DAY_S = 86400.0


def false_alarm(seed: int, hours: float = HOURS) -> bool | None:
    """Whether a disk is called slow in a night without a slow one. ``None``: the named disk really
    was slow, because it collected garbage for most of the last five minutes."""
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
    """When the first of eight disks with random loads, which takes ``odd`` times as long, is called
    slow; ``None``: not in this time. Raises ValueError if another disk is named."""
    watch, disks = SiblingWatch(), like_disks()
    for frame in random_loads(random.Random(seed), seconds, odd):
        watch.feed(frame, disks)
        if watch.odd is not None:
            if watch.odd.disk != "d0":
                raise ValueError(f"{watch.odd.disk} in run {seed}")
            return frame.t
    return None


def answers_of_weeks(
    seed: int, odd: float, even: bool, count: int = 8, first: int = 2
) -> list[SlowedDisk | None]:
    """The answers at the end of each day, from day ``first`` on, about all days until then. In
    these weeks the first disk slows down until it takes ``odd`` times as long."""
    disks = {device.name: device for device in like_disks(count)}
    watch = SiblingDays(disks, lambda at: str(int(at // DAY_S)), {})
    said = []
    minutes = minutes_of_weeks(random.Random(seed), DAYS, count, odd, even)
    for number, minute in enumerate(minutes, 1):
        t = 60.0 * number
        watch.feed(t, Frame(number, 0, t, 0.0, 60.0, frozenset(), None, None, None, disks=minute))
        if t % DAY_S == 0 and t >= first * DAY_S:
            said.append(watch.slowed())
    return said


def false_days(seed: int) -> int:
    """The number of days on which a disk is called slow, in three weeks without a slow one."""
    rng = random.Random(seed)
    count, even = rng.choice((5, 6, 8, 8, 8, 12)), rng.random() < 0.5
    return sum(one is not None for one in answers_of_weeks(seed, 1.0, even, count))


def drift_found(seed: int, even: bool) -> int | None:
    """The error, in days, of the day since which the drifting disk is said to be slow, after three
    weeks; ``None``: it is not named. Raises ValueError if another disk is named."""
    (last,) = answers_of_weeks(seed, DRIFT, even, first=DAYS)
    if last is None:
        return None
    if last.odd.disk != "d0":
        raise ValueError(f"{last.odd.disk} in weeks {seed}")
    truth = DAYS * 0.2 / (DRIFT - 1)
    return round(int(last.since) - truth)


def weeks_table(weeks: int, first: int) -> bool:
    """Print the table. Returns whether a disk is wrongly called slow."""
    with ProcessPoolExecutor() as pool:
        seeds = range(first, first + weeks)
        wrong = sum(pool.map(false_days, seeds))
        print(f"\nfalse alarms in {weeks} times {DAYS} days, asked at the end of each: {wrong}")
        for even in (True, False):
            off = [*pool.map(drift_found, seeds, [even] * weeks)]
            days = sorted(one for one in off if one is not None)
            print(
                f"drift to {DRIFT}, {'the same' if even else 'other'} loads: named in "
                f"{len(days)} of {weeks}, the day is off by {days[:1]} to {days[-1:]}"
            )
    return wrong > 0


def siblings_table(nights: int, first: int = 0) -> bool:
    """Print the table. Returns whether more is wrong than docs/statistics.md says."""
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
    bad = weeks_table(max(1, nights // 10), first)
    return bad or len(wrong) > max(1, MOST_ALARMS * nights)
