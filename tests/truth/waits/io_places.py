"""Where fio's I/Os were in a span of time, from the kernel's trace only.

An I/O is in flight from its system call until fio has reaped it. A device holds it while one of its
bios is in that device and in no device below; a bio that is in several devices at once is divided
evenly among them. An I/O outside of all devices is above them; while its task is ready to run
without a CPU, it waits for a CPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from io_trace import BlockEvent, CallEvent, Device, Event, SchedEvent

ABOVE, CPU, IOS, QUEUE, DEVICE = "above", "cpu", "ios", "queue", "device"
FOREVER = 1e18
SYNCHRONOUS = ("pread64", "pwrite64", "fsync", "fdatasync")

Addresses = Callable[[Device, int], Sequence[tuple[Device, int]]]
"""(device, sector) -> the same place in the devices above, for layers without remap events."""
READ = "R"


@dataclass(eq=False, slots=True)
class Bio:
    """A bio in one device from ``start`` to ``end``; its request was issued at ``issued``."""

    device: Device
    kind: str
    sector: int
    sectors: int
    start: float
    task: int
    end: float = FOREVER
    issued: float = FOREVER
    parts: list[Bio] = field(default_factory=list)

    def holds(self, sector: int) -> bool:
        """Whether the bio covers the sector."""
        return self.sector <= sector < self.sector + self.sectors


class Bios:
    """Follows the bios of all devices. ``of_fio`` are those that fio sent to ``top``; with in_cache
    only reads, because buffered writes reach the devices after fio's I/Os have ended."""

    def __init__(
        self, top: Device, addresses: Addresses, in_cache: bool = False, parity: bool = False
    ) -> None:
        self._parity = parity
        self.of_fio: list[Bio] = []
        self._top, self._addresses, self._in_cache = top, addresses, in_cache
        self._open: dict[Device, list[Bio]] = defaultdict(list)
        self._remaps: dict[tuple[Device, int], tuple[Device, int]] = {}

    def feed(self, event: BlockEvent) -> None:
        """Take the next event."""
        if event.name == "bio_remap" and event.old is not None:
            self._remaps[event.device, event.sector] = event.old, event.old_sector
        elif event.name == "bio_queue" and event.sectors:
            self._queue(event)
        elif event.name == "rq_issue":
            for bio in self._within(event):
                bio.issued = min(bio.issued, event.t)
        elif event.name == "rq_complete":
            self._end(self._within(event), event.t)
        elif event.name == "bio_complete":
            # the sector of a completed bio is the one after its last
            place = event.sector if event.sectors else None
            candidates = [bio for bio in self._open[event.device]
                     if (bio.sector == place if place is not None
                         else bio.sector + bio.sectors == event.sector)]  # fmt: skip
            self._end(candidates[:1], event.t)

    def _queue(self, event: BlockEvent) -> None:
        bio = Bio(event.device, event.kind, event.sector, event.sectors, event.t, event.task)
        above = self._remaps.get((event.device, event.sector))
        places = [above] if above else self._addresses(event.device, event.sector)
        for device, sector in places:
            for parent in self._open[device]:
                if parent.holds(sector) and (above or self._together(parent, event)):
                    parent.parts.append(bio)
        of_fio = event.comm == "fio" and (event.kind.startswith(READ) or not self._in_cache)
        if event.device == self._top and of_fio:
            self.of_fio.append(bio)
        self._open[event.device].append(bio)

    def _together(self, parent: Bio, event: BlockEvent) -> bool:
        """Whether both may belong to one I/O: reads to reads, except reads for the parity of a
        write."""
        return self._parity or parent.kind.startswith(READ) == event.kind.startswith(READ)

    def _within(self, event: BlockEvent) -> list[Bio]:
        end = event.sector + event.sectors
        return [b for b in self._open[event.device] if event.sector <= b.sector < end]

    def _end(self, bios: Sequence[Bio], t: float) -> None:
        for bio in bios:
            bio.end = t
            self._open[bio.device].remove(bio)


class Steps:
    """A number that changes in steps; its amount in a span is an integral."""

    def __init__(self) -> None:
        self.changes: list[tuple[float, float]] = []

    def add(self, t: float, change: float) -> None:
        """The number grows by ``change`` at ``t``."""
        self.changes.append((t, change))


@dataclass
class Tasks:
    """fio's tasks: their I/Os in flight, and when they were ready to run without a CPU."""

    ios: dict[int, Steps] = field(default_factory=lambda: defaultdict(Steps))
    ready: dict[int, Steps] = field(default_factory=lambda: defaultdict(Steps))
    _waiting: set[int] = field(default_factory=set)
    _calls: set[int] = field(default_factory=set)

    def feed(self, event: CallEvent | SchedEvent) -> None:
        """Take the next event."""
        if isinstance(event, CallEvent):
            self._call(event)
        elif event.name == "wakeup" or event.ready:
            if event.task not in self._waiting:
                self._waiting.add(event.task)
                self.ready[event.task].add(event.t, 1)
        elif event.name == "in" and event.task in self._waiting:
            self._waiting.remove(event.task)
            self.ready[event.task].add(event.t, -1)

    def _call(self, event: CallEvent) -> None:
        begins = event.result is None
        if event.name in SYNCHRONOUS:
            if begins != (event.task in self._calls):
                (self._calls.add if begins else self._calls.remove)(event.task)
                self.ios[event.task].add(event.t, 1 if begins else -1)
        elif event.name == "io_submit" and begins:
            self.ios[event.task].add(event.t, 1)
        elif event.name == "io_getevents" and event.result and event.result > 0:
            self.ios[event.task].add(event.t, -event.result)


def places(
    events: Iterable[Event],
    spans: Sequence[tuple[float, float]],
    top: Device,
    names: Mapping[Device, str],
    addresses: Addresses = lambda device, sector: (),
    lowest: Sequence[str] = (),
    in_cache: bool = False,
    parity: bool = False,
) -> list[dict[str, float]]:
    """The mean number of I/Os in each place, for each span (spans are in order and don't
    overlap)."""
    bios, tasks = Bios(top, addresses, in_cache, parity), Tasks()
    for event in events:
        if isinstance(event, BlockEvent):
            bios.feed(event)
        else:
            tasks.feed(event)
    means = [dict.fromkeys((IOS, CPU, ABOVE, QUEUE, DEVICE, *names.values()), 0.0) for _ in spans]
    for bio in bios.of_fio:
        for (begin, end), sums in zip(spans, means, strict=True):
            if bio.start < end and bio.end > begin:
                _divide(bio, max(begin, bio.start), min(end, bio.end), 1.0, names, lowest, sums)
    for number, (begin, end) in enumerate(spans):
        sums = means[number]
        for task, ios in tasks.ios.items():
            task_bios = [bio for bio in bios.of_fio if bio.task == task]
            _outside(ios, task_bios, tasks.ready[task], begin, end, sums)
        means[number] = {name: value / (end - begin) for name, value in sums.items()}
    return means


def _divide(
    bio: Bio, begin: float, end: float, weight: float, names: Mapping[Device, str],
    lowest: Sequence[str], sums: dict[str, float],
) -> None:  # fmt: skip
    """Add the seconds from ``begin`` to ``end`` to the devices that hold the bio."""
    inside = [p for p in bio.parts if p.start < end and p.end > begin]
    times = sorted({begin, end, *(t for p in inside for t in (p.start, p.end) if begin < t < end)})
    name = names[bio.device]
    for a, b in pairwise(times):
        parts = [p for p in inside if p.start <= a and p.end >= b]
        for part in parts:
            _divide(part, a, b, weight / len(parts), names, lowest, sums)
        if parts:
            continue
        sums[name] += weight * (b - a)
        if name in lowest:
            issued = min(max(bio.issued, a), b)
            sums[QUEUE] += weight * (issued - a)
            sums[DEVICE] += weight * (b - issued)


def _outside(
    ios: Steps, bios: Sequence[Bio], ready: Steps, begin: float, end: float, sums: dict[str, float]
) -> None:
    """Add one task's I/Os, and those that are in no device."""
    steps = [(t, change, change, 0.0) for t, change in ios.changes]
    steps += [(bio.start, 0.0, -1.0, 0.0) for bio in bios]
    steps += [(bio.end, 0.0, 1.0, 0.0) for bio in bios if bio.end < FOREVER]
    steps += [(t, 0.0, 0.0, change) for t, change in ready.changes]
    before, flying, outside, waiting = begin, 0.0, 0.0, 0.0
    for t, more, out, wait in (*sorted(steps), (end, 0.0, 0.0, 0.0)):
        if t > begin:
            passed = min(t, end) - before
            sums[IOS] += passed * flying
            sums[CPU if waiting > 0 else ABOVE] += passed * outside
            before = min(t, end)
        if t >= end:
            break
        flying, outside, waiting = flying + more, outside + out, waiting + wait
