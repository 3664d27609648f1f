"""The worst times of a flight recording: its highest seconds, bad stretches, and a disk that became
slow.

``SiblingDays`` judges which one of several equal disks became slow for its load over days. It works
like model/findings/siblings.py, but with the half hours of a day instead of ten-second pieces of
five minutes. So events that last only minutes (garbage collection, a scrub) hardly matter. Counters
are cumulative, so thinned files give the same half hours as complete ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import pairwise
from math import exp

from iopstui import format as units
from iopstui.model.answer.answer import GOOD, RANKS, SIGNS, WARNING, Answer
from iopstui.model.answer.situation import SLOW_MS
from iopstui.model.answer.use import DiskUse, mean_use
from iopstui.model.block.device import BlockDevice
from iopstui.model.figures.disk import DiskRates, mean_ms
from iopstui.model.findings.siblings import (
    MIN_SIBLINGS,
    WORTH_SAYING,
    OddDisk,
    Row,
    Rows,
    Windows,
    groups,
    has_enough,
    level,
    odd_one,
)
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import median
from iopstui.model.samples import Exemplar
from iopstui.recording.records import DiskPeak, Peaks

MAX_SLOWEST = 8
"""How many requests of each interval are kept."""
MAX_USERS = 12
"""How many processes of each interval are kept."""
MIN_SECONDS = 0.5
"""A shorter interval (s) does not count as a second."""


class _Highest:
    """The highest second of each figure of a disk."""

    __slots__ = ("at", "busy", "bytes_s", "in_flight", "ios_s", "ms")

    def __init__(self) -> None:
        self.ios_s = self.bytes_s = self.in_flight = self.at = 0.0
        self.busy: float | None = None
        self.ms: float | None = None

    def feed(self, rates: DiskRates, t: float) -> None:
        """Count the second that ended at ``t``."""
        # computed here from the growth of counters, because a row's figures would take three times
        # as long
        seconds = rates.seconds
        self.ios_s = max(self.ios_s, (rates.ios or 0) / seconds)
        self.bytes_s = max(self.bytes_s, (rates.moved or 0) / seconds)
        self.in_flight = max(self.in_flight, (rates.weighted_ms or 0.0) / seconds / 1e3)
        busy, ms = rates.util, mean_ms(rates)
        if busy is not None and busy > (self.busy or -1.0):
            self.busy = busy
        if ms is not None and ms > (self.ms or -1.0):
            self.ms, self.at = ms, t

    def peak(self, t: float) -> DiskPeak:
        """The peaks for a record at time ``t``, rounded: without this, half of what is written
        would be meaningless digits."""
        busy = None if self.busy is None else round(self.busy, 1)
        ms, ago_s = (None, 0.0) if self.ms is None else (round(self.ms, 3), round(t - self.at, 2))
        return DiskPeak(round(self.ios_s, 1), round(self.bytes_s), round(self.in_flight, 2), busy,
                        ms, ago_s)  # fmt: skip


class PeakFold:
    """Collects peaks. It gets each second; ``take`` returns the peaks since the last call."""

    def __init__(self) -> None:
        self._disks: dict[str, _Highest] = {}
        self._slowest: list[Exemplar] = []
        self._seconds = 0.0

    def feed(self, frame: Frame) -> None:
        if (frame.seconds or 0.0) < MIN_SECONDS:
            return
        self._seconds += frame.seconds or 0.0
        for name, rates in frame.disks.items():
            if rates.ios or rates.flushes or rates.in_flight:
                highest = self._disks.get(name)
                if highest is None:
                    highest = self._disks[name] = _Highest()
                highest.feed(rates, frame.t)
        if frame.probe is not None and frame.probe.exemplars:
            self._slowest = slowest([*self._slowest, *frame.probe.exemplars])

    def take(self, t: float) -> Peaks:
        """The peaks up to ``t``; then start again."""
        disks = {name: highest.peak(t) for name, highest in self._disks.items()}
        peaks = Peaks(t, self._seconds, disks, tuple(self._slowest))
        self._disks, self._slowest, self._seconds = {}, [], 0.0
        return peaks


def busiest_use(uses: Sequence[DiskUse]) -> DiskUse | None:
    """Join several readings to one, with the processes that did most. Bytes are rounded: without
    this, half of what is written would be decimals."""
    use = mean_use(uses)
    if use is None:
        return None
    users = tuple(
        replace(user, read_s=round(user.read_s), write_s=round(user.write_s))
        for user in use.users[:MAX_USERS]
    )
    disks = {
        name: (round(read_s), round(write_s), round(in_flight, 2))
        for name, (read_s, write_s, in_flight) in use.disks.items()
    }
    boot_ms = {name: round(ms, 3) for name, ms in use.boot_ms.items()}
    depths = {name: round(depth, 1) for name, depth in use.boot_in_flight.items()}
    return replace(use, users=users, disks=disks, boot_ms=boot_ms, boot_in_flight=depths)


def slowest(requests: Iterable[Exemplar]) -> list[Exemplar]:
    return nlargest(MAX_SLOWEST, requests, key=lambda request: request.total_ns)


def higher(before: DiskPeak | None, one: DiskPeak) -> DiskPeak:
    """The higher value of each figure."""
    if before is None:
        return one
    longer = (one.ms or 0.0) > (before.ms or 0.0)
    busy = [each for each in (before.busy, one.busy) if each is not None]
    return DiskPeak(
        max(before.ios_s, one.ios_s), max(before.bytes_s, one.bytes_s),
        max(before.in_flight, one.in_flight), max(busy, default=None),
        one.ms if longer else before.ms, one.ms_ago_s if longer else before.ms_ago_s,
    )  # fmt: skip


def join(several: Sequence[Peaks]) -> Peaks:
    """Join the peaks of several intervals to one, which ends where the last one does."""
    disks: dict[str, DiskPeak] = {}
    last = several[-1]
    for peaks in several:
        for name, peak in peaks.disks.items():
            earlier = replace(peak, ms_ago_s=peak.ms_ago_s + last.t - peaks.t)
            disks[name] = higher(disks.get(name), earlier)
    requests = slowest(request for peaks in several for request in peaks.slowest)
    return replace(last, seconds=sum(peaks.seconds for peaks in several), disks=disks,
                   slowest=tuple(requests))  # fmt: skip


# Answers over a time, with how long each of them held.


GAP_S = 2.0
"""The longest time (s) between the last sample of a file and the first sample of the next."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time in which an answer held (seconds since the epoch). Its figures and the user that it
    names are those of the moment ``said_s``."""

    began_s: float
    ended_s: float
    answer: Answer
    said_s: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.ended_s - self.began_s


def stretches(
    answers: Sequence[tuple[float, Answer | None]], from_s: float = 0.0
) -> list[Stretch]:  # fmt: skip
    """The stretches of answers, which are given as (when, answer); an answer ``None`` ends the
    previous one. Successive answers that differ only in their figures form one stretch, even across
    files, with the words that held longest. No stretch begins before ``from_s``."""
    found: list[Stretch] = []
    longest = (False, 0.0)
    for (said_s, answer), (until, _) in pairwise(answers):
        at = max(said_s, from_s)
        if answer is None or until <= at:
            continue
        weight = bool(answer.who), until - at
        last = found[-1] if found else None
        # abs(): if the clock was set back, a file begins before the previous one's end
        goes_on = last is not None and abs(at - last.ended_s) <= GAP_S
        if last is not None and goes_on and is_same(last.answer, answer):
            if weight > longest:
                longest, last = weight, replace(last, answer=answer, said_s=said_s)
            found[-1] = replace(last, ended_s=until)
        else:
            found.append(Stretch(at, until, answer, said_s))
            longest = weight
    return found


def is_same(one: Answer, other: Answer) -> bool:
    """Whether two answers differ only in their figures, or both say that everything is well."""
    if one.state == GOOD or other.state == GOOD:
        return one.state == other.state
    return (one.state, one.disk, one.rule) == (other.state, other.disk, other.rule)


def worst(several: Sequence[Stretch]) -> Stretch | None:
    """The stretch with the worst answer; of several such, the longest."""
    return min(several, key=lambda one: (RANKS[one.answer.state], -one.seconds), default=None)


JOIN_S = 60.0
"""If the same answer returns within this time (s), both stretches are one bad time."""
SPIKE_FACTOR = 10.0
MIN_SPIKE_MS = SLOW_MS["unknown"]
"""A second is a spike if its requests took SPIKE_FACTOR times as long as usual, and at least this
long."""


@dataclass(frozen=True, slots=True)
class BadTime:
    """A bad time, from ``began_s`` to ``ended_s`` (since the epoch). In its slowest second,
    requests took ``times`` times as long as usual (0: not known)."""

    began_s: float
    ended_s: float
    state: str
    text: str
    times: float = 0.0

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.ended_s - self.began_s


def bad_times(
    held: Sequence[Stretch], peaks: Sequence[tuple[float, Peaks]], most: int
) -> list[BadTime]:
    """The worst times, worst first: critical ones, then warnings, then single slow seconds without
    an answer. In each of these groups the longer ones come first."""
    usual = usual_ms(one for _, one in peaks)
    found = [_of(stretch) for stretch in _joined(held)]
    spikes = [spike for at, one in peaks if (spike := _spike(at, one, usual)) is not None]
    # the highest spike first, so that a lower one just before it does not exclude it
    for spike in sorted(spikes, key=lambda one: -one.times):
        if not any(bad.began_s - JOIN_S <= spike.ended_s and spike.began_s <= bad.ended_s + JOIN_S
                   for bad in found):  # fmt: skip
            found.append(spike)
    found.sort(key=lambda bad: (RANKS[bad.state], -bad.seconds, -bad.times))
    return found[:most]


def usual_ms(several: Iterable[Peaks]) -> dict[str, float]:
    """The median of each disk's slowest seconds."""
    by_disk: dict[str, list[float]] = {}
    for peaks in several:
        for name, peak in peaks.disks.items():
            if peak.ms is not None:
                by_disk.setdefault(name, []).append(peak.ms)
    return {name: median(values) for name, values in by_disk.items()}


def _joined(held: Sequence[Stretch]) -> list[Stretch]:
    """The stretches in which something waited. If the same answer returns after a short pause, it
    is one stretch. At the beginning and end of a busy time, there are seconds in which the disk is
    busy only at times."""
    joined: list[Stretch] = []
    for one in sorted(held, key=lambda stretch: stretch.began_s):
        if one.answer.state == GOOD:
            continue
        last = joined[-1] if joined else None
        if last is not None and one.began_s - last.ended_s <= JOIN_S and _alike(last, one):
            longer = max(last, one, key=lambda stretch: stretch.seconds)
            joined[-1] = replace(longer, began_s=last.began_s, ended_s=one.ended_s)
        else:
            joined.append(one)
    return joined


def _alike(one: Stretch, other: Stretch) -> bool:
    first, second = one.answer, other.answer
    if (first.state, first.disk) != (second.state, second.disk):
        return False
    rules = {first.rule, second.rule}
    return len(rules) == 1 or ("unsteady" in rules and rules <= {"unsteady", "queue", "slow"})


def _of(stretch: Stretch) -> BadTime:
    answer: Answer = stretch.answer
    return BadTime(stretch.began_s, stretch.ended_s, answer.state, answer.sentence)


def _spike(at: float, peaks: Peaks, usual: Mapping[str, float]) -> BadTime | None:
    """The slow second in these 10 s; ``None`` if there is none."""
    spikes = [
        (peak.ms / usual[name], name, peak)
        for name, peak in peaks.disks.items()
        if peak.ms is not None and usual.get(name)
        and peak.ms >= max(MIN_SPIKE_MS, SPIKE_FACTOR * usual[name])
    ]  # fmt: skip
    if not spikes:
        return None
    times, name, peak = max(spikes, key=lambda spike: spike[:2])
    ended_s = at - peak.ms_ago_s
    text = (f"{SIGNS[WARNING]} {name}: a second in which I/Os took "
            f"{units.milliseconds(peak.ms)} on average, {times:.0f}× the usual")  # fmt: skip
    return BadTime(ended_s - 1.0, ended_s, GOOD, text, times)


WINDOW_S = 1800.0
LAST_DAYS = 2
"""How many of the last days that can be judged must agree."""


@dataclass(frozen=True, slots=True)
class SlowedDisk:
    """The disk that became slow. ``odd`` is the judgement of the last day. ``days`` has the
    comparable days in order, each with the ratio of the disk's request times to those of its
    siblings. The disk has been slow since ``since``."""

    odd: OddDisk
    days: Sequence[tuple[str, float]]
    since: str


class SiblingDays:
    """Finds a disk that became slower than equal ones. Feed it the frames of a span; ``slowed``
    then judges them. ``day_of`` returns the day of a time, ``same_since`` the time since when a
    name has meant the same disk. Times are since the epoch."""

    def __init__(
        self, devices: Mapping[str, BlockDevice], day_of: Callable[[float], str],
        same_since: Mapping[str, float],
    ) -> None:  # fmt: skip
        self._groups = [*groups([*devices.values()])]
        self._names = {name for names, _ in self._groups for name in names}
        self._day_of = day_of
        self._same_since = {name: same_since.get(name, 0.0) for name in self._names}
        self._sums = Windows(WINDOW_S)
        self._days: dict[str, list[tuple[float, dict[str, Row]]]] = {}

    def feed(self, at: float, frame: Frame) -> None:
        """Count a frame that ended at this time."""
        window = self._sums.feed(at, frame, self._names)
        if window is not None:
            self._days.setdefault(self._day_of(window[0]), []).append(window)

    def slowed(self) -> SlowedDisk | None:
        """The disk that is slow on the last days; ``None`` if there is none, or if that can't be
        judged."""
        found = [one for names, array in self._groups
                 if (one := self._slowed(names, array)) is not None]  # fmt: skip
        return max(found, key=lambda one: one.odd.times, default=None)

    def _slowed(self, names: Sequence[str], array: str) -> SlowedDisk | None:
        by_day = {day: self._rows(names, windows) for day, windows in self._days.items()}
        last: list[OddDisk] = []
        for rows in reversed(by_day.values()):
            if sum(has_enough(found) for found in rows.values()) <= MIN_SIBLINGS:
                continue  # on this day too little was recorded, or too little I/O was done
            odd = odd_one(rows)
            if odd is None or (last and odd.disk != last[0].disk):
                return None
            last.append(odd)
            if len(last) == LAST_DAYS:
                break
        else:
            return None
        disk = last[0].disk
        days = [(day, times) for day, rows in by_day.items()
                if (times := level(disk, rows)) is not None]  # fmt: skip
        since = days[-1][0]
        for day, times in reversed(days):
            if times < exp(WORTH_SAYING):
                break
            since = day
        return SlowedDisk(replace(last[0], array=array), days, since)

    def _rows(self, names: Sequence[str], windows: Sequence[tuple[float, dict[str, Row]]]) -> Rows:
        return {name: [rows.get(name) if began >= self._same_since[name] else None
                       for began, rows in windows] for name in names}  # fmt: skip
