"""How far iopstui's frames are from fio's own last document and from its per-I/O logs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fio_runs import Measured

from iopstui.model import histogram
from iopstui.model.fio.counts import longest_runtime
from iopstui.model.fio.interval import FioInterval
from iopstui.model.metrics.summary import DIFFERS, FramesTotal, certificate, fio_summary
from iopstui.model.samples import MIXED, DirectionStatus, JobStatus

# fewer samples than this say nothing of a percentile
ENOUGH = {50.0: 20, 90.0: 100, 99.0: 1000, 99.9: 10_000}


@dataclass(frozen=True, slots=True)
class Check:
    """What is compared, the most it may be off, in which unit."""

    name: str
    bound: float
    unit: str
    what: str


CHECKS = {
    check.name: check
    for check in (
        Check("I/Os", 0, "", "all frames against fio's submissions less failures (and the depth "
              "where a ramp ended)"),
        Check("certificate", 0, "", "runs that differ without a reason"),
        Check("bytes", 0, "", "all frames against io_bytes"),
        Check("bins", 0, "", "buckets of all frames that differ from the final histogram's"),
        Check("mean", 1e-5, "rel", "joined means of the frames against fio's"),
        Check("max", 0, "ns", "slowest I/O of all frames against the log's"),
        Check("percentile", histogram.MAX_RELATIVE_ERROR, "rel",
              "all frames' histogram against the log, nearest rank"),
        Check("interval percentile", 2 * histogram.MAX_RELATIVE_ERROR, "rel",
              "one frame's histogram against its part of the log"),
        Check("seconds", 0.15, "s", "length of all frames against the jobs' running time"),
        Check("IOPS", 0.06, "rel", "I/Os over seconds of all frames against fio's mean IOPS"),
    )
}  # fmt: skip
Error = tuple[str, float]


def errors(measured: Measured) -> Iterator[Error]:
    """Every error of one job by the name of its check."""
    intervals = [frame.fio for frame in measured.frames if frame.fio]
    intervals = intervals[_begin(intervals) :]
    yield from _counts(measured)
    for status in _rows(measured):
        yield from _histograms(status, intervals, len(measured.final.jobs))
    yield from _times(measured, intervals)
    yield from _whole_percentiles(measured, intervals)
    if len(measured.logs) == 1:
        yield from _interval_percentiles(measured, intervals)


def _begin(intervals: Sequence[FioInterval]) -> int:
    """What lies before a reset fio has forgotten."""
    return max((n for n, interval in enumerate(intervals) if interval.reset), default=0)


def _rows(measured: Measured) -> list[JobStatus]:
    return list(measured.final.jobs)


def _counts(measured: Measured) -> Iterator[Error]:
    total = FramesTotal()
    for frame in measured.frames:
        total.add(frame.fio)
    summary = fio_summary(measured.final)
    result = certificate(summary, total)
    depth = sum(row["depth"] for row in summary["rows"] if row["ramp"])
    yield "I/Os", max(0, abs(result.more_ios) - depth)
    yield "certificate", float(result.verdict == DIFFERS and not (result.ramp or result.failed))
    stated = sum(d.io_bytes for job in measured.final.jobs for d in _once(job).values())
    yield "bytes", abs(total.bytes - stated)


def _once(job: JobStatus) -> dict[str, DirectionStatus]:
    """A row's directions, every I/O once."""
    split = {n: d for n, d in job.directions.items() if n != MIXED and (d.issued or d.io_bytes)}
    return split or dict(job.directions)


def _histograms(status: JobStatus, intervals: Sequence[FioInterval], rows: int) -> Iterator[Error]:
    if rows > 1:
        return
    for name, direction in status.directions.items():
        parts = [i.directions[name] for i in intervals if name in i.directions]
        all_bins = histogram.merge(part.bins for part in parts)
        final = direction.bins or {}
        yield (
            "bins",
            sum(all_bins.get(k, 0) != final.get(k, 0) for k in all_bins.keys() | final.keys()),
        )
        for kind in ("slat", "clat", "lat"):
            stated = getattr(direction, kind)
            parts_with_samples = [part for part in parts if kind in part.samples]
            count = sum(part.samples[kind] for part in parts_with_samples)
            if stated and stated.count and stated.mean_ns and count:
                joined = (
                    sum(getattr(p, f"{kind}_ns") * p.samples[kind] for p in parts_with_samples)
                    / count
                )
                yield "mean", abs(joined / stated.mean_ns - 1)


def _times(measured: Measured, intervals: Sequence[FioInterval]) -> Iterator[Error]:
    final = measured.final.jobs
    if len({job.group for job in final}) > 1 or not intervals:
        return
    if sum(frame.fio.reset for frame in measured.frames if frame.fio) > 1:
        # the jobs' ramps ended in different intervals: no one of them is the beginning
        return
    seconds = sum(interval.seconds or 0.0 for interval in intervals)
    if "verify" in measured.job.traits:
        # the reading follows the writing, and the jobs of a row do the same
        if all(job.job_runtime_ms > longest_runtime(job) for job in final):  # fio 3.16
            ran = max(job.job_runtime_ms / (job.members or 1) for job in final)
            yield "seconds", abs(seconds - ran / 1000)
        return
    yield "seconds", abs(seconds - max(_lengths(final)) / 1000)
    expected_iops = sum(direction.iops for job in final for direction in _once(job).values())
    same_length = max(_lengths(final)) - min(_lengths(final)) < 50
    if expected_iops and same_length:
        yield "IOPS", abs(sum(i.total.ios for i in intervals) / seconds / expected_iops - 1)


def _lengths(jobs: Sequence[JobStatus]) -> list[int]:
    return [d.runtime_ms for job in jobs for d in _once(job).values() if d.runtime_ms] or [0]


def _log(measured: Measured) -> list[list[tuple[str, int]]]:
    """The lines that the histogram is of."""
    kinds = {d.bins_of for job in measured.final.jobs for d in job.directions.values() if d.bins}
    if len(kinds) != 1:
        return []
    return [logged.clat if kinds == {"clat"} else logged.lat for logged in measured.logs]


def _whole_percentiles(measured: Measured, intervals: Sequence[FioInterval]) -> Iterator[Error]:
    values = sorted(ns for lines in _log(measured) for _, ns in lines)
    bins = histogram.merge(interval.total.bins for interval in intervals)
    if not values or sum(bins.values()) != len(values):
        return
    yield from (("percentile", off) for off in _off(bins, values))
    highest = max((i.total.max_ns for i in intervals if i.total.max_ns is not None), default=0)
    yield "max", abs(highest - values[-1])


def _interval_percentiles(measured: Measured, intervals: Sequence[FioInterval]) -> Iterator[Error]:
    """Cut by the number of samples, not by time: so both are of the same I/Os."""
    logs = _log(measured)
    names = {name for i in intervals for name in i.directions if i.directions[name].bins}
    for name in names if logs else ():
        values = [ns for direction, ns in logs[0] if name in (direction, MIXED)]
        at = 0
        for interval in intervals:
            part = interval.directions.get(name)
            count = sum(part.bins.values()) if part is not None else 0
            if part is not None and count:
                yield from (
                    ("interval percentile", off)
                    for off in _off(part.bins, sorted(values[at : at + count]))
                )
            at += count


def _off(bins: histogram.Bins, values: Sequence[int]) -> Iterator[float]:
    """How far each percentile is from the exact one, as a share of it."""
    computed = histogram.percentiles(bins, ENOUGH)
    for p, least in ENOUGH.items():
        if len(values) >= least:
            rank = max(1, math.ceil(round(p / 100 * len(values), 6)))
            # fio computes the rank in floating point, which may be a little above a whole one
            either = [exact for exact in values[rank - 1 : rank + 1] if exact]
            yield min((abs(computed[p] / exact - 1) for exact in either), default=0.0)
