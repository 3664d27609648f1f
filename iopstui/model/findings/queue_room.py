"""How many requests fit into the queues that jobs reach: the rest waits above or in a scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.model.block.device import BlockDevice, Hctx
from iopstui.model.findings.cpu_accounts import job_cpus
from iopstui.model.findings.evidence import Evidence, device_state, recent_frames
from iopstui.model.findings.figures import device_figures
from iopstui.model.metrics.frame import Frame


def reached_queues(device: BlockDevice, frames: Sequence[Frame]) -> list[Hctx]:
    """The hardware queues of the jobs' CPUs; all of them if these are not known."""
    cpus = job_cpus(frames)
    return [hctx for hctx in device.hctxs if cpus & set(hctx.cpus)] or list(device.hctxs)


@dataclass(frozen=True, slots=True)
class ReachedTags:
    """``capacity``: requests that the reached queues hold together; ``text`` describes both."""

    capacity: int
    queue_count: int
    text: str


def reached_tags(device: BlockDevice, frames: Sequence[Frame]) -> ReachedTags | None:
    """The queues of a device that the jobs reach; ``None`` if it has none, or hides their sizes."""
    nr_requests = device.queue.nr_requests if device.queue is not None else None
    if nr_requests is None or not device.hctxs:
        return None
    reached = reached_queues(device, frames)
    plain = device.queue is not None and device.queue.scheduler in (None, "none")
    capacity = sum(
        min(nr_requests, hctx.nr_tags or nr_requests) if plain else nr_requests for hctx in reached
    )
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
    """How many requests the driver takes at once: what is beyond waits in the scheduler."""
    reached = reached_queues(device, recent_frames(evidence))
    tags = [hctx.nr_tags for hctx in reached if hctx.nr_tags is not None]
    if not reached or len(tags) < len(reached):
        return None
    depth = device_state(device, evidence).queue_depth
    return sum(tags) if depth is None else min(sum(tags), depth)
