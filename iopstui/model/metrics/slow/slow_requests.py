"""Single requests: the known facts on each, and words for them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import pairwise
from math import log

from iopstui import format as units
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.probe import KINDS, ProbeInterval
from iopstui.model.samples import Exemplar

FLUSHES = "flush"
SLOW_KINDS = (*KINDS, FLUSHES)
TOTAL_COUNT = 10
"""How many requests of each direction are shown for a whole run."""
COMPARED_COUNT = 50
"""How many of the slowest requests of each direction are kept for a whole run, with as many random
ones."""
# enum req_op and the flags above it (include/linux/blk_types.h), as blk_fill_rwbs shows them
_OPERATIONS = {0: "R", 1: "W", 2: "F", 3: "D", 5: "DE"}
_FLUSH_BEFORE = 1 << 18
_FLAGS = ((1 << 17, "F"), (1 << 19, "A"), (1 << 11, "S"), (1 << 12, "M"))


def rwbs(flags: int) -> str:
    """The letters of the kernel's tracepoints for a request's ``cmd_flags``: F before the
    operation's letter means flush first, F after it FUA; A readahead, S sync, M metadata."""
    before = "F" if flags & _FLUSH_BEFORE else ""
    letters = "".join(letter for flag, letter in _FLAGS if flags & flag)
    return before + _OPERATIONS.get(flags & 0xFF, "N") + letters


def stages_text(request: Exemplar) -> str:
    """How the request's time was spent: "2.11 ms queued, 7.10 ms device"."""
    parts = (
        ("tried before", request.tried_ns), ("plugged", request.plugged_ns),
        ("queued", request.queued_ns), ("device", request.device_ns),
    )  # fmt: skip
    return ", ".join(f"{units.latency(ns)} {name}" for name, ns in parts if ns is not None)


def request_text(request: Exemplar) -> str:
    """A description of a request: "sector 2048, 4 KiB RS, fio (700), CPU 0 → 1"."""
    location = (
        "" if request.sector is None else f"sector {request.sector}, {units.size(request.size)} "
    )
    process = f"{request.comm or units.MISSING} ({request.pid})"
    error = f", status {request.error}" if request.error else ""
    return f"{location}{request.flags}, {process}, CPU {request.cpu} → {request.cpu_done}{error}"


def completion_second(exemplar: Exemplar, probe: ProbeInterval, t: float) -> float:
    """When a request completed, in seconds of the session; ``t`` is the time of the frame that has
    this ``probe``."""
    return t - probe.age_s - (probe.read_ns - exemplar.completed_ns) / 1e9


def slowest(exemplars: Iterable[Exemplar], count: int) -> list[Exemplar]:
    return nlargest(count, exemplars, key=lambda request: request.total_ns)


def mark_flushes(exemplars: Sequence[Exemplar]) -> Sequence[Exemplar]:
    """The requests; those in flight together with a flush are marked."""
    flushes = [
        (request.began_ns, request.completed_ns) for request in exemplars if request.kind == FLUSHES
    ]

    def marked(request: Exemplar) -> Exemplar:
        beside = any(
            begin < request.completed_ns and end > request.began_ns for begin, end in flushes
        )
        return (
            replace(request, beside_flush=True) if beside and request.kind != FLUSHES else request
        )

    return [marked(request) for request in exemplars] if flushes else exemplars


class SlowestTotal:
    """The slowest requests of many frames, by direction and level, with the second of the session
    in which each completed; and a random sample of all requests to compare with."""

    def __init__(self) -> None:
        self._slowest: dict[tuple[str, int], list[tuple[float, Exemplar]]] = {}
        self._sample: dict[tuple[str, int], list[tuple[float, Exemplar]]] = {}

    def add(self, frame: Frame) -> None:
        probe = frame.probe
        if probe is None or not probe.exemplars:
            return
        counts = {kind: _count(probe, kind) for kind in KINDS}
        exemplars = mark_flushes(probe.exemplars)
        for request in exemplars:
            if request.slow:
                self._add(completion_second(request, probe, frame.t), request)
        for request in exemplars:
            # flushes are left out, because their number is not known
            if request.sampled and counts.get(request.kind):
                self._add_sampled(_sampling_key(request, counts[request.kind]), request)

    def join(self, later: SlowestTotal) -> None:
        for rows in later._slowest.values():
            for t, request in rows:
                self._add(t, request)
        for sample in later._sample.values():
            for lot, request in sample:
                self._add_sampled(lot, request)

    def slowest_of(self, kind: str) -> list[tuple[float, Exemplar]]:
        """The slowest requests of a direction, from the uppermost disks that have any, the slowest
        first."""
        return next(iter(self._by_level(kind)), [])

    def all(self) -> list[tuple[float, Exemplar]]:
        """The slowest requests of all directions and levels, by direction and level, the slowest
        first."""
        return [row for kind in SLOW_KINDS for rows in self._by_level(kind) for row in rows]

    def _by_level(self, kind: str) -> list[list[tuple[float, Exemplar]]]:
        keys = sorted(key for key in self._slowest if key[0] == kind)
        return [self._slowest[key][:TOTAL_COUNT] for key in keys]

    def selection(self) -> list[Exemplar]:
        """The COMPARED_COUNT slowest requests of each direction and level, and up to as many random
        ones that are not among them, marked as such: the input of ``common_properties``."""
        requests = [request for rows in self._slowest.values() for _, request in rows]
        slow = {id(request) for request in requests}
        return requests + [
            replace(request, slow=False)
            for sample in self._sample.values() for _, request in sample if id(request) not in slow
        ]  # fmt: skip

    def _add(self, t: float, request: Exemplar) -> None:
        rows = self._slowest.setdefault((request.kind, request.level), [])
        if len(rows) >= COMPARED_COUNT and request.total_ns <= rows[-1][1].total_ns:
            return
        insort(rows, (t, request), key=lambda row: -row[1].total_ns)
        del rows[COMPARED_COUNT:]

    def _add_sampled(self, lot: float, request: Exemplar) -> None:
        sample = self._sample.setdefault((request.kind, request.level), [])
        if len(sample) >= COMPARED_COUNT and lot >= sample[-1][0]:
            return
        insort(sample, (lot, request), key=lambda row: row[0])
        del sample[COMPARED_COUNT:]


def _count(probe: ProbeInterval, kind: str) -> int:
    """How many requests of a direction were completed."""
    return sum(by_kind[kind].device.ios for by_kind in probe.disks.values() if kind in by_kind)


def _sampling_key(request: Exemplar, count: int) -> float:
    """A reproducible pseudo-random number: the requests with the lowest numbers are a random sample
    of all, regardless of their order. Each second's own sample has the same size, so a request of a
    second with ``count`` requests is weighted by that number (Efraimidis and Spirakis, 2006;
    Fibonacci hashing of the time)."""
    hash_value = request.completed_ns * 0x9E3779B97F4A7C15 & 0xFFFF_FFFF_FFFF_FFFF
    return -log((hash_value + 1) / 2**64) / count


# Slow and random requests of a direction, and which of them are one event.
#
# Requests that wait for each other are slow together, and share their process and place for that
# reason alone. So requests that began or completed within 10 ms of each other count as one
# observation.


EVENT_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class SlowEvents:
    """The requests of one direction to compare, from the disks of one level: ``slow`` ones, and
    random ones (``sample``) that are not slow. ``slow_events`` and ``sample_events`` are the
    positions in ``requests`` of one request of each event. ``disks`` names the disks if there are
    other levels."""

    kind: str
    slow: tuple[Exemplar, ...]
    sample: tuple[Exemplar, ...]
    slow_events: frozenset[int]
    sample_events: frozenset[int]
    disks: str = ""

    @property
    def requests(self) -> tuple[Exemplar, ...]:
        """The slow requests, then the random ones."""
        return (*self.slow, *self.sample)


def by_level(exemplars: Iterable[Exemplar]) -> dict[int, list[Exemplar]]:
    """The requests by the level of their disk. Levels are not mixed: an I/O has a request on each
    level, the upper requests always take longer, and the I/O would be compared with itself."""
    levels: dict[int, list[Exemplar]] = {}
    for exemplar in exemplars:
        levels.setdefault(exemplar.level, []).append(exemplar)
    return dict(sorted(levels.items()))


def slow_events(kind: str, exemplars: Sequence[Exemplar]) -> list[SlowEvents]:
    """The requests of a direction to compare, by level; nothing for a level without both slow and
    random requests."""
    levels = by_level(exemplar for exemplar in exemplars if exemplar.kind == kind)
    several = len(levels) > 1
    events = [_compare_level(kind, level_requests, several) for level_requests in levels.values()]
    return [level_events for level_events in events if level_events is not None]


def _compare_level(kind: str, requests: Sequence[Exemplar], several: bool) -> SlowEvents | None:
    slow = tuple(exemplar for exemplar in requests if exemplar.slow)
    # a request that is both slow and random says nothing about the difference
    sample = tuple(exemplar for exemplar in requests if exemplar.sampled and not exemplar.slow)
    if not slow or not sample:
        return None
    sample_events = frozenset(len(slow) + position for position in slowest_per_event(sample))
    disks = ", ".join(sorted({exemplar.disk for exemplar in requests})) if several else ""
    return SlowEvents(kind, slow, sample, slowest_per_event(slow), sample_events, disks)


def slowest_per_event(requests: Sequence[Exemplar]) -> frozenset[int]:
    """The position of the slowest request of each event."""
    event = list(range(len(requests)))
    for times in (
        [request.began_ns for request in requests],
        [request.completed_ns for request in requests],
    ):
        order = sorted(range(len(requests)), key=times.__getitem__)
        for before, position in pairwise(order):
            if times[position] - times[before] <= EVENT_NS:
                merged, target = event[position], event[before]
                event = [target if number == merged else number for number in event]
    slowest_of: dict[int, int] = {}
    for position, number in enumerate(event):
        best = slowest_of.setdefault(number, position)
        if requests[position].total_ns > requests[best].total_ns:
            slowest_of[number] = position
    return frozenset(slowest_of.values())
