"""How long the jobs of a group took together, and whether they ran at the same time.

A sum of rates is a rate only of jobs that did. fio divides the I/Os of a group by the longest run
time of its jobs instead ("Run status group"), whenever they began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iopstui.model.fio.ramp import duration_s
from iopstui.model.fio.rows import OFF_VALUES
from iopstui.model.samples import MIXED, READ, WRITE, JobStatus

WHOLE_SHARE = 0.95
"""Jobs that each ran for this share of the whole time ran at the same time."""


@dataclass(frozen=True, slots=True)
class Span:
    """``ms`` from the first job's beginning to the last one's end; ``is_shared``: each job, in each
    of its directions, ran for nearly all of it."""

    ms: int
    is_shared: bool


def span(jobs: Sequence[JobStatus], direction: str = "") -> Span:
    """The span of jobs of one group, or of what they did in one ``direction``."""
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
    """The span of parts of jobs, each with its group, its beginning (ms) and its run time (ms)."""
    ms = 0.0
    for group in dict.fromkeys(group for group, _, _ in parts):
        times = [(begin, begin + runtime) for each, begin, runtime in parts if each == group]
        ms += max(end for _, end in times) - min(begin for begin, _ in times)
    shortest = min(runtime for _, _, runtime in parts)
    return Span(round(ms), shortest >= WHOLE_SHARE * ms)


def whole_ms(jobs: Sequence[JobStatus]) -> int:
    """How long all jobs took: the spans of the groups, which follow one another."""
    groups = dict.fromkeys(job.group for job in jobs)
    return sum(span([job for job in jobs if job.group == group]).ms for group in groups)


def begins_ms(jobs: Sequence[JobStatus]) -> Iterator[float]:
    """When each job began: by fio's clock (since 3.36), or by its options."""
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
    """Whether its reads are those that verify what it wrote, when all is written."""
    options = job.options
    issued = {name for name, part in job.directions.items() if part.issued and name != MIXED}
    return (
        issued == {READ, WRITE}
        and "write" in options.get("rw", options.get("readwrite", ""))
        and "verify" in options
        and options.get("do_verify", "1") not in OFF_VALUES
        and "verify_backlog" not in options
    )
