"""Compute how long an interval between fio documents lasted.

Its ``runtime`` stands still while a job is stuck and differs between group members, its
``timestamp_ms`` is the wall clock, and its last document is written up to a quarter of a second
after the jobs have ended (measured, fio 3.1 to 3.42).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iopstui.model.fio.counts import active, longest_runtime
from iopstui.model.fio.job_rules import PREFIX_LOGS
from iopstui.model.fio.ramp import Ramps, duration_s, was_reset
from iopstui.model.fio.rows import OFF_VALUES
from iopstui.model.samples import FioStatus, JobStatus

CLOCK_TOLERANCE = 0.25
"""Seconds, and of a longer interval the share of it, that fio's wall clock may be off."""
AGREEMENT_S = 0.03
"""The runtime and the arrivals agree if they differ by less."""
STALLED_S = 0.5
DELAY_S = 0.02
MAX_LAG_S = 10.0
"""No more is added up: a row that is over stands still for hours."""


@dataclass(frozen=True, slots=True)
class RowPair:
    """A row now and before; ``old`` is ``None`` where it starts from zero."""

    index: int
    now: JobStatus
    old: JobStatus | None
    reset: bool

    @property
    def has_grown(self) -> bool:
        """Whether it completed anything in between."""
        old = self.old.directions if self.old else {}
        for name, status in self.now.directions.items():
            if status.io_bytes > (old[name].io_bytes if name in old else 0):
                return True
        return False


def pair_rows(status: FioStatus, previous: FioStatus | None, ramps: Ramps) -> list[RowPair]:
    """Every row of a document with itself in the one before."""
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
    """True if fio repeats the figures of ``before``: only clocks advanced."""
    return [_counters(job) for job in status.jobs] == [_counters(job) for job in before.jobs]


def _counters(job: JobStatus) -> dict[str, tuple[int, int, int | None]]:
    return {
        name: (part.issued, part.io_bytes, part.completed) for name, part in job.directions.items()
    }


def first_interval_seconds(
    status: FioStatus, pairs: list[RowPair], runtime_s: float, waited_s: float | None
) -> float:
    """How long the run has worked when its first document with I/O comes.

    fio reads its clock, then waits for every job; one that hangs in an I/O holds the document up,
    which then has counters of now and a runtime of before.
    """
    begins = [pair.now.job_start for pair in pairs if pair.now.job_start and active(pair.now)]
    if begins:
        least = elapsed = (status.timestamp_ms - min(begins)) / 1000
    elif waited_s is not None:
        least = elapsed = runtime_s + waited_s
    else:
        # whole seconds, rounded up, since 0.1 s before the jobs began: somewhere between
        least = max((pair.now.elapsed_s or 0 for pair in pairs), default=0) - 1.0
        elapsed = least + 0.4
    return elapsed if least > runtime_s + STALLED_S else runtime_s


def interval_seconds(
    status: FioStatus,
    previous: FioStatus,
    pairs: list[RowPair],
    arrival_s: float,
    final: bool,
    row_seconds: Mapping[int, float],
) -> float | None:
    """The length of the interval between two documents. ``arrival_s`` is the same by the
    monotonic clock, ``row_seconds`` how long each row had run by the intervals so far."""
    runtime_s = runtime_growth(pairs)
    clock = (status.timestamp_ms - previous.timestamp_ms) / 1000
    if not _plausible(clock, runtime_s, arrival_s):
        clock = max(arrival_s, 0.0)
    fresh = all(pair.old is None for pair in pairs if pair.has_grown)
    any_fresh = any(pair.old is None and pair.has_grown for pair in pairs)
    if any_fresh and fresh and 0 < runtime_s < clock:
        return runtime_s
    remaining_s = _remaining_s(pairs, row_seconds) if final else 0.0
    if not 0 < remaining_s < clock:
        remaining_s = clock
    return remaining_s or None


def io_end_s(job: JobStatus) -> float | None:
    """When the I/O of a row is over at the latest, in seconds of its runtime, if fio then writes
    logs, which takes seconds and counts as runtime. Its last I/O began before ``runtime`` was over
    and took no longer than the slowest one. ``None`` where that isn't known."""
    options = job.options
    if not any(name in options for name in PREFIX_LOGS) or "startdelay" in options:
        return None
    slowest = max([d.lat_max_ns or 0 for d in job.directions.values()], default=0)
    most = duration_s(options.get("runtime", options.get("timeout", "")))
    return most + slowest / 1e9 if most and slowest else None


def seconds_without_logs(
    pairs: list[RowPair], row_seconds: Mapping[int, float], seconds: float
) -> float:
    """``seconds`` without those in which fio wrote its logs. Only if its own runtime goes on behind
    the end of all I/O that this interval may have had."""
    remaining = []
    for pair in pairs:
        if pair.old is None or not pair.has_grown:
            continue
        ends = io_end_s(pair.now)
        if ends is None or ran_ms(pair.now) / 1000 <= ends:
            return seconds
        remaining.append(ends - row_seconds.get(pair.index, ran_ms(pair.old) / 1000))
    return min(seconds, max(remaining)) if remaining and max(remaining) > 0 else seconds


def _remaining_s(pairs: list[RowPair], row_seconds: Mapping[int, float]) -> float:
    """How long the jobs still ran after the document before the last. That one's runtime may be
    of before a job held it up, and so the growth longer than what was left."""
    growths = []
    for pair in pairs:
        before = ran_ms(pair.old) / 1000 if pair.old else 0.0
        late = row_seconds.get(pair.index, before) - before if pair.old else 0.0
        growths.append(ran_ms(pair.now) / 1000 - before - (late if late > DELAY_S else 0.0))
    return round(max(growths, default=0.0), 6)


def runtime_growth(pairs: list[RowPair]) -> float:
    """The longest growth of a row's runtime, in seconds."""
    growths_ms = (ran_ms(pair.now) - (ran_ms(pair.old) if pair.old else 0) for pair in pairs)
    return max(max(growths_ms, default=0), 0) / 1000


def ran_ms(job: JobStatus) -> float:
    """How long a row's jobs have run. With verify the reading follows the writing, and fio says
    nothing of its time before it is over: then the jobs' own clock tells (fio 3.16), or both
    directions together."""
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
    return "verify" in job.options and job.options.get("do_verify", "1").strip() not in OFF_VALUES


def _only_writes(job: JobStatus) -> bool:
    rw = job.options.get("rw", job.options.get("readwrite", "read"))
    return rw.partition(":")[0] in ("write", "randwrite")


def _plausible(clock: float, runtime: float, arrival: float) -> bool:
    """False if fio's wall clock was set in between: neither runtime nor arrival agree with it.

    Either may be wrong for good reasons (a stuck job, a late reader), so the clock has some
    tolerance; it has little where both say the same.
    """
    if clock <= 0:
        return abs(clock - arrival) < CLOCK_TOLERANCE
    if abs(runtime - arrival) < AGREEMENT_S:
        return min(abs(clock - runtime), abs(clock - arrival)) <= 2 * AGREEMENT_S
    return any(
        abs(clock - reference) <= max(CLOCK_TOLERANCE, CLOCK_TOLERANCE * clock)
        for reference in (runtime, arrival)
    )
