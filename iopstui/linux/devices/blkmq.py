"""A block device's request queue: limits (queue/) and hardware queues (mq/)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from iopstui.linux.sysattr import (
    PAGE,
    decode,
    list_names,
    parse_cpu_list,
    read_bytes,
    read_count,
    read_flag,
    read_int,
    read_text,
)
from iopstui.model.block.device import Hctx, QueueLimits

_CPU_DIRECTORY = re.compile(r"cpu([0-9]+)")


def parse_scheduler(text: str) -> tuple[str | None, tuple[str, ...]]:
    """(current, all) of "[none] mq-deadline"; a lone word without brackets is current."""
    words = text.split()
    names = tuple(word.strip("[]") for word in words)
    current = next((w[1:-1] for w in words if w.startswith("[") and w.endswith("]")), None)
    if current is None and len(names) == 1:
        current = names[0]
    return current or None, tuple(name for name in names if name)


def read_queue(device: Path, *, request_based: bool = True) -> QueueLimits | None:
    """The limits of a whole disk, None if it has no queue directory.

    Linux 6.1 shows scheduler, rq_affinity and nr_requests for bio-based devices too, where
    they mean nothing and take any value: with ``request_based`` False they are None.
    """
    queue = f"{device}/queue"
    if not os.path.isdir(queue):
        return None
    scheduler, schedulers = parse_scheduler(read_text(f"{queue}/scheduler") or "")
    return QueueLimits(
        scheduler=scheduler if request_based else None,
        schedulers=schedulers if request_based else (),
        rq_affinity=read_count(f"{queue}/rq_affinity") if request_based else None,
        nr_requests=read_count(f"{queue}/nr_requests") if request_based else None,
        nomerges=read_count(f"{queue}/nomerges"),
        rotational=read_flag(f"{queue}/rotational"),
        write_cache=read_text(f"{queue}/write_cache"),
        logical_block_size=read_count(f"{queue}/logical_block_size"),
        physical_block_size=read_count(f"{queue}/physical_block_size"),
        max_sectors_kb=read_count(f"{queue}/max_sectors_kb"),
        read_ahead_kb=read_count(f"{queue}/read_ahead_kb"),
        wbt_lat_usec=read_int(f"{queue}/wbt_lat_usec"),
        iostats=read_flag(f"{queue}/iostats"),
        discard_max_bytes=read_count(f"{queue}/discard_max_bytes"),
        zoned=read_text(f"{queue}/zoned"),
    )


def read_hctxs(device: Path) -> tuple[Hctx, ...]:
    """The hardware queues of a whole disk in numerical order; empty for bio-based devices."""
    indices = sorted(int(n) for n in list_names(f"{device}/mq") if n.isascii() and n.isdigit())
    return tuple(_read_hctx(f"{device}/mq/{index}", index) for index in indices)


def _read_hctx(directory: str, index: int) -> Hctx:
    return Hctx(
        index=index,
        cpus=_read_cpus(directory),
        nr_tags=read_count(f"{directory}/nr_tags"),
        nr_reserved_tags=read_count(f"{directory}/nr_reserved_tags"),
    )


def _read_cpus(directory: str) -> tuple[int, ...]:
    """``cpu_list``, or the cpuN directories where it is missing or cut off at a page's end."""
    data = read_bytes(f"{directory}/cpu_list")
    if data is not None and data.strip() and len(data) < PAGE - 1:
        return parse_cpu_list(decode(data))
    matches = (_CPU_DIRECTORY.fullmatch(name) for name in list_names(directory))
    numbers = tuple(sorted(int(match[1]) for match in matches if match))
    if numbers or data is None:
        return numbers
    # the number at the cut may have lost digits
    complete, _, _ = decode(data).rpartition(",")
    return parse_cpu_list(complete if len(data) >= PAGE - 1 else decode(data))
