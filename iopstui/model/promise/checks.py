"""Measurements for each promised figure, with the queue depth and writes they need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.model.volumes.promised import VOLUME_BW, VOLUME_IOPS, Limit, PromisedFigures
from iopstui.model.volumes.volume import IOPS, READ, THROUGHPUT, WRITE

LATENCY = "latency"
RW = {(IOPS, READ): "randread", (IOPS, WRITE): "randwrite",
      (THROUGHPUT, READ): "read", (THROUGHPUT, WRITE): "write"}  # fmt: skip
DEPTH_FACTOR = 2.0
"""A queue of twice what Little's law asks for: latencies vary."""
SHALLOWEST, DEEPEST = 4, 1024
DEEPEST_JOB = 128
MAX_IOPS_PER_JOB = 100_000
"""I/Os per second that one fio job is asked for, at most."""


@dataclass(frozen=True, slots=True)
class Check:
    """A figure to test. ``promised`` and ``burst`` are I/Os per second of ``block_size``, of
    ``kind`` LATENCY ns. ``limits`` are all that bind it, the tightest first, ``burst_limits`` the
    same while a burst lasts."""

    kind: str
    direction: str
    rw: str
    block_size: int
    promised: float
    burst: float | None = None
    limits: tuple[Limit, ...] = ()
    burst_limits: tuple[Limit, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether it writes to the target."""
        return self.direction == WRITE

    @property
    def target_iops(self) -> float:
        """I/Os per second that the queue has to be deep enough for."""
        limits = self.burst_limits if self.burst is not None else self.limits
        return min(self.burst or self.promised, limits[0].rate if limits else math.inf)


@dataclass(frozen=True, slots=True)
class Depth:
    """``iodepth`` of each of ``jobs``."""

    iodepth: int
    jobs: int

    @property
    def total(self) -> int:
        """I/Os in flight."""
        return self.iodepth * self.jobs


SINGLE = Depth(1, 1)


def checks(found: PromisedFigures) -> tuple[Check, ...]:
    """Return a check for each published figure. Single I/Os come first, for they use no credits to
    speak of, then random ones, whose bucket counts I/Os, then those whose bucket counts bytes."""
    volume = found.volume
    made = []
    if volume.latency is not None:
        one = volume.latency
        direction = WRITE if one.rw == "randwrite" else READ
        made.append(Check(LATENCY, direction, one.rw, one.block_size, one.mean_ns))
    for kind, size in ((IOPS, volume.random_size), (THROUGHPUT, volume.sequential_size)):
        for direction in (READ, WRITE):
            if found.figure(kind, direction) is not None:
                made.append(_rate(found, kind, direction, size))
    return tuple(made)


def _rate(found: PromisedFigures, kind: str, direction: str, size: int) -> Check:
    limits = tuple(found.limits(direction, size))
    burst_limits = tuple(found.limits(direction, size, burst=True))
    base = _of_the_volume(limits)
    burst = _of_the_volume(burst_limits)
    return Check(
        kind, direction, RW[kind, direction], size, base,
        burst if burst > base else None, limits, burst_limits,
    )  # fmt: skip


def _of_the_volume(limits: Sequence[Limit]) -> float:
    """I/Os of this size that the volume alone allows: its IOPS bound its MB/s, too."""
    return min(one.rate for one in limits if one.name in (VOLUME_IOPS, VOLUME_BW))


def depth_for(check: Check, latency_ns: float | None, cpus: int) -> Depth:
    """Deep enough by Little's law (N = X x R) at the latency of a single I/O; without one the
    queue of a common job, 32."""
    wanted = 32.0 if latency_ns is None else DEPTH_FACTOR * check.target_iops * latency_ns / 1e9
    total = min(max(math.ceil(wanted), SHALLOWEST), DEEPEST)
    jobs = max(math.ceil(total / DEEPEST_JOB), math.ceil(check.target_iops / MAX_IOPS_PER_JOB), 1)
    if check.kind == THROUGHPUT:
        jobs = 1  # several would no longer be one sequence
        total = min(total, 256)
    jobs = max(1, min(jobs, cpus))
    return Depth(min(math.ceil(total / jobs), DEEPEST), jobs)


def deeper_queue(depth: Depth) -> Depth | None:
    """Four times as deep; ``None`` where it is deep enough for anything."""
    if depth.total * 4 > 4 * DEEPEST:
        return None
    return Depth(depth.iodepth * 4, depth.jobs)


def max_written_bytes(todo: Sequence[Check], seconds: float) -> float:
    """Bytes that the writing checks write at the promised speed, each for ``seconds``."""
    found = 0.0
    for one in todo:
        if one.writes and one.kind != LATENCY:
            found += one.target_iops * one.block_size * seconds
        elif one.writes:
            found += seconds * 1e9 / one.promised * one.block_size
    return found


def credits_used(found: PromisedFigures, todo: Sequence[Check], kind: str, seconds: float) -> float:
    """Bucket tokens that the checks use beyond those refilled at the baseline."""
    base = found.figure(kind, READ)
    if base is None or found.bucket(kind) is None:
        return 0.0
    total = 0.0
    for one in todo:
        if one.kind == LATENCY:
            continue
        size = found.volume.io_size
        counted = size.counted(one.block_size) if size else 1
        rate = one.target_iops * (counted if kind == IOPS else one.block_size)
        total += max(0.0, rate - base) * seconds
    return total
