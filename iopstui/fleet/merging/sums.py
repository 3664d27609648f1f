"""Sums over several hosts that can themselves be added.

Everything kept is a whole number: counts, nanoseconds, thousandths of a rate, bins of a histogram.
So addition is exact in any order and by any tree of mergers, and nothing is an average that
can't be made anew. A figure (a rate, a mean, a percentile) is computed where it is shown.

Rows come from other machines: ``MalformedRow`` is raised for one that can't be a frame, before
anything of it was added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iopstui.fleet.merging.packed_histogram import FIELD, KEYS, from_wire, pack, unpack
from iopstui.fleet.merging.probe_sums import LOSS_COUNTS, MICRO, ProbeDirectionSum, ProbeSum, rate_m
from iopstui.model import histogram
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.paths import DEVICE, TOTAL
from iopstui.model.metrics.probe import KINDS
from iopstui.model.samples import DIRECTIONS, MIXED

Object = dict[str, Any]
LATENCIES = ("slat", "clat", "lat")
WITH_BINS = ("clat", "lat")
MILLI = 1000
# a rate or a time above this is no measurement; sums of a million of them still fit in 2^63
MAX_COUNT = 1 << 60
# so that sums of thousands fit into the fields of packed_histogram.py
MAX_IN_BIN = 1 << 50
_TOO_LARGE_COUNTS = int.from_bytes(
    (((1 << 8 * FIELD) - 2 * MAX_IN_BIN).to_bytes(FIELD, "little")) * len(KEYS), "little"
)
# what a number of fields leaves when it is divided by this is the sum of them
_ALL_FIELDS = (1 << 8 * FIELD) - 1

DISK_RATES = ("r/s", "w/s", "rMB/s", "wMB/s", "aqu-sz", "in-flight")
AWAITS = (("r_await", "reads"), ("w_await", "writes"))


class MalformedRow(ValueError):
    """A row that iopstui would not write."""


def scaled_integer(value: Any, scale: int = 1) -> int:
    """A number of a row times ``scale``, rounded; 0 for null. Malformed for anything else."""
    if value is None:
        return 0
    if type(value) is int and scale == 1:
        # nearly always
        if 0 <= value <= MAX_COUNT:
            return value
        raise MalformedRow("a figure is impossible")
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
    """An object in a row; empty for null. Malformed for anything else."""
    value = row.get(name)
    if type(value) is dict:
        return value
    if value is not None:
        raise MalformedRow(f"{name} is not an object")
    return {}


def _bins(row: Mapping[str, Any]) -> int:
    """The histogram of a row, packed: as an agent sends it, or the bins of JSON lines."""
    wire, bins = row.get("packed"), row.get("bins")
    try:
        if isinstance(wire, str):
            packed = from_wire(wire)
            if packed & _TOO_LARGE_COUNTS:
                raise MalformedRow("a histogram has impossible counts")
            return packed
        if bins is None:
            return 0
        if not 0 <= max(bins.values(), default=0) <= MAX_IN_BIN:
            raise MalformedRow("a histogram has impossible counts")
        return pack(bins)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise MalformedRow("a histogram does not have fio's buckets") from error


@dataclass(slots=True)
class LatencyTotals:
    """``n`` latencies of one kind, their sum and their maximum (ns), and their histogram, packed
    (packed_histogram.py)."""

    n: int = 0
    sum_ns: int = 0
    max_ns: int = 0
    packed: int = 0

    def add(self, n: int, sum_ns: int, max_ns: int, packed: int) -> None:
        """Add others of the same kind."""
        self.n += n
        self.sum_ns += sum_ns
        self.max_ns = max(self.max_ns, max_ns)
        self.packed += packed

    @property
    def mean_ns(self) -> float | None:
        """``None`` if there are none."""
        return self.sum_ns / self.n if self.n else None

    def bins(self) -> dict[int, int]:
        """The bins by their keys (ns)."""
        return unpack(self.packed)

    def percentiles(self) -> dict[str, int]:
        """ "p50" ... in ns, of the summed bins; empty without bins."""
        ranks = histogram.percentiles(self.bins())
        return {percentile_name(p): value for p, value in ranks.items()}

    def as_object(self, with_bins: bool = True) -> Object:
        """Return an object for JSON lines."""
        ranks = self.percentiles()
        row: Object = {"mean": self.mean_ns, "n": self.n, "sum_ns": self.sum_ns}
        row |= {name: ranks.get(name) for name in map(percentile_name, PERCENTILES)}
        row["max"] = self.max_ns if self.packed else None
        if with_bins:
            row["bins"] = {str(key): count for key, count in self.bins().items()}
        return row


@dataclass(slots=True)
class DirectionSum:
    """Sums of one direction, or the total: completions, bytes, their rates in thousandths,
    latencies by kind ("slat", "clat", "lat")."""

    ios: int = 0
    bytes: int = 0
    iops_m: int = 0
    bw_m: int = 0
    latencies: dict[str, LatencyTotals] = field(default_factory=dict)

    @property
    def iops(self) -> float:
        """I/Os per second of all hosts."""
        return self.iops_m / MILLI

    @property
    def bw(self) -> float:
        """Bytes per second of all hosts."""
        return self.bw_m / MILLI

    def latency_sum(self, kind: str) -> LatencyTotals:
        """The latencies of this kind, to be added to."""
        return self.latencies.setdefault(kind, LatencyTotals())

    def add(self, other: DirectionSum, with_bins: bool = True) -> None:
        """Add another host's, or another second's; rates only mean something for hosts. Without
        the bins there is no maximum either."""
        self.ios += other.ios
        self.bytes += other.bytes
        self.iops_m += other.iops_m
        self.bw_m += other.bw_m
        latencies = self.latencies
        for kind, added in other.latencies.items():
            # several of them for each frame of each host: no call for it
            totals = latencies.get(kind)
            if totals is None:
                totals = latencies[kind] = LatencyTotals()
            totals.n += added.n
            totals.sum_ns += added.sum_ns
            if with_bins:
                totals.packed += added.packed
                if added.max_ns > totals.max_ns:
                    totals.max_ns = added.max_ns

    @property
    def main_latencies(self) -> tuple[str, LatencyTotals]:
        """The latencies that a histogram is of, and their kind."""
        kinds = [kind for kind in WITH_BINS if kind in self.latencies]
        kind = max(kinds, key=lambda k: self._binned_count(k), default="clat")
        return kind, self.latencies.get(kind, LatencyTotals())

    def _binned_count(self, kind: str) -> int:
        totals = self.latencies[kind]
        return totals.n if totals.packed else -1

    def as_object(self, with_bins: bool = True) -> Object:
        """Return an object for JSON lines."""
        row: Object = {"iops": self.iops, "bw": self.bw, "ios": self.ios, "bytes": self.bytes}
        for kind in LATENCIES:
            totals = self.latencies.get(kind, LatencyTotals())
            row[kind] = totals.as_object(with_bins and kind in WITH_BINS)
            if kind not in WITH_BINS:
                row[kind] = {name: row[kind][name] for name in ("mean", "n", "sum_ns")}
        return row


def direction_of_frame(row: Mapping[str, Any], seconds: float) -> DirectionSum:
    """A direction of a frame (``seconds`` long), as JSON lines have it. Malformed."""
    part = DirectionSum(scaled_integer(row.get("ios")), scaled_integer(row.get("bytes")))
    part.iops_m = scaled_integer(part.ios / seconds, MILLI)
    part.bw_m = scaled_integer(part.bytes / seconds, MILLI)
    bins_of = row.get("bins_of")
    for kind in LATENCIES:
        latency_row = get_object(row, kind)
        n = scaled_integer(latency_row.get("n"))
        if not n:
            continue
        mean = latency_row.get("mean")
        part.latencies[kind] = LatencyTotals(
            n, scaled_integer(mean, n), scaled_integer(latency_row.get("max")),
            _bins(row) if kind == bins_of else 0,
        )  # fmt: skip
    return part


def direction_of_total(row: Mapping[str, Any]) -> DirectionSum:
    """A direction of a merger's total, as JSON lines have it. Malformed."""
    part = DirectionSum(
        scaled_integer(row.get("ios")), scaled_integer(row.get("bytes")),
        scaled_integer(row.get("iops"), MILLI), scaled_integer(row.get("bw"), MILLI),
    )  # fmt: skip
    for kind in LATENCIES:
        latency_row = get_object(row, kind)
        if scaled_integer(latency_row.get("n")):
            part.latencies[kind] = LatencyTotals(
                scaled_integer(latency_row.get("n")), scaled_integer(latency_row.get("sum_ns")),
                scaled_integer(latency_row.get("max")), _bins(latency_row),
            )  # fmt: skip
    return part


@dataclass(slots=True)
class KernelSum:
    """The devices under the jobs of ``hosts`` hosts: rates in thousandths, requests, and how long
    they took together (thousandths of ms)."""

    hosts: int = 0
    rates: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)

    def add(self, other: KernelSum) -> None:
        """Add other hosts'."""
        self.hosts += other.hosts
        for target, added in (
            (self.rates, other.rates), (self.counts, other.counts), (self.waits, other.waits)
        ):  # fmt: skip
            for name, value in added.items():
                target[name] = target.get(name, 0) + value

    def rate(self, name: str) -> float | None:
        """ "r/s" ... of all hosts; ``None`` if no device was measured."""
        return self.rates.get(name, 0) / MILLI if self.hosts else None

    def as_object(self) -> Object | None:
        """Return an object for JSON lines; ``None`` if no device was measured."""
        if not self.hosts:
            return None
        row: Object = {"hosts": self.hosts}
        row |= {name: self.rate(name) for name in DISK_RATES}
        for await_, count in AWAITS:
            requests, wait = self.counts.get(count, 0), self.waits.get(await_, 0)
            row[count] = requests
            row[await_] = wait / MILLI / requests if requests else None
            row[f"{await_}_sum"] = wait / MILLI
        return row


def kernel_of_frame(row: Mapping[str, Any]) -> KernelSum:
    """The devices of a frame together. Malformed."""
    disk = get_object(get_object(row, "kernel"), TOTAL)
    if not disk:
        return KernelSum()
    kernel = KernelSum(1, {name: scaled_integer(disk.get(name), MILLI) for name in DISK_RATES})
    for await_, count in AWAITS:
        requests = kernel.counts[count] = scaled_integer(disk.get(count))
        kernel.waits[await_] = scaled_integer(disk.get(await_), requests * MILLI)
    return kernel


def kernel_of_total(row: Mapping[str, Any]) -> KernelSum:
    """The devices of a merger's total. Malformed."""
    disk = get_object(row, "kernel")
    if not disk:
        return KernelSum()
    kernel = KernelSum(
        scaled_integer(disk.get("hosts")),
        {name: scaled_integer(disk.get(name), MILLI) for name in DISK_RATES},
    )
    for await_, count in AWAITS:
        kernel.counts[count] = scaled_integer(disk.get(count))
        kernel.waits[await_] = scaled_integer(disk.get(f"{await_}_sum"), MILLI)
    return kernel


def device_of_frame(row: Mapping[str, Any]) -> ProbeSum:
    """Probe figures of a frame; nothing where the devices were not followed. Malformed."""
    probe = get_object(row, DEVICE)
    us = scaled_integer(probe.get("seconds"), MICRO)
    if not us or any(not get_object(probe, kind) for kind in KINDS):
        return ProbeSum()
    device = _device(probe, us)
    device.hosts = 1
    for part in device.parts.values():
        part.iops_m = rate_m(part.ios, us)
    completed = sum(part.ios for part in device.parts.values())
    share = scaled_integer(probe.get("missed"), MILLI)
    if share > 100 * MILLI:
        raise MalformedRow("it missed more requests than there were")
    # of nothing but completions without a beginning nobody says how many they were
    matched = 100 * MILLI - share
    device.counts["missed"] = round(completed * share / matched) if matched else 1
    return device


def device_of_total(row: Mapping[str, Any]) -> ProbeSum:
    """Probe figures of a merger's total. Malformed."""
    probe = get_object(row, DEVICE)
    hosts = scaled_integer(probe.get("hosts"))
    if not hosts:
        return ProbeSum()
    device = _device(probe, scaled_integer(probe.get("seconds"), MICRO))
    device.hosts = hosts
    for kind, part in device.parts.items():
        part.iops_m = scaled_integer(get_object(probe, kind).get("iops"), MILLI)
    device.counts["missed"] = scaled_integer(probe.get("missed_ios"))
    return device


def _device(row: Mapping[str, Any], us: int) -> ProbeSum:
    device = ProbeSum(
        us=us, counts={name: scaled_integer(row.get(name)) for name in LOSS_COUNTS[1:]}
    )
    for kind in KINDS:
        part = get_object(row, kind)
        ios, packed = scaled_integer(part.get("ios")), _bins(part)
        if packed % _ALL_FIELDS != ios:
            raise MalformedRow("a device's histogram does not match its requests")
        if ios:
            device.parts[kind] = ProbeDirectionSum(ios, 0, packed)
    return device


@dataclass(slots=True)
class HostSums:
    """All sums: fio's directions and its total, the devices as /proc/diskstats and as the probes
    count them, and the slowest host (p99 in ns, its name)."""

    fio: dict[str, DirectionSum] = field(default_factory=dict)
    kernel: KernelSum = field(default_factory=KernelSum)
    slowest: tuple[int, str] | None = None
    device: ProbeSum = field(default_factory=ProbeSum)

    def add(self, other: HostSums, with_bins: bool = True) -> None:
        """Add other hosts', or other seconds'."""
        for name, part in other.fio.items():
            self.fio.setdefault(name, DirectionSum()).add(part, with_bins)
        self.kernel.add(other.kernel)
        self.device.add(other.device, with_bins)
        candidates = [slowest for slowest in (self.slowest, other.slowest) if slowest is not None]
        self.slowest = max(candidates, default=None)

    @property
    def total(self) -> DirectionSum | None:
        """All directions as one, bins included; ``None`` without fio."""
        total = self.fio.get(TOTAL)
        if total is None:
            return None
        combined = DirectionSum(total.ios, total.bytes, total.iops_m, total.bw_m)
        for kind, totals in total.latencies.items():
            combined.latency_sum(kind).add(totals.n, totals.sum_ns, totals.max_ns, 0)
        for part in counted_directions(self.fio):
            for kind, totals in part.latencies.items():
                combined.latency_sum(kind).add(
                    0, 0, totals.max_ns if totals.packed else 0, totals.packed
                )
        return combined

    def fio_object(self) -> Object | None:
        """Return fio's part for JSON lines; ``None`` without fio."""
        total = self.total
        if total is None:
            return None
        row: Object = {
            name: self.fio[name].as_object() if name in self.fio else None for name in DIRECTIONS
        }
        return {**row, TOTAL: total.as_object(with_bins=False)}


def counted_directions(fio: Mapping[str, DirectionSum]) -> Iterable[DirectionSum]:
    """The directions that the total is made of: ``mixed`` alone, or what there is beside it."""
    parts = [part for name, part in fio.items() if name not in (MIXED, TOTAL)]
    return parts or [part for name, part in fio.items() if name == MIXED]


def frame_sums(host: str, row: Mapping[str, Any], seconds: float) -> HostSums:
    """Figures that a frame of ``host`` adds to the total. Malformed."""
    fio = get_object(row, "fio")
    sums = HostSums(kernel=kernel_of_frame(row), device=device_of_frame(row))
    for name in (*DIRECTIONS, TOTAL) if fio else ():
        part = get_object(fio, name)
        if part:
            sums.fio[name] = direction_of_frame(part, seconds)
    p99 = [
        scaled_integer(get_object(get_object(fio, TOTAL), kind).get("p99")) for kind in WITH_BINS
    ]
    if any(p99):
        sums.slowest = (max(p99), host)
    return sums


def total_sums(row: Mapping[str, Any]) -> HostSums:
    """Figures that a merger's total adds. Malformed."""
    fio = get_object(row, "fio")
    sums = HostSums(kernel=kernel_of_total(row), device=device_of_total(row))
    for name in (*DIRECTIONS, TOTAL) if fio else ():
        part = get_object(fio, name)
        if part:
            sums.fio[name] = direction_of_total(part)
    slowest = get_object(row, "slowest")
    if slowest:
        sums.slowest = (scaled_integer(slowest.get("p99")), str(slowest.get("host")))
    return sums
