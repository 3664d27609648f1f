"""Sums of several hosts' probes, as integers and histograms; figures are computed for display."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from iopstui.fleet.merging.packed_histogram import unpack
from iopstui.format import counted
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.paths import TOTAL
from iopstui.model.metrics.probe import KINDS, LatencyStats

Object = dict[str, Any]
MICRO = 10**6
MILLI = 1000
LOSS_COUNTS = ("missed", "skipped", "lost", "full")
"""What may be missing, by name (model/metrics/probe.py); ``missed`` as requests, not percent."""


def rate_m(ios: int, us: int) -> int:
    """Rate per second in thousandths of ``count`` in so many microseconds; 0 in no time."""
    return round(ios * MILLI * MICRO / us) if us else 0


@dataclass(slots=True)
class ProbeDirectionSum:
    """The requests of one direction: how many, their rate in thousandths, and their histogram from
    issue to completion, packed (packed_histogram.py)."""

    ios: int = 0
    iops_m: int = 0
    packed: int = 0

    def add(self, other: ProbeDirectionSum, with_bins: bool = True) -> None:
        """Add others'."""
        self.ios += other.ios
        self.iops_m += other.iops_m
        if with_bins:
            self.packed += other.packed

    @property
    def iops(self) -> float:
        """Requests per second of all hosts."""
        return self.iops_m / MILLI

    @property
    def latencies(self) -> LatencyStats:
        """All figures of the histogram."""
        return LatencyStats.from_bins(unpack(self.packed))

    def as_object(self, with_bins: bool = True) -> Object:
        """Return an object for JSON lines."""
        stats = self.latencies
        row: Object = {"iops": self.iops, "ios": self.ios, "mean": stats.mean_ns}
        row |= {name: stats.percentiles.get(name) for name in map(percentile_name, PERCENTILES)}
        row["max"] = stats.max_ns
        if with_bins:
            row["bins"] = {str(key): count for key, count in stats.bins.items()}
        return row


@dataclass(slots=True)
class ProbeSum:
    """The devices under the jobs of the ``hosts`` whose probes counted, ``us`` microseconds of all
    of them together. ``parts`` has the directions in which there was a request."""

    hosts: int = 0
    us: int = 0
    parts: dict[str, ProbeDirectionSum] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, other: ProbeSum, with_bins: bool = True) -> None:
        """Add other hosts', or other seconds'; rates only mean something for hosts."""
        if not other.hosts:
            return
        self.hosts += other.hosts
        self.us += other.us
        for kind, part in other.parts.items():
            self.parts.setdefault(kind, ProbeDirectionSum()).add(part, with_bins)
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    def set_single_host_rates(self) -> None:
        """Return rates for sums of a single host, over all of its time."""
        self.hosts = min(self.hosts, 1)
        for part in self.parts.values():
            part.iops_m = rate_m(part.ios, self.us)

    def part(self, kind: str) -> ProbeDirectionSum | None:
        """A direction, or all of them as "total"; ``None`` if nobody's probe counted."""
        if not self.hosts:
            return None
        if kind != TOTAL:
            return self.parts.get(kind, ProbeDirectionSum())
        total = ProbeDirectionSum()
        for part in self.parts.values():
            total.add(part)
        return total

    def directions(self) -> Iterator[tuple[str, ProbeDirectionSum]]:
        """Directions with a request, always in the same order."""
        return ((kind, self.parts[kind]) for kind in KINDS if kind in self.parts)

    @property
    def missed(self) -> float | None:
        """Percent of the completions, not matched with their beginning; ``None`` of none."""
        missed = self.counts.get("missed", 0)
        completed = sum(part.ios for part in self.parts.values()) + missed
        return 100 * missed / completed if completed else None

    def describe(self, host_count: int) -> str:
        """Number of hosts whose probe counted, in words; "" if none did."""
        return f"device: {self.hosts} of {counted(host_count, 'host')}" if self.hosts else ""

    def as_object(self) -> Object | None:
        """Return an object for JSON lines; ``None`` if no probe counted."""
        if not self.hosts:
            return None
        row: Object = {"hosts": self.hosts, "seconds": self.us / MICRO}
        for kind in (*KINDS, TOTAL):
            row[kind] = (self.part(kind) or ProbeDirectionSum()).as_object(kind != TOTAL)
        counts = {name: self.counts.get(name, 0) for name in LOSS_COUNTS}
        return {**row, **counts, "missed": self.missed, "missed_ios": counts["missed"]}
