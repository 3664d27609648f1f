"""Places of I/Os in flight on an NFS mount: above it, in the client's RPC queue, or sent.

A mount is like a device whose requests are its READs and WRITEs (waits.py): it holds as many as
their execution times fill the interval. The kernel counts an RPC at its end, so the RPCs that wait
for a server that is gone are in no count until it is back.
"""

from __future__ import annotations

from dataclasses import replace

from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.shares.share import Share
from iopstui.model.metrics.waits import JobLoad, Stack, Waits, place_waits

RPC_QUEUE, SENT = "RPC queue", "network+server"
_MOUNT = "mount"


def place_on_share(share: Share, job: JobLoad | None = None) -> Waits | None:
    """Compute the places of an interval's I/Os; ``None`` if nothing is known of them."""
    waits = place_waits(Stack((_MOUNT,)), {_MOUNT: _as_device(share)}, _without_counters(job))
    if waits is None or _MOUNT not in waits.layers:
        return waits
    inside = waits.layers[_MOUNT]
    exe = share.data.exe_ms or 0
    sent = inside * min(1.0, (share.data.rtt_ms or 0) / exe) if exe else 0.0
    return replace(waits, layers={RPC_QUEUE: inside - sent, SENT: sent})


def _without_counters(job: JobLoad | None) -> JobLoad | None:
    """What a process sends to a share is counted differently from kernel to kernel, if it is
    direct; then all of it is sent in any case."""
    if job is None:
        return None
    directions = (replace(d, sent_s=None) if d.direct else d for d in job.directions)
    return replace(job, directions=tuple(directions))


def _as_device(share: Share) -> DiskRates:
    """The mount's READs and WRITEs in iostat's terms."""
    read, write, exe_ms = share.read, share.write, share.data.exe_ms
    return DiskRates(
        share.seconds,
        reads=read.ops, writes=write.ops, discards=0,
        read_bytes=read.bytes or 0, write_bytes=write.bytes or 0, discard_bytes=0,
        read_ms=read.exe_ms, write_ms=write.exe_ms, weighted_ms=exe_ms or 0,
    )  # fmt: skip
