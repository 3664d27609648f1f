"""The worst times of a flight recording, found from its answers and highest seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from iopstui import format as units
from iopstui.model.answer.answer import GOOD, RANKS, SIGNS, WARNING, Answer
from iopstui.model.answer.situation import SLOW_MS
from iopstui.model.means import median
from iopstui.recording.records import Peaks

# Answers over a time, each with how long it held.


GAP_S = 2.0
"""The longest time from the last sample of a file to the first one of the next."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time in which an answer held (seconds since the epoch). Its figures and who it names are
    of the moment ``said_s``."""

    began_s: float
    ended_s: float
    answer: Answer
    said_s: float

    @property
    def seconds(self) -> float:
        """How long."""
        return self.ended_s - self.began_s


def stretches(
    answers: Sequence[tuple[float, Answer | None]], from_s: float = 0.0
) -> list[Stretch]:  # fmt: skip
    """The stretches of answers, which are given as (when, answer); None ends the previous answer.
    Successive answers that differ only in their figures are one stretch, with the words that held
    longest, even across the end of a file. No stretch begins before ``from_s``."""
    found: list[Stretch] = []
    longest = (False, 0.0)
    for (said_s, answer), (until, _) in pairwise(answers):
        at = max(said_s, from_s)
        if answer is None or until <= at:
            continue
        weight = bool(answer.who), until - at
        last = found[-1] if found else None
        # after the clock was set back, a file begins before the last one's end
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
    """Whether two answers differ only in their figures, or both say that all is well."""
    if one.state == GOOD or other.state == GOOD:
        return one.state == other.state
    return (one.state, one.disk, one.rule) == (other.state, other.disk, other.rule)


def worst(several: Sequence[Stretch]) -> Stretch | None:
    """The stretch with the worst answer; of several such, the longest."""
    return min(several, key=lambda one: (RANKS[one.answer.state], -one.seconds), default=None)


JOIN_S = 60.0
"""If the same answer comes back within a minute, both are one time."""
SPIKE_FACTOR = 10.0
MIN_SPIKE_MS = SLOW_MS["unknown"]
"""A second is a spike if its requests took so many times as long as usual, and at least this
long."""


@dataclass(frozen=True, slots=True)
class BadTime:
    """A bad time, from ``began_s`` to ``ended_s`` (since the epoch). In its slowest second,
    requests took ``times`` as long as usual (0: not known)."""

    began_s: float
    ended_s: float
    state: str
    text: str
    times: float = 0.0

    @property
    def seconds(self) -> float:
        """How long."""
        return self.ended_s - self.began_s


def bad_times(
    held: Sequence[Stretch], peaks: Sequence[tuple[float, Peaks]], most: int
) -> list[BadTime]:
    """The worst times, the worst first: critical ones, then warnings, then single slow seconds that
    no answer was about; within each kind the longer ones first."""
    usual = usual_ms(one for _, one in peaks)
    found = [_of(stretch) for stretch in _joined(held)]
    spikes = [spike for at, one in peaks if (spike := _spike(at, one, usual)) is not None]
    # the highest first, so that it is not left out because of a lower one just before it
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
    """The stretches in which something waited. The same answer before and after a short pause is
    one stretch; a busy time begins and ends with seconds in which the disk is busy at times."""
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
    """The slow second of these 10 s, if there is one."""
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
