"""Maps with a slot for each request of a disk that may be in flight."""

from __future__ import annotations

import contextlib

from iopstui.linux.probe import bpf
from iopstui.linux.probe.counting import InFlightMap
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_int

# for a disk whose queues can't be read (a hidden path): as many as any driver has
MAX_TAGS = 1 << 10
MAX_SLOTS = 1 << 17


def tags_and_queues(dev: int, roots: Roots, with_scheduler: bool = False) -> tuple[int, int]:
    """Tags of each hardware queue of the disk, and the number of its queues. ``with_scheduler``:
    include the I/O scheduler's tags, which are separate."""
    disk = roots.sys / f"dev/block/{dev >> 20}:{dev & 0xFFFFF}"
    with contextlib.suppress(OSError):
        tags = [read_int(queue / "nr_tags") or 0 for queue in (disk / "mq").iterdir()]
        if any(tags):
            scheduler_tags = read_int(disk / "queue/nr_requests") or 0 if with_scheduler else 0
            return max(*tags, scheduler_tags), len(tags)
    return MAX_TAGS, MAX_SLOTS // MAX_TAGS


def new_in_flight_map(dev: int, tags: int, queues: int, bits: int, name: str) -> InFlightMap:
    """A new map of slots of 2 to the power of ``bits`` bytes. The caller closes its descriptor.
    OSError if the kernel refuses."""
    slots = min(1 << (tags * queues - 1).bit_length(), MAX_SLOTS)
    return InFlightMap(dev, bpf.new_value_map(slots << bits, name), tags, slots - 1, bits)
