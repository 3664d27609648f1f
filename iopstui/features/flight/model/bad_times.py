"""The worst times of a flight recording, found from its answers and highest seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from iopstui import format as units
from iopstui.features.flight.model.stretches import Stretch
from iopstui.model.answer.answer import GOOD, RANKS, SIGNS, WARNING, Answer
from iopstui.model.answer.situation import SLOW_MS
from iopstui.model.means import median
from iopstui.recording.records import Peaks

JOIN_S = 60.0
"""If the same answer comes back within a minute, both are one time."""
SPIKE_FACTOR = 10.0
MIN_SPIKE_MS = SLOW_MS["unknown"]
"""A second is a spike if its requests took so many times as long as usual, and at least this
long."""


@dataclass(frozen=True, slots=True)
class BadTime:
    """A bad time, from ``began_s`` to ``ended_s`` (since the epoch). ``times``: in its slowest
    second requests took so many times as long as usual (0: not known)."""

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
    one stretch."""
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
    return (first.state, first.disk, first.rule) == (second.state, second.disk, second.rule)


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
