"""Slow and random requests of a direction, and which of them are one event.

Requests that wait for each other are slow together, and share their process and place for that
reason alone. So those that began or completed within 10 ms of each other count as one observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from iopstui.model.samples import Exemplar

EVENT_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class SlowEvents:
    """The requests of a direction that are compared, of the disks of one level: ``slow`` ones, and
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
        """The slow ones, then the random ones."""
        return (*self.slow, *self.sample)


def by_level(exemplars: Iterable[Exemplar]) -> dict[int, list[Exemplar]]:
    """The requests by the level of their disk. An I/O is on each level: on the upper ones it takes
    longer in any case, and would be compared with itself."""
    levels: dict[int, list[Exemplar]] = {}
    for exemplar in exemplars:
        levels.setdefault(exemplar.level, []).append(exemplar)
    return dict(sorted(levels.items()))


def slow_events(kind: str, exemplars: Sequence[Exemplar]) -> list[SlowEvents]:
    """What is to compare of a direction, by level; nothing without slow or without random
    requests."""
    levels = by_level(exemplar for exemplar in exemplars if exemplar.kind == kind)
    several = len(levels) > 1
    events = [_compare_level(kind, level_requests, several) for level_requests in levels.values()]
    return [level_events for level_events in events if level_events is not None]


def _compare_level(kind: str, requests: Sequence[Exemplar], several: bool) -> SlowEvents | None:
    slow = tuple(exemplar for exemplar in requests if exemplar.slow)
    # one that is both says nothing of the difference
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
