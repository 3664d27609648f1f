"""Judge iopstui's reading of fio: its intervals against fio's per-I/O log."""

from __future__ import annotations

import math
from collections.abc import Iterator

from iopstui.features.selftest.check import Check, check_equal, check_within, unchecked
from iopstui.features.selftest.evidence import Evidence
from iopstui.fio.stream.framing import Document, Framer
from iopstui.fio.stream.status import parse_status
from iopstui.model import histogram
from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.interval_time import is_repetition
from iopstui.model.fio.jobfile import effective_sections
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.samples import FioStatus, RawSample

INTERVAL_S = 1.0
MEAN_ERROR = 1e-4
REPEAT_WINDOW_MS = 300
MIN_SAMPLES = {50.0: 20, 99.0: 1000}
"""Fewest I/Os for which a percentile is compared."""
WRONG_COUNTS = "IOPS and bandwidth would be wrong"
WRONG_LATENCIES = "latencies would be wrong"


def judge_fio(evidence: Evidence) -> Iterator[Check]:
    """I/Os, bytes, mean, percentiles and maximum."""
    intervals = _intervals(evidence)
    if not intervals or not evidence.log:
        yield unchecked("fio: I/Os", "fio wrote no intervals or no log")
        return
    yield check_equal(
        "fio: I/Os",
        len(evidence.log),
        sum(interval.total.ios for interval in intervals),
        WRONG_COUNTS,
    )
    moved = sum(size for _, _, size in evidence.log)
    yield check_equal(
        "fio: bytes", moved, sum(interval.total.bytes for interval in intervals), WRONG_COUNTS
    )
    values = sorted(value for _, value, _ in evidence.log)
    mean = sum(values) / len(values)
    parts = [interval.total for interval in intervals if interval.total.clat_ns is not None]
    count = sum(part.ios for part in parts)
    joined = sum((part.clat_ns or 0.0) * part.ios for part in parts) / count if count else 0.0
    yield check_within(
        "fio: mean latency, ns",
        mean * (1 - MEAN_ERROR),
        mean * (1 + MEAN_ERROR),
        joined,
        WRONG_LATENCIES,
    )
    yield from _percentiles(values, histogram.merge(interval.total.bins for interval in intervals))
    highest = max((interval.total.max_ns or 0 for interval in intervals), default=0)
    yield check_equal("fio: slowest I/O, ns", values[-1], highest, WRONG_LATENCIES)


def _percentiles(values: list[int], bins: histogram.Bins) -> Iterator[Check]:
    reported = histogram.percentiles(bins, MIN_SAMPLES)
    for share, least in MIN_SAMPLES.items():
        if len(values) < least:
            continue
        rank = max(1, math.ceil(round(share / 100 * len(values), 6)))
        # fio computes the rank in floating point, which may be a little above a whole one
        exact = values[rank - 1 : rank + 1]
        error = histogram.MAX_RELATIVE_ERROR
        yield check_within(
            f"fio: p{share:g}, ns",
            min(exact) * (1 - error),
            max(exact) * (1 + error),
            float(reported[share]),
            WRONG_LATENCIES,
        )


def _intervals(evidence: Evidence) -> list[FioInterval]:
    """iopstui's intervals of fio's documents."""
    framer, statuses = Framer(), list[FioStatus]()
    sections = effective_sections(evidence.job)
    for item in (*framer.feed(evidence.stream.encode()), *framer.close()):
        status = parse_status(item.data, sections) if isinstance(item, Document) else None
        if status is None:
            continue
        # fio may write its last document twice
        is_soon_after = (
            statuses and status.timestamp_ms - statuses[-1].timestamp_ms < REPEAT_WINDOW_MS
        )
        if is_soon_after and is_repetition(status, statuses[-1]):
            statuses.pop()
        statuses.append(status)
    builder = FrameBuilder()
    frames = [
        builder.feed(
            RawSample(number, status.timestamp_ms * 1_000_000, status.timestamp_ms, None, status,
                      number == len(statuses) - 1, 1, interval_s=INTERVAL_S)
        )
        for number, status in enumerate(statuses)
    ]  # fmt: skip
    return [frame.fio for frame in frames if frame.fio is not None]
