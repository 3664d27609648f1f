"""Find the windows of an interval between two fio documents: figures come from two moments each.

fio takes a document at two moments, which all its rows share (its stat.c):

copied   It reads the clock that ``runtime`` and ``job_runtime`` are made of and, before 3.42,
         copies each job's io_bytes. Then it waits until every job has added up its CPU time and
         context switches: a busy job does so at once, a sleeping one when it wakes.
counted  It adds up I/Os, latencies and submissions (from 3.42 on io_bytes, too), and
         reads the wall clock for ``timestamp_ms``.

The two moments are as far apart as the slowest job sleeps: 2 ms, or seconds. So CPU time, context
switches and bytes belong to the window between two copied moments, everything else to the window
between two counted moments. The last document is different: its counters end with the jobs, but it
is written up to a quarter of a second later."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from iopstui.model.fio.jobfile import PREFIX_LOGS
from iopstui.model.fio.rows import (
    OFF_VALUES,
    SAMPLES,
    Ramps,
    active,
    counted_by,
    duration_s,
    is_single,
    longest_runtime,
    sure_size,
    was_reset,
)
from iopstui.model.samples import MIXED, READ, WRITE, FioStatus, JobStatus

CLOCK_TOLERANCE = 0.25
"""How far fio's wall clock may be off: in seconds, or as a share of a longer interval."""
AGREEMENT_S = 0.03
"""Runtime and arrival times agree if they differ by less than this."""
DELAY_S = 0.02
MAX_LAG_S = 10.0
"""The largest lag that is added up: a finished row may stand still for hours."""
SAME_WINDOW = 0.05
"""Two windows count as equal if they differ by at most this share."""
MIN_BLOCKS = 100
"""The lag is derived from I/Os only if the rate of I/Os is based on at least this many blocks."""
ENDED_SHARE = 0.2
"""If a row's lag is smaller than another row's by this share, the row may have ended between the
two moments."""
_COPIES_BYTES_LATE = (3, 42)
_VERSION = re.compile(r"fio-(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Windows:
    """Lengths of the two windows of an interval: ``counted_s`` of counted figures, ``copied_s`` of
    copied ones (``None``: not known, or too short to give rates). ``lag_s`` is the time between the
    two moments of the document, ``shift_s`` the larger distance between the windows' beginnings or
    ends (``None``: not known). ``sure`` is False if ``counted_s`` is a guess."""

    counted_s: float | None
    copied_s: float | None
    lag_s: float | None = None
    shift_s: float | None = None
    sure: bool = True

    def rate(self, number: int, copied: int) -> float | None:
        """``number`` per second; of these, ``copied`` belong to the copied window."""
        if not self.counted_s or (copied and not self.copied_s):
            return None
        rate = (number - copied) / self.counted_s
        return rate + copied / self.copied_s if copied and self.copied_s else rate

    @property
    def differ(self) -> bool:
        """Whether the two windows cover clearly different seconds; True also if that is not
        known."""
        if not self.counted_s or not self.copied_s or not self.sure:
            return True
        off = max(abs(self.copied_s - self.counted_s), self.shift_s or 0.0)
        return off > SAME_WINDOW * self.counted_s


@dataclass(frozen=True, slots=True)
class RowPair:
    """A row in a document and in the one before; ``old`` is ``None`` if it starts from zero."""

    index: int
    now: JobStatus
    old: JobStatus | None
    reset: bool

    @property
    def has_grown(self) -> bool:
        """Whether the row completed anything between the two documents."""
        before = self.old.directions if self.old else {}
        for name, now in self.now.directions.items():
            old = before.get(name)
            if now.io_bytes > (old.io_bytes if old else 0):
                return True
            if (now.completed or 0) > ((old.completed or 0) if old else 0):
                return True
        return False


def pair_rows(status: FioStatus, previous: FioStatus | None, ramps: Ramps) -> list[RowPair]:
    """Pair every row of a document with the same row in the document before."""
    pairs = []
    clock_s = (status.timestamp_ms - previous.timestamp_ms) / 1000 if previous else 0.0
    for index, now in enumerate(status.jobs):
        old = None
        if previous is not None and index < len(previous.jobs):
            old = previous.jobs[index]
        reset = (
            old is not None
            and active(old)
            and was_reset(now, old, clock_s, ramps.is_over(index, old))
        )
        pairs.append(RowPair(index, now, None if reset else old, reset))
    return pairs


def is_repetition(status: FioStatus, before: FioStatus) -> bool:
    """True if fio repeats the figures of ``before`` and only its clocks have advanced."""
    return [_counters(job) for job in status.jobs] == [_counters(job) for job in before.jobs]


def _counters(job: JobStatus) -> dict[str, tuple[int, int, int | None]]:
    return {
        name: (part.issued, part.io_bytes, part.completed) for name, part in job.directions.items()
    }


def copies_bytes_first(status: FioStatus) -> bool:
    """Whether this version of fio copies io_bytes before it waits for its jobs."""
    match = _VERSION.match(status.version)
    return match is None or (int(match[1]), int(match[2])) < _COPIES_BYTES_LATE


def first_windows(
    status: FioStatus,
    pairs: list[RowPair],
    final: bool,
    waited_s: float | None = None,
    first_io_ms: float | None = None,
) -> Windows:
    """The windows of rows that begin from zero: both begin with the first job. ``waited_s`` is the
    time since the last document in which nothing had begun, ``first_io_ms`` when the kernel saw the
    first I/O (wall clock); ``None``: not known."""
    copied_s = runtime_growth([replace(pair, old=None) for pair in pairs])
    if final:
        return Windows(copied_s or None, copied_s or None)
    lag_s = document_lag_s(status, pairs)
    begins = [begin for pair in pairs if active(pair.now) and (begin := _began_ms(pair.now))]
    since_s = (status.timestamp_ms - min(begins)) / 1000 if begins else 0.0
    if since_s > copied_s - AGREEMENT_S:
        return Windows(since_s or None, copied_s or None, lag_s, lag_s)
    if lag_s is None and waited_s is not None:
        lag_s = max(0.0, waited_s)
    if lag_s is None and first_io_ms is not None:
        since_s = max((status.timestamp_ms - first_io_ms) / 1000, copied_s)
        # this I/O may have been another program's
        sure = since_s <= (1 + SAME_WINDOW) * copied_s
        return Windows(since_s or None, copied_s or None, sure=sure)
    counted_s = copied_s + lag_s if lag_s is not None else None
    return Windows(counted_s or None, copied_s or None, lag_s, lag_s)


def next_windows(
    status: FioStatus,
    previous: FioStatus,
    pairs: list[RowPair],
    arrival_s: float,
    final: bool,
    row_seconds: Mapping[int, float],
    lag_before_s: float | None,
) -> Windows:
    """The windows between two documents. ``arrival_s`` is the time between their arrivals
    (monotonic clock), ``row_seconds`` how long each row had run when it was last counted,
    ``lag_before_s`` the lag of the document ``previous``."""
    copied_s = runtime_growth(pairs)
    clock = (status.timestamp_ms - previous.timestamp_ms) / 1000
    if not _plausible(clock, copied_s, arrival_s):
        clock = max(arrival_s, 0.0)
    grown = [pair for pair in pairs if pair.has_grown]
    if grown and all(pair.old is None for pair in grown):
        windows = first_windows(status, grown, final)
        counted_s = windows.counted_s or windows.copied_s or clock
        return replace(windows, counted_s=min(counted_s, clock) or None)
    if final:
        remaining_s = min(_remaining_s(previous, pairs, row_seconds), clock)
        return Windows(max(remaining_s, 0.0) or None, copied_s or None, 0.0, lag_before_s)
    copied_s = _by_job_clocks(pairs, copied_s, clock)
    lag_s = document_lag_s(status, pairs)
    known = [lag for lag in (lag_before_s, lag_s) if lag is not None]
    return Windows(clock or None, copied_s or None, lag_s, max(known, default=None))


def document_lag_s(status: FioStatus, pairs: list[RowPair]) -> float | None:
    """The time between a document's two moments; ``None`` if unknown. The least difference of
    ``timestamp_ms`` and ``runtime`` can't show it, because that may be the same in all
    documents."""
    lags = [
        (status.timestamp_ms - began - pair.now.job_runtime_ms) / 1000
        for pair in pairs
        if (began := _began_ms(pair.now)) and active(pair.now) and is_single(pair.now)
    ]
    if lags and min(lags) > -AGREEMENT_S:
        return max(0.0, min(lags))
    if not copies_bytes_first(status):
        return None
    return _lag_by_bytes_s(pairs)


def _lag_by_bytes_s(pairs: list[RowPair]) -> float | None:
    """The lag from I/Os: a row's I/Os exceed its bytes by the I/Os between the two moments. A row
    whose job ended between them shows only part of the lag, so the rows with the largest lag
    count."""
    shown = []
    for pair in pairs:
        ran_s = (ran_ms(pair.now) - (ran_ms(pair.old) if pair.old else 0)) / 1000
        for name, now in pair.now.directions.items():
            size = sure_size(pair.now, name)
            if not size or ran_s <= 0 or counted_by(pair.now, now) != SAMPLES:
                continue
            old = pair.old.directions.get(name) if pair.old else None
            blocks = (now.io_bytes - (old.io_bytes if old else 0)) / size
            shown.append(((now.completed or 0) - now.io_bytes / size, blocks, blocks / ran_s))
    most = max((ahead / rate for ahead, blocks, rate in shown if blocks >= MIN_BLOCKS), default=0.0)
    least = most * (1 - ENDED_SHARE) - DELAY_S
    counting = [row for row in shown if row[2] and row[0] / row[2] >= least]
    if sum(blocks for _, blocks, _ in counting) < MIN_BLOCKS:
        return None
    lag_s = sum(ahead for ahead, _, _ in counting) / sum(rate for _, _, rate in counting)
    return max(0.0, lag_s)


def _began_ms(job: JobStatus) -> int | None:
    """When a row's first job began, by the clock of ``timestamp_ms`` (fio 3.36)."""
    if not job.job_start or job.options.get("job_start_clock_id", "0").strip() != "0":
        return None
    return job.job_start


def _by_job_clocks(pairs: list[RowPair], copied_s: float, clock: float) -> float:
    """``copied_s``, or the time that a row's jobs ran (job_runtime) if that is longer: fio's
    runtime of a direction is only that of the longest job, and another job may have taken over."""
    for pair in pairs:
        busy_s = (pair.now.job_runtime_ms - (pair.old.job_runtime_ms if pair.old else 0)) / 1000
        if busy_s <= copied_s:
            continue
        jobs = 1 if is_single(pair.now) else max(1, round(busy_s / clock)) if clock else 1
        share_s = busy_s / jobs
        if is_single(pair.now) or (
            jobs <= (pair.now.members or jobs) and abs(share_s - clock) <= DELAY_S
        ):
            copied_s = max(copied_s, share_s)
    return copied_s


def working_jobs(pair: RowPair, copied_s: float | None, ended: bool) -> int | None:
    """How many of a row's jobs work at the end of an interval; ``ended``: one ended in it. ``None``
    if unknown because one began."""
    if pair.old is None or not copied_s:
        return None
    jobs = (pair.now.job_runtime_ms - pair.old.job_runtime_ms) / 1000 / copied_s
    if ended:
        return int(jobs)
    return round(jobs) if abs(jobs - round(jobs)) <= SAME_WINDOW else None


def io_end_s(job: JobStatus) -> float | None:
    """The latest time (seconds of runtime) at which the I/O of a row has ended, if fio then writes
    logs, which takes seconds and counts as runtime. The last I/O began before ``runtime`` was over
    and took no longer than the slowest one. ``None`` if unknown."""
    options = job.options
    if not any(name in options for name in PREFIX_LOGS) or "startdelay" in options:
        return None
    slowest = max([d.lat_max_ns or 0 for d in job.directions.values()], default=0)
    most = duration_s(options.get("runtime", options.get("timeout", "")))
    return most + slowest / 1e9 if most and slowest else None


def windows_without_logs(
    pairs: list[RowPair], row_seconds: Mapping[int, float], windows: Windows
) -> Windows:
    """``windows`` without the seconds in which fio wrote its logs (except for the jobs' CPU time),
    if fio's runtime goes on after the end of all I/O that this interval may have had."""
    remaining = []
    for pair in pairs:
        if not pair.has_grown:
            continue
        ends = io_end_s(pair.now)
        # a job that has just begun writes no logs
        if pair.old is None or ends is None or ran_ms(pair.now) / 1000 <= ends:
            return windows
        remaining.append(ends - row_seconds.get(pair.index, ran_ms(pair.old) / 1000))
    if not windows.counted_s or not remaining or not 0 < max(remaining) < windows.counted_s:
        return windows
    copied_s = max(windows.copied_s or 0.0, windows.counted_s)
    return replace(windows, counted_s=max(remaining), copied_s=copied_s)


def _remaining_s(
    previous: FioStatus, pairs: list[RowPair], row_seconds: Mapping[int, float]
) -> float:
    """How long the jobs still ran after the previous document was counted, if they have ended by
    now."""
    remaining = []
    for pair in pairs:
        began = _began_ms(pair.now)
        before = row_seconds.get(pair.index, ran_ms(pair.old) / 1000 if pair.old else 0.0)
        if pair.old is not None and began and is_single(pair.now):
            before = (previous.timestamp_ms - began) / 1000
        remaining.append(ran_ms(pair.now) / 1000 - (before if pair.old is not None else 0.0))
    return round(max(remaining, default=0.0), 6)


def runtime_growth(pairs: list[RowPair]) -> float:
    """The longest growth of a row's runtime (s) up to the copied moment, or up to the last job's
    end if no job works any more."""
    goes_on = any(p.has_grown and _clock_ms(p.now) == ran_ms(p.now) for p in pairs)
    clock = _clock_ms if goes_on else ran_ms
    growths_ms = (clock(p.now) - (clock(p.old) if p.old else 0) for p in pairs)
    return max(max(growths_ms, default=0), 0) / 1000


def _clock_ms(job: JobStatus) -> float:
    """How long a row's jobs had run at the copied moment. This is less than ``ran_ms`` if a job
    ended before it was counted."""
    ran = ran_ms(job)
    return min(ran, job.job_runtime_ms) if job.job_runtime_ms and is_single(job) else ran


def ran_ms(job: JobStatus) -> float:
    """How long a row's jobs have run. With verify, reading follows writing and fio reports its time
    only at the end; until then the jobs' own clock is used (since fio 3.16), or the sum of both
    directions."""
    longest = longest_runtime(job)
    if not _verifies(job):
        return longest
    sequential_ms = sum(d.runtime_ms for d in job.directions.values())
    if job.job_runtime_ms > longest:
        if job.members:
            return job.job_runtime_ms / job.members
        return min(job.job_runtime_ms, sequential_ms)
    return sequential_ms if _only_writes(job) else longest


def _verifies(job: JobStatus) -> bool:
    # with a backlog (verify_backlog), fio also reads while it writes
    if "verify_backlog" in job.options:
        return False
    return "verify" in job.options and job.options.get("do_verify", "1").strip() not in OFF_VALUES


def _only_writes(job: JobStatus) -> bool:
    rw = job.options.get("rw", job.options.get("readwrite", "read"))
    return rw.partition(":")[0] in ("write", "randwrite")


def _plausible(clock: float, runtime: float, arrival: float) -> bool:
    """False if fio's wall clock was set in between, so that neither runtime nor arrival agrees with
    it. Each of these may differ for good reasons (a stuck job, a late reader), so there is some
    tolerance. Smaller steps are found if the wall clock is read with each document
    (``WallClock``)."""
    return any(
        abs(clock - reference) <= max(CLOCK_TOLERANCE, CLOCK_TOLERANCE * clock)
        for reference in (runtime, arrival)
    )


# How long the jobs of a group took together, and whether they ran at the same time.
#
# A sum of their rates is a rate only if they did. fio itself divides the I/Os of a group by the
# longest run time of its jobs ("Run status group"), regardless of when they began.


WHOLE_SHARE = 0.95
"""Jobs that each ran for at least this share of the whole time count as simultaneous."""


@dataclass(frozen=True, slots=True)
class Span:
    """``ms`` from the first job's beginning to the last one's end; ``is_shared``: each job, in each
    of its directions, ran for nearly all of it."""

    ms: int
    is_shared: bool


def span(jobs: Sequence[JobStatus], direction: str = "") -> Span:
    """The span of jobs of one group, or of their I/O in one ``direction``."""
    begins = list(begins_ms(jobs))
    first = shortest = float("inf")
    last = 0.0
    for job, begin in zip(jobs, begins, strict=True):
        times = [
            part.runtime_ms
            for name, part in job.directions.items()
            if (part.issued or part.io_bytes) and direction in ("", name)
        ]
        if times:
            length = sum(times) if not direction and _verifies_later(job) else max(times)
            first, last = min(first, begin), max(last, begin + length)
            shortest = min(shortest, *times)
    length_ms = round(last - first) if last else 0
    return Span(length_ms, shortest >= WHOLE_SHARE * length_ms)


def span_of_parts(parts: Sequence[tuple[int, float, int]]) -> Span:
    """The span of parts of jobs, each given as (group, beginning in ms, run time in ms)."""
    ms = 0.0
    for group in dict.fromkeys(group for group, _, _ in parts):
        times = [(begin, begin + runtime) for each, begin, runtime in parts if each == group]
        ms += max(end for _, end in times) - min(begin for begin, _ in times)
    shortest = min(runtime for _, _, runtime in parts)
    return Span(round(ms), shortest >= WHOLE_SHARE * ms)


MAX_GROUPS = 12
"""Sums of the spans of at most this many groups are tried."""


def whole_ms(jobs: Sequence[JobStatus]) -> int:
    """How long all jobs took (ms): the sum of the spans of the groups, which run one after another
    (stonewall). If that is longer than fio ran, some groups ran at the same time (new_group): then
    the sum of the groups that fit into fio's seconds."""
    groups = dict.fromkeys(job.group for job in jobs)
    spans = [span([job for job in jobs if job.group == group]).ms for group in groups]
    # fio rounds this up to a second; in a result edited later, it may be less than a group took
    most = 1000 * max((job.elapsed_s or 0 for job in jobs), default=0)
    if not spans or most < max(spans) or sum(spans) <= most:
        return sum(spans)
    sums = {0}
    for one in spans[:MAX_GROUPS]:
        sums |= {one + before for before in sums}
    return min((total for total in sums if most - 1000 < total <= most), default=most)


def begins_ms(jobs: Sequence[JobStatus]) -> Iterator[float]:
    """When each job began (ms): by fio's clock (since 3.36), or by its options."""
    if all(job.job_start for job in jobs):
        yield from (float(job.job_start or 0) for job in jobs)
        return
    ends: dict[str, float] = {}
    for job in jobs:
        delays = (duration_s(job.options.get(name, "0")) for name in ("startdelay", "ramp_time"))
        begin = ends.get(job.options.get("wait_for", ""), 0.0)
        begin += 1000 * sum(delay or 0.0 for delay in delays)
        longest = max((part.runtime_ms for part in job.directions.values()), default=0)
        ends[job.name] = max(ends.get(job.name, 0.0), begin + longest)
        yield begin


def _verifies_later(job: JobStatus) -> bool:
    """Whether a job reads to verify its writes only after all of them."""
    options = job.options
    issued = {name for name, part in job.directions.items() if part.issued and name != MIXED}
    return (
        issued == {READ, WRITE}
        and "write" in options.get("rw", options.get("readwrite", ""))
        and "verify" in options
        and options.get("do_verify", "1") not in OFF_VALUES
        and "verify_backlog" not in options
    )
