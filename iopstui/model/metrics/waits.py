"""Where I/Os in flight are: waiting for a CPU, above the block layer, or in a layer below.

All counts are means over one interval. The number in flight is Little's law, N = X * R (fio's IOPS
times its mean latency); without a job it is the number in the top devices. The parts add up to N
exactly: the rest that no counter explains is ``unknown``.

How many a layer holds follows from iostat's figures. In each direction, a device holds ``requests
per second * await`` requests. The job's part of them is the bytes that block devices read and wrote
for its processes (/proc/PID/io) over the bytes that the device moved, and one request holds as many
I/Os as fit into its size. A layer's own part is what it holds less what the devices below hold of
its requests. I/Os that are not sent to a device are in the page cache (buffered), or belong to an
engine that sends none.

Limits of the method:

- A neighbour's requests on the same device count as slow as ours.
- Recordings without those counters: direct I/O counts as sent, buffered I/O only if the device
  moved about as many bytes as fio; else its place is unknown.
- Parts of one I/O in several devices at once (stripes, mirrors) count once; a mirrored write takes
  as long as the slowest mirror does on average.
- RAID 4, 5 and 6 read before they write: those two times are added up.
- I/Os that wait for copies of a snapshot or a thin pool count as held by the snapshot or the pool.
- A cache between two layers (page cache of a loop device, dm-cache) lets a share of the requests
  pass: requests are weighted by the bytes that reach the lower device.
- Buffered writes return before the device has them. The kernel writes them later, so all of them
  are in the page cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from iopstui.model.block.target import DeviceLinks
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import BOOLEAN, SECONDS, Figure, Rows

Lower = Mapping[str, Sequence[str]]
"""The devices directly below each device."""

PARITY_RAID = ("raid4", "raid5", "raid6")
ROUNDING = 1e-9
"""Sums in another order differ by less than this share, due to rounding."""
CACHED = 0.9
"""If less than this share of the bytes reaches the device, a cache answers the rest."""
EXCLUSIVE_SHARE = 0.9
"""A job that moves at least this share of a device's bytes counts as its only user."""
UNSURE_SHARE = 0.5
"""Used in place of these two shares if fio's interval and the kernel's cover different seconds."""
MIRRORED = 1.5
"""If at least this many bytes are written below for each byte above, several devices get a copy."""
DIRECTIONS = ("r", "w", "d")
MAX_LAYERS = 64
SENT_SHARE = 0.02
"""If a job sends less than this share of its bytes to a device, they are answered elsewhere."""
CACHE, UNSENT = "page cache", "not sent to a disk"


@dataclass(frozen=True, slots=True)
class Stack:
    """The devices below a target. ``tops`` are the devices whose counters count the target's I/Os,
    ``lower`` the devices directly below each one, in order from the top; ``raid`` the level of each
    md array ("raid5")."""

    tops: tuple[str, ...] = ()
    lower: Lower = field(default_factory=dict)
    raid: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_tops(cls, tops: Sequence[str], links: Sequence[DeviceLinks]) -> Stack:
        """The stack below ``tops``."""
        raid = {link.name: link.layer for link in links if link.layer in PARITY_RAID}
        return cls(tuple(tops), _in_order(tops, {link.name: link.below for link in links}), raid)

    @property
    def lowest(self) -> tuple[str, ...]:
        """The devices with no device below them."""
        return tuple(name for name in self.order if not self.lower.get(name))

    @property
    def order(self) -> tuple[str, ...]:
        """All devices of the stack, each after the devices above it."""
        return (*(name for name in self.tops if name not in self.lower), *self.lower)


def _in_order(tops: Sequence[str], below: Lower) -> dict[str, tuple[str, ...]]:
    """The layers below the tops, in order from the top. Cycles and too many layers are cut: a
    recording may contain anything."""
    found: dict[str, tuple[str, ...]] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in found:
            return
        path = (*above, name)
        lower = below.get(name, ()) if len(path) < MAX_LAYERS else ()
        lower = tuple(device for device in dict.fromkeys(lower) if device not in path)
        for device in reversed(lower):
            visit(device, path)
        found[name] = lower

    for top in reversed(tops):
        visit(top, ())
    return dict(reversed(found.items()))


@dataclass(frozen=True, slots=True)
class Waits:
    """Places of ``ios`` I/Os in flight, as means over an interval. ``above`` and ``cpu`` are
    ``None`` without a job. ``cpu`` is also ``None`` if the kernel does not say how long a job
    waited for a CPU (those I/Os are then in ``above``). ``layers`` are devices from the top down.
    ``queue`` and ``device`` divide what the lowest devices hold (in the scheduler; issued and not
    completed); ``None`` without the probe. ``unknown`` is the rest that no counter explains.
    ``stalled``: nothing completed, so these are the counts at the interval's end. ``cache`` are
    reads answered by the page cache, and buffered writes; ``unsent`` are I/Os of engines that send
    nothing to a disk (null)."""

    ios: float
    cpu: float | None
    above: float | None
    layers: Mapping[str, float]
    queue: float | None
    device: float | None
    unknown: float
    stalled: bool = False
    cache: float = 0.0
    unsent: float = 0.0

    @property
    def in_devices(self) -> float:
        """How many I/Os are in the devices."""
        return sum(self.layers.values())


def _place(name: str, meaning: str) -> Figure:
    return Figure(name, "", meaning, over=SECONDS)


WAITS: Rows = (
    _place("ios", "I/Os in flight, mean: fio's IOPS times its latency; without a job the requests "
                  "that the watched devices hold"),
    _place("cpu", "I/Os in flight that wait because the job or its worker has no CPU "
                  "(/proc/PID/schedstat); null without a job"),
    _place("above", "I/Os in flight above the block layer: file system, locks, cgroup limit, the "
                    "job's own work; null without a job"),
    _place("cache", "I/Os in flight in the page cache: reads that it answers, and buffered writes"),
    _place("unsent", "I/Os in flight of engines that send nothing to a disk (null)"),
    Figure("layers", "", "I/Os in flight in this device and in none below it "
                         "(docs/guide/waits.md)",
           over=SECONDS, keys=1, title="layer", always=True),
    _place("queue", "I/Os in the lowest devices that wait in the I/O scheduler (probe)"),
    _place("device", "I/Os in the lowest devices that are issued and not completed (probe)"),
    _place("unknown", "I/Os in flight in a place that no counter shows"),
    Figure("stalled", "", "true if no request completed in the interval; the other figures are "
                          "then those at its end", kind=BOOLEAN),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DirectionLoad:
    """The I/Os of a job in one direction: ``letter`` "r", "w" or "d" as in iostat, "" for all
    together. ``in_cache``: fio does not wait for the device (buffered writes); ``direct``: the page
    cache can't answer any of its I/Os. ``ios`` are in flight (``None``: not known), ``sent_s``
    bytes per second that block devices moved for the job's processes (``None``: not known)."""

    letter: str
    iops: float
    bytes_s: float | None
    in_cache: bool = False
    direct: bool = False
    ios: float | None = None
    sent_s: float | None = None


@dataclass(frozen=True, slots=True)
class JobLoad:
    """The job's side of an interval: ``ios`` in flight (N = X * R), ``iops`` completed, and
    ``cpu_wait``, the mean share (0..1) of the interval in which a job was ready to run and had no
    CPU (``None``: not known). ``workers_wait`` is the mean number of its workers that waited for a
    CPU, each with one I/O. ``directions`` are its parts. ``aligned``: fio's interval is about the
    kernel's, so their rates may be compared. ``unsent`` I/Os in flight belong to engines that send
    nothing to a disk."""

    ios: float
    iops: float
    cpu_wait: float | None
    workers_wait: float = 0.0
    directions: tuple[DirectionLoad, ...] = ()
    aligned: bool = True
    unsent: float = 0.0

    @property
    def waiting_for_cpu(self) -> float:
        """Number of I/Os held up by jobs or workers without a CPU, assuming that no I/O is in a
        device."""
        return (self.cpu_wait or 0.0) * self.ios + self.workers_wait


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Mean times of requests of the lowest devices, from the probe: issue to completion, and
    allocation to issue (``None`` without the probe's part "way"; it is then the rest of the time
    that diskstats counts)."""

    device_ns: float
    queue_ns: float | None = None


def place_waits(
    stack: Stack,
    disks: Mapping[str, DiskRates],
    job: JobLoad | None = None,
    times: RequestTimes | None = None,
) -> Waits | None:
    """Compute the places of an interval's I/Os; ``None`` if nothing is known of them."""
    tops = [disks[name] for name in stack.tops if name in disks]
    if not tops or len(tops) < len(stack.tops):
        return _waits_without_device(job)
    if _stalled(tops, job):
        return _waits_at_end(stack, disks)
    in_flight = _sum(tops, "aqu_sz")
    if in_flight is None or (job is not None and _bypasses_counters(tops, job)):
        return _waits_without_device(job)
    in_devices = in_flight if job is None else min(job.ios - job.unsent, _placed(tops, job).held)
    held = {name: in_devices * (disks[name].aqu_sz or 0.0) / in_flight if in_flight else 0.0
            for name in stack.tops}  # fmt: skip
    layers = _layers(held, stack, disks)
    queue, device = _divide_lowest(stack, disks, layers, times)
    if job is None:
        return Waits(in_flight, None, None, layers, queue, device, 0.0)
    return _with_rest(Waits(job.ios, None, None, layers, queue, device, 0.0), job, tops)


def _with_rest(waits: Waits, job: JobLoad, tops: Sequence[DiskRates]) -> Waits:
    """Divide the I/Os that no device holds: first among the places with a known limit; the rest is
    above."""
    placed = _placed(tops, job)
    rest = max(0.0, job.ios - waits.in_devices)
    parts = []
    for most in (job.waiting_for_cpu, job.unsent, placed.unknown, placed.cache):
        parts.append(min(rest, most))
        rest -= parts[-1]
    cpu, unsent, unknown, cache = parts
    return replace(
        waits, cpu=None if job.cpu_wait is None else cpu, above=rest,
        unsent=unsent, unknown=unknown, cache=cache,
    )  # fmt: skip


def _waits_without_device(job: JobLoad | None) -> Waits | None:
    """The places if no device is measured: I/Os that wait for a CPU and I/Os that are not sent are
    known, all others are unknown."""
    if job is None:
        return None
    cpu = None if job.cpu_wait is None else min(job.ios, job.waiting_for_cpu)
    rest = job.ios - (cpu or 0.0)
    unsent = min(rest, job.unsent)
    return Waits(job.ios, cpu, None, {}, None, None, rest - unsent, unsent=unsent)


def _bypasses_counters(tops: Sequence[DiskRates], job: JobLoad) -> bool:
    """Whether the job's direct I/O is missing in the device's counters (iostats=0)."""
    return not job.unsent and any(
        part.direct and part.iops and not _flow(tops, part.letter)[0] for part in job.directions
    )


@dataclass(frozen=True, slots=True)
class _Placed:
    """A job's I/Os in flight: ``held`` by the devices, in the page ``cache``, or ``unknown``."""

    held: float = 0.0
    cache: float = 0.0
    unknown: float = 0.0


def _placed(tops: Sequence[DiskRates], job: JobLoad) -> _Placed:
    """The places of a job's I/Os. Their sum may exceed the number of I/Os, because fio and the
    kernel count separately."""
    parts = [_place_direction(tops, part, job) for part in job.directions]
    return _Placed(
        sum(part.held for part in parts),
        sum(part.cache for part in parts),
        sum(part.unknown for part in parts),
    )


def _place_direction(tops: Sequence[DiskRates], load: DirectionLoad, job: JobLoad) -> _Placed:
    ios = job.ios if load.ios is None else load.ios
    requests, in_flight, moved = _flow(tops, load.letter)
    if not load.iops:
        return _Placed()
    if load.in_cache:
        return _Placed(cache=ios)
    if not load.bytes_s or (requests and not moved):
        return _Placed(held=load.iops * in_flight / requests if requests else 0.0)
    if load.sent_s is not None and load.sent_s < SENT_SHARE * load.bytes_s:
        return _Placed(unknown=ios) if load.direct else _Placed(cache=ios)
    held = _held(load, job.aligned, requests, in_flight, moved)
    if load.sent_s is not None or (load.direct and not job.unsent) or load.letter == "d":
        return _Placed(held)
    least = CACHED if job.aligned else UNSURE_SHARE
    if least <= moved / load.bytes_s <= 1 / least and not job.unsent:
        return _Placed(held)
    # the page cache may answer the I/O while another program uses the device
    return _Placed(unknown=held, cache=ios if moved < SENT_SHARE * load.bytes_s else 0.0)


def _held(
    load: DirectionLoad, aligned: bool, requests: float, in_flight: float, moved: float
) -> float:
    """How many I/Os of one direction the devices hold, assuming they hold any."""
    if not requests or not load.bytes_s:
        return 0.0
    close = CACHED if aligned else UNSURE_SHARE
    sent_s = min(load.bytes_s, moved) if load.sent_s is None else load.sent_s
    share = sent_s / moved
    share = 1.0 if share >= (EXCLUSIVE_SHARE if load.sent_s is not None else close) else share
    per_request = (moved / requests) / (load.bytes_s / load.iops)
    if sent_s < close * load.bytes_s:
        per_request = min(1.0, per_request)  # a cache answers most I/Os: one waits for each request
    elif sent_s * close > load.bytes_s:
        per_request *= load.bytes_s / sent_s  # read-ahead reads more than the job requested
    return in_flight * share * per_request


def _flow(disks: Sequence[DiskRates], letter: str) -> tuple[float, float, float]:
    """Requests per second, requests in flight and bytes per second in one direction, or in all if
    ``letter`` is empty; unknown figures count as 0."""
    if not letter:
        return (
            _sum(disks, "ios_s") or 0.0,
            _sum(disks, "aqu_sz") or 0.0,
            _sum(disks, "bytes_s") or 0.0,
        )
    requests = in_flight = moved = 0.0
    for disk in disks:
        rate = getattr(disk, f"{letter}_s") or 0.0
        requests += rate
        in_flight += rate * (getattr(disk, f"{letter}_await") or 0.0) / 1e3
        moved += getattr(disk, f"{letter}_bytes_s") or 0.0
    return requests, in_flight, moved


def _layers(
    held: dict[str, float], stack: Stack, disks: Mapping[str, DiskRates]
) -> dict[str, float]:
    """Divide the I/Os held by the top devices between these and the devices below, layer by
    layer."""
    layers: dict[str, float] = {}
    for name in stack.order:
        if name not in held:
            continue
        lower = [device for device in stack.lower.get(name, ()) if device in disks]
        below = held[name] * _share_below(name, lower, stack, disks) if lower else 0.0
        layers[name] = held[name] - below
        queued = _sum([disks[device] for device in lower], "aqu_sz")
        for device in lower:
            part = (disks[device].aqu_sz or 0.0) / queued if queued else 0.0
            held[device] = held.get(device, 0.0) + below * part
    return layers


def _share_below(
    name: str, lower: Sequence[str], stack: Stack, disks: Mapping[str, DiskRates]
) -> float:
    """The share (0..1) of the time of a request to ``name`` that it spends in the devices below."""
    upper, lower_disks = disks[name], [disks[device] for device in lower]
    if not upper.ios_s:
        return 0.0
    if stack.raid.get(name) in PARITY_RAID:
        below = upper.ios_s * (_parity_s(upper, lower_disks) or 0.0)
    else:
        below = sum(_in_flight_below(upper, lower_disks, letter) for letter in DIRECTIONS)
    return min(1.0, below / upper.aqu_sz) if upper.aqu_sz else 1.0


def _in_flight_below(upper: DiskRates, lower_disks: Sequence[DiskRates], letter: str) -> float:
    """How many of a device's requests in one direction are in the devices below it."""
    requests, _, moved = _flow([upper], letter)
    below, in_flight, passed = _flow(lower_disks, letter)
    if not below:
        return 0.0
    copies = passed / moved if moved else 1.0
    if letter != "r" and len(lower_disks) > 1 and copies >= MIRRORED:
        return requests * max(_await_s([disk], letter) for disk in lower_disks)
    return requests * in_flight / below * min(1.0, copies)


def _parity_s(array: DiskRates, lower_disks: Sequence[DiskRates]) -> float | None:
    """Seconds that a request of a parity array spends in the disks below: a write waits until the
    old data is read, then for its own writes."""
    requests, writes = array.ios_s, array.w_s
    if not requests or writes is None or array.r_s is None:
        return None
    reads, read_s = _sum(lower_disks, "r_s"), _await_s(lower_disks, "r")
    extra = max(0.0, (reads or 0.0) - array.r_s)
    first = read_s * min(1.0, extra / writes) if writes else 0.0
    return (array.r_s * read_s + writes * (first + _await_s(lower_disks, "w"))) / requests


def _await_s(disks: Sequence[DiskRates], letter: str) -> float:
    """Mean seconds of a read ("r") or write ("w") over all these devices; 0 if there are none."""
    waited = requests = 0.0
    for disk in disks:
        rate, wait = getattr(disk, f"{letter}_s"), getattr(disk, f"{letter}_await")
        if rate and wait is not None:
            waited, requests = waited + rate * wait / 1e3, requests + rate
    return waited / requests if requests else 0.0


def _sum(disks: Sequence[DiskRates], name: str) -> float | None:
    values = [getattr(disk, name) for disk in disks]
    return None if not values or None in values else sum(values)


def _divide_lowest(
    stack: Stack,
    disks: Mapping[str, DiskRates],
    layers: Mapping[str, float],
    times: RequestTimes | None,
) -> tuple[float | None, float | None]:
    if times is None:
        return None, None
    if times.queue_ns is not None:
        total_ns = times.queue_ns + times.device_ns
    else:
        requests, waited, _ = _flow(
            [disks[device] for device in stack.lowest if device in disks], ""
        )
        total_ns = max(1e9 * waited / requests if requests else 0.0, times.device_ns)
    if not total_ns:
        return None, None
    in_flight = sum(value for name, value in layers.items() if not stack.lower.get(name))
    device = in_flight * times.device_ns / total_ns
    return in_flight - device, device


def _stalled(tops: Sequence[DiskRates], job: JobLoad | None) -> bool:
    """Return whether nothing completed in the interval while something is in flight."""
    completes = bool(job and job.iops) or any(disk.ios != 0 for disk in tops)
    return not completes and any(disk.in_flight for disk in tops)


def _waits_at_end(stack: Stack, disks: Mapping[str, DiskRates]) -> Waits:
    """Return waits from the counts of requests in flight at the interval's end."""
    layers: dict[str, float] = {}
    for name in stack.order:
        if name in disks:
            lower = [device for device in stack.lower.get(name, ()) if device in disks]
            in_flight = float(disks[name].in_flight or 0)
            below = sum(disks[device].in_flight or 0 for device in lower)
            layers[name] = max(0.0, in_flight - below)
    return Waits(sum(layers.values()), None, None, layers, None, None, 0.0, stalled=True)


_NO_PLACE = {"ios": 0.0, "unknown": 0.0, "cpu": None, "above": None, "queue": None,
             "device": None, "cache": 0.0, "unsent": 0.0}  # fmt: skip
"""The mean for each place other than a layer, if some intervals lack a value."""


_RESTS = ("cpu", "above")
"""An interval that lacks one of them counts its I/Os to the next part."""


class MeanWaits:
    """The mean of the waits of some intervals, weighted by their length."""

    def __init__(self) -> None:
        self._seconds = 0.0
        # by field of ``Waits`` ("" if it is not a mapping) and name
        self._sums: dict[tuple[str, str], tuple[float, float]] = {}

    def add(self, waits: Waits | None, seconds: float | None) -> None:
        """Count one interval. Stalled ones are skipped: their counts are of one moment, not
        means."""
        if waits is None or not seconds or waits.stalled:
            return
        known = {("", name): getattr(waits, name) for name in _NO_PLACE}
        known |= {("layers", name): value for name, value in waits.layers.items()}
        parts = {key: (ios * seconds, seconds) for key, ios in known.items() if ios is not None}
        self._add(parts, seconds)

    def join(self, later: MeanWaits) -> None:
        """Count the intervals of another ``MeanWaits``."""
        self._add(later._sums, later._seconds)

    def _add(self, parts: Mapping[tuple[str, str], tuple[float, float]], seconds: float) -> None:
        self._seconds += seconds
        for key, (part, length) in parts.items():
            before = self._sums.get(key, (0.0, 0.0))
            self._sums[key] = before[0] + part, before[1] + length

    @property
    def empty(self) -> bool:
        """Whether no interval was counted."""
        return not self._seconds

    @property
    def value(self) -> Waits | None:
        """The mean so far; ``None`` without intervals. The parts add up to ``ios``: where waiting
        for a CPU or being above the block layer is not known, as in the first interval of a job's
        processes, those I/Os are in another part. ``queue`` and ``device`` are ``None`` if some
        intervals lack them."""
        if self.empty:
            return None
        means: dict[str, Any] = dict(_NO_PLACE)
        layers = {}
        for (kind, name), (part, length) in self._sums.items():
            if kind:
                layers[name] = part / self._seconds
            elif name in _RESTS or length >= self._seconds * (1 - ROUNDING):
                means[name] = part / self._seconds
        return Waits(layers=layers, **means)


def wait_parts(waits: Waits) -> list[tuple[str, float]]:
    """The parts with their names, from the top down; parts that are not known are left out."""
    parts = [("waiting for a CPU", waits.cpu), ("above the device", waits.above)]
    elsewhere = ((CACHE, waits.cache), (UNSENT, waits.unsent))
    parts += [(name, value) for name, value in elsewhere if value > 0]
    parts += list(waits.layers.items())
    if waits.unknown > 0:
        parts.append(("unknown", waits.unknown))
    return [(name, value) for name, value in parts if value is not None]


def waits_line(waits: Waits) -> str:
    """Return one line: "In flight 8.0: waiting for a CPU 0.1, above the device 0.3, vda 7.6"."""
    parts = ", ".join(f"{name} {value:.1f}" for name, value in wait_parts(waits))
    return f"In flight {waits.ios:.1f}: {parts}"
