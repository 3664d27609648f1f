"""The job's side of waiting I/Os: in flight in fio, and reaching the devices."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.job_rules import PASSTHROUGH
from iopstui.model.metrics.waits import DirectionLoad, JobLoad
from iopstui.model.samples import MIXED, READ, TRIM, WRITE, FioStatus, JobStatus

ALIGNED = 0.05
"""fio's interval and the kernel's may differ by this share to be called the same."""
_LETTERS = {READ: "r", WRITE: "w", TRIM: "d"}
_FALSE_VALUES = frozenset({"0", "none", "false"})


def job_load(
    status: FioStatus,
    fio: FioInterval | None,
    cpu_waits: Sequence[float],
    workers_wait: float,
    kernel_s: float | None,
) -> JobLoad | None:
    """What the jobs of an interval had in flight. ``cpu_waits`` are the percentages of it in which
    each job waited for a CPU, ``workers_wait`` the sum of those of all workers, ``kernel_s`` the
    length of the kernel's interval. ``None`` without fio's figures, or if some I/Os have no
    latency."""
    if fio is None or fio.ramp or not (fio.measures_latency and fio.times_all):
        return None
    total = fio.total
    lat_ns = total.lat_ns if total.lat_ns is not None else total.clat_ns
    if total.iops is None or lat_ns is None:
        return None
    shares = [min(1.0, percent / 100) for percent in cpu_waits]
    return JobLoad(
        ios=total.iops * lat_ns / 1e9,
        iops=total.iops,
        bytes_s=total.bw,
        cpu_wait=sum(shares) / len(shares) if shares else None,
        workers_wait=workers_wait / 100,
        directions=_direction_loads(fio, status),
        aligned=bool(
            kernel_s and fio.seconds and abs(kernel_s - fio.seconds) <= ALIGNED * kernel_s
        ),
    )


def _direction_loads(fio: FioInterval, status: FioStatus) -> tuple[DirectionLoad, ...]:
    """Return a load for each direction; none where fio does not tell reads from writes."""
    if MIXED in fio.directions:
        return ()
    in_cache = writes_in_cache(status)
    direct = not any(_buffered(job) for job in status.jobs)
    return tuple(
        DirectionLoad(_LETTERS[name], part.iops or 0.0, part.bw, in_cache and name == WRITE, direct)
        for name, part in fio.directions.items()
    )


def writes_in_cache(status: FioStatus) -> bool:
    """Whether all jobs that write leave their writes in the page cache: buffered, and without
    O_SYNC, which makes each write wait for the device."""
    writing = [job for job in status.jobs if _writes(job)]
    return bool(writing) and all(_buffered(job) and not _is_enabled(job, "sync") for job in writing)


def _writes(job: JobStatus) -> bool:
    return WRITE in job.directions and job.directions[WRITE].issued > 0


def _buffered(job: JobStatus) -> bool:
    """Return whether I/O is buffered; fio's default is yes. NVMe commands never are."""
    if job.options.get("ioengine") == PASSTHROUGH:
        return False
    if "buffered" in job.options:
        return _is_enabled(job, "buffered")
    return not _is_enabled(job, "direct")


def _is_enabled(job: JobStatus, name: str) -> bool:
    value = job.options.get(name)
    return value is not None and value.strip().lower() not in _FALSE_VALUES
