"""Increase of fio's row counters from one document to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from iopstui.model import histogram
from iopstui.model.fio.interval import DirectionInterval
from iopstui.model.fio.interval_time import RowPair, Windows
from iopstui.model.fio.rows import (
    BYTES,
    EVIDENCE,
    NOTHING,
    SAMPLES,
    bytes_by_count,
    count,
    counted_by,
)
from iopstui.model.histogram import Bins
from iopstui.model.samples import MIXED, DirectionStatus, LatencySum


@dataclass(slots=True)
class CountsSoFar:
    """The fio counter from which I/Os are taken (``chosen``), and the total bytes of the intervals
    so far, both by row index and direction."""

    chosen: dict[tuple[int, str], str] = field(default_factory=dict)
    bytes: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def state(self) -> tuple[object, ...]:
        """The complete state, for comparison."""
        return sorted(self.chosen.items()), sorted(self.bytes.items())


@dataclass(slots=True)
class Growth:
    """Increase of one direction's counters over one or more rows. ``copied_ios`` and
    ``copied_bytes`` are the part that belongs to the copied window (interval_time.py).
    ``stated_bytes`` are fio's own bytes, even if ``bytes`` is I/Os times their size. ``own_bins``:
    its ``bins``, if no other object shares them."""

    ios: int = 0
    bytes: int = 0
    copied_ios: int = 0
    copied_bytes: int = 0
    stated_bytes: int = 0
    slat: LatencySum | None = None
    clat: LatencySum | None = None
    lat: LatencySum | None = None
    bins: Bins = field(default_factory=dict)
    bins_of: str = "clat"
    max_ns: int | None = None
    counted_by: str = SAMPLES
    own_bins: dict[int, int] | None = None

    def add(self, other: Growth, bins: bool = True) -> None:
        """Add another growth. ``bins=False``: without the histogram, which the caller adds
        later."""
        self.ios += other.ios
        self.bytes += other.bytes
        self.copied_ios += other.copied_ios
        self.copied_bytes += other.copied_bytes
        self.stated_bytes += other.stated_bytes
        self.slat = _join(self.slat, other.slat)
        self.clat = _join(self.clat, other.clat)
        self.lat = _join(self.lat, other.lat)
        self.counted_by = max(self.counted_by, other.counted_by, key=EVIDENCE.index)
        if other.max_ns is not None:
            self.bins_of = other.bins_of
            if bins:
                self.add_bins(other.bins)
            self.max_ns = max(self.max_ns or 0, other.max_ns)

    def add_bins(self, bins: Bins) -> None:
        # a single row is the total, so its histogram need not be copied
        if not self.bins:
            self.bins = bins
            return
        if self.own_bins is None:
            self.bins = self.own_bins = dict(self.bins)
        histogram.add(self.own_bins, bins)

    def iops(self, windows: Windows) -> float | None:
        """I/Os per second; ``None`` if fio does not count the I/Os."""
        if self.counted_by == NOTHING:
            return None
        return windows.rate(self.ios, self.copied_ios)

    def bw(self, windows: Windows) -> float | None:
        """Return bytes per second."""
        return windows.rate(self.bytes, self.copied_bytes)

    def interval(
        self, windows: Windows, percentiles: Mapping[str, int] | None = None
    ) -> DirectionInterval:
        """The figures as an interval. ``percentiles`` are those of ``bins``, if they are known
        already."""
        if percentiles is None:
            percentiles = percentiles_of(self.bins)
        if self.max_ns is not None and max(percentiles.values(), default=0) > self.max_ns:
            # it is the middle of the highest bucket, which may be above all of its values
            percentiles = {name: min(value, self.max_ns) for name, value in percentiles.items()}
        return DirectionInterval(
            ios=self.ios,
            bytes=self.bytes,
            iops=self.iops(windows),
            bw=self.bw(windows),
            slat_ns=mean_of(self.slat),
            clat_ns=mean_of(self.clat),
            lat_ns=mean_of(self.lat),
            percentiles=percentiles,
            max_ns=self.max_ns,
            bins=self.bins,
            bins_of=self.bins_of,
            samples={
                name: total.count
                for name, total in (("slat", self.slat), ("clat", self.clat), ("lat", self.lat))
                if total is not None
            },
        )


def percentiles_of(bins: Bins) -> dict[str, int]:
    """The percentiles that are shown (ns), by name."""
    values = histogram.percentiles(bins)
    return {histogram.percentile_name(p): value for p, value in values.items()}


def parts_of(by_direction: Mapping[str, Growth]) -> list[Growth]:
    """Parts of a row: its directions; ``mixed`` only if it has nothing else
    (unified_rw_reporting=both prints the same I/Os twice)."""
    split = [growth for name, growth in by_direction.items() if name != MIXED]
    return split or [*by_direction.values()]


def total_of(parts: list[Growth]) -> Growth:
    """The sum of one row's parts, without their histograms."""
    if len(parts) == 1:
        return parts[0]
    total = Growth()
    for growth in parts:
        total.add(growth, bins=False)
    return total


def row_growth(
    pair: RowPair,
    counts: CountsSoFar,
    bytes_first: bool,
    final: bool,
) -> dict[str, Growth]:
    """Growth of one row since the document before, by direction. ``counts`` remembers which counter
    is used. ``bytes_first``: fio copied the bytes before it counted the I/Os, as it does except in
    the ``final`` document."""
    growths = {}
    for name, now in pair.now.directions.items():
        if not (now.issued or now.io_bytes):
            continue
        key = pair.index, name
        old = pair.old.directions.get(name) if pair.old else None
        by = counted_by(pair.now, now)
        if old is not None:
            # a counter that was rejected once stays rejected: the numbers of two counters differ
            # slightly
            by = max(by, counts.chosen.get(key, by), key=EVIDENCE.index)
        counts.chosen[key] = by
        sized = bytes_by_count(pair.now, name, now) if by == SAMPLES else None
        if sized is not None and final and sized != now.io_bytes:
            sized = None
        before = counts.bytes.get(key, 0) if old is not None else 0
        growth = Growth(
            ios=max(0, count(pair.now, now, by) - (count(pair.now, old, by) if old else 0)),
            bytes=max(0, (now.io_bytes if sized is None else sized) - before),
            slat=_sum_growth(now.slat, old.slat if old else None),
            clat=_sum_growth(now.clat, old.clat if old else None),
            lat=_sum_growth(now.lat, old.lat if old else None),
            bins_of=now.bins_of,
            counted_by=by,
            stated_bytes=now.io_bytes - (old.io_bytes if old else 0),
        )
        counts.bytes[key] = before + growth.bytes
        if bytes_first and sized is None:
            growth.copied_bytes = growth.bytes
            growth.copied_ios = growth.ios if by == BYTES else 0
        highest = _grow_bins(growth, now, old)
        growth.max_ns = _max_growth(highest, now, old)
        growths[name] = growth
    return growths


def sync_growth(pairs: Iterable[RowPair]) -> Growth | None:
    """Growth of the syncs of all rows since the document before; ``None`` if no row syncs."""
    total: Growth | None = None
    for pair in pairs:
        now, old = pair.now.sync, pair.old.sync if pair.old else None
        if now is None:
            continue
        growth = Growth(
            ios=max(0, (now.completed or 0) - (old.completed or 0 if old else 0)),
            clat=_sum_growth(now.clat, old.clat if old else None),
        )  # fmt: skip
        highest = _grow_bins(growth, now, old)
        growth.max_ns = _max_growth(highest, now, old)
        if total is None:
            total = growth
        else:
            total.add(growth)
    return total


def _grow_bins(growth: Growth, now: DirectionStatus, old: DirectionStatus | None) -> int | None:
    """Add the growth of the histogram to ``growth``; return the key (ns) of its highest bucket."""
    if not now.bins:
        return None
    growth.bins = histogram.subtract(now.bins, (old.bins if old else None) or {}) or {}
    return histogram.maximum(growth.bins)


def _max_growth(
    highest: int | None, now: DirectionStatus, old: DirectionStatus | None
) -> int | None:
    """The slowest I/O of the interval: fio's own maximum if it rose in the interval, else the key
    of the histogram's ``highest`` bucket, which is exact to a bucket's width."""
    if highest is None or not now.lat_max_ns:
        return highest
    before = old.lat_max_ns if old is not None and old.bins else None
    if before is None or now.lat_max_ns > before:
        return now.lat_max_ns
    return min(highest, now.lat_max_ns)


def _sum_growth(now: LatencySum | None, old: LatencySum | None) -> LatencySum | None:
    if now is None:
        return None
    if old is None:
        return now if now.count else None
    count = now.count - old.count
    if count <= 0:
        return None
    mean = (now.mean_ns * now.count - old.mean_ns * old.count) / count
    return LatencySum(mean, count) if mean >= 0 else None


def _join(left: LatencySum | None, right: LatencySum | None) -> LatencySum | None:
    if left is None or right is None:
        return left or right
    count = left.count + right.count
    if not count:
        return None
    return LatencySum((left.mean_ns * left.count + right.mean_ns * right.count) / count, count)


def mean_of(total: LatencySum | None) -> float | None:
    """Return the mean in ns; ``None`` without a sample."""
    return total.mean_ns if total and total.count else None
