"""The job's side of waiting I/Os: in flight in fio, and reaching the devices."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.model.fio.interval import DirectionInterval, FioInterval
from iopstui.model.fio.job_rules import PASSTHROUGH
from iopstui.model.metrics.waits import DirectionLoad, JobLoad
from iopstui.model.samples import MIXED, READ, TRIM, WRITE, FioStatus, JobStatus, RawSample

ALIGNED = 0.05
"""fio's interval and the kernel's may differ by this share to be called the same."""
_LETTERS = {READ: "r", WRITE: "w", TRIM: "d"}
UNSENT_ENGINES = frozenset({"null", "cpuio"})
"""Engines that only pretend to do I/O."""
_FALSE_VALUES = frozenset({"0", "none", "false"})


Sent = tuple[float, float]
"""Bytes per second that the job's processes had block devices read and write."""


class SentBytes:
    """Turns what fio's processes had block devices read and write into rates."""

    def __init__(self) -> None:
        self.previous = (0, 0)

    def feed(self, raw: RawSample, seconds: float | None) -> Sent | None:
        """Rates over the kernel's interval of ``seconds`` that this sample ends; ``None``: not
        known. A run's first sample counts all since the run began."""
        if raw.read_bytes is None or raw.written_bytes is None:
            return None
        now, before = (raw.read_bytes, raw.written_bytes), self.previous
        self.previous = now
        if not seconds or now[0] < before[0] or now[1] < before[1]:
            return None
        return (now[0] - before[0]) / seconds, (now[1] - before[1]) / seconds


def job_load(
    status: FioStatus,
    fio: FioInterval | None,
    cpu_waits: Sequence[float],
    workers_wait: float,
    kernel_s: float | None,
    sent: Sent | None = None,
) -> JobLoad | None:
    """What the jobs of an interval had in flight. ``cpu_waits`` are the percentages of it in which
    each job waited for a CPU, ``workers_wait`` the sum of those of all workers, ``kernel_s`` the
    length of the kernel's interval. ``None`` without fio's figures, or if some I/Os have no
    latency."""
    if fio is None or fio.ramp or not (fio.measures_latency and fio.times_all):
        return None
    total = fio.total
    lat_ns = _latency_ns(total)
    if total.iops is None or lat_ns is None:
        return None
    shares = [min(1.0, percent / 100) for percent in cpu_waits]
    ios = total.iops * lat_ns / 1e9
    return JobLoad(
        ios=ios,
        iops=total.iops,
        cpu_wait=sum(shares) / len(shares) if shares else None,
        workers_wait=workers_wait / 100,
        directions=_direction_loads(fio, status, sent),
        aligned=bool(
            kernel_s and fio.seconds and abs(kernel_s - fio.seconds) <= ALIGNED * kernel_s
        ),
        unsent=_unsent_ios(fio, status, ios),
    )


def _latency_ns(part: DirectionInterval) -> float | None:
    return part.lat_ns if part.lat_ns is not None else part.clat_ns


def _unsent_ios(fio: FioInterval, status: FioStatus, ios: float) -> float:
    """How many of the I/Os in flight are of engines that send nothing to a disk."""
    rows = [job for job in fio.jobs if _engine(status.jobs[job.index]) in UNSENT_ENGINES]
    if len(rows) == len(fio.jobs):
        return ios
    return min(ios, sum((job.iops or 0.0) * (job.clat_ns or 0.0) / 1e9 for job in rows))


def _engine(job: JobStatus) -> str:
    return job.options.get("ioengine", "").strip()


def _direction_loads(
    fio: FioInterval, status: FioStatus, sent: Sent | None
) -> tuple[DirectionLoad, ...]:
    """Return a load for each direction; one for all where fio does not tell reads from writes."""
    in_cache = writes_in_cache(status)
    direct = not any(_buffered(job) for job in status.jobs)
    by_letter = {"r": sent[0], "w": sent[1], "": sum(sent)} if sent is not None else {}
    parts = {_LETTERS[name]: part for name, part in fio.directions.items() if name != MIXED}
    if MIXED in fio.directions:
        parts = {"": fio.total}
    return tuple(
        DirectionLoad(
            letter, part.iops or 0.0, part.bw, in_cache and letter == "w", direct,
            (part.iops or 0.0) * (_latency_ns(part) or 0.0) / 1e9, by_letter.get(letter),
        )
        for letter, part in parts.items()
    )  # fmt: skip


def writes_in_cache(status: FioStatus) -> bool:
    """Whether all jobs that write leave their writes in the page cache: buffered, and without
    O_SYNC, which makes each write wait for the device."""
    writing = [job for job in status.jobs if _writes(job)]
    return bool(writing) and all(_buffered(job) and not _is_enabled(job, "sync") for job in writing)


def _writes(job: JobStatus) -> bool:
    return WRITE in job.directions and job.directions[WRITE].issued > 0


def _buffered(job: JobStatus) -> bool:
    """Return whether I/O is buffered; fio's default is yes. NVMe commands never are, mapped files
    always."""
    if _engine(job) in (PASSTHROUGH, "mmap"):
        return _engine(job) == "mmap"
    if "buffered" in job.options:
        return _is_enabled(job, "buffered")
    return not _is_enabled(job, "direct")


def _is_enabled(job: JobStatus, name: str) -> bool:
    value = job.options.get(name)
    return value is not None and value.strip().lower() not in _FALSE_VALUES
