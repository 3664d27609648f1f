"""The checks for promised figures: what to measure, and the queue depth and the writes that this
needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.model.volumes.promised import VOLUME_BW, VOLUME_IOPS, Limit, PromisedFigures
from iopstui.model.volumes.volume import IOPS, OWN, READ, THROUGHPUT, WRITE

LATENCY = "latency"
RW = {(IOPS, READ): "randread", (IOPS, WRITE): "randwrite",
      (THROUGHPUT, READ): "read", (THROUGHPUT, WRITE): "write"}  # fmt: skip
DEPTH_FACTOR = 2.0
"""A queue of twice what Little's law asks for: latencies vary."""
MIN_DEPTH, MAX_DEPTH = 4, 1024
MAX_DEPTH_PER_JOB = 128
OPEN_LOOP_FACTOR = 16
"""The queue has room for this multiple of the I/Os that arrive within the bound: if it is full, the
bound is missed."""
MIN_OPEN_DEPTH, MAX_OPEN_DEPTH = 64, 4096
MAX_IOPS_PER_JOB = 100_000
"""The most I/Os per second that one fio job is asked for."""


@dataclass(frozen=True, slots=True)
class Check:
    """A figure to test. ``promised`` and ``burst`` are I/Os per second of ``block_size`` (ns if
    ``kind`` is LATENCY). ``limits`` has all limits that apply, the tightest first; ``burst_limits``
    has those that apply while a burst lasts. ``percentile`` ("p99") is the one that a latency is
    about (mean: ""); ``load`` is how many I/Os per second arrive while it is measured (0: single
    I/Os)."""

    kind: str
    direction: str
    rw: str
    block_size: int
    promised: float
    burst: float | None = None
    limits: tuple[Limit, ...] = ()
    burst_limits: tuple[Limit, ...] = ()
    percentile: str = ""
    load: float = 0.0

    @property
    def writes(self) -> bool:
        """Whether it writes to the target."""
        return self.direction == WRITE

    @property
    def target_iops(self) -> float:
        """The I/Os per second that the queue must be deep enough for."""
        limits = self.burst_limits if self.burst is not None else self.limits
        return min(self.burst or self.promised, limits[0].rate if limits else math.inf)


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """``iodepth`` of each of ``jobs``."""

    iodepth: int
    jobs: int

    @property
    def total(self) -> int:
        """I/Os in flight."""
        return self.iodepth * self.jobs


SINGLE = QueueDepth(1, 1)


def list_checks(figures: PromisedFigures) -> tuple[Check, ...]:
    """A check for each published figure. Single I/Os come first, because they use hardly any
    credits; then random I/Os, with a bucket of I/Os; then the checks with a bucket of bytes."""
    volume = figures.volume
    checks = []
    if volume.latency is not None:
        latency = volume.latency
        for rw in latency.rw.split():
            direction = WRITE if rw == "randwrite" else READ
            load = (figures.figure(IOPS, direction) or 0.0) if volume.provider == OWN else 0.0
            checks.append(Check(LATENCY, direction, rw, latency.block_size, latency.mean_ns,
                                percentile=latency.percentile, load=load))  # fmt: skip
    for kind, size in ((IOPS, volume.random_size), (THROUGHPUT, volume.sequential_size)):
        for direction in (READ, WRITE):
            if figures.figure(kind, direction) is not None:
                checks.append(_rate_check(figures, kind, direction, size))
    return tuple(checks)


def _rate_check(figures: PromisedFigures, kind: str, direction: str, size: int) -> Check:
    limits = tuple(figures.limits(direction, size))
    burst_limits = tuple(figures.limits(direction, size, burst=True))
    base = _volume_rate(limits)
    burst = _volume_rate(burst_limits)
    return Check(
        kind, direction, RW[kind, direction], size, base,
        burst if burst > base else None, limits, burst_limits,
    )  # fmt: skip


def _volume_rate(limits: Sequence[Limit]) -> float:
    """How many I/Os of this size per second the volume alone allows, by its limits on IOPS and on
    MB/s."""
    return min(limit.rate for limit in limits if limit.name in (VOLUME_IOPS, VOLUME_BW))


def depth_for(check: Check, latency_ns: float | None, cpus: int) -> QueueDepth:
    """The depth that is needed by Little's law (N = X x R) at the latency of a single I/O; 32, as
    common jobs have, if that is not known."""
    depth = 32.0 if latency_ns is None else DEPTH_FACTOR * check.target_iops * latency_ns / 1e9
    total = min(max(math.ceil(depth), MIN_DEPTH), MAX_DEPTH)
    jobs = max(
        math.ceil(total / MAX_DEPTH_PER_JOB), math.ceil(check.target_iops / MAX_IOPS_PER_JOB), 1
    )
    if check.kind == THROUGHPUT:
        jobs = 1  # several would no longer be one sequence
        total = min(total, 256)
    jobs = max(1, min(jobs, cpus))
    return QueueDepth(min(math.ceil(total / jobs), MAX_DEPTH), jobs)


def open_loop(check: Check, cpus: int) -> tuple[QueueDepth, dict[str, str]]:
    """The queue and fio's options for I/Os that arrive at the check's load at random times
    (Poisson), whatever the device does. So the latency includes the time that I/Os wait for
    others."""
    jobs = max(1, min(math.ceil(check.load / MAX_IOPS_PER_JOB), cpus))
    room = max(MIN_OPEN_DEPTH, math.ceil(OPEN_LOOP_FACTOR * check.load * check.promised / 1e9))
    rate = str(max(1, round(check.load / jobs)))
    depth = QueueDepth(math.ceil(min(room, MAX_OPEN_DEPTH) / jobs), jobs)
    return depth, {"rate_iops": rate, "rate_process": "poisson"}


def deeper_queue(depth: QueueDepth) -> QueueDepth | None:
    """A queue four times as deep; ``None`` if this one is deep enough for anything."""
    if depth.total * 4 > 4 * MAX_DEPTH:
        return None
    return QueueDepth(depth.iodepth * 4, depth.jobs)


def max_written_bytes(todo: Sequence[Check], seconds: float) -> float:
    """Bytes that the writing checks write at the promised speed, each for ``seconds``."""
    written_bytes = 0.0
    for check in todo:
        if check.writes and check.load:
            written_bytes += check.load * check.block_size * seconds
        elif check.writes and check.kind != LATENCY:
            written_bytes += check.target_iops * check.block_size * seconds
        elif check.writes:
            written_bytes += seconds * 1e9 / check.promised * check.block_size
    return written_bytes


def credits_used(
    figures: PromisedFigures, todo: Sequence[Check], kind: str, seconds: float
) -> float:
    """How many bucket tokens the checks use beyond those that the baseline refills."""
    base = figures.figure(kind, READ)
    if base is None or figures.bucket(kind) is None:
        return 0.0
    total = 0.0
    for check in todo:
        if check.kind == LATENCY:
            continue
        size = figures.volume.io_size
        ios_per_request = size.counted(check.block_size) if size else 1
        rate = check.target_iops * (ios_per_request if kind == IOPS else check.block_size)
        total += max(0.0, rate - base) * seconds
    return total
