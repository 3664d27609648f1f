"""What the slow requests have in common, beyond chance.

The slowest requests of a direction are compared with the random sample of the same seconds: if
slowness had nothing to do with a property, each choice of the slow ones among these events would be
equally likely (Fisher's exact test, one-sided). Every value of every property that occurs is a
question, so the limit is divided by the number of questions that these numbers of events could
answer at all (Tarone's correction): at most 1 analysis in 100 makes a false claim.

If most of the slow requests are a single event, the event is reported instead, without odds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, comb

from iopstui import format as units
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.slow.slow_requests import (
    EVENT_NS,
    FLUSHES,
    SLOW_KINDS,
    SlowEvents,
    mark_flushes,
    request_text,
    slow_events,
    slowest,
    stages_text,
)
from iopstui.model.rates import median
from iopstui.model.samples import Exemplar

MAX_FALSE_SHARE = 0.01
MAX_ODDS = 1_000_000
"""Largest odds that are shown (1 in this many): nobody can tell smaller chances apart."""
MIN_SHARE = 0.6
"""A property that fewer of the slow requests have explains too little."""
REGION_SHARES = (1.0, 0.8)
"""A region is sought for each of these shares of the slow events."""

PAUSE_NS = 20_000_000
PAUSE_TIMES = 10
"""A pause is reported if the median of its requests is at least ``PAUSE_NS``, and ``PAUSE_TIMES``
the median of the random ones. On a quiet machine a late CPU delays a queue of a few requests by 1
to 19 ms several times a second, which is not a pause of the disk."""

Property = Callable[[Exemplar], "object | None"]
_PROPERTIES: Mapping[str, tuple[Property, Callable[[object], str]]] = {
    "cpu": (lambda request: request.cpu, lambda cpu: f"were sent on CPU {cpu}"),
    "cpu_done": (lambda request: request.cpu_done, lambda cpu: f"completed on CPU {cpu}"),
    "hctx": (lambda request: request.hctx, lambda n: f"went through hardware queue {n}"),
    "disk": (lambda request: request.disk, lambda name: f"are on {name}"),
    "process": (lambda request: (request.comm or units.MISSING, request.pid),
                lambda sender: "were sent by {} ({})".format(*_pair(sender))),
    "cgroup": (lambda request: request.group or None, lambda path: f"are of the cgroup {path}"),
    "size": (lambda request: request.size,
             lambda size: f"are of {units.size(float(str(size)))}"),
    "flags": (lambda request: request.flags, lambda flags: f"are {flags}"),
    "flush": (lambda request: request.beside_flush or None,
              lambda _: "were in flight together with a flush"),
}  # fmt: skip
"""For each property, the function that reads it and the one that puts its value into words."""


@dataclass(frozen=True, slots=True)
class CommonProperty:
    """``slow_with`` of ``slow`` slow requests of a direction have a property, and ``sample_with``
    of ``sample`` random ones; the slow ones were ``events`` separate events. ``chance`` is the
    probability (0 to 1) that this many or more have it by chance, ``None`` if they are one event.
    ``disks`` names their disks if a stack has requests on several layers."""

    kind: str
    words: str
    slow_with: int
    slow: int
    sample_with: int
    sample: int
    events: int
    chance: float | None
    disks: str = ""

    @property
    def text(self) -> str:
        """A sentence: "9 of the 10 slowest reads were completed on CPU 3, of 10 random ones 1 (8
        separate events, by chance: 1 in 2,800)"."""
        scope = f"of {self.disks} " if self.disks else ""
        compared = (
            f"{self.slow_with} of the {self.slow} slowest {plural(self.kind)} {scope}{self.words}, "
            f"of {self.sample} random ones {self.sample_with}"
        )
        if self.chance is None:
            return f"{compared}: one event, as if the disk or its CPU had paused"
        times = min(1 / self.chance, MAX_ODDS) if self.chance else MAX_ODDS
        below = "less than " if times == MAX_ODDS else ""
        return f"{compared} ({self.events} separate events, by chance: {below}1 in {times:,.0f})"


def plural(kind: str) -> str:
    """The name of the requests: "reads", "flushes"."""
    return f"{kind}es" if kind == FLUSHES else f"{kind}s"


def common_properties(exemplars: Sequence[Exemplar]) -> list[CommonProperty]:
    """What the slow ones among these requests have in common: first the directions in which most of
    them are one event, then properties, the least likely by chance first. A property is reported
    with at most one value per direction; if several properties fit the same requests (a CPU and its
    queue), only the first is listed."""
    marked = mark_flushes(exemplars)
    directions = [compared for kind in SLOW_KINDS for compared in slow_events(kind, marked)]
    questions = [question for compared in directions for question in _questions(compared)]
    limit = MAX_FALSE_SHARE / _answerable([question.least_chance for question in questions])
    best: dict[tuple[str, str, str], _Question] = {}
    for question in questions:
        if question.chance > limit or not question.is_common:
            continue
        key = (question.compared.kind, question.compared.disks, question.name)
        before = best.get(key)
        if before is None or question.chance < before.chance:
            best[key] = question
    first: dict[tuple[str, str, frozenset[int]], _Question] = {}
    for question in sorted(best.values(), key=lambda question: question.chance):
        earlier = first.setdefault(
            (question.compared.kind, question.compared.disks, question.slow_with), question
        )
        if (earlier.name, question.name) == ("process", "cgroup"):
            combined = replace(earlier, predicate=f"{earlier.predicate} and {question.predicate}")
            first[question.compared.kind, question.compared.disks, question.slow_with] = combined
    pauses = [pause for compared in directions if (pause := _pause(compared))]
    return [*pauses, *(question.claim for question in first.values())]


def slow_requests_text(frame: Frame) -> Iterator[str]:
    """Text on the slowest request of each direction in a frame's second, and on what the slow ones
    have in common; empty without the probe's requests."""
    probe = frame.probe
    exemplars = probe.exemplars if probe is not None else ()
    for kind in SLOW_KINDS:
        for request in slowest((e for e in exemplars if e.kind == kind), 1):
            total = units.latency(request.total_ns)
            yield f"slowest {kind} {total}: {stages_text(request)}; {request_text(request)}"
    yield from (claim.text for claim in common_properties(exemplars))


def tail(least: int, matching: int, drawn: int, total: int) -> float:
    """Chance that at least ``least`` of ``drawn`` items match if ``matching`` of ``total`` items do
    (hypergeometric distribution)."""
    most = min(matching, drawn)
    combinations = sum(
        comb(matching, n) * comb(total - matching, drawn - n) for n in range(least, most + 1)
    )
    return combinations / comb(total, drawn)


@dataclass(frozen=True, slots=True)
class _Question:
    """Is a property, given as a ``predicate``, more frequent among the slow requests ``compared``?
    ``matching`` are the positions of the requests that have it. ``chance`` is the probability that
    at least as many slow events have it by chance, ``least_chance`` the smallest probability that
    these numbers allow."""

    compared: SlowEvents
    name: str
    predicate: str
    matching: frozenset[int]
    chance: float
    least_chance: float

    @property
    def slow_with(self) -> frozenset[int]:
        return frozenset(
            position for position in self.matching if position < len(self.compared.slow)
        )

    @property
    def is_common(self) -> bool:
        """Whether enough of the slow requests, and of their events, have the property."""
        events = len(self.matching & self.compared.slow_events)
        return (
            len(self.slow_with) >= MIN_SHARE * len(self.compared.slow)
            and events >= MIN_SHARE * len(self.compared.slow_events)
        )  # fmt: skip

    @property
    def claim(self) -> CommonProperty:
        """The property with its counts, to report if the answer to the question is yes."""
        compared, slow_with = self.compared, len(self.slow_with)
        return CommonProperty(
            compared.kind, self.predicate, slow_with, len(compared.slow),
            len(self.matching) - slow_with, len(compared.sample), len(compared.slow_events),
            self.chance, compared.disks,
        )  # fmt: skip


def _pause(compared: SlowEvents) -> CommonProperty | None:
    """A pause: most of the slow requests are one event, far slower than the random ones, completed
    within the same 10 ms, and unlike the random ones (Fisher's exact test, only as a filter: there
    are no odds for requests of one event)."""
    took, usual = (
        median(request.total_ns for request in requests)
        for requests in (compared.slow, compared.sample)
    )
    if took < PAUSE_NS or took < PAUSE_TIMES * usual:
        return None
    ends = sorted(request.completed_ns for request in compared.slow)
    counts = [bisect_right(ends, begin + EVENT_NS) - n for n, begin in enumerate(ends)]
    largest = max(counts)
    begin = ends[counts.index(largest)]
    random_within = sum(
        begin <= request.completed_ns <= begin + EVENT_NS for request in compared.sample
    )
    slow, sample = len(ends), len(compared.sample)
    if (
        largest < MIN_SHARE * slow
        or tail(largest, largest + random_within, slow, slow + sample) > MAX_FALSE_SHARE / slow
    ):
        return None
    predicate = "completed within the same 10 ms"
    return CommonProperty(
        compared.kind, predicate, largest, slow, random_within, sample, 1, None, compared.disks
    )


def _questions(compared: SlowEvents) -> Iterator[_Question]:
    for name, (value_of, describe) in _PROPERTIES.items():
        having: dict[object, list[int]] = {}
        for position, request in enumerate(compared.requests):
            value = value_of(request)
            if value is not None:
                having.setdefault(value, []).append(position)
        for value, positions in having.items():
            yield _question(compared, name, describe(value), frozenset(positions))
    for disk in sorted({slow_request.disk for slow_request in compared.slow}):
        yield from _regions(compared, disk)


def _question(
    compared: SlowEvents, name: str, predicate: str, matching: frozenset[int]
) -> _Question:
    slow_with, sample_with = (
        len(matching & compared.slow_events),
        len(matching & compared.sample_events),
    )
    slow, having = len(compared.slow_events), slow_with + sample_with
    events = slow + len(compared.sample_events)
    least = tail(min(having, slow), having, slow, events)
    return _Question(
        compared, name, predicate, matching, tail(slow_with, having, slow, events), least
    )


def _regions(compared: SlowEvents, disk: str) -> Iterator[_Question]:
    """For each of REGION_SHARES, the shortest region of the disk that has this share of the slow
    events."""
    events = sorted(
        (request.offset, position) for position in compared.slow_events | compared.sample_events
        if (request := compared.requests[position]).disk == disk and request.offset is not None
    )  # fmt: skip
    slow = [n for n, (_, position) in enumerate(events) if position in compared.slow_events]
    for count in (ceil(share * len(slow)) for share in REGION_SHARES):
        if count >= MIN_SHARE * len(compared.slow_events):
            yield _region(compared, disk, events, slow, count)


def _region(
    compared: SlowEvents,
    disk: str,
    events: Sequence[tuple[int, int]],
    slow: Sequence[int],
    count: int,
) -> _Question:
    """The shortest region, counted in ``events`` (offset and position), that has ``count`` of the
    ``slow`` ones. In the order of offsets, each run of ``length`` neighbours is equally likely to
    be slow, so the chance is at most the sum over all such runs."""
    length, first = min(
        (slow[n + count - 1] - slow[n] + 1, slow[n]) for n in range(len(slow) - count + 1)
    )

    def chance(length: int) -> float:
        regions = len(events) - length + 1
        return min(1.0, regions * tail(count, len(slow), length, len(events)))

    begin, end = events[first][0], events[first + length - 1][0]
    matching = frozenset(
        position for position, request in enumerate(compared.requests)
        if request.disk == disk and request.offset is not None and begin <= request.offset <= end
    )  # fmt: skip
    predicate = f"lie at {units.size(begin)} to {units.size(end)} of {disk}"
    return _Question(compared, "region", predicate, matching, chance(length), chance(count))


def _answerable(least: Iterable[float]) -> int:
    """How many questions can be answered. A property that is too rare for a significant result does
    not count (Tarone, 1990)."""
    sorted_least = sorted(least)
    for count in range(1, len(sorted_least) + 1):
        if sum(chance <= MAX_FALSE_SHARE / count for chance in sorted_least) <= count:
            return count
    return max(1, len(sorted_least))


def _pair(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
