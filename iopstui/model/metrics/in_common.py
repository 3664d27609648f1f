"""What the slow requests have in common, beyond chance.

The slowest requests of a direction are compared with the random sample of the same seconds: if
slowness had nothing to do with a property, any way to call some of these requests slow would be as
likely (Fisher's exact test, one-sided). Every value of every property that occurs is a question, so
the limit is divided by the number of questions that these numbers of requests could answer at all
(Tarone's correction): at most 1 in 100 looks claims something that is not so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from iopstui import format as units
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.slow_requests import (
    FLUSHES,
    SLOW_KINDS,
    one_words,
    slowest,
    way_words,
)
from iopstui.model.samples import Exemplar

MAX_FALSE = 0.01
REGIONS = 16
"""The disk, as far as these requests reach, is divided into so many regions."""
TOGETHER_NS = 10_000_000
MIN_SHARE = 0.6
"""A property of fewer of the slow requests explains too little."""

Property = Callable[[Exemplar], "object | None"]


@dataclass(frozen=True, slots=True)
class InCommon:
    """``slow_with`` of ``slow`` slow requests of a direction have a property, and ``sample_with``
    of ``sample`` random ones; ``chance`` that this or more would happen by itself (0 to 1)."""

    kind: str
    words: str
    slow_with: int
    slow: int
    sample_with: int
    sample: int
    chance: float

    @property
    def text(self) -> str:
        """ "9 of the 10 slowest reads were completed on CPU 3, of 10 random ones 1 (by chance: 1 in
        2,800)"."""
        return (
            f"{self.slow_with} of the {self.slow} slowest {plural(self.kind)} {self.words}, of "
            f"{self.sample} random ones {self.sample_with} (by chance: 1 in {1 / self.chance:,.0f})"
        )


def plural(kind: str) -> str:
    """ "reads", "flushes"."""
    return f"{kind}es" if kind == FLUSHES else f"{kind}s"


def in_common(exemplars: Sequence[Exemplar]) -> list[InCommon]:
    """What the slow ones of these requests have in common, the least likely first; for each
    property of a direction at most one value, and of properties that the same requests have (a CPU
    and its hardware queue) the first."""
    questions = [one for kind in SLOW_KINDS for one in _questions(kind, exemplars)]
    limit = MAX_FALSE / _answerable([_least(*one[4:]) for one in questions])
    found: dict[tuple[str, str], tuple[InCommon, frozenset[int]]] = {}
    for kind, name, words, which, with_both, slow, sample in questions:
        slow_with = len(which)
        chance = tail(slow_with, with_both, slow, slow + sample)
        if chance > limit or slow_with < MIN_SHARE * slow:
            continue
        made = InCommon(kind, words, slow_with, slow, with_both - slow_with, sample, chance)
        before = found.get((kind, name))
        if before is None or made.chance < before[0].chance:
            found[kind, name] = made, which
    first: dict[tuple[str, frozenset[int]], InCommon] = {}
    for made, which in sorted(found.values(), key=lambda one: one[0].chance):
        first.setdefault((made.kind, which), made)
    return [*first.values()]


def slow_words(frame: Frame) -> Iterator[str]:
    """The slowest request of each direction in a frame's second, and what the slow ones have in
    common; nothing without the probe's requests."""
    probe = frame.probe
    exemplars = probe.exemplars if probe is not None else ()
    for kind in SLOW_KINDS:
        for one in slowest((e for e in exemplars if e.kind == kind), 1):
            total = units.latency(one.total_ns)
            yield f"slowest {kind} {total}: {way_words(one)}; {one_words(one)}"
    yield from (one.text for one in in_common(exemplars))


def tail(least: int, with_it: int, drawn: int, of: int) -> float:
    """Chance that ``drawn`` of ``of`` things, ``with_it`` of which have a property, have at least
    ``least`` with it (hypergeometric distribution)."""
    most = min(with_it, drawn)
    ways = sum(comb(with_it, n) * comb(of - with_it, drawn - n) for n in range(least, most + 1))
    return ways / comb(of, drawn)


_Question = tuple[str, str, str, frozenset[int], int, int, int]
"""Direction, property, words for the value, which of the slow have it, how many have it in all;
slow; sample."""


def _questions(kind: str, exemplars: Sequence[Exemplar]) -> Iterator[_Question]:
    of_kind = [one for one in exemplars if one.kind == kind]
    slow = [one for one in of_kind if one.slow]
    # one that is both says nothing of the difference
    sample = [one for one in of_kind if one.sampled and not one.slow]
    if not slow or not sample:
        return
    for name, (value_of, words) in _properties(exemplars, [*slow, *sample]).items():
        having: dict[object, list[int]] = {}
        for place, one in enumerate((*slow, *sample)):
            value = value_of(one)
            if value is not None:
                having.setdefault(value, []).append(place)
        for value, places in having.items():
            which = frozenset(place for place in places if place < len(slow))
            yield kind, name, words(value), which, len(places), len(slow), len(sample)


def _least(with_both: int, slow: int, sample: int) -> float:
    """The smallest chance that these numbers allow."""
    return tail(min(with_both, slow), with_both, slow, slow + sample)


def _answerable(least: Iterable[float]) -> int:
    """How many questions can be answered: a rare property could never pass, so it is no question
    (Tarone, 1990)."""
    sorted_least = sorted(least)
    for count in range(1, len(sorted_least) + 1):
        if sum(one <= MAX_FALSE / count for one in sorted_least) <= count:
            return count
    return max(1, len(sorted_least))


def _properties(
    exemplars: Sequence[Exemplar], compared: Sequence[Exemplar]
) -> Mapping[str, tuple[Property, Callable[[object], str]]]:
    """Value of each property and words for it. Regions and times are divided by what is compared,
    slow or not."""
    return {
        "region": _regions(compared),
        "cpu": (lambda one: one.cpu, lambda cpu: f"were sent on CPU {cpu}"),
        "cpu_done": (lambda one: one.cpu_done, lambda cpu: f"completed on CPU {cpu}"),
        "hctx": (lambda one: one.hctx, lambda n: f"went through hardware queue {n}"),
        "disk": (lambda one: one.disk, lambda name: f"are on {name}"),
        "process": (lambda one: (one.comm or units.MISSING, one.pid),
                    lambda who: "were sent by {} ({})".format(*_pair(who))),
        "cgroup": (lambda one: one.group or None, lambda path: f"are of the cgroup {path}"),
        "size": (lambda one: one.size,
                 lambda size: f"are of {units.size(float(str(size)))}"),
        "flags": (lambda one: one.flags, lambda flags: f"are {flags}"),
        "flush": (_beside(exemplars), lambda _: "were in flight together with a flush"),
        "time": (lambda one: one.completed_ns // TOGETHER_NS,
                 lambda _: "completed within the same 10 ms"),
    }  # fmt: skip


def _pair(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _regions(compared: Sequence[Exemplar]) -> tuple[Property, Callable[[object], str]]:
    places = [one.offset for one in compared if one.offset is not None]
    first = min(places, default=0)
    length = max(1, -(-(max(places, default=0) + 1 - first) // REGIONS))

    def region(one: Exemplar) -> object | None:
        return None if one.offset is None else (one.disk, (one.offset - first) // length)

    def words(value: object) -> str:
        disk, place = _pair(value)
        begin = first + int(str(place)) * length
        return f"lie at {units.size(begin)} to {units.size(begin + length)} of {disk}"

    return region, words


def _beside(exemplars: Sequence[Exemplar]) -> Property:
    flushes = [(one.began_ns, one.completed_ns) for one in exemplars if one.kind == FLUSHES]

    def beside(one: Exemplar) -> object | None:
        if one.kind == FLUSHES:
            return None
        return (
            any(begin < one.completed_ns and end > one.began_ns for begin, end in flushes) or None
        )

    return beside
