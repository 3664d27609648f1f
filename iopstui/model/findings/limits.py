"""Whether a cgroup's limit on a disk binds (it is reached, and no layer above the device holds the
rate near it), and whether the tags of the hardware queues are used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.model.block.device import BlockDevice, Hctx
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.conditions import (
    READ_BYTES,
    READ_IOPS,
    WRITE_BYTES,
    WRITE_IOPS,
    IoLimit,
)
from iopstui.model.findings.cpu_accounts import job_cpus
from iopstui.model.findings.evidence import Evidence, device_state, recent_frames
from iopstui.model.findings.figures import device_figures, devices_above
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import fmean, median

NEAR_LIMIT = 0.85
NEAR_LIMIT_EACH_SECOND = 0.6
BINDING_SHARE, BINDING_SECONDS = 0.93, 5
"""A limit below a layer binds if the median of the last seconds reaches this share of it: the
kernel lets 97 of 100 through."""
DECIDING_SECONDS = 8
"""A limit that was reached can be ruled out only after this many seconds."""
OVERFULL = 1.05
"""If on average there are this many times more requests than these queues hold, other queues are in
use, too."""
PASSING_LAYERS = ("LVM", "dm-multipath")
"""Layers that hold no I/O themselves."""

ReachedLimit = tuple[str, IoLimit, float]
"""A disk, the reached cgroup limit on it, and the disk's rate in the unit of the limit."""


def limit_reached(frames: Sequence[Frame], evidence: Evidence) -> ReachedLimit | None:
    """The cgroup limit that these frames reach. If there are several, it is the limit that the I/Os
    are closest to: that one binds."""
    reached: list[tuple[float, ReachedLimit]] = []
    for name, state in evidence.conditions.devices.items():
        disks = [frame.disks[name] for frame in frames if name in frame.disks]
        for limit in state.limits if disks else ():
            rates = [_limited_rate(disk, limit.kind) for disk in disks]
            measured = [rate for rate in rates if rate is not None]
            # a stall of the machine moves I/Os from one second to the next
            if len(measured) < len(rates) or min(measured) < NEAR_LIMIT_EACH_SECOND * limit.value:
                continue
            if (rate := fmean(measured)) >= NEAR_LIMIT * limit.value:
                reached.append((rate / limit.value, (name, limit, rate)))
    # a partition has its disk's limits and no larger figures: after rounding they are equal, and
    # the first one wins
    return max(reached, key=lambda entry: round(entry[0], 3), default=(0.0, None))[1]


def binding_limit(frames: Sequence[Frame], evidence: Evidence) -> ReachedLimit | None:
    """``limit_reached`` if that limit binds. A layer above may hold the rate near the limit as well
    (dm-delay); then most seconds must be at the limit."""
    limit = limit_reached(frames, evidence)
    if limit is None:
        return None
    name, io_limit, _ = limit
    above = devices_above(name, evidence)
    layers = (device.layer for device in evidence.tree if device.name in above)
    if all(layer in (None, *PASSING_LAYERS) for layer in layers):
        return limit
    disks = [f.disks[name] for f in evidence.measured[-BINDING_SECONDS:] if name in f.disks]
    rates = [_limited_rate(disk, io_limit.kind) or 0.0 for disk in disks]
    return limit if median(rates) >= BINDING_SHARE * io_limit.value else None


def no_limit_binds(frames: Sequence[Frame], evidence: Evidence) -> bool:
    """Whether no limit holds these I/Os back, so that a layer may be the cause."""
    if limit_reached(frames, evidence) is None:
        return True
    decided = len(evidence.measured) >= DECIDING_SECONDS
    return decided and binding_limit(frames, evidence) is None


def _limited_rate(disk: DiskRates, kind: str) -> float | None:
    return {
        READ_IOPS: disk.r_s, WRITE_IOPS: disk.w_s,
        READ_BYTES: disk.r_bytes_s, WRITE_BYTES: disk.w_bytes_s,
    }.get(kind)  # fmt: skip


# How many requests fit into the queues that jobs reach. Other requests wait above the queues or in
# a scheduler.


def reached_queues(device: BlockDevice, frames: Sequence[Frame]) -> list[Hctx]:
    """The hardware queues of the jobs' CPUs; all of them if these are not known."""
    cpus = job_cpus(frames)
    return [hctx for hctx in device.hctxs if cpus & set(hctx.cpus)] or list(device.hctxs)


@dataclass(frozen=True, slots=True)
class ReachedTags:
    """``capacity``: how many requests the reached queues hold together; ``text`` says this in
    words."""

    capacity: int
    queue_count: int
    text: str


def reached_tags(device: BlockDevice, frames: Sequence[Frame]) -> ReachedTags | None:
    """The queues of a device that the jobs reach; ``None`` if the device has no queues, or hides
    their sizes. If there are more requests than the queues of the jobs' CPUs hold, the jobs reach
    other queues, too."""
    nr_requests = device.queue.nr_requests if device.queue is not None else None
    if nr_requests is None or not device.hctxs:
        return None
    plain = device.queue is not None and device.queue.scheduler in (None, "none")
    rooms = {
        hctx: min(nr_requests, hctx.nr_tags or nr_requests) if plain else nr_requests
        for hctx in device.hctxs
    }
    reached, figures = reached_queues(device, frames), device_figures(frames, [device])
    held = (figures.aqu_sz or 0.0) if figures is not None else 0.0
    if held > OVERFULL * sum(rooms[hctx] for hctx in reached):
        reached = [*device.hctxs]
    capacity = sum(rooms[hctx] for hctx in reached)
    hold = f"{'hold' if len(reached) > 1 else 'holds'} {capacity} requests (nr_requests)"
    if len(device.hctxs) == 1:
        return ReachedTags(capacity, 1, f"{device.name} has one queue, which {hold}")
    text = (
        f"its CPUs reach {len(reached)} of {device.name}'s {len(device.hctxs)} queues, which {hold}"
    )
    return ReachedTags(capacity, len(reached), text)


def nearly_full(frames: Sequence[Frame], evidence: Evidence) -> bool:
    """Whether the queues that jobs reach are half full or more: the rest may wait for tags."""
    device_io = device_figures(frames, evidence.devices)
    rooms = [reached_tags(device, frames) for device in evidence.devices]
    capacity = sum(tags.capacity for tags in rooms if tags is not None)
    return device_io is not None and 0 < capacity <= 2 * (device_io.aqu_sz or 0.0)


def room_below(device: BlockDevice, evidence: Evidence) -> int | None:
    """How many requests the driver takes at once; the others wait in the scheduler."""
    reached = reached_queues(device, recent_frames(evidence))
    tags = [hctx.nr_tags for hctx in reached if hctx.nr_tags is not None]
    if not reached or len(tags) < len(reached):
        return None
    depth = device_state(device, evidence).queue_depth
    return sum(tags) if depth is None else min(sum(tags), depth)
