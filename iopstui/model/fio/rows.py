"""Rows of fio's report: the sections they come from, their ramp time, and which counter to
trust.

With group_reporting a row is the sum of all jobs of a group, but fio prints only the last section's
options beside it. Block size, depth and whether latencies are taken may differ between the
sections, so the meaning of a row's counters follows from the job file, not from that row.

At its end fio resets a row's counters; it takes latencies only from then on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from iopstui.model.fio.jobfile import Section
from iopstui.model.samples import DirectionStatus, JobStatus

Options = Mapping[str, str]
OFF_VALUES = ("0", "false", "no")
LONG_PAUSE_S = 0.1
"""A pause of this length is visible in the seconds and rounds of a run."""
_GROUP_STARTERS = ("stonewall", "wait_for_previous", "new_group")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the report, and the job sections it covers (with variables expanded)."""

    sections: tuple[Section, ...]

    @property
    def members(self) -> int:
        """The number of jobs in the row."""
        return sum(_count(section.options, "numjobs") for section in self.sections)

    @property
    def in_flight(self) -> int:
        """The most I/Os that the jobs of the row together can have in flight."""
        return sum(
            _count(s.options, "iodepth") * _count(s.options, "numjobs") for s in self.sections
        )


def flag(options: Options, name: str) -> bool:
    """A fio boolean option: present without a value means 1 (fio(1), "bool")."""
    value = options.get(name)
    return value is not None and value.strip() not in OFF_VALUES


def rows_of(sections: Sequence[Section], count: int) -> tuple[Row, ...] | None:
    """The ``count`` rows that fio prints for these sections, in its order (stat.c,
    __show_run_stats): without group_reporting a row for each job, with it one for each group.

    If that gives another number of rows, or only some sections are grouped, each row counts as the
    sum of all sections. ``None`` without sections."""
    if not sections:
        return None
    grouped = {flag(section.options, "group_reporting") for section in sections}
    rows = list(_rows(sections))
    if len(rows) == count and len(grouped) == 1:
        return tuple(rows)
    return (Row(tuple(sections)),) * count


def changing_option(jobs: Sequence[Options]) -> str:
    """The option that makes the jobs of a row work at rates that change over time; "" if none
    does."""
    for options in jobs:
        reads_back = "verify" in options and options.get("do_verify", "1") not in OFF_VALUES
        if reads_back and "write" in options.get("rw", options.get("readwrite", "read")):
            return "verify"
        if _pause_s(options.get("thinktime", "0")) >= LONG_PAUSE_S:
            return "thinktime"
        for name in ("flow", "latency_target", "read_iolog"):
            if options.get(name, "0").strip() != "0":
                return name
    # jobs of one row may begin or end at different times
    for name in ("startdelay", "runtime", "size", "io_size"):
        if len({options.get(name) for options in jobs}) > 1:
            return name
    return ""


def syncs_in_between(options: Options) -> bool:
    """Whether a job syncs after some of its writes."""
    counts = (options.get(name, "0").strip() for name in ("fsync", "fdatasync"))
    return any(count not in ("", "0") for count in counts) or "sync_file_range" in options


def _pause_s(text: str) -> float:
    """A thinktime in seconds; a plain number means microseconds."""
    return float(text) / 1e6 if text.strip().isdecimal() else duration_s(text) or 0.0


def _rows(sections: Sequence[Section]) -> Iterator[Row]:
    grouped: list[Section] = []
    for index, section in enumerate(sections):
        options = section.options
        begins = index > 0 and any(flag(options, name) for name in _GROUP_STARTERS)
        if grouped and (begins or not flag(options, "group_reporting")):
            yield Row(tuple(grouped))
            grouped = []
        if "stats" in options and not flag(options, "stats"):
            continue
        if flag(options, "group_reporting"):
            grouped.append(section)
            continue
        # jobs of one section share one object, so that it is examined only once
        alone = Row((Section(section.name, {**options, "numjobs": "1"}),))
        for _ in range(_count(options, "numjobs")):
            yield alone
    if grouped:
        yield Row(tuple(grouped))


def _count(options: Options, name: str) -> int:
    text = options.get(name, "1").strip()
    return max(1, int(text)) if text.isdecimal() else 1


SAMPLES, BYTES, SUBMISSIONS, NOTHING = "samples", "bytes", "submissions", "nothing"
# counters of completions, the best one first
EVIDENCE = (SAMPLES, BYTES, SUBMISSIONS, NOTHING)
# largest error of a correct counter: fio copies a row's counters one after another while its jobs
# run, slowly if they use all CPUs. A counter of other I/Os is further off
COPYING_SHARE = 0.25


def active(job: JobStatus) -> bool:
    """Whether a row has done anything yet."""
    # called five times per row and document, and a generator would be slower
    for direction in job.directions.values():
        if direction.issued or direction.io_bytes or direction.runtime_ms:
            return True
    return False


def longest_runtime(job: JobStatus) -> int:
    """Run time of a row in ms: that of its longest direction."""
    return max([direction.runtime_ms for direction in job.directions.values()], default=0)


def completions(job: JobStatus, direction: DirectionStatus) -> int:
    """Completed I/Os of one direction, from the best counter that fio has."""
    return count(job, direction, counted_by(job, direction))


def counted_by(job: JobStatus, direction: DirectionStatus) -> str:
    """Return which of fio's counters counts the completions of one direction. Latency samples,
    unless I/Os have none (gtod_reduce, a ramp); then the completed bytes over the block size,
    unless sizes differ. Both are compared with the submissions, which exceed them by the I/Os in
    flight and the failed ones. If neither agrees, only the submissions are left. With
    io_submit_mode=offload fio adds these up at the end; until then there are only bytes."""
    unsampled = not (direction.completed and job.measures_latency)
    if direction.io_bytes and not direction.issued and unsampled:
        return BYTES if job.block_size else NOTHING
    least = direction.issued - _max_uncompleted(job, direction)
    samples = direction.completed
    timed = job.measures_latency and job.times_all and (samples or not direction.io_bytes)
    if timed and (samples or 0) >= least:
        return SAMPLES
    if job.block_size:
        blocks, remainder = divmod(direction.io_bytes, job.block_size)
        most = direction.issued + _max_uncompleted(job, direction)
        if not remainder and (blocks == 0 or least <= blocks <= most):
            return BYTES
    return SUBMISSIONS


def _max_uncompleted(job: JobStatus, direction: DirectionStatus) -> int:
    """The most I/Os that may be issued and not yet completed."""
    copied = int(direction.issued * COPYING_SHARE)
    return max_in_flight(job) + copied + (job.failed or 0) + (1 if job.error else 0)


def is_single(job: JobStatus) -> bool:
    """Whether a row is surely one job; then its ``job_runtime_ms`` is the job's clock."""
    return _members(job) == 1


def _members(job: JobStatus) -> int:
    """The number of jobs of a row. If the job file is not known, it is derived from the sum of
    their times over the longest one; before 3.42 fio does not list group_reporting."""
    if job.members is not None:
        return job.members
    return max(1, round(job.job_runtime_ms / (longest_runtime(job) or job.job_runtime_ms or 1)))


def sure_size(job: JobStatus, direction: str) -> int | None:
    """The size of every I/O of a row's direction; ``None`` if sizes vary or it is uncertain: for a
    group without its job file, only the last section's options are known."""
    if job.members is None and _members(job) not in (1, _number(job.options.get("numjobs"))):
        return None
    return job.block_size or job.block_sizes.get(direction)


def bytes_by_count(job: JobStatus, name: str, direction: DirectionStatus) -> int | None:
    """The bytes of a direction computed from its latency samples. ``None`` unless all I/Os have one
    size; the bytes that fio copied shortly before may show that they have not."""
    size, samples = sure_size(job, name), direction.completed or 0
    if not size or direction.io_bytes % size:
        return None
    copied = direction.io_bytes // size
    return samples * size if copied <= samples + max_in_flight(job) else None


def max_in_flight(job: JobStatus) -> int:
    """The most I/Os of a row that can be in flight; too low for some groups whose job file is not
    known."""
    if job.in_flight is not None:
        return job.in_flight
    depth, jobs = (_number(job.options.get(name)) for name in ("iodepth", "numjobs"))
    return depth * jobs


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 1


def count(job: JobStatus, direction: DirectionStatus, by: str) -> int:
    """The completed I/Os of one direction according to one of fio's counters (``counted_by``)."""
    if by == SAMPLES:
        return direction.completed or 0
    if by == BYTES and job.block_size:
        return direction.io_bytes // job.block_size
    if by == NOTHING:
        return 0
    return direction.issued


# fio 3.42 checks only once a second whether the ramp is over
RAMP_LATE_S = 1.25
TOLERANCE_S = 0.05

_DURATION = re.compile(r"(\d{1,15}(?:\.\d+)?)\s*(us|usec|ms|msec|s|m|h|d)?")
_SECONDS = {
    None: 1.0, "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3,
    "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip


def was_reset(
    now: JobStatus, old: JobStatus, clock_s: float = 0.0, ramp_over: bool = False
) -> bool:
    """True if fio reset this row's counters in between, as it does at the end of the ramp.
    ``clock_s`` is the time between the two documents; ``ramp_over``: the ramp was over before."""
    if now.job_start is not None and old.job_start and now.job_start != old.job_start:
        return True
    if now.has_ramp and not ramp_over:
        if longest_runtime(now) < longest_runtime(old):
            return True
        if now.measures_latency and in_ramp(old) and not in_ramp(now):
            return True
        if now.job_start is None and not now.measures_latency and _has_outgrown(now, old, clock_s):
            return True
    for name, before in old.directions.items():
        after = now.directions.get(name)
        if after is None or after.issued < before.issued or after.io_bytes < before.io_bytes:
            return True
    return False


def _has_outgrown(now: JobStatus, old: JobStatus, clock_s: float) -> bool:
    """True if the counters were reset and have already exceeded their old values: the whole runtime
    lies within ``clock_s``, and the ramp ended where it begins."""
    before, after = longest_runtime(old) / 1000, longest_runtime(now) / 1000
    if before < 2 * TOLERANCE_S or before > ramp_s(now) + RAMP_LATE_S:
        return False
    return after <= clock_s + TOLERANCE_S and before + clock_s - after > 0.9 * ramp_s(now)


def in_ramp(job: JobStatus) -> bool:
    """True while fio warms up: bytes are counted, latencies are not. A job without latencies does
    not show its ramp (``Ramps`` follows such jobs)."""
    if not job.has_ramp or not job.measures_latency:
        return False
    moved = any(d.io_bytes for d in job.directions.values())
    return moved and not any(d.completed for d in job.directions.values())


def ramp_s(job: JobStatus) -> float:
    """The ramp time that the job asks for, in seconds."""
    return duration_s(job.options.get("ramp_time", "0")) or 0.0


class Ramps:
    """Knows which rows are in their ramp. A row without latencies is in its ramp until its counters
    are reset. fio resets them up to a second late (3.42), perhaps before the row was first seen."""

    def __init__(self) -> None:
        self._finished_rows: set[int] = set()
        self._seen_rows: set[int] = set()

    @property
    def state(self) -> tuple[object, ...]:
        """The complete state, for comparison."""
        return sorted(self._finished_rows), sorted(self._seen_rows)

    def is_over(self, index: int, job: JobStatus) -> bool:
        """Whether this row's ramp was over when the row was last seen, as ``job``."""
        return index in self._finished_rows or any(d.completed for d in job.directions.values())

    def feed(self, index: int, job: JobStatus, reset: bool, interval_s: float, first: bool) -> bool:
        """Whether row ``index`` is still in its ramp. ``reset``: its counters were reset since it
        was last seen; ``first``: nothing of the run was seen before, not even that it waited."""
        if not active(job):
            return False
        if not job.has_ramp or job.measures_latency:
            return in_ramp(job)
        runtime, ramp = longest_runtime(job) / 1000, ramp_s(job)
        if index in self._seen_rows:
            ramp_over = reset
        else:
            ramp_over = runtime <= interval_s - ramp + TOLERANCE_S
            # the next row may begin in the middle of a run; fio rounds ``elapsed`` up
            ramp_over |= first and (job.elapsed_s or 0) - 1 - runtime > 0.75 * ramp
        self._seen_rows.add(index)
        if ramp_over or runtime > ramp + 2 * RAMP_LATE_S:
            self._finished_rows.add(index)
        return index not in self._finished_rows


def duration_s(text: str) -> float | None:
    """A fio duration ("30", "90s", "2m", "500ms", fio(1) "time") in seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    return float(match[1]) * _SECONDS[match[2]] if match else None
