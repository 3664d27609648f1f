"""A finished fio run in fio's own figures, checked against the frames and against impossible
rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.interval_time import Span, begins_ms, span, whole_ms
from iopstui.model.fio.rows import (
    NOTHING,
    SUBMISSIONS,
    completions,
    counted_by,
    flag,
    max_in_flight,
)
from iopstui.model.metrics.frame import APART, APPROX_BW, APPROX_IOPS, RAMP, RESET, UNCOUNTED, Frame
from iopstui.model.samples import DIRECTIONS, MIXED, DirectionStatus, FioStatus, JobStatus

TOLERANCE = 0.2
MIN_SECONDS = 1.0
COVERED = 0.8
MANY_TIMES = 10


@dataclass(frozen=True, slots=True)
class ContradictedRate:
    """A direction whose stated rate is impossible, and the reason in words."""

    direction: str
    why: str


class SecondRates:
    """The rates of a run's seconds, by direction, without fio's ramp."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._ios: dict[str, int] = {}
        self._active_s: dict[str, float] = {}

    def add(self, frame: Frame) -> None:
        fio = frame.fio
        if fio is None or not fio.seconds or UNCOUNTED & frame.flags:
            return
        if RESET in frame.flags:
            self.__init__()  # type: ignore[misc]
        self._seconds += fio.seconds
        for name, part in fio.directions.items():
            if part.ios:
                self._ios[name] = self._ios.get(name, 0) + part.ios
                self._active_s[name] = self._active_s.get(name, 0.0) + fio.seconds

    def contradicted(self, summary: Mapping[str, Any]) -> list[ContradictedRate]:
        """The rates of ``fio_summary`` that differ by more than 20 % from the rates of the seconds:
        a rate below that of all seconds, or above that of the seconds with I/O and also beyond what
        the queue depth allows (I/O may have filled only a part of a second)."""
        found = []
        for name, part in summary["total"].items():
            stated, active_s = part.get("iops"), self._active_s.get(name, 0.0)
            if stated is None and part.get("runtime_ms") == 0:
                stated = 0.0
            if stated is None or active_s < MIN_SECONDS:
                continue
            lowest, highest = self._ios[name] / self._seconds, self._ios[name] / active_s
            is_covered = self._seconds >= COVERED * part["runtime_ms"] / 1000
            too_low = is_covered and stated < lowest * (1 - TOLERANCE)
            too_high = stated > highest * (1 + TOLERANCE) and _beyond_depth(
                summary, name, stated > MANY_TIMES * highest
            )
            if too_low or too_high:
                found.append(ContradictedRate(
                    name, f"fio's final {name} rate of {stated:,.0f} IOPS contradicts its own "
                    f"seconds, which have at most {highest:,.0f}; it is not used to judge the run",
                ))  # fmt: skip
        return found


def _beyond_depth(summary: Mapping[str, Any], name: str, unknown: bool) -> bool:
    """Whether a direction's rate would need more I/Os in flight than the rows can have. Returns
    ``unknown`` if latency or depth are not known."""
    needed, depth = 0.0, 0
    for row in summary["rows"]:
        part = row["directions"].get(name)
        if part is None:
            continue
        mean_ns = part.get("lat_mean_ns") or part.get("clat_mean_ns")
        if not mean_ns or not row.get("depth"):
            return unknown
        needed += part["iops"] * mean_ns / 1e9
        depth += row["depth"]
    return needed > depth * (1 + TOLERANCE) + 1


def impossible_rates(status: FioStatus) -> list[ContradictedRate]:
    """The rates of a final document that contradict its counts, its latencies or its depth."""
    return [*_beyond_counts(status), *_beyond_depth_of_jobs(status)]


def _beyond_counts(status: FioStatus) -> Iterator[ContradictedRate]:
    """The rates that differ from the counts over the run time, which fio's rates should always
    equal."""
    untimed: dict[str, int] = {}
    for job in status.jobs:
        for name, part in job.directions.items():
            if not part.runtime_ms:
                if part.issued and not part.iops:
                    untimed[name] = untimed.get(name, 0) + part.issued
                continue
            # fio may state whole KiB/s; before 3.0 it does not state a count of I/Os
            for title, stated, count, rounding in (
                ("IOPS", part.iops, part.issued, 1),
                ("bytes/s", part.bw_bytes, part.io_bytes, 1024),
            ):
                rate = 1000 * count / part.runtime_ms
                if count and abs(stated - rate) > TOLERANCE * rate + rounding:
                    yield ContradictedRate(
                        name, f"fio's final {name} rate of {stated:,.0f} {title} cannot be: its "
                        f"own counts give {rate:,.0f}",
                    )  # fmt: skip
    for name, ios in untimed.items():
        yield ContradictedRate(name, f"fio states a run time of 0 for {ios:,} I/Os ({name}), so "
                                     "their rate is not known")  # fmt: skip


def _beyond_depth_of_jobs(status: FioStatus) -> Iterator[ContradictedRate]:
    """The rates that would need more I/Os in flight than the job can have (N = X·R). Rows of a
    group whose job file is not known are not checked: the group's depth is unknown."""
    for job in status.jobs:
        if job.in_flight is None and flag(job.options, "group_reporting"):
            continue
        depth = max_in_flight(job)
        for name, direction in job.directions.items():
            latency = direction.lat or direction.clat
            if latency is None or not latency.count:
                continue
            needed = direction.iops * latency.mean_ns / 1e9
            if needed > depth * (1 + TOLERANCE) + 1:
                yield ContradictedRate(
                    name, f"fio's final {name} rate of {direction.iops:,.0f} IOPS cannot be: at "
                    f"{latency.mean_ns / 1e6:.3g} ms it would need {needed:,.0f} I/Os in flight, "
                    f"and iodepth × numjobs allows {depth}",
                )  # fmt: skip


def fio_summary(status: FioStatus, final: bool = True) -> dict[str, Any]:
    """fio's final figures, as plain data, from its last document. ``final`` is False if fio was
    killed and this is the last document before, with I/Os in flight.

    ``rows`` has one entry for every row of fio's report (a job, or a group with group_reporting),
    its ``directions`` exactly as fio states them: ``iops``, ``bw_bytes`` (bytes/s), ``io_bytes``,
    ``total_ios`` (submissions), ``runtime_ms``, ``clat_mean_ns``, ``lat_mean_ns``, ``percentiles``
    ({"p99": ns}, of ``percentiles_of``), ``lat_max_ns``; and ``completed``, the completions that
    frames count, by fio's counter ``counted_by``. A row's ``failed`` I/Os are fio's total_err,
    ``block_size`` (bytes) is that of all its I/Os, ``depth`` the most that can be in flight,
    ``ramp`` whether it has a ramp_time, ``begin_ms`` when it began (from an arbitrary origin, equal
    for all rows of a group), ``opens`` that its engine times only the opening of files. Unknown is
    ``None``. A row that syncs has ``sync``: how many ``completed``, and their latencies named as
    above. ``sums`` adds the rows of each of fio's groups; if they did not run at the same time, the
    rates are over the whole ``runtime_ms``, as in fio's own "Run status group". ``total`` adds all
    rows, ``all`` all directions, too; they have rates only if there is one group (stages of a
    stonewalled job follow one another, so the sum of their rates is no rate)."""
    begins = begins_ms(status.jobs)
    rows = [_row(index, job, next(begins)) for index, job in enumerate(status.jobs)]
    groups = sorted({job.group for job in status.jobs})
    total = _sums(status.jobs, rows)
    if len(groups) > 1:
        total = {name: {**sums, "iops": None, "bw_bytes": None} for name, sums in total.items()}
    return {
        "fio_version": status.version,
        "timestamp_ms": status.timestamp_ms,
        "final": final,
        "rows": rows,
        "sums": [
            {
                "group": group,
                "directions": _sums(
                    [job for job in status.jobs if job.group == group],
                    [row for row in rows if row["group"] == group],
                ),
            }
            for group in groups
        ],
        "total": total,
        "all": {
            **(_all(status.jobs, rows) if len(groups) == 1 else dict.fromkeys(_RATES)),
            "runtime_ms": whole_ms(status.jobs),
        },
    }


def whole_rate(summary: Mapping[str, Any], name: str) -> float | None:
    """``iops`` or ``bw_bytes`` of a run's rows and directions together, from ``fio_summary``.
    ``None`` if they have none."""
    if "all" in summary:
        rate: float | None = summary["all"][name]
        return rate
    parts = split_directions(summary.get("total") or {}).values()
    rates = [part[name] for part in parts if part.get(name) is not None]
    return sum(rates) if rates else None


def split_directions(directions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The directions without ``mixed``, which has the same I/Os, unless there is nothing else."""
    split = {name: part for name, part in directions.items() if name != MIXED}
    return split or directions


def is_final(summary: Mapping[str, Any]) -> bool:
    """Whether the summary is of fio's final document. Summaries of older recordings, which don't
    say so, count as final."""
    return summary.get("final") is not False


_OPENS_FILES = ("filecreate", "filestat", "filedelete")
"""Engines that time only the opening of files, which frames count by these times."""


def _row(index: int, job: JobStatus, begin_ms: float) -> dict[str, Any]:
    return {
        "index": index,
        "name": job.name,
        "group": job.group,
        "error": job.error,
        "failed": job.failed,
        "block_size": job.block_size,
        "depth": max_in_flight(job),
        "ramp": job.has_ramp,
        "begin_ms": round(begin_ms),
        "directions": {
            name: _figures(job, job.directions[name])
            for name in DIRECTIONS
            if name in job.directions and _has_ios(job.directions[name])
        },
        **({"opens": True} if job.options.get("ioengine") in _OPENS_FILES else {}),
        **({"sync": _sync_figures(job.sync)} if job.sync is not None else {}),
    }


def _sync_figures(sync: DirectionStatus) -> dict[str, Any]:
    return {
        "completed": sync.completed or sync.issued or None,
        "clat_mean_ns": sync.clat.mean_ns if sync.clat and sync.clat.count else None,
        "percentiles": dict(sync.percentiles) if sync.completed else {},
        "percentiles_of": sync.bins_of,
        "lat_max_ns": sync.lat_max_ns or None,
    }


def _has_ios(direction: DirectionStatus) -> bool:
    return bool(direction.issued or direction.io_bytes)


def _figures(job: JobStatus, direction: DirectionStatus) -> dict[str, Any]:
    sampled = bool(direction.completed)
    clat, lat = direction.clat, direction.lat
    return {
        "iops": direction.iops,
        "bw_bytes": direction.bw_bytes,
        "io_bytes": direction.io_bytes,
        "total_ios": direction.issued,
        "completed": completions(job, direction),
        "counted_by": counted_by(job, direction),
        "runtime_ms": direction.runtime_ms,
        "clat_mean_ns": clat.mean_ns if clat and clat.count else None,
        "lat_mean_ns": lat.mean_ns if lat and lat.count else None,
        "percentiles": dict(direction.percentiles) if sampled else {},
        "percentiles_of": direction.bins_of,
        "lat_max_ns": direction.lat_max_ns if sampled else None,
    }


_RATES, _COUNTS = ("iops", "bw_bytes"), ("io_bytes", "total_ios", "completed")


def _sums(
    jobs: Sequence[JobStatus], rows: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    sums = {}
    for name in DIRECTIONS:
        parts = [row["directions"][name] for row in rows if name in row["directions"]]
        if parts:
            time = span(jobs, name)
            counts = {key: sum(part[key] for part in parts) for key in _COUNTS}
            sums[name] = {"rows": len(parts), "runtime_ms": time.ms, 
                          **rates_together(parts, time), **counts}  # fmt: skip
    return sums


def _all(jobs: Sequence[JobStatus], rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    parts = [part for row in rows for part in split_directions(row["directions"]).values()]
    return rates_together(parts, span(jobs)) if parts else dict.fromkeys(_RATES)


def is_untimed(part: Mapping[str, Any]) -> bool:
    """Whether fio states a run time of 0, and so a rate of 0, though there are I/Os: it does for
    jobs that it gave up (3.28), and for reads that verify (3.33)."""
    return bool(part["runtime_ms"] == 0 and not part["iops"] and part["io_bytes"])


def rates_together(parts: Sequence[Mapping[str, Any]], time: Span) -> dict[str, float | None]:
    """The rates of several rows or directions together; ``None`` if one is not known."""
    if any(map(is_untimed, parts)):
        return dict.fromkeys(_RATES)
    return {
        key: sum(part[key] for part in parts) if time.is_shared or not time.ms
        else sum(part[key] * part["runtime_ms"] for part in parts) / time.ms
        for key in _RATES
    }  # fmt: skip


def without_bins(document: Mapping[str, Any]) -> dict[str, Any]:
    """fio's JSON report without the histograms, its largest part; empty if it is nested more deeply
    than fio's reports are."""
    try:
        return {name: _without_bins(value) for name, value in document.items()}
    except RecursionError:
        return {}


def _without_bins(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_bins(part) for name, part in value.items() if name != "bins"}
    return [_without_bins(part) for part in value] if isinstance(value, list) else value


class FramesTotal:
    """Adds up the frames of one fio run, row by row, for comparison with fio's final count. If a
    row's counters are reset (after a ramp), earlier I/Os are dropped, as in fio."""

    def __init__(self) -> None:
        self.frames = 0
        self._ios: dict[int, int] = {}
        self._bytes: dict[int, int] = {}
        self._counted_by: dict[int, set[str]] = {}
        self._reset: set[int] = set()
        self.checks = RowChecks()

    def add_frame(self, frame: Frame) -> None:
        """Count one frame, and check its row."""
        self.add(frame.fio)
        self.checks.add(frame)

    def add(self, interval: FioInterval | None) -> None:
        """Count one frame's fio interval (``None``: a frame without one)."""
        if interval is None:
            return
        self.frames += 1
        for job in interval.jobs:
            for total, count in ((self._ios, job.ios), (self._bytes, job.bytes)):
                total[job.index] = count + (0 if job.reset else total.get(job.index, 0))
            if job.reset:
                self._counted_by.pop(job.index, None)
                self._reset.add(job.index)
            if job.ios or job.counted_by == NOTHING:
                self._counted_by.setdefault(job.index, set()).add(job.counted_by)

    def join(self, later: FramesTotal) -> None:
        self.frames += later.frames
        self.checks.join(later.checks)
        for total, counts in ((self._ios, later._ios), (self._bytes, later._bytes)):
            for index, count in counts.items():
                total[index] = count + (0 if index in later._reset else total.get(index, 0))
        for index in later._reset:
            self._counted_by.pop(index, None)
        for index, by in later._counted_by.items():
            self._counted_by.setdefault(index, set()).update(by)
        self._reset |= later._reset

    @property
    def ios(self) -> int:
        """Completed I/Os of all rows."""
        return sum(self._ios.values())

    @property
    def bytes(self) -> int:
        """Completed bytes of all rows."""
        return sum(self._bytes.values())

    def row(self, index: int) -> tuple[int, int, frozenset[str]]:
        """I/Os and bytes of one row, and the fio counters from which the I/Os were computed."""
        by = frozenset(self._counted_by.get(index, ()))
        return self._ios.get(index, 0), self._bytes.get(index, 0), by


EXACT, DIFFERS, UNCHECKED = "exact", "differs", "not checked"
# largest error of a product of IOPS and time: fio prints IOPS with six decimals
ROUNDING = 0.51


@dataclass(frozen=True, slots=True)
class Certificate:
    """The frames of a run compared with counters of fio's last document that the frames don't use:
    submissions less failed I/Os (frames count completions), and for the bytes these times the block
    size.

    ``verdict`` is EXACT, DIFFERS or UNCHECKED (the frames are computed from the submissions or
    without any count, or the document is not ``final``); ``ios`` and ``bytes`` are fio's (``bytes``
    ``None``: I/Os of several sizes), ``more_ios`` and ``more_bytes`` how many more the frames have.
    ``ramp``: the difference is no more than can have been in flight when the ramp ended;
    ``failed``: the missing I/Os belong to a job that failed; ``left``: they were submitted at the
    end and are missing in fio's own bytes, too. ``opens``: the frames count files that an engine
    such as filecreate opened. ``mean_is_consistent``: fio's mean IOPS times its runtime gives its
    submissions, as it should. ``counted``: fio reported the number of I/Os while it ran.
    ``stated_bytes``: the bytes that fio itself states. ``has_block_sizes``: the summary says the
    rows' block sizes (an older recording's does not)."""

    verdict: str
    ios: int
    bytes: int | None
    more_ios: int
    more_bytes: int
    ramp: bool = False
    failed: bool = False
    left: bool = False
    opens: bool = False
    mean_is_consistent: bool = True
    has_block_sizes: bool = True
    final: bool = True
    stated_bytes: int = 0
    counted: bool = True


def certificate(summary: Mapping[str, Any], frames: FramesTotal) -> Certificate:
    """Compare ``frames`` with ``fio_summary`` of the same run."""
    compared = [_ComparedRow(row, frames) for row in summary["rows"]]
    ios = sum(row.submitted - row.failed for row in compared)
    sized = all(row.block_size or not row.submitted for row in compared)
    size = sum((row.submitted - row.failed) * row.block_size for row in compared) if sized else None
    stated = sum(row.stated_bytes for row in compared)
    more_bytes = frames.bytes - (stated if size is None else size)
    deviating = [row for row in compared if row.more or row.more_bytes]
    mean_is_consistent = all(row.mean_is_consistent for row in compared)
    final = is_final(summary)
    if not final or any({SUBMISSIONS, NOTHING} & row.counted_by for row in compared):
        verdict = UNCHECKED
    elif deviating or more_bytes or frames.bytes != stated or not mean_is_consistent:
        verdict = DIFFERS
    else:
        verdict = EXACT
    return Certificate(
        verdict, ios, size, frames.ios - ios, more_bytes,
        ramp=bool(deviating) and all(row.within_ramp for row in deviating),
        failed=bool(deviating) and all(row.error and row.more < 0 for row in deviating),
        left=bool(deviating) and all(row.was_left for row in deviating),
        opens=bool(deviating) and all(row.opens for row in deviating),
        mean_is_consistent=mean_is_consistent,
        has_block_sizes=all("block_size" in row for row in summary["rows"]),
        final=final, stated_bytes=stated,
        counted=not any(NOTHING in row.counted_by for row in compared),
    )  # fmt: skip


class _ComparedRow:
    """A row of a summary beside the figures of the frames. A row that has both directions and
    ``mixed`` (unified_rw_reporting=both) has its I/Os twice; they count once."""

    def __init__(self, row: Mapping[str, Any], frames: FramesTotal) -> None:
        parts = [*split_directions(row["directions"]).values()]
        self.submitted: int = sum(part.get("total_ios", 0) for part in parts)
        self.stated_bytes: int = sum(part.get("io_bytes", 0) for part in parts)
        self.failed: int = row.get("failed") or 0
        self.block_size: int = row.get("block_size") or 0
        self.depth: int = row.get("depth") or 0
        self.ramp = bool(row.get("ramp"))
        self.error, self.opens = bool(row["error"]), bool(row.get("opens"))
        ios, moved, self.counted_by = frames.row(row["index"])
        self.more = ios - (self.submitted - self.failed)
        self.more_bytes = 0
        bytes_off = abs(moved - self.submitted * self.block_size)
        if not self.more and moved == self.stated_bytes:
            tolerance = self.depth + self.failed + self.error
            if bytes_off > tolerance * self.block_size:
                # every figure is as fio states it, and yet the I/Os don't have the size given in
                # the job file
                self.block_size = 0
        if self.block_size:
            self.more_bytes = moved - (self.submitted - self.failed) * self.block_size
        self.was_left = -self.depth <= self.more < 0 and moved == self.stated_bytes
        self.mean_is_consistent = all(_mean_is_consistent(part) for part in parts)

    @property
    def within_ramp(self) -> bool:
        """Whether the difference can be I/Os that were in flight when the ramp ended: fio counts
        these as completed but not as submitted, or only their bytes."""
        deviation = max(abs(self.more), abs(self.more_bytes) / (self.block_size or 1))
        return self.ramp and deviation <= self.depth


def _mean_is_consistent(part: Mapping[str, Any]) -> bool:
    if not part or not part["runtime_ms"]:
        return True
    ios = float(part["iops"]) * part["runtime_ms"] / 1000
    return bool(abs(ios - part["total_ios"]) < ROUNDING)


# Checks each row of a run against independent figures.


IOPS, BANDWIDTH, DEVICE = "IOPS", "MiB/s", "device"
ALL_ON_DEVICE = 0.95
"""If the device moves at least this share of a run's bytes, it must do so in each row."""
LESS_ON_DEVICE = 0.85
MIN_IOS = 100
MAX_TIMES = 1000
"""Limit of rows kept for each column."""


class RowChecks:
    """Collects the rows whose figures do not agree: I/Os in flight that exceed iodepth × numjobs (N
    = X·R), bytes that are not I/Os × block size, and fewer bytes on the device than fio moved,
    though the device has all of them in other rows. Rates that are marked as covering other seconds
    count as not verified, too."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}
        self._fio_bytes = self._device_bytes = 0.0

    def add(self, frame: Frame) -> None:
        fio = frame.fio
        if fio is None or RAMP in frame.flags or not fio.seconds:
            return
        if APPROX_IOPS in frame.flags or not fio.within_depth:
            self._note(IOPS, frame.t)
        if APPROX_BW in frame.flags or not fio.bytes_agree:
            self._note(BANDWIDTH, frame.t)
        self._check_device(frame.whole)

    def join(self, later: RowChecks) -> None:
        for column, times in later._times.items():
            for t in times:
                self._note(column, t)
        self._fio_bytes += later._fio_bytes
        self._device_bytes += later._device_bytes

    @property
    def doubtful(self) -> Mapping[str, list[float]]:
        """The times of rows that are not verified, by the name of the column."""
        all_on_device = self._device_bytes >= ALL_ON_DEVICE * self._fio_bytes
        return {
            column: times
            for column, times in self._times.items()
            if column != DEVICE or all_on_device
        }

    def _check_device(self, frame: Frame) -> None:
        fio, disk, waits = frame.fio, frame.total, frame.waits
        if fio is None or disk is None or waits is None or waits.cache or waits.unsent:
            return
        if not frame.holds or {APART, APPROX_BW} & frame.flags or fio.total.ios < MIN_IOS:
            return
        seconds = fio.seconds or 0.0
        on_device = (disk.bytes_s or 0.0) * seconds
        self._fio_bytes += fio.total.bytes
        self._device_bytes += on_device
        if on_device < LESS_ON_DEVICE * fio.total.bytes:
            self._note(DEVICE, frame.t)

    def _note(self, column: str, t: float) -> None:
        times = self._times.setdefault(column, [])
        if len(times) < MAX_TIMES:
            times.append(t)
