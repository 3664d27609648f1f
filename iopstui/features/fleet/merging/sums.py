"""Sums over several hosts that can themselves be added, and histograms as text.

A histogram's bytes are the lowest byte of the count of each of fio's buckets side by side (a
plane), then the next higher bytes as long as any is not 0, because the counts of a second are
small. The text contains the first bucket, the number of planes, and the compressed planes.

All stored values are whole numbers: counts, nanoseconds, thousandths of a rate, bins of a
histogram. So addition is exact in any order and in any tree of mergers. Figures (rates, means,
percentiles) are computed from the sums when they are shown. Rows come from other machines, so
``MalformedRow`` is raised for a row that can't be a frame, before any part of it is added."""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from iopstui.format import counted
from iopstui.model import histogram
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import BY_PERCENTILE, DEVICE, TOTAL, Figure
from iopstui.model.histogram import BUCKET_BITS, EXACT_BELOW, percentile_name
from iopstui.model.metrics.probe import KINDS
from iopstui.model.samples import DIRECTIONS, MIXED

COUNT_BYTES = 8
FEW = 256
"""Up to this number of rows, numpy is not loaded (which takes 0.1 s): Python adds 100 hosts as
fast."""
_HEADER = struct.Struct("<HB")
_GROUP = 1 << BUCKET_BITS
# more than the groups of buckets that fio has, or than a latency in ns can reach
_GROUPS = 57


def _key(index: int) -> int:
    """The key (model/histogram.py) of the ``index``-th bucket."""
    if index < EXACT_BELOW:
        return index
    shift = index // _GROUP - 1
    return ((_GROUP + index % _GROUP) << shift) + (1 << (shift - 1))


KEYS = tuple(_key(index) for index in range(EXACT_BELOW + _GROUPS * _GROUP))
_MAX_BYTES = len(KEYS) * COUNT_BYTES + _HEADER.size
_INDEX = {key: index for index, key in enumerate(KEYS)}


def planes_of(bins: Mapping[int, int]) -> list[bytes]:
    """The planes of a histogram, each beginning with the lowest bucket. Raises KeyError or
    struct.error for impossible buckets or counts."""
    counts = [0] * (1 + max(map(_INDEX.__getitem__, bins), default=-1))
    for key, count in bins.items():
        counts[_INDEX[key]] = count
    data = struct.pack(f"<{len(counts)}Q", *counts)
    planes = [data[plane::COUNT_BYTES] for plane in range(COUNT_BYTES)]
    while planes and not any(planes[-1]):
        planes.pop()
    return planes


def add_plane(bins: dict[int, int], plane: int, first: int, sums: Sequence[int]) -> None:
    """Add a plane, or the sums of many planes, that begins at bucket ``first``."""
    keys = KEYS[first : first + len(sums)]
    if not bins and not plane:
        bins.update({key: count for key, count in zip(keys, sums, strict=True) if count})
        return
    for key, count in zip(keys, sums, strict=True):
        if count:
            bins[key] = bins.get(key, 0) + (count << 8 * plane)


def to_wire(bins: Mapping[int, int]) -> str:
    """The histogram as text; "" for an empty one."""
    planes = planes_of(bins)
    if not planes:
        return ""
    first = min(_INDEX[key] for key, count in bins.items() if count)
    data = b"".join(plane[first:] for plane in planes)
    packed = zlib.compress(_HEADER.pack(first, len(planes)) + data)
    return base64.b64encode(packed).decode("ascii")


def from_wire(text: str) -> dict[int, int]:
    """Parse a histogram. Raises ValueError for a text that ``to_wire`` cannot have made."""
    bins: dict[int, int] = {}
    if not text:
        return bins
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        first, planes = _HEADER.unpack_from(data)
    except (zlib.error, struct.error) as error:
        raise ValueError("no histogram") from error
    count, remainder = divmod(len(data) - _HEADER.size, planes or 1)
    if remainder or not unpacker.eof or not 0 < planes <= COUNT_BYTES or first + count > len(KEYS):
        raise ValueError("no histogram")
    for plane in range(planes):
        add_plane(bins, plane, first, data[_HEADER.size + plane * count :][:count])
    return bins


def column_sums(rows: Sequence[bytes], form: str) -> list[int]:
    """The sums of the columns of rows of numbers (struct's ``form`` "B" or "Q"). Many rows are
    added by numpy if it is installed. Sums of "B" must fit into 4 bytes, sums of "Q" into 8."""
    numpy = _numpy() if len(rows) > FEW else sys.modules.get("numpy")
    if numpy is None:
        numbers = struct.Struct(f"<{len(rows[0]) // struct.calcsize(form)}{form}")
        return [*map(sum, zip(*map(numbers.unpack, rows), strict=True))]
    table = numpy.frombuffer(b"".join(rows), numpy.dtype(form).newbyteorder("<"))
    sums = table.reshape(len(rows), -1).sum(axis=0, dtype="u4" if form == "B" else "u8")
    return sums.tolist()  # type: ignore[no-any-return]


@cache
def _numpy() -> Any:
    try:
        return import_module("numpy")
    except ImportError:
        return None


Object = dict[str, Any]
LATENCIES = ("slat", "clat", "lat")
WITH_BINS = ("clat", "lat")
MILLI, MICRO = 1000, 10**6
# a larger rate or time can't be a measurement, and a million such values fit into 2^63
MAX_COUNT = 1 << 60
MAX_IN_BIN = 1 << 50
RATES = (DiskRates.r_s, DiskRates.w_s, DiskRates.r_bytes_s, DiskRates.w_bytes_s, DiskRates.aqu_sz,
         DiskRates.n_in_flight)  # fmt: skip
DISK_RATES = tuple(row.name for row in RATES)
AWAITS = {row.whole: row.name for row in (DiskRates.r_await, DiskRates.w_await)}
"""The mean times, by the field that counts their requests."""
KERNEL_NUMBERS = ("hosts", *DISK_RATES, *AWAITS, *AWAITS.values())
LOSS_COUNTS = ("missed", "skipped", "lost", "full")
"""What a probe may have missed, by name (model/metrics/probe.py). Here ``missed`` is a number of
requests, not a percentage."""
_KEYS = {str(key): key for key in KEYS}


class MalformedRow(ValueError):
    """A row that iopstui would not have written."""


def scaled_integer(value: Any, scale: int = 1) -> int:
    """A number in a row times ``scale``, rounded; 0 for null. Raises MalformedRow for anything
    else."""
    if value is None:
        return 0
    if type(value) not in (int, float):
        raise MalformedRow("a figure is not a number")
    try:
        scaled: int = round(value * scale)
    except (OverflowError, ValueError) as error:
        raise MalformedRow("a figure is not finite") from error
    if not 0 <= scaled <= MAX_COUNT:
        raise MalformedRow("a figure is impossible")
    return scaled


def get_object(row: Any, name: str) -> Mapping[str, Any]:
    """An object in a row; empty for null. Raises MalformedRow for anything else."""
    value = row.get(name)
    if type(value) is dict:
        return value
    if value is not None:
        raise MalformedRow(f"{name} is not an object")
    return {}


def _bins(row: Mapping[str, Any]) -> dict[int, int]:
    """The histogram in a row: packed, as an agent sends it, or as bins, as in JSON lines."""
    wire, bins = row.get("packed"), row.get("bins")
    try:
        if isinstance(wire, str):
            found = from_wire(wire)
        elif bins is None:
            return {}
        else:
            found = {_KEYS[key]: count for key, count in bins.items() if count != 0}
            if not {*map(type, found.values())} <= {int}:
                raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedRow("a histogram does not have fio's buckets") from error
    if found and not 0 <= min(found.values()) <= max(found.values()) <= MAX_IN_BIN:
        raise MalformedRow("a histogram has impossible counts")
    return found


@dataclass(slots=True)
class LatencySum:
    """``n`` latencies of one kind, with their sum, their maximum (ns) and their histogram."""

    n: int = 0
    sum_ns: int = 0
    max_ns: int = 0
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, other: LatencySum, with_bins: bool = True) -> None:
        """Add other latencies of the same kind. Without the bins, the maximum is not updated
        either."""
        self.n += other.n
        self.sum_ns += other.sum_ns
        if with_bins:
            self.max_ns = max(self.max_ns, other.max_ns)
            histogram.add(self.bins, other.bins)

    @property
    def mean(self) -> float | None:
        """The mean in ns; ``None`` without latencies."""
        return self.sum_ns / self.n if self.n else None

    @property
    def highest(self) -> int | None:
        """The maximum in ns; ``None`` without bins."""
        return self.max_ns if self.bins else None

    @property
    def percentiles(self) -> dict[str, int]:
        """The percentiles "p50" ... of the summed bins, in ns; empty without bins."""
        ranks = histogram.percentiles(self.bins)
        return {percentile_name(p): value for p, value in ranks.items()}

    def as_object(self, with_bins: bool = True) -> Object:
        """The percentiles, the maximum and the bins, for JSON lines."""
        row: Object = {**dict.fromkeys(BY_PERCENTILE), **self.percentiles, "max": self.highest}
        if with_bins:
            row["bins"] = {str(key): count for key, count in sorted(self.bins.items())}
        return row


@dataclass(slots=True)
class DirectionSum:
    """Sums of one direction, or of all of them: completions, bytes, their rates in thousandths, and
    latencies by kind ("slat", "clat", "lat"; "device": from the probe)."""

    ios: int = 0
    bytes: int = 0
    iops_m: int = 0
    bw_m: int = 0
    latencies: dict[str, LatencySum] = field(default_factory=dict)

    @property
    def iops(self) -> float:
        """I/Os per second of all hosts."""
        return self.iops_m / MILLI

    @property
    def bw(self) -> float:
        """Bytes per second of all hosts."""
        return self.bw_m / MILLI

    def latency(self, kind: str) -> LatencySum:
        """The latencies of this kind, which may be empty."""
        return self.latencies.get(kind) or LatencySum()

    def add(self, other: DirectionSum, with_bins: bool = True) -> None:
        """Add another host or another second. Rates are only meaningful across hosts."""
        self.ios += other.ios
        self.bytes += other.bytes
        self.iops_m += other.iops_m
        self.bw_m += other.bw_m
        for kind, latencies in other.latencies.items():
            self.latencies.setdefault(kind, LatencySum()).add(latencies, with_bins)

    def set_rates(self, seconds: float) -> None:
        """Set the rates from the counts of a single host and their ``seconds``."""
        self.iops_m = scaled_integer(self.ios / seconds, MILLI) if seconds else 0
        self.bw_m = scaled_integer(self.bytes / seconds, MILLI) if seconds else 0

    def as_object(self, with_bins: bool = True) -> Object:
        row: Object = {name: getattr(self, name) for name in ("iops", "bw", "ios", "bytes")}
        for kind in LATENCIES:
            latencies = self.latency(kind)
            row[kind] = {name: getattr(latencies, name) for name in ("mean", "n", "sum_ns")}
            row[kind] |= latencies.as_object(with_bins) if kind in WITH_BINS else {}
        return row

    @property
    def main_kind(self) -> str:
        """The kind of latency whose histogram has the most I/Os; "clat" if there is no
        histogram."""
        kinds = [kind for kind in WITH_BINS if kind in self.latencies]
        return max(kinds, key=lambda kind: self.latencies[kind].n if self.latencies[kind].bins
                   else -1, default="clat")  # fmt: skip

    @property
    def main(self) -> LatencySum:
        return self.latency(self.main_kind)


def _direction(row: Mapping[str, Any], seconds: float | None) -> DirectionSum:
    """A direction in JSON lines, of a frame or (``seconds`` is ``None``) of a merger's total.
    Raises MalformedRow."""
    part = DirectionSum(scaled_integer(row.get("ios")), scaled_integer(row.get("bytes")))
    if seconds is None:
        part.iops_m, part.bw_m = (scaled_integer(row.get(name), MILLI) for name in ("iops", "bw"))
    else:
        part.set_rates(seconds)
    for kind in LATENCIES:
        latencies = get_object(row, kind)
        if n := scaled_integer(latencies.get("n")):
            total = seconds is None
            mean, sum_ns = latencies.get("mean"), latencies.get("sum_ns")
            bins = latencies if total else row if kind == row.get("bins_of") else {}
            part.latencies[kind] = LatencySum(
                n, scaled_integer(sum_ns) if total else scaled_integer(mean, n),
                scaled_integer(latencies.get("max")), _bins(bins),
            )  # fmt: skip
    return part


@dataclass(slots=True)
class KernelSum:
    """Sums over the devices beneath the jobs of several hosts, by ``KERNEL_NUMBERS``: rates in
    thousandths, requests, and their total time (thousandths of ms)."""

    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, other: KernelSum) -> None:
        add_counts(self.numbers, other.numbers)

    @property
    def hosts(self) -> int:
        """The number of hosts on which the device was measured."""
        return self.numbers.get("hosts", 0)

    @property
    def requests(self) -> int:
        """The number of reads and writes."""
        return sum(self.numbers.get(name, 0) for name in AWAITS)

    @property
    def waits(self) -> int:
        """The time that these requests took in total."""
        return sum(self.numbers.get(name, 0) for name in AWAITS.values())

    def value(self, figure: Figure) -> float | None:
        """A rate summed over all hosts, or the mean time of a request; ``None`` if no device was
        measured or there was no request."""
        value = self.numbers.get(figure.name, 0) / MILLI
        if figure.whole not in AWAITS:
            return value if self.hosts else None
        requests = self.numbers.get(figure.whole, 0)
        return value / requests if requests else None

    @property
    def mib_s(self) -> float | None:
        """MiB per second that all hosts read and wrote."""
        rates = map(self.value, (DiskRates.r_bytes_s, DiskRates.w_bytes_s))
        return sum(rate or 0.0 for rate in rates) if self.hosts else None

    def as_object(self) -> Object | None:
        """The sums for JSON lines; ``None`` if no device was measured."""
        if not self.hosts:
            return None
        row: Object = {"hosts": self.hosts, **{each.name: self.value(each) for each in RATES}}
        for await_ in (DiskRates.r_await, DiskRates.w_await):
            row[await_.whole] = self.numbers.get(await_.whole, 0)
            row[await_.name] = self.value(await_)
            row[f"{await_.name}_sum"] = self.numbers.get(await_.name, 0) / MILLI
        return row


def _kernel(disk: Mapping[str, Any], is_total: bool) -> KernelSum:
    """The sums over all devices of a frame, or of a merger's total. Raises MalformedRow."""
    if not disk:
        return KernelSum()
    numbers = {"hosts": scaled_integer(disk.get("hosts")) if is_total else 1}
    numbers |= {name: scaled_integer(disk.get(name), MILLI) for name in DISK_RATES}
    for count, await_ in AWAITS.items():
        requests = numbers[count] = scaled_integer(disk.get(count))
        took = f"{await_}_sum" if is_total else await_
        numbers[await_] = scaled_integer(disk.get(took), MILLI if is_total else requests * MILLI)
    return KernelSum(numbers)


@dataclass(slots=True)
class DeviceSum:
    """The devices beneath the jobs of the ``hosts`` whose probes counted, for ``us`` microseconds
    in total. ``parts`` has the directions that had a request, with the latencies from issue to
    completion."""

    hosts: int = 0
    us: int = 0
    parts: dict[str, DirectionSum] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, other: DeviceSum, with_bins: bool = True) -> None:
        """Add other hosts or other seconds. Rates are only meaningful across hosts."""
        if not other.hosts:
            return
        self.hosts += other.hosts
        self.us += other.us
        for kind, part in other.parts.items():
            self.parts.setdefault(kind, DirectionSum()).add(part, with_bins)
        add_counts(self.counts, other.counts)

    def set_single_host_rates(self) -> None:
        """Set the rates of a single host's sums, over its whole time."""
        self.hosts = min(self.hosts, 1)
        for part in self.parts.values():
            part.iops_m = round(part.ios * MILLI * MICRO / self.us) if self.us else 0

    def part(self, kind: str) -> DirectionSum | None:
        """The sums of a direction, or of all as "total"; ``None`` if no probe counted."""
        if not self.hosts:
            return None
        total = DirectionSum()
        for name, part in self.parts.items():
            if kind in (name, TOTAL):
                total.add(part)
        return total

    def directions(self) -> Iterator[tuple[str, DirectionSum]]:
        """The directions that had a request, always in the same order."""
        return ((kind, self.parts[kind]) for kind in KINDS if kind in self.parts)

    @property
    def missed(self) -> float | None:
        """The percentage of completions whose start was not seen; ``None`` without completions."""
        missed = self.counts.get("missed", 0)
        completed = sum(part.ios for part in self.parts.values()) + missed
        return 100 * missed / completed if completed else None

    def describe(self, host_count: int) -> str:
        """The number of hosts whose probe counted, in words; "" if there is none."""
        return f"device: {self.hosts} of {counted(host_count, 'host')}" if self.hosts else ""

    def as_object(self) -> Object | None:
        """The sums for JSON lines; ``None`` if no probe counted."""
        if not self.hosts:
            return None
        row: Object = {"hosts": self.hosts, "seconds": self.us / MICRO}
        for kind in (*KINDS, TOTAL):
            part = self.part(kind) or DirectionSum()
            latencies = part.latency(DEVICE)
            row[kind] = {"iops": part.iops, "ios": part.ios, "mean": latencies.mean,
                         **latencies.as_object(kind != TOTAL)}  # fmt: skip
        counts = {name: self.counts.get(name, 0) for name in LOSS_COUNTS}
        return {**row, **counts, "missed": self.missed, "missed_ios": counts["missed"]}


def device_of_frame(row: Mapping[str, Any]) -> DeviceSum:
    """The probe's figures in a frame; empty if it did not follow the devices. Raises
    MalformedRow."""
    probe = get_object(row, DEVICE)
    us = scaled_integer(probe.get("seconds"), MICRO)
    if not us or any(not get_object(probe, kind) for kind in KINDS):
        return DeviceSum()
    device = _device(probe, 1)
    device.set_single_host_rates()
    completed = sum(part.ios for part in device.parts.values())
    share = scaled_integer(probe.get("missed"), MILLI)
    if share > 100 * MILLI:
        raise MalformedRow("it missed more requests than there were")
    # if the start of no completion was seen, the number of missed ones is unknown
    matched = 100 * MILLI - share
    device.counts["missed"] = round(completed * share / matched) if matched else 1
    return device


def _device_of_total(row: Mapping[str, Any]) -> DeviceSum:
    """The probe's figures in a merger's total. Raises MalformedRow."""
    probe = get_object(row, DEVICE)
    hosts = scaled_integer(probe.get("hosts"))
    if not hosts:
        return DeviceSum()
    device = _device(probe, hosts)
    for kind, part in device.parts.items():
        part.iops_m = scaled_integer(get_object(probe, kind).get("iops"), MILLI)
    device.counts["missed"] = scaled_integer(probe.get("missed_ios"))
    return device


def _device(row: Mapping[str, Any], hosts: int) -> DeviceSum:
    counts = {name: scaled_integer(row.get(name)) for name in LOSS_COUNTS[1:]}
    device = DeviceSum(hosts, scaled_integer(row.get("seconds"), MICRO), counts=counts)
    for kind in KINDS:
        part = get_object(row, kind)
        ios, bins = scaled_integer(part.get("ios")), _bins(part)
        if sum(bins.values()) != ios:
            raise MalformedRow("a device's histogram does not match its requests")
        if ios:
            took_ns = sum(key * count for key, count in bins.items())
            latencies = LatencySum(ios, took_ns, histogram.maximum(bins) or 0, bins)
            device.parts[kind] = DirectionSum(ios, latencies={DEVICE: latencies})
    return device


def add_counts(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


@dataclass(slots=True)
class HostSums:
    """All sums: fio's directions and total, the devices by /proc/diskstats and by the probes, and
    the slowest host (its p99 in ns, its name)."""

    fio: dict[str, DirectionSum] = field(default_factory=dict)
    kernel: KernelSum = field(default_factory=KernelSum)
    slowest: tuple[int, str] | None = None
    device: DeviceSum = field(default_factory=DeviceSum)

    def add(self, other: HostSums, with_bins: bool = True) -> None:
        for name, part in other.fio.items():
            self.fio.setdefault(name, DirectionSum()).add(part, with_bins)
        self.kernel.add(other.kernel)
        self.device.add(other.device, with_bins)
        if other.slowest is not None:
            self.note_slowest(*other.slowest)

    def note_slowest(self, p99_ns: int, host: str) -> None:
        """Keep this host's p99 if it is the highest so far."""
        if self.slowest is None or (p99_ns, host) > self.slowest:
            self.slowest = p99_ns, host

    @property
    def total(self) -> DirectionSum | None:
        """The sum over all directions, with bins; ``None`` without fio."""
        total = self.fio.get(TOTAL)
        if total is None:
            return None
        combined = DirectionSum()
        combined.add(total)
        for latencies in combined.latencies.values():
            latencies.bins = {}
        for part in counted_directions(self.fio):
            for kind, latencies in part.latencies.items():
                # only the bins and the maximum, because the total has its own counts
                binned = LatencySum(0, 0, latencies.highest or 0, latencies.bins)
                combined.latencies.setdefault(kind, LatencySum()).add(binned)
        return combined

    def part(self, name: str) -> DirectionSum | None:
        """The sums of a direction of fio, or of all as "total"."""
        return self.total if name == TOTAL else self.fio.get(name)

    def fio_object(self) -> Object | None:
        """fio's part of JSON lines; ``None`` without fio."""
        total = self.total
        if total is None:
            return None
        parts = {name: self.fio.get(name) for name in DIRECTIONS}
        return {**{name: part and part.as_object() for name, part in parts.items()},
                TOTAL: total.as_object(with_bins=False)}  # fmt: skip


def counted_directions(fio: Mapping[str, DirectionSum]) -> Iterable[DirectionSum]:
    """The directions that make up the total: ``mixed`` alone, or all others."""
    parts = [part for name, part in fio.items() if name not in (MIXED, TOTAL)]
    return parts or [part for name, part in fio.items() if name == MIXED]


def frame_sums(host: str, row: Mapping[str, Any], seconds: float) -> HostSums:
    """The sums of one frame of ``host``. Raises MalformedRow."""
    fio = get_object(row, "fio")
    kernel = _kernel(get_object(get_object(row, "kernel"), TOTAL), is_total=False)
    sums = HostSums(_fio(fio, seconds), kernel, device=device_of_frame(row))
    p99 = [
        scaled_integer(get_object(get_object(fio, TOTAL), kind).get("p99")) for kind in WITH_BINS
    ]
    if any(p99):
        sums.slowest = (max(p99), host)
    return sums


def total_sums(row: Mapping[str, Any]) -> HostSums:
    """The sums in a merger's total. Raises MalformedRow."""
    kernel = _kernel(get_object(row, "kernel"), is_total=True)
    sums = HostSums(_fio(get_object(row, "fio"), None), kernel, device=_device_of_total(row))
    slowest = get_object(row, "slowest")
    if slowest:
        sums.slowest = (scaled_integer(slowest.get("p99")), str(slowest.get("host")))
    return sums


def _fio(fio: Mapping[str, Any], seconds: float | None) -> dict[str, DirectionSum]:
    parts = {name: get_object(fio, name) for name in (*DIRECTIONS, TOTAL)}
    return {name: _direction(part, seconds) for name, part in parts.items() if part}
