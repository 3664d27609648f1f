"""Turn fio's cumulative documents into figures for single intervals.

interval_time.py decides which figure is divided by which window. I/Os and latencies belong to the
counted window. So do bytes if all I/Os have one size (I/Os times the size), and from fio 3.42 on;
else they belong to the copied window, which may cover other seconds; then the interval is flagged
(``bytes_elsewhere``, ``ios_elsewhere``). CPU time and context switches always belong to the copied
window."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

from iopstui.model import histogram
from iopstui.model.fio.growth import (
    CountsSoFar,
    Growth,
    mean_of,
    parts_of,
    percentiles_of,
    row_growth,
    sync_growth,
    total_of,
)
from iopstui.model.fio.interval import DirectionInterval, FioInterval, JobInterval
from iopstui.model.fio.interval_time import (
    DELAY_S,
    MAX_LAG_S,
    SAME_WINDOW,
    RowPair,
    Windows,
    copies_bytes_first,
    first_windows,
    io_end_s,
    is_repetition,
    next_windows,
    pair_rows,
    ran_ms,
    runtime_growth,
    windows_without_logs,
    working_jobs,
)
from iopstui.model.fio.rows import (
    SAMPLES,
    SUBMISSIONS,
    Ramps,
    active,
    duration_s,
    in_ramp,
    is_single,
    longest_runtime,
    max_in_flight,
)
from iopstui.model.samples import DIRECTIONS, MIXED, FioStatus

DUPLICATE_BELOW_S = 0.05
PARTIAL_BELOW = 0.8
PARTIAL_S = 0.05
CLOCK_STEP_MS = 100.0
# counts that belong to another window matter if they are at least this share
ELSEWHERE_SHARE = 0.01
# clocks or counts that are off can't explain this many times more I/Os in flight than possible
IMPOSSIBLE_FACTOR = 4
DEPTH_FACTOR = 1.1
# bytes may be off from I/Os by this share: fio does not read both at the same instant
BYTES_OFF = 0.1


@dataclass(slots=True)
class WallClock:
    """Notices with the monotonic clock that the wall clock was set; ``step_ms`` is the sum of these
    steps, ``distance_ms`` the difference of the two clocks."""

    step_ms: float = 0.0
    distance_ms: float | None = None

    def feed(self, arrived_ns: int, wall_ms: float | None) -> None:
        """Compare both clocks at one moment."""
        if wall_ms is None:
            return
        before, self.distance_ms = self.distance_ms, wall_ms - arrived_ns / 1e6
        if before is not None and abs(self.distance_ms - before) >= CLOCK_STEP_MS:
            self.step_ms += self.distance_ms - before

    def without_steps(self, status: FioStatus) -> FioStatus:
        """``status`` with the wall clock's time as it would be without these steps."""
        if not self.step_ms:
            return status
        return replace(status, timestamp_ms=round(status.timestamp_ms - self.step_ms))


class FioIntervals:
    """Subtracts successive documents of one fio run (a fold, like ``FrameBuilder``)."""

    def __init__(self) -> None:
        self._previous: FioStatus | None = None
        self._arrived_ns = 0
        self._idle_ms: int | None = None
        self._ramps = Ramps()
        self._counts = CountsSoFar()
        self._lag_s: float | None = None
        self._clock = WallClock()
        self._row_seconds: dict[int, float] = {}
        # how many jobs of a row worked in the last interval; None: not known
        self._working: dict[int, int | None] = {}

    def feed(
        self,
        status: FioStatus,
        arrived_ns: int,
        interval_s: float,
        final: bool,
        first_io_ms: float | None = None,
        wall_ms: float | None = None,
    ) -> FioInterval | None:
        """The interval that ends with ``status``. ``first_io_ms``: when the kernel saw the run's
        first I/O (wall clock), if it did. ``wall_ms``: the wall clock at ``arrived_ns``.

        ``None`` before any job has started (fio is still laying out files) and for the second of
        two equal documents (fio repeats itself at the end of a run)."""
        self._clock.feed(arrived_ns, wall_ms)
        status = self._clock.without_steps(status)
        if not any(active(job) for job in status.jobs):
            self._idle_ms = status.timestamp_ms
            return None
        previous = self._previous
        pairs = pair_rows(status, previous, self._ramps)
        repeated = final and previous is not None and is_repetition(status, previous)
        if repeated and not runtime_growth(pairs):
            return None
        ended = False
        if previous is None:
            idle_s = self._idle_s(status, interval_s)
            windows = first_windows(status, pairs, final, idle_s, first_io_ms)
        else:
            arrival_s = (arrived_ns - self._arrived_ns) / 1e9
            windows, ended = self._next_windows(status, previous, pairs, arrival_s, final)
        self._update_row_seconds(pairs, windows)
        first = previous is None and self._idle_ms is None
        ramp = any([self._ramps.feed(p.index, p.now, p.reset, interval_s, first) for p in pairs])
        growths = _Growths(pairs, self._counts, copies_bytes_first(status), final)
        windows = growths.windows(windows, final)
        if previous is not None and (
            (windows.counted_s or 0) < DUPLICATE_BELOW_S or _some_began_again(pairs)
        ):
            windows = replace(windows, counted_s=None)
        interval = _interval(pairs, growths, windows, interval_s, ramp, ended)
        # an interval without I/O at the end is left out unless it took a while
        is_short = not interval.seconds or (final and interval.partial)
        if is_short and not interval.total.bytes and not interval.total.ios:
            return None
        self._previous = status
        self._arrived_ns = arrived_ns
        self._lag_s = windows.lag_s
        return interval

    def _next_windows(
        self,
        status: FioStatus,
        previous: FioStatus,
        pairs: list[RowPair],
        arrival_s: float,
        final: bool,
    ) -> tuple[Windows, bool]:
        """The windows since ``previous``, and whether a job ended in them."""
        whole = next_windows(
            status, previous, pairs, arrival_s, final, self._row_seconds, self._lag_s
        )
        ended = self._job_ended(pairs, whole, final)
        windows = windows_without_logs(pairs, self._row_seconds, whole)
        return windows, ended or windows is not whole

    def _job_ended(self, pairs: Sequence[RowPair], windows: Windows, final: bool) -> bool:
        """Whether a job's I/O ended clearly before the interval did."""
        counted_s = windows.counted_s or 0.0
        tolerance = max(PARTIAL_S, SAME_WINDOW * counted_s)
        ended = False
        for pair in pairs:
            before, self._working[pair.index] = self._working.get(pair.index), None
            if pair.old is None or not active(pair.old) or not pair.has_grown:
                continue
            if pair.now.has_ramp and not self._ramps.is_over(pair.index, pair.now):
                continue
            most = duration_s(pair.now.options.get("runtime", "")) or 0.0
            over_s = self._row_seconds.get(pair.index, 0.0) + counted_s - most
            ended |= bool(most) and not final and tolerance < over_s < counted_s
            stood_s = _stood_s(pair, before, windows.copied_s or 0.0, final)
            ended |= stood_s > tolerance
            self._working[pair.index] = working_jobs(
                pair, windows.copied_s, ended=stood_s > tolerance
            )
        return ended

    def writes_logs(self, wall_ms: float) -> bool:
        """Whether at ``wall_ms`` all jobs have done their last I/O, so that fio writes its logs."""
        previous = self._previous
        if previous is None:
            return False
        for job in previous.jobs:
            ends = io_end_s(job)
            if ends is None or not active(job):
                return False
            last_ms = previous.timestamp_ms + 1000 * ends - longest_runtime(job)
            if last_ms >= wall_ms - self._clock.step_ms:
                return False
        return True

    @property
    def state(self) -> tuple[object, ...]:
        """Return all state that the next intervals depend on: two objects with equal states
        continue equally."""
        has_started = self._previous is not None
        return (
            self._previous, self._arrived_ns, None if has_started else self._idle_ms,
            astuple(self._clock), self._ramps.state, self._counts.state,
            sorted(self._row_seconds.items()), self._lag_s, sorted(self._working.items()),
        )  # fmt: skip

    def _update_row_seconds(self, pairs: Iterable[RowPair], windows: Windows) -> None:
        """Note how long each row had run when it was counted."""
        for pair in pairs:
            by_fio = ran_ms(pair.now) / 1000
            ran_s = self._row_seconds.get(pair.index, 0.0) + (windows.counted_s or 0.0)
            fresh = pair.old is None or not active(pair.old)
            if windows.lag_s is not None and active(pair.now):
                ran_s = by_fio + windows.lag_s
            # the two clocks drift apart by seconds over a day although the row was not delayed; it
            # can't have run for less than fio says
            elif fresh or ran_s - by_fio <= DELAY_S:
                ran_s = by_fio
            self._row_seconds[pair.index] = min(ran_s, by_fio + MAX_LAG_S)

    def _idle_s(self, status: FioStatus, interval_s: float) -> float | None:
        """How much longer than one interval it took until the first document with I/O; ``None``
        without a document before that one."""
        if self._idle_ms is None:
            return None
        return (status.timestamp_ms - self._idle_ms) / 1000 - interval_s


def _some_began_again(pairs: Sequence[RowPair]) -> bool:
    """Whether the counters of some rows were reset at the end of their ramp while others continued:
    the earlier I/Os are lost, so the interval has no rates."""
    return any(pair.reset for pair in pairs) and any(
        pair.has_grown for pair in pairs if pair.old is not None
    )


def _stood_s(pair: RowPair, working: int | None, copied_s: float, final: bool) -> float:
    """The total time in which jobs of a row did not work, though they had worked before
    (``working``)."""
    old = pair.old
    assert old is not None
    if is_single(pair.now):
        return copied_s - (ran_ms(pair.now) - ran_ms(old)) / 1000
    if final and pair.now.members:
        return (pair.now.members * longest_runtime(pair.now) - pair.now.job_runtime_ms) / 1000
    busy_s = (pair.now.job_runtime_ms - old.job_runtime_ms) / 1000
    return working * copied_s - busy_s if working is not None else 0.0


class _Growths:
    """Growth of all rows since the document before: each row, each direction, and the sum."""

    def __init__(
        self,
        pairs: list[RowPair],
        counts: CountsSoFar,
        bytes_first: bool,
        final: bool,
    ) -> None:
        self.by_row: list[Growth] = []
        self.by_direction: dict[str, Growth] = {}
        parts: list[Growth] = []
        for pair in pairs:
            growths = row_growth(pair, counts, bytes_first, final)
            row_parts = parts_of(growths)
            parts += row_parts
            growth = total_of(row_parts)
            self.by_row.append(growth)
            if len(pairs) == len(growths) == 1 and growth.max_ns is not None:
                # one row with one direction: nothing to add up
                self.by_direction = growths
                break
            for name, direction_growth in growths.items():
                self.by_direction.setdefault(name, Growth()).add(direction_growth)
        # the directions' histograms are already added up; adding all rows again would be slow
        summed = parts if MIXED in self.by_direction else self.by_direction.values()
        self.total = _total(self.by_row, self.by_direction, summed)

    def windows(self, windows: Windows, final: bool) -> Windows:
        """The windows of this interval: ``windows``, unless all I/Os are counted by bytes; then all
        figures belong to the copied window."""
        total = self.total
        if final and total.bytes and not total.ios and total.counted_by == SAMPLES:
            # the remaining bytes belong to I/Os counted before
            return replace(windows, counted_s=None)
        if total.bytes and total.copied_bytes == total.bytes and total.copied_ios == total.ios:
            return replace(windows, counted_s=windows.copied_s, shift_s=None)
        return windows

    def intervals(self, windows: Windows) -> tuple[dict[str, DirectionInterval], DirectionInterval]:
        percentiles = percentiles_of(self.total.bins)
        # a single direction is also the total
        shared = percentiles if len(self.by_direction) == 1 else None
        directions = {
            name: self.by_direction[name].interval(windows, shared)
            for name in DIRECTIONS
            if name in self.by_direction
        }
        alone = next(
            (name for name, growth in self.by_direction.items() if growth is self.total), ""
        )
        return directions, directions.get(alone) or self.total.interval(windows, percentiles)


def _interval(
    pairs: list[RowPair],
    growths: _Growths,
    windows: Windows,
    interval_s: float,
    ramp: bool,
    ended: bool,
) -> FioInterval:
    total = growths.total
    seconds = windows.counted_s
    cpu_s = windows.copied_s if (windows.copied_s or 0) >= DUPLICATE_BELOW_S else None
    rows = list(zip(pairs, growths.by_row, strict=True))
    jobs = [_job_interval(pair, growth, windows) for pair, growth in rows]
    directions, total_interval = growths.intervals(windows)
    eta = _maximum(pair.now.eta_s for pair in pairs)
    elapsed = _maximum(pair.now.elapsed_s for pair in pairs)
    working = [pair.now for pair in pairs if active(pair.now)]
    syncs = sync_growth(pairs)
    return FioInterval(
        seconds=seconds,
        directions=directions,
        total=total_interval,
        jobs=tuple(jobs),
        iodepth_level=_iodepth(pairs),
        usr_cpu=_cpu(pairs, "usr_cpu", cpu_s),
        sys_cpu=_cpu(pairs, "sys_cpu", cpu_s),
        ctx_s=_context_switches(pairs, cpu_s),
        elapsed_s=elapsed,
        eta_s=eta,
        progress=_progress(elapsed, eta),
        ramp=ramp,
        reset=any(pair.reset for pair in pairs),
        partial=ended or (seconds or 0) < PARTIAL_BELOW * interval_s,
        measures_latency=any(job.measures_latency for job in working),
        counts_submissions=total.counted_by == SUBMISSIONS,
        times_all=_times_all(pairs, jobs),
        latency_possible=not _exceeds_depth(rows, seconds, IMPOSSIBLE_FACTOR),
        failed=sum(map(_failed, pairs)),
        ios_elsewhere=not windows.sure
        or (windows.differ and total.copied_ios > ELSEWHERE_SHARE * total.ios),
        within_depth=not _exceeds_depth(rows, seconds, DEPTH_FACTOR),
        bytes_agree=windows.differ or _bytes_agree(rows, total),
        bytes_elsewhere=windows.differ and total.copied_bytes > ELSEWHERE_SHARE * total.bytes,
        sync=syncs.interval(windows) if syncs is not None else None,
    )


def _failed(pair: RowPair) -> int:
    """I/Os that ended with an error since the document before."""
    before = pair.old.failed if pair.old is not None else 0
    return max(0, (pair.now.failed or 0) - (before or 0))


def _total(
    by_row: Sequence[Growth], by_direction: Mapping[str, Growth], summed: Collection[Growth]
) -> Growth:
    """All rows and directions together; their histogram is the sum of those in ``summed``."""
    if len(by_direction) == len(summed) == 1:
        # a single direction is also the total
        return next(iter(by_direction.values()))
    total = Growth()
    for growth in by_row:
        total.add(growth, bins=False)
    total.bins = histogram.merge(part.bins for part in summed)
    return total


def _times_all(pairs: Iterable[RowPair], jobs: Iterable[JobInterval]) -> bool:
    """False if only some of the I/Os have a latency."""
    timed = {
        interval.counted_by == SAMPLES and pair.now.measures_latency
        for pair, interval in zip(pairs, jobs, strict=True)
        if interval.ios and not in_ramp(pair.now)
    }
    return len(timed) < 2 and not (
        timed == {False} and any(pair.now.measures_latency for pair in pairs if active(pair.now))
    )


def _exceeds_depth(
    rows: Iterable[tuple[RowPair, Growth]], seconds: float | None, factor: float
) -> bool:
    """Whether some latencies contradict Little's law by more than this factor. I/Os that end in an
    interval began at most the longest latency before it, so the sum of their latencies is limited
    by the job's depth. (fio 3.33 with io_uring's sqthread_poll stated 1 s each at 36,000 IOPS and
    depth 8.)"""
    for pair, growth in rows:
        job = pair.now
        if not seconds or not job.in_flight or not (job.measures_latency and job.times_all):
            continue
        max_total_s = job.in_flight * (seconds + (growth.max_ns or 0) / 1e9)
        # with sqthread_poll only clat is wrong
        sums = (latency for latency in (growth.clat, growth.lat) if latency is not None)
        if any(total.mean_ns * total.count / 1e9 > factor * max_total_s for total in sums):
            return True
    return False


def _bytes_agree(rows: Iterable[tuple[RowPair, Growth]], total: Growth) -> bool:
    """Whether the bytes that fio states are about as many as its I/Os must have."""
    in_flight = sum(max_in_flight(pair.now) for pair, _ in rows)
    slack = in_flight * total.bytes / total.ios if total.ios else 0.0
    return abs(total.stated_bytes - total.bytes) <= BYTES_OFF * total.bytes + 2 * slack


def _job_interval(pair: RowPair, growth: Growth, windows: Windows) -> JobInterval:
    return JobInterval(
        index=pair.index,
        name=pair.now.name,
        error=pair.now.error,
        iops=growth.iops(windows),
        bw=growth.bw(windows),
        clat_ns=mean_of(growth.clat),
        ios=growth.ios,
        bytes=growth.bytes,
        reset=pair.reset,
        counted_by=growth.counted_by,
        changing=pair.now.changing,
    )


def _iodepth(pairs: Iterable[RowPair]) -> dict[str, float]:
    """The depth levels in percent, estimated: fio prints rounded cumulative percentages, at least
    0.1 unless zero."""
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


def _cpu(pairs: Iterable[RowPair], name: str, seconds: float | None) -> float | None:
    if not seconds:
        return None
    used_ms = 0.0
    for pair in pairs:
        for job, sign in ((pair.now, 1), (pair.old, -1)):
            if job is not None:
                used_ms += sign * getattr(job, name) / 100 * job.job_runtime_ms
    return max(0.0, used_ms) / (seconds * 10)


def _context_switches(pairs: Iterable[RowPair], seconds: float | None) -> float | None:
    if not seconds:
        return None
    switches = sum(pair.now.ctx - (pair.old.ctx if pair.old else 0) for pair in pairs)
    return max(0, switches) / seconds


def _maximum(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _progress(elapsed: int | None, eta: int | None) -> float | None:
    if elapsed is None or eta is None or elapsed + eta <= 0:
        return None
    return elapsed / (elapsed + eta)
