"""fio's cumulative documents turned into one interval's own numbers.

Which clock divides what, and why, is measured: fio's ``runtime`` stands still while a job is
stuck and differs between group members, so an interval is the difference of the documents'
timestamps. Only the last document is different: its counters end with the jobs, but it is
written up to a quarter of a second later, so there the growth of ``runtime`` is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from iopstui.model import histogram
from iopstui.model.fio.counts import (
    EVIDENCE,
    SAMPLES,
    SUBMISSIONS,
    active,
    count,
    counted_by,
)
from iopstui.model.fio.packed_bins import PackedBins
from iopstui.model.fio.ramp import Ramps, in_ramp
from iopstui.model.fio.time import (
    Pair,
    grown_runtime,
    held_up,
    paired,
    ran_ms,
    repeats,
    seconds_of,
)
from iopstui.model.histogram import Bins
from iopstui.model.samples import (
    DIRECTIONS,
    MIXED,
    DirectionStatus,
    FioStatus,
    LatencySum,
)
from iopstui.records import dataclass

DUPLICATE_BELOW_S = 0.05
PARTIAL_BELOW = 0.8
# fewer rows are subtracted bucket by bucket
MANY_ROWS = 8


@dataclass(frozen=True, slots=True)
class DirectionInterval:
    """One direction (or the total) in one interval.

    ``ios`` completions and ``bytes`` are plain counts, ``iops`` and ``bw`` (bytes/s) rates,
    latencies nanoseconds. ``percentiles`` ("p50" ... "p99.99") and ``max_ns`` come from
    ``bins``, the interval's own histogram of ``bins_of`` ("clat" or "lat") latencies.
    ``samples`` says over how many I/Os each of the means ("slat", "clat", "lat") was taken, so
    that means of several jobs, hosts or seconds can be joined.
    """

    ios: int
    bytes: int
    iops: float | None
    bw: float | None
    slat_ns: float | None
    clat_ns: float | None
    lat_ns: float | None
    percentiles: Mapping[str, int]
    max_ns: int | None
    bins: Mapping[int, int]
    bins_of: str
    samples: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobInterval:
    """One row of fio's report in one interval (a job, or a group with group_reporting).

    ``reset``: the row's counters began again in this interval; ``ios`` and ``bytes`` are what
    it did since then. ``counted_by`` says which counter of fio's ``ios`` is made of:
    "samples" (of latencies), "bytes" (divided by the block size) or "submissions".
    """

    index: int
    name: str
    error: int
    iops: float | None
    bw: float | None
    clat_ns: float | None
    ios: int = 0
    bytes: int = 0
    reset: bool = False
    counted_by: str = SAMPLES


@dataclass(frozen=True, slots=True)
class FioInterval:
    """What fio did in one interval of ``seconds`` (``None``: too short to give rates).

    ``iodepth_level`` is percent of the interval's I/Os by queue depth; ``usr_cpu`` and
    ``sys_cpu`` percent of one CPU, summed over the jobs; ``ctx_s`` context switches per
    second; ``progress`` 0..1. Unknown is ``None``. ``times_all`` is False if latencies are of
    some of the I/Os only (a group of which some sections take none).
    """

    seconds: float | None
    directions: Mapping[str, DirectionInterval]
    total: DirectionInterval
    jobs: tuple[JobInterval, ...]
    iodepth_level: Mapping[str, float]
    usr_cpu: float | None
    sys_cpu: float | None
    ctx_s: float | None
    elapsed_s: int | None
    eta_s: int | None
    progress: float | None
    ramp: bool
    reset: bool
    partial: bool
    measures_latency: bool
    counts_submissions: bool
    times_all: bool = True


Counted = dict[tuple[int, str], str]
"""By which of fio's counters a row's direction is counted, by the row's index and its name."""


@dataclass(slots=True)
class _Growth:
    """How much one direction of one or more rows grew. ``own``: its ``bins``, if they are no other
    one's."""

    ios: int = 0
    bytes: int = 0
    slat: LatencySum | None = None
    clat: LatencySum | None = None
    lat: LatencySum | None = None
    bins: Bins = field(default_factory=dict)
    bins_of: str = "clat"
    max_ns: int | None = None
    counted_by: str = SAMPLES
    packed: int = 0
    own: dict[int, int] | None = None

    def add(self, other: _Growth, bins: bool = True) -> None:
        """``bins=False``: all but the histogram, which is added otherwise."""
        self.ios += other.ios
        self.bytes += other.bytes
        self.slat = _joined(self.slat, other.slat)
        self.clat = _joined(self.clat, other.clat)
        self.lat = _joined(self.lat, other.lat)
        self.counted_by = max(self.counted_by, other.counted_by, key=EVIDENCE.index)
        if other.max_ns is not None:
            self.bins_of = other.bins_of
            if bins:
                self.put(other.bins)
                self.packed += other.packed
            self.max_ns = max(self.max_ns or 0, other.max_ns)

    def put(self, more: Bins) -> None:
        """Add a histogram."""
        # a row alone is the whole: its histogram is not copied
        if not self.bins:
            self.bins = more
            return
        if self.own is None:
            self.bins = self.own = dict(self.bins)
        histogram.add(self.own, more)

    def interval(
        self, seconds: float | None, found: Mapping[str, int] | None = None
    ) -> DirectionInterval:
        """``found``: the percentiles, where they are known."""
        if found is None:
            found = _percentiles(self.bins)
        return DirectionInterval(
            ios=self.ios,
            bytes=self.bytes,
            iops=self.ios / seconds if seconds else None,
            bw=self.bytes / seconds if seconds else None,
            slat_ns=_mean(self.slat),
            clat_ns=_mean(self.clat),
            lat_ns=_mean(self.lat),
            percentiles=found,
            max_ns=self.max_ns,
            bins=self.bins,
            bins_of=self.bins_of,
            samples={
                name: total.count
                for name, total in (("slat", self.slat), ("clat", self.clat), ("lat", self.lat))
                if total is not None
            },
        )


class FioIntervals:
    """Subtracts one fio run's successive documents (a fold; see ``FrameBuilder``)."""

    def __init__(self) -> None:
        self._previous: FioStatus | None = None
        self._arrived_ns = 0
        self._idle_ms: int | None = None
        self._ramps = Ramps()
        self._counted: Counted = {}
        self._since: dict[int, float] = {}
        self._packed: dict[str, PackedBins] = {}

    def feed(
        self, status: FioStatus, arrived_ns: int, interval_s: float, final: bool
    ) -> FioInterval | None:
        """The interval that ends with ``status``.

        ``None`` before any job has started (fio is still laying out files) and for the second
        of two documents that say the same (fio repeats itself at the end of a run).
        """
        if not any(active(job) for job in status.jobs):
            self._idle_ms = status.timestamp_ms
            return None
        previous = self._previous
        arrival_s = (arrived_ns - self._arrived_ns) / 1e9
        pairs = paired(status, previous, self._ramps)
        again = final and previous is not None and repeats(status, previous)
        if again and not grown_runtime(pairs):
            return None
        if previous is None:
            seconds: float | None = grown_runtime(pairs)
            if not final:
                waited_s = self._waited_s(status, interval_s)
                seconds = held_up(status, pairs, seconds or 0.0, waited_s)
            seconds = seconds or None
        else:
            seconds = seconds_of(status, previous, pairs, arrival_s, final, self._since)
        self._go_on(pairs, seconds)
        too_short = previous is not None and (seconds or 0) < DUPLICATE_BELOW_S
        first = previous is None and self._idle_ms is None
        ramp = any([self._ramps.feed(p.index, p.now, p.reset, interval_s, first) for p in pairs])
        packed = self._widened(pairs)
        interval = _interval(
            pairs, None if too_short else seconds, interval_s, ramp, self._counted, packed
        )
        if too_short and not interval.total.bytes:
            return None
        self._previous = status
        self._arrived_ns = arrived_ns
        return interval

    def _widened(self, pairs: list[Pair]) -> Mapping[str, PackedBins]:
        """What subtracts the histograms of many rows, by their direction."""
        if len(pairs) < MANY_ROWS:
            return {}
        names = {name for pair in pairs for name in pair.now.directions}
        # where I/Os are printed twice, what is added up differs from row to row
        if MIXED in names:
            return {}
        for name in names:
            each = (pair.now.directions.get(name) for pair in pairs)
            packed = self._packed.setdefault(name, PackedBins())
            packed.widen([one.bins for one in each if one is not None and one.bins])
        return self._packed

    def _go_on(self, pairs: Iterable[Pair], seconds: float | None) -> None:
        """Note how long each row has run by the intervals so far."""
        for pair in pairs:
            if pair.old is None or not active(pair.old):
                self._since[pair.index] = ran_ms(pair.now) / 1000
            else:
                self._since[pair.index] = self._since.get(pair.index, 0.0) + (seconds or 0.0)

    def _waited_s(self, status: FioStatus, interval_s: float) -> float | None:
        """How much longer than one interval no document came before the first that has I/O;
        ``None`` if it is the very first."""
        if self._idle_ms is None:
            return None
        return (status.timestamp_ms - self._idle_ms) / 1000 - interval_s


def _interval(
    pairs: list[Pair],
    seconds: float | None,
    interval_s: float,
    ramp: bool,
    counted: Counted,
    packed: Mapping[str, PackedBins],
) -> FioInterval:
    by_direction: dict[str, _Growth] = {}
    whole = _Growth()
    jobs = []
    counted_parts: list[_Growth] = []
    for pair in pairs:
        growths = _row_growth(pair, counted, packed)
        parts = _parts(growths)
        counted_parts += parts
        growth = _total(parts)
        jobs.append(_job_interval(pair, growth, seconds))
        if len(pairs) == len(growths) == 1 and growth.max_ns is not None and not growth.packed:
            # one row with one direction is the whole: nothing is added up
            by_direction, whole = growths, growth
            break
        whole.add(growth, bins=False)
        for name, one in growths.items():
            by_direction.setdefault(name, _Growth()).add(one)
    for name, one in by_direction.items():
        if one.packed:
            one.put(packed[name].unpacked(one.packed))
    # what is in the directions' histograms, each added up once, need not be added up row by row
    summed = counted_parts if MIXED in by_direction else by_direction.values()
    several = [one.bins for one in summed]
    whole.bins = several[0] if len(several) == 1 else histogram.merge(several)
    found = _percentiles(whole.bins)
    # a single direction is the whole
    known = found if len(by_direction) == 1 else None
    eta = _latest(pair.now.eta_s for pair in pairs)
    elapsed = _latest(pair.now.elapsed_s for pair in pairs)
    working = [pair.now for pair in pairs if active(pair.now)]
    directions = {
        name: by_direction[name].interval(seconds, known)
        for name in DIRECTIONS
        if name in by_direction
    }
    alone = next((name for name, one in by_direction.items() if one is whole), "")
    return FioInterval(
        seconds=seconds,
        directions=directions,
        total=directions.get(alone) or whole.interval(seconds, found),
        jobs=tuple(jobs),
        iodepth_level=_iodepth(pairs),
        usr_cpu=_cpu(pairs, "usr_cpu", seconds),
        sys_cpu=_cpu(pairs, "sys_cpu", seconds),
        ctx_s=_context_switches(pairs, seconds),
        elapsed_s=elapsed,
        eta_s=eta,
        progress=_progress(elapsed, eta),
        ramp=ramp,
        reset=any(pair.reset for pair in pairs),
        partial=(seconds or 0) < PARTIAL_BELOW * interval_s,
        measures_latency=any(job.measures_latency for job in working),
        counts_submissions=whole.counted_by == SUBMISSIONS,
        times_all=_times_all(pairs, jobs),
    )


def _percentiles(bins: Bins) -> dict[str, int]:
    found = histogram.percentiles(bins)
    return {histogram.percentile_name(p): value for p, value in found.items()}


def _times_all(pairs: Iterable[Pair], jobs: Iterable[JobInterval]) -> bool:
    """False if only some of the I/Os have a latency."""
    timed = {
        one.counted_by == SAMPLES and pair.now.measures_latency
        for pair, one in zip(pairs, jobs, strict=True)
        if one.ios and not in_ramp(pair.now)
    }
    return len(timed) < 2 and not (
        timed == {False} and any(pair.now.measures_latency for pair in pairs if active(pair.now))
    )


def _parts(by_direction: Mapping[str, _Growth]) -> list[_Growth]:
    """What makes up one row: its directions; ``mixed`` only where it has nothing else
    (unified_rw_reporting=both prints the same I/Os twice)."""
    split = [growth for name, growth in by_direction.items() if name != MIXED]
    return split or [*by_direction.values()]


def _total(parts: list[_Growth]) -> _Growth:
    """The sum of one row's parts, but for their histograms."""
    if len(parts) == 1:
        return parts[0]
    total = _Growth()
    for growth in parts:
        total.add(growth, bins=False)
    return total


def _job_interval(pair: Pair, growth: _Growth, seconds: float | None) -> JobInterval:
    return JobInterval(
        index=pair.index,
        name=pair.now.name,
        error=pair.now.error,
        iops=growth.ios / seconds if seconds else None,
        bw=growth.bytes / seconds if seconds else None,
        clat_ns=_mean(growth.clat),
        ios=growth.ios,
        bytes=growth.bytes,
        reset=pair.reset,
        counted_by=growth.counted_by,
    )


def _row_growth(
    pair: Pair, counted: Counted, packed: Mapping[str, PackedBins]
) -> dict[str, _Growth]:
    growths = {}
    for name, now in pair.now.directions.items():
        if not (now.issued or now.io_bytes):
            continue
        old = pair.old.directions.get(name) if pair.old else None
        by = counted_by(pair.now, now)
        if old is not None:
            # once a counter was no evidence it stays so: another one is a little ahead or behind
            by = max(by, counted.get((pair.index, name), by), key=EVIDENCE.index)
        counted[pair.index, name] = by
        growth = _Growth(
            ios=max(0, count(pair.now, now, by) - (count(pair.now, old, by) if old else 0)),
            bytes=now.io_bytes - (old.io_bytes if old else 0),
            slat=_grown_sum(now.slat, old.slat if old else None),
            clat=_grown_sum(now.clat, old.clat if old else None),
            lat=_grown_sum(now.lat, old.lat if old else None),
            bins_of=now.bins_of,
            counted_by=by,
        )
        highest = _grow_bins(growth, pair.index, now, old, packed.get(name))
        growth.max_ns = _grown_max(highest, now, old)
        growths[name] = growth
    return growths


def _grow_bins(
    growth: _Growth,
    index: int,
    now: DirectionStatus,
    old: DirectionStatus | None,
    packed: PackedBins | None,
) -> int | None:
    """Put to ``growth`` what came to the histogram; the key of its highest bucket in ns."""
    if not now.bins:
        return None
    before = (old.bins if old else None) or {}
    grown = packed.growth(index, now.bins, before) if packed is not None else None
    if packed is None or grown is None:
        growth.bins = histogram.subtract(now.bins, before) or {}
        return histogram.maximum(growth.bins)
    growth.packed = grown
    return packed.highest(grown)


def _grown_max(
    highest: int | None, now: DirectionStatus, old: DirectionStatus | None
) -> int | None:
    """The slowest I/O of the interval: fio's own maximum where that rose in it, else within a
    bucket's width, from the histogram, whose ``highest`` bucket is given."""
    if highest is None or not now.lat_max_ns:
        return highest
    before = old.lat_max_ns if old is not None and old.bins else None
    if before is None or now.lat_max_ns > before:
        return now.lat_max_ns
    return min(highest, now.lat_max_ns)


def _grown_sum(now: LatencySum | None, old: LatencySum | None) -> LatencySum | None:
    if now is None:
        return None
    if old is None:
        return now if now.count else None
    count = now.count - old.count
    if count <= 0:
        return None
    mean = (now.mean_ns * now.count - old.mean_ns * old.count) / count
    return LatencySum(mean, count) if mean >= 0 else None


def _joined(left: LatencySum | None, right: LatencySum | None) -> LatencySum | None:
    if left is None or right is None:
        return left or right
    count = left.count + right.count
    if not count:
        return None
    return LatencySum((left.mean_ns * left.count + right.mean_ns * right.count) / count, count)


def _mean(total: LatencySum | None) -> float | None:
    return total.mean_ns if total and total.count else None


def _iodepth(pairs: Iterable[Pair]) -> dict[str, float]:
    """fio prints cumulative percentages, at least 0.1 where not zero: an estimate."""
    counts: dict[str, float] = {}
    for pair in pairs:
        for job, sign in ((pair.now, 1), (pair.old, -1)):
            if job is None or not job.iodepth_level:
                continue
            issued = sum([d.issued for d in job.directions.values()])
            for depth, percent in job.iodepth_level.items():
                # most depths are never reached
                if percent or depth not in counts:
                    counts[depth] = counts.get(depth, 0.0) + sign * percent * issued / 100
    positive = {depth: max(0.0, count) for depth, count in counts.items()}
    total = sum(positive.values())
    if total <= 0:
        return {}
    return {depth: 100 * count / total for depth, count in positive.items()}


def _cpu(pairs: Iterable[Pair], which: str, seconds: float | None) -> float | None:
    if not seconds:
        return None
    used_ms = 0.0
    for pair in pairs:
        for job, sign in ((pair.now, 1), (pair.old, -1)):
            if job is not None:
                used_ms += sign * getattr(job, which) / 100 * job.job_runtime_ms
    return max(0.0, used_ms) / (seconds * 10)


def _context_switches(pairs: Iterable[Pair], seconds: float | None) -> float | None:
    if not seconds:
        return None
    grown = sum(pair.now.ctx - (pair.old.ctx if pair.old else 0) for pair in pairs)
    return max(0, grown) / seconds


def _latest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _progress(elapsed: int | None, eta: int | None) -> float | None:
    if elapsed is None or eta is None or elapsed + eta <= 0:
        return None
    return elapsed / (elapsed + eta)
