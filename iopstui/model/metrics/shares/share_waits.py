"""Places of I/Os in flight on an NFS mount: above it, in the client's RPC queue, or sent.

A mount is like a device whose requests are its READs and WRITEs (waits.py): it holds as many as
their execution times fill the interval. The kernel counts an RPC at its end, so the RPCs that wait
for a server that is gone are in no count until it is back.
"""

from __future__ import annotations

from dataclasses import replace

from iopstui.model.metrics.shares.share import Share
from iopstui.model.metrics.waits import JobLoad, Stack, Waits, place_waits
from iopstui.model.rates import DiskRates

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
        r_s=read.ops_s, w_s=write.ops_s, d_s=0.0, f_s=None,
        r_bytes_s=(read.bytes or 0) / share.seconds, w_bytes_s=(write.bytes or 0) / share.seconds,
        d_bytes_s=0.0,
        rrqm_s=None, wrqm_s=None, drqm_s=None,
        r_await=read.exe, w_await=write.exe, d_await=None, f_await=None,
        rareq_size=None, wareq_size=None, dareq_size=None,
        aqu_sz=(exe_ms or 0) / 1e3 / share.seconds, util=None, in_flight=None,
    )  # fmt: skip
