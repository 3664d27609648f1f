"""Rules on a target's NFS mount: retransmissions, a slow server, a full client, small requests,
attribute storms. They need no job, except to know the size of its I/Os."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as units
from iopstui.model.findings.advice import advise
from iopstui.model.findings.evidence import (
    ENOUGH_SECONDS,
    Evidence,
    frame_start_s,
    newest_frames_while,
    recent_frames,
)
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import FINAL, Frame
from iopstui.model.metrics.shares import NFS_PROTOCOL, OperationRates, Share, sum_operations
from iopstui.model.sizes import KIB

SLOW_RTT_MS = 20.0
"""Mean RTT in ms that counts as slow: in a building's own network, a server with SSDs or a write
cache answers faster."""
MIN_QUEUED_RPCS = 1.0
"""At least this many RPCs wait in the client on average."""
MIN_REQUESTS_PER_IO = 2
"""An I/O that takes at least this many RPCs is split."""
MANY_ATTRIBUTES, ATTRIBUTES_PER_IO = 100.0, 5.0
"""Least attribute operations per second, and least per READ and WRITE."""
ATTRIBUTE_OPERATIONS = ("getattr", "access", "lookup")


def unanswered_requests(evidence: Evidence) -> Finding | None:
    """During a run no RPC has finished for some seconds."""
    quiet = newest_frames_while(evidence, _is_unanswered)
    seconds = sum(frame.seconds or 0.0 for frame in quiet)
    waiting = quiet[-1].share.unanswered if quiet and quiet[-1].share else 0
    if len(quiet) < ENOUGH_SECONDS or waiting <= 0:
        return None
    return Finding(
        "nfs-stalled",
        f"no NFS request has finished for {seconds:.0f} s, {waiting} wait for an answer: the "
        "server is down or cannot be reached",
        advise("nfs-stalled"),
        since=frame_start_s(quiet[0]),
        until=quiet[-1].t,
    )


def _is_unanswered(frame: Frame) -> bool:
    completed = frame.fio is not None and frame.fio.total.ios
    share = frame.share
    if completed or FINAL in frame.flags:
        return False
    return share is not None and share.smb is None and not share.total.ops


def retransmissions(evidence: Evidence) -> Finding | None:
    """RPCs were sent again in the last seconds."""
    frames = recent_frames(evidence)
    if not frames:
        return None
    # RPCs are counted when the server is back, often in a frame that recent_frames leaves out
    since = frame_start_s(frames[0])
    shares = [
        frame.share for frame in evidence.frames if frame.share is not None and frame.t > since
    ]
    total = sum_shares(shares)
    if not total.retransmissions:
        return None
    return Finding(
        "nfs-retrans",
        f"{total.retransmissions} of {units.number(total.ops)} NFS requests were sent again in the "
        f"last {frames[-1].t - since:.0f} s: the server did not answer in time, or the "
        "connection was lost",
        advise("nfs-retrans"),
    )


def slow_server(evidence: Evidence) -> Finding | None:
    """The network and the server take long for each answer, but this client does not."""
    shares = recent_shares(evidence)
    rtts = [share.data.rtt for share in shares]
    if not shares or any(rtt is None or rtt < SLOW_RTT_MS for rtt in rtts):
        return None
    total = sum_shares(shares, data=True)
    if total.rtt is None or total.exe is None or total.rtt < total.exe / 2:
        return None
    return Finding(
        "nfs-server",
        f"READ and WRITE wait {units.milliseconds(total.rtt)} for network and server (RTT) of "
        f"{units.milliseconds(total.exe)} in all (exe): this client is not the limit",
        advise("nfs-server"),
    )


def client_queue(evidence: Evidence) -> Finding | None:
    """RPCs spend more time in this client than in the network and the server."""
    shares = recent_shares(evidence)
    if not shares or not all(map(_has_client_queue, shares)):
        return None
    total = sum_shares(shares, data=True)
    waiting = total.waiting_ms / 1e3 / total.seconds
    count = len(shares[-1].connections)
    connections = f"{count} connection" + ("s" if count > 1 else "")
    more = "mount with nconnect=4" if count == 1 else "raise nconnect (16 at most)"
    return Finding(
        "nfs-queue",
        f"{units.number(waiting)} RPCs wait in this client before they are sent over "
        f"{connections}: READ and WRITE take {units.milliseconds(total.exe)} (exe), of which "
        f"network and server take {units.milliseconds(total.rtt)} (RTT)",
        advise("nfs-queue", more),
    )


def small_requests(evidence: Evidence) -> Finding | None:
    """Each direct I/O of the job is split into several RPCs."""
    split = split_text(evidence, recent_shares(evidence), "RPCs")
    if split is None:
        return None
    return Finding("nfs-rsize", split, advise("nfs-rsize"))


def split_text(evidence: Evidence, shares: Sequence[Share], requests: str) -> str | None:
    """How many ``requests`` of a share each direct I/O of the job is split into, in words; ``None``
    if it is not split."""
    size = evidence.shape.block_size
    if not shares or not size or evidence.shape.direct is not True:
        return None
    total = sum_shares(shares, data=True)
    if (
        total.kb_op is None
        or total.ops < len(shares)
        or size < MIN_REQUESTS_PER_IO * total.kb_op * KIB
    ):
        return None
    return (
        f"each I/O of {units.size(size)} is split into {size / total.kb_op / KIB:.0f} {requests} "
        f"of {units.size(round(total.kb_op * KIB))} on average (mount options rsize and wsize)"
    )


def attribute_storm(evidence: Evidence) -> Finding | None:
    """Most requests ask for attributes."""
    shares = recent_shares(evidence)
    attributes_by_share = [
        sum_operations(_attribute_rates(share), share.seconds) for share in shares
    ]
    if not shares or not all(
        (attributes.ops_s or 0.0) >= MANY_ATTRIBUTES
        and attributes.ops >= ATTRIBUTES_PER_IO * share.data.ops
        for attributes, share in zip(attributes_by_share, shares, strict=True)
    ):
        return None
    seconds = sum(share.seconds for share in shares)
    attributes, data = sum_operations(attributes_by_share, seconds), sum_shares(shares, data=True)
    return Finding(
        "nfs-attributes",
        f"{units.number(attributes.ops_s)} requests/s ask for attributes (GETATTR, ACCESS, "
        f"LOOKUP), {units.number(data.ops_s)}/s read or write data",
        advise("nfs-attributes"),
    )


def recent_shares(evidence: Evidence, protocol: str = NFS_PROTOCOL) -> list[Share]:
    """The figures of the mounts in each of the last seconds; empty if a second lacks them."""
    shares = [frame.share for frame in recent_frames(evidence)]
    measured = [share for share in shares if share is not None and share.protocol == protocol]
    return measured if len(measured) == len(shares) else []


def sum_shares(shares: Sequence[Share], data: bool = False) -> OperationRates:
    """All operations of these intervals together, or READ and WRITE alone (``data``)."""
    rates = [share.data if data else share.total for share in shares]
    return sum_operations(rates, sum(share.seconds for share in shares))


def _attribute_rates(share: Share) -> list[OperationRates]:
    return [share.operations[name] for name in ATTRIBUTE_OPERATIONS if name in share.operations]


def _has_client_queue(share: Share) -> bool:
    data = share.data
    waiting_ms = data.waiting_ms
    return waiting_ms > (data.rtt_ms or 0) and waiting_ms >= MIN_QUEUED_RPCS * 1e3 * share.seconds
