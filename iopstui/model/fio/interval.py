"""fio's figures for one interval rather than since the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iopstui.model.fio.counts import SAMPLES


@dataclass(frozen=True, slots=True)
class DirectionInterval:
    """One direction (or the total) in one interval.

    ``ios`` completions and ``bytes`` are plain counts, ``iops`` and ``bw`` (bytes/s) rates,
    latencies nanoseconds. ``iops`` is ``None`` where fio counts bytes alone. ``percentiles``
    ("p50" ... "p99.99") and ``max_ns`` come from ``bins``, the interval's own histogram of
    ``bins_of`` ("clat" or "lat") latencies.
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
    """A row of fio's report in one interval (a job, or a group with group_reporting). ``reset``:
    the row's counters began again in this interval; ``ios`` and ``bytes`` are what it did since
    then. ``counted_by`` says which counter of fio's ``ios`` is made of: "samples" (of latencies),
    "bytes" (divided by the block size), "submissions" or "nothing" (fio counts bytes alone, and
    block sizes vary: ``ios`` is 0, ``iops`` ``None``). ``changing`` is the option by which its load
    changes by itself ("": none)."""

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
    changing: str = ""


@dataclass(frozen=True, slots=True)
class FioInterval:
    """Figures of fio in one interval of ``seconds`` (``None``: too short to give rates).
    ``iodepth_level`` is percent of the interval's I/Os by queue depth; ``usr_cpu`` and ``sys_cpu``
    percent of one CPU, summed over the jobs; ``ctx_s`` context switches per second; ``progress``
    0..1. Unknown is ``None``. ``times_all`` is False if latencies are of some of the I/Os only (a
    group of which some sections take none). ``latency_possible`` is False if the latencies would
    need many more I/Os under way than the jobs can have (N = X·R). ``failed`` I/Os ended with an
    error, and the job went on (continue_on_error). ``ios_elsewhere`` and ``bytes_elsewhere``: the
    rates of I/Os and of bytes are of clearly other seconds than the rest (interval_time.py).
    ``within_depth`` is False if these I/Os would need clearly more under way than the jobs can
    have, ``bytes_agree`` if the bytes by I/Os and block size are not those that fio states."""

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
    latency_possible: bool = True
    failed: int = 0
    ios_elsewhere: bool = False
    bytes_elsewhere: bool = False
    within_depth: bool = True
    bytes_agree: bool = True
