"""Where the I/Os in flight are: waiting for a CPU, above the block layer, in which layer below.

All counts are means over one interval. The number in flight is Little's law, N = X * R (fio's
IOPS times its mean latency); without a job it is what the top devices hold. The parts add up to
N exactly: what no counter explains is ``unknown``.

What a layer holds follows from iostat's figures. A request spends ``aqu-sz / (requests per
second)`` in a device, so X I/Os per second hold ``X * aqu-sz / (requests per second)`` of it,
however requests were merged or split. A layer's own share is what it holds less what the devices
below it hold of its requests.

Limits of the method:

- A neighbour's requests on the same device count as slow as ours.
- Parts of one I/O that are in several devices at once (stripes, mirrors) count once.
- RAID 4, 5 and 6 read before they write: those two times are added up.
- What a snapshot or a thin pool copies counts as held by the snapshot or the pool.
- A cache between two layers (page cache of a loop device, dm-cache) lets a share of the requests
  pass: they are weighted by the bytes that reach the lower device.
- Buffered writes return before the device has them. The kernel writes them later, so all of them
  wait above the block layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iopstui.model.block.target import DeviceLinks
from iopstui.model.rates import DiskRates

Lower = Mapping[str, Sequence[str]]
"""The devices directly below each device."""

PARITY_RAID = ("raid4", "raid5", "raid6")
ROUNDING = 1e-9
"""Sums of the same seconds in another order differ by less than this share."""
CACHED = 0.9
"""Less than this share of the bytes reaches the device below: a cache answers the rest."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The devices below a target. ``tops`` are those whose counters count its I/Os, ``lower`` the
    devices directly below each one, ``raid`` the level of each md array ("raid5")."""

    tops: tuple[str, ...] = ()
    lower: Lower = field(default_factory=dict)
    raid: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tops: Sequence[str], links: Sequence[DeviceLinks]) -> Stack:
        """The stack below ``tops``."""
        raid = {one.name: one.layer for one in links if one.layer in PARITY_RAID}
        return cls(tuple(tops), {one.name: one.below for one in links}, raid)

    @property
    def lowest(self) -> tuple[str, ...]:
        """The devices that nothing lies below."""
        found: dict[str, None] = {}
        waiting = list(self.tops)
        while waiting:
            name = waiting.pop(0)
            below = self.lower.get(name, ())
            waiting += below
            if not below:
                found[name] = None
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Waits:
    """Where ``ios`` I/Os in flight are, as means over an interval.

    ``above`` is ``None`` without a job, ``cpu`` also where the kernel does not say how long a job
    waited for a CPU (``above`` has those I/Os then). ``layers`` are devices from the top down.
    ``queue`` and ``device`` divide what the lowest devices hold (scheduler and tags; issued and
    not completed); ``None`` without the probe's part "way". ``unknown`` is what no counter
    explains. ``stalled``: nothing completed, so these are the counts at the interval's end.
    """

    ios: float
    cpu: float | None
    above: float | None
    layers: Mapping[str, float]
    queue: float | None
    device: float | None
    unknown: float
    stalled: bool = False


@dataclass(frozen=True, slots=True)
class JobLoad:
    """The job's side of an interval: ``ios`` in flight (N = X * R), ``iops`` and ``bytes_s``
    completed, and ``cpu_wait``, the mean share (0..1) of the interval in which a job was ready to
    run and had no CPU (``None``: not known)."""

    ios: float
    iops: float
    bytes_s: float | None
    cpu_wait: float | None


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Means of the probe for the lowest devices: allocation to issue, issue to completion."""

    queue_ns: float
    device_ns: float


def place_waits(
    stack: Stack,
    disks: Mapping[str, DiskRates],
    job: JobLoad | None = None,
    times: RequestTimes | None = None,
) -> Waits | None:
    """Where the I/Os of an interval are; ``None`` if nothing is known of them."""
    tops = [disks[name] for name in stack.tops if name in disks]
    if not tops or len(tops) < len(stack.tops):
        return _unseen(job)
    if _stalled(tops, job):
        return _at_the_end(stack, disks)
    held = _sum(tops, "aqu_sz")
    if held is None:
        return _unseen(job)
    total, inside = held, held
    if job is not None:
        total, inside = job.ios, min(job.ios, _held_of_job(tops, held, job))
    layers: dict[str, float] = {}
    for name in stack.tops:
        share = (disks[name].aqu_sz or 0.0) / held if held else 0.0
        _divide(name, inside * share, stack, disks, layers)
    above = cpu = None
    if job is not None:
        if job.cpu_wait is not None:
            cpu = min(total - inside, job.cpu_wait * total)
        above = total - inside - (cpu or 0.0)
    queue, device = _divide_lowest(stack, layers, times)
    return Waits(total, cpu, above, layers, queue, device, 0.0)


def _unseen(job: JobLoad | None) -> Waits | None:
    """No device is measured: all but the waiting for a CPU is unknown."""
    if job is None:
        return None
    cpu = None if job.cpu_wait is None else job.cpu_wait * job.ios
    return Waits(job.ios, cpu, None, {}, None, None, job.ios - (cpu or 0.0))


def _held_of_job(tops: Sequence[DiskRates], held: float, job: JobLoad) -> float:
    """How many of the job's I/Os the top devices hold."""
    requests = _sum(tops, "ios_s")
    if not requests:
        return 0.0
    moved = _sum(tops, "bytes_s")
    if moved is not None and job.bytes_s and moved < CACHED * job.bytes_s:
        return held  # a cache answers most I/Os: at most one waits for each request
    return job.iops * held / requests


def _divide(
    name: str, held: float, stack: Stack, disks: Mapping[str, DiskRates], layers: dict[str, float]
) -> None:
    """Divide what ``name`` holds between itself and the devices below it."""
    lower = [one for one in stack.lower.get(name, ()) if one in disks]
    below = held * _share_below(name, lower, stack, disks) if lower else 0.0
    layers[name] = layers.get(name, 0.0) + held - below
    queued = _sum([disks[one] for one in lower], "aqu_sz")
    for one in lower:
        part = (disks[one].aqu_sz or 0.0) / queued if queued else 0.0
        _divide(one, below * part, stack, disks, layers)


def _share_below(
    name: str, lower: Sequence[str], stack: Stack, disks: Mapping[str, DiskRates]
) -> float:
    """The share (0..1) of a request's time in ``name`` that it spends in the devices below."""
    own, under = _mean_s([disks[name]]), [disks[one] for one in lower]
    if own is None:
        return 0.0
    if stack.raid.get(name) in PARITY_RAID:
        time = _parity_s(disks[name], under)
    else:
        time = _mean_s(under)
        moved, passed = disks[name].bytes_s, _sum(under, "bytes_s")
        if time is not None and moved and passed is not None:
            time *= min(1.0, passed / moved)
    return 0.0 if time is None else min(1.0, time / own) if own else 1.0


def _parity_s(array: DiskRates, under: Sequence[DiskRates]) -> float | None:
    """Seconds that a request of a parity array spends below it: a write waits for the reads of
    what it replaces, then for its own writes."""
    requests, writes = array.ios_s, array.w_s
    if not requests or writes is None or array.r_s is None:
        return None
    reads, read_s = _sum(under, "r_s"), _await_s(under, "r")
    extra = max(0.0, (reads or 0.0) - array.r_s)
    first = read_s * min(1.0, extra / writes) if writes else 0.0
    return (array.r_s * read_s + writes * (first + _await_s(under, "w"))) / requests


def _await_s(disks: Sequence[DiskRates], letter: str) -> float:
    """Mean seconds of a read ("r") or write ("w") over all these devices; 0 of none."""
    waited = requests = 0.0
    for disk in disks:
        rate, wait = getattr(disk, f"{letter}_s"), getattr(disk, f"{letter}_await")
        if rate and wait is not None:
            waited, requests = waited + rate * wait / 1e3, requests + rate
    return waited / requests if requests else 0.0


def _mean_s(disks: Sequence[DiskRates]) -> float | None:
    """Mean seconds of a request in these devices (Little's law); ``None`` of none."""
    held, requests = _sum(disks, "aqu_sz"), _sum(disks, "ios_s")
    return held / requests if held is not None and requests else None


def _sum(disks: Sequence[DiskRates], name: str) -> float | None:
    values = [getattr(disk, name) for disk in disks]
    return None if not values or None in values else sum(values)


def _divide_lowest(
    stack: Stack, layers: Mapping[str, float], times: RequestTimes | None
) -> tuple[float | None, float | None]:
    """What the lowest devices hold, divided by the probe's times."""
    whole = times.queue_ns + times.device_ns if times is not None else 0.0
    if times is None or not whole:
        return None, None
    held = sum(value for name, value in layers.items() if not stack.lower.get(name))
    return held * times.queue_ns / whole, held * times.device_ns / whole


def _stalled(tops: Sequence[DiskRates], job: JobLoad | None) -> bool:
    """Nothing completed in the interval, and something is in flight."""
    done = _sum(tops, "ios_s")
    return done == 0 and not (job and job.iops) and any(disk.in_flight for disk in tops)


def _at_the_end(stack: Stack, disks: Mapping[str, DiskRates]) -> Waits:
    """From the counts of requests in flight at the interval's end."""
    layers: dict[str, float] = {}

    def visit(name: str) -> None:
        lower = [one for one in stack.lower.get(name, ()) if one in disks]
        own = float(disks[name].in_flight or 0)
        below = sum(disks[one].in_flight or 0 for one in lower)
        layers.setdefault(name, max(0.0, own - below))
        for one in lower:
            visit(one)

    for name in stack.tops:
        visit(name)
    return Waits(sum(layers.values()), None, None, layers, None, None, 0.0, stalled=True)


class MeanWaits:
    """The mean of the waits of some intervals, weighted by their length."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._sums: dict[str, float] = {}
        self._layers: dict[str, float] = {}
        self._counts: dict[str, float] = {}

    def add(self, waits: Waits | None, seconds: float | None) -> None:
        """Count one interval; stalled ones have counts of a moment and no means."""
        if waits is None or not seconds or waits.stalled:
            return
        self._seconds += seconds
        for name in ("ios", "unknown", "cpu", "above", "queue", "device"):
            value = getattr(waits, name)
            if value is not None:
                self._sums[name] = self._sums.get(name, 0.0) + value * seconds
                self._counts[name] = self._counts.get(name, 0.0) + seconds
        for name, value in waits.layers.items():
            self._layers[name] = self._layers.get(name, 0.0) + value * seconds

    def join(self, later: MeanWaits) -> None:
        """Count the intervals that another one counted."""
        self._seconds += later._seconds
        for mine, theirs in (
            (self._sums, later._sums),
            (self._layers, later._layers),
            (self._counts, later._counts),
        ):
            for name, value in theirs.items():
                mine[name] = mine.get(name, 0.0) + value

    @property
    def empty(self) -> bool:
        """Whether no interval was counted."""
        return not self._seconds

    @property
    def value(self) -> Waits | None:
        """The mean so far; ``None`` of nothing. A part that some intervals lack is ``None``."""
        if self.empty:
            return None
        seconds = self._seconds
        whole = {
            name: total / seconds
            for name, total in self._sums.items()
            if self._counts[name] >= seconds * (1 - ROUNDING)
        }
        return Waits(
            ios=whole.get("ios", 0.0),
            cpu=whole.get("cpu"),
            above=whole.get("above"),
            layers={name: total / seconds for name, total in self._layers.items()},
            queue=whole.get("queue"),
            device=whole.get("device"),
            unknown=whole.get("unknown", 0.0),
        )


def wait_parts(waits: Waits) -> list[tuple[str, float]]:
    """The parts with their names, from the top down; parts that are not known are left out."""
    parts = [("waiting for a CPU", waits.cpu), ("above the device", waits.above)]
    parts += list(waits.layers.items())
    if waits.unknown > 0:
        parts.append(("unknown", waits.unknown))
    return [(name, value) for name, value in parts if value is not None]


def waits_line(waits: Waits) -> str:
    """One line: "In flight 8.0: waiting for a CPU 0.1, above the device 0.3, vda 7.6"."""
    parts = ", ".join(f"{name} {value:.1f}" for name, value in wait_parts(waits))
    return f"In flight {waits.ios:.1f}: {parts}"
