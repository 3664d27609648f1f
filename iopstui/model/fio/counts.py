"""Choose the fio counter that gives the completed I/Os of a row."""

from __future__ import annotations

from iopstui.model.samples import DirectionStatus, JobStatus

SAMPLES, BYTES, SUBMISSIONS, NOTHING = "samples", "bytes", "submissions", "nothing"
# the best evidence of completions first
EVIDENCE = (SAMPLES, BYTES, SUBMISSIONS, NOTHING)
# largest error of a right counter: fio copies a row's counters one after another while its jobs
# run, slowly if they use all CPUs. A counter of other I/Os is further off
COPYING_SHARE = 0.25


def active(job: JobStatus) -> bool:
    """Whether a row has done anything yet."""
    # called five times per row and document: a generator would be slower
    for direction in job.directions.values():
        if direction.issued or direction.io_bytes or direction.runtime_ms:
            return True
    return False


def longest_runtime(job: JobStatus) -> int:
    """Running time of a row in ms: the longest of its directions."""
    return max([direction.runtime_ms for direction in job.directions.values()], default=0)


def completions(job: JobStatus, direction: DirectionStatus) -> int:
    """Completed I/Os of one direction, from the best counter there is."""
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
    """The most I/Os that may be issued and not completed."""
    copied = int(direction.issued * COPYING_SHARE)
    return max_in_flight(job) + copied + (job.failed or 0) + (1 if job.error else 0)


def is_single(job: JobStatus) -> bool:
    """Whether a row is surely one job; then ``job_runtime_ms`` is its clock in any case."""
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
    """The bytes of a direction computed from its samples if all I/Os have one size; ``None`` if
    not; the bytes that fio copied shortly before may show that."""
    size, samples = sure_size(job, name), direction.completed or 0
    if not size or direction.io_bytes % size:
        return None
    copied = direction.io_bytes // size
    return samples * size if copied <= samples + max_in_flight(job) else None


def max_in_flight(job: JobStatus) -> int:
    """How many I/Os of a row can be in flight; too low for some groups whose job file is not
    known."""
    if job.in_flight is not None:
        return job.in_flight
    depth, jobs = (_number(job.options.get(name)) for name in ("iodepth", "numjobs"))
    return depth * jobs


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 1


def count(job: JobStatus, direction: DirectionStatus, by: str) -> int:
    """The completed I/Os of one direction by one of fio's counters (``counted_by``)."""
    if by == SAMPLES:
        return direction.completed or 0
    if by == BYTES and job.block_size:
        return direction.io_bytes // job.block_size
    if by == NOTHING:
        return 0
    return direction.issued
