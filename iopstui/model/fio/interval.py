"""fio's figures for one interval rather than since the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iopstui import format as f
from iopstui.model.figures.figure import (
    IN_LIST,
    OF,
    SECONDS,
    TEXT,
    Figure,
    Part,
    Rows,
    latency_rows,
)
from iopstui.model.fio.rows import SAMPLES
from iopstui.model.samples import DIRECTIONS

KINDS = ("slat", "clat", "lat")
"""fio's latencies."""
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class DirectionInterval:
    """One direction (or the total) in one interval.

    ``ios`` completions and ``bytes`` are plain counts, ``iops`` and ``bw`` (bytes/s) rates,
    latencies nanoseconds. ``iops`` is ``None`` if fio counts only bytes. ``percentiles`` ("p50" ...
    "p99.99") and ``max_ns`` come from ``bins``, the interval's own histogram of ``bins_of`` ("clat"
    or "lat") latencies. ``samples`` has the number of I/Os in each of the means ("slat", "clat",
    "lat"), so that means of several jobs, hosts or seconds can be joined."""

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

    def latency(self, kind: str) -> LatencyInterval:
        """The latencies of a kind; fio has the histogram of only one of them."""
        if kind != self.bins_of:
            return LatencyInterval(getattr(self, f"{kind}_ns"), self.samples.get(kind))
        return LatencyInterval(
            getattr(self, f"{kind}_ns"), self.samples.get(kind), self.percentiles, self.max_ns,
            self.bins,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LatencyInterval:
    """Latencies of one kind: the mean of ``n`` samples, and the figures of the histogram."""

    mean: float | None
    n: int | None
    percentiles: Mapping[str, int] = field(default_factory=dict)
    max_ns: int | None = None
    bins: Mapping[int, int] = field(default_factory=dict)


NOTHING = DirectionInterval(0, 0, 0.0, 0.0, None, None, None, {}, None, {}, "clat")
"""A direction that has no I/O in an interval."""


@dataclass(frozen=True, slots=True)
class JobInterval:
    """A row of fio's report in one interval (a job, or a group with group_reporting). ``reset``:
    the row's counters were reset in this interval; ``ios`` and ``bytes`` count from then on.
    ``counted_by`` says from which fio counter ``ios`` is computed: "samples" (of latencies),
    "bytes" (divided by the block size), "submissions" or "nothing" (fio counts only bytes, and
    block sizes vary: ``ios`` is 0, ``iops`` ``None``). ``changing`` is the option that changes its
    load by itself ("": none)."""

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
    0..1. ``None`` is unknown. ``times_all`` is False if only some of the I/Os have latencies (some
    sections of a group don't measure them). ``latency_possible`` is False if the latencies would
    need many more I/Os in flight than the jobs can have (N = X·R). ``failed`` I/Os ended with an
    error, and the job went on (continue_on_error). ``ios_elsewhere`` and ``bytes_elsewhere``: the
    rates of I/Os and of bytes cover clearly different seconds than the rest (interval_time.py).
    ``within_depth`` is False if these I/Os would need clearly more in flight than the jobs can
    have, ``bytes_agree`` if I/Os times block size differ from the bytes that fio states. ``sync``
    has the syncs (fsync, fdatasync, sync_file_range) of all rows and their latency as ``clat``;
    ``None``: the jobs do none, or fio does not count them."""

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
    sync: DirectionInterval | None = None

    @property
    def errors(self) -> int:
        """Rows of fio's report that have an error."""
        return sum(1 for job in self.jobs if job.error)


def _latency_part(kind: str, span: str) -> Part:
    mean = (
        Figure("mean", "ns", f"{OF}: mean {span}", over="n", title=kind, form=f.latency),
        Figure("n", "", f"{OF}: I/Os in that mean"),
    )
    ranks = latency_rows("of this interval's I/Os had at most", f"this {kind} (within 0.8 %)",
                         f"highest {kind} in this interval (within 0.8 %)")  # fmt: skip
    return Part(kind, mean if kind == "slat" else (*mean, *ranks),
                lambda direction: direction.latency(kind))  # fmt: skip


IOPS = Figure("iops", "1/s", f"{OF} completed per second", over=SECONDS, added="ios",
              title="IOPS", width=5)  # fmt: skip
BW = Figure("bw", "B/s", f"{OF}, bytes completed per second", over=SECONDS, added="bytes",
            width=5, form=f.mib)  # fmt: skip
MEANS = {
    kind: Figure(f"{kind}_mean", "ns", f"mean {kind}", f"{kind}_ns", over=f"samples/{kind}",
                 title="mean", width=7, form=f.latency)
    for kind in ("clat", "lat")
}  # fmt: skip
"""The mean latency over many intervals, by the kind that the histogram is of."""
DIRECTION: Rows = (
    IOPS,
    BW,
    Figure("ios", "", f"{OF} completed in this interval", title="I/Os"),
    Figure("bytes", "B", f"{OF}, bytes completed in this interval"),
    _latency_part("slat", "submission latency"),
    _latency_part("clat", "completion latency (submission to completion)"),
    _latency_part("lat", "total latency (slat + clat)"),
    Figure("bins_of", "", "latency the histogram is of: clat or lat", kind=TEXT, title="bins of"),
)  # fmt: skip
BINS = Figure(
    "bins", "", f"{OF}: this interval's histogram, I/Os by bucket midpoint in ns; bins of several "
    "jobs, hosts or seconds add exactly", keys=1, bulky=True, always=True,
)  # fmt: skip
SYNC: Rows = (
    Figure("iops", "1/s", f"{OF} completed per second", over=SECONDS, added="ios", title="syncs/s",
           width=5),
    Figure("ios", "", f"{OF} completed in this interval", title="syncs"),
    Figure("mean", "ns", f"{OF}: mean time", "clat_ns", over="ios", title="sync", form=f.latency),
    *latency_rows("of this interval's syncs took at most", "this long (within 0.8 %)",
                  "the longest sync in this interval (within 0.8 %)"),
    BINS,
)  # fmt: skip
JOB: Rows = (
    Figure("name", "", "name of this row (a job, or a group with group_reporting)", kind=TEXT,
           title="job"),
    Figure("error", "errno", "0: none"),
    Figure("iops", "1/s", "completed I/Os, all directions", title="IOPS"),
    Figure("bw", "B/s", "completed bytes, all directions"),
    Figure("ios", "", "I/Os completed in this interval (if fio reset its counters: since then)",
           title="I/Os"),
    Figure("bytes", "B", "bytes completed in this interval"),
    Part("clat", (Figure("mean", "ns", "mean completion latency of this row", "clat_ns",
                         title="clat"),), lambda job: job),
)  # fmt: skip


def _direction_part(name: str) -> Part:
    about = {"mixed": "unified reads and writes"}.get(name, f"{name}s")
    return Part(name, (*DIRECTION, BINS), lambda fio: fio.directions.get(name), about=about,
                none=NOTHING)  # fmt: skip


FIO: Rows = (
    Figure("seconds", "s", "interval of fio's rates, by fio's clock"),
    *map(_direction_part, DIRECTIONS),
    Part(TOTAL, DIRECTION, about="all directions", none=NOTHING),
    Part("sync", SYNC, about="syncs (fsync, fdatasync, sync_file_range)"),
    Part("jobs", JOB, many=IN_LIST, bulky=True, always=True),
    Figure("iodepth_level", "%", "share of I/Os submitted at this queue depth (estimated: fio "
           "prints rounded percentages)", keys=1, title="depth"),
    Figure("usr_cpu", "% of a CPU", "user time of the jobs, summed", over=SECONDS, title="usr"),
    Figure("sys_cpu", "% of a CPU", "system time of the jobs, summed", over=SECONDS, title="sys"),
    Figure("ctx/s", "1/s", "context switches of the jobs", "ctx_s", over=SECONDS),
    Figure("elapsed_s", "s", "elapsed run time, as reported by fio (rounded up)", title="elapsed"),
    Figure("eta_s", "s", "time left, as reported by fio; null while fio does not know",
           title="eta"),
    Figure("progress", "0..1", "elapsed / (elapsed + eta)"),
    Figure("errors", "", "rows of fio's report that have an error"),
)  # fmt: skip
