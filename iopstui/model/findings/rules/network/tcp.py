"""Rules on the TCP connections to a target's servers: lost packets, a full window, one connection
that has more to send than it may."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as units
from iopstui.model.findings.evidence import ENOUGH_SECONDS, Evidence, recent_frames
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame
from iopstui.model.network.connections import Connection

LOST_PERCENT, LOST_SEGMENTS = 0.5, 5
"""Segments sent again, for 100 sent and in all: fewer are normal on a busy link."""
WINDOW_PERCENT = 50.0
"""Share of the time that the server's receive window holds the sender up."""
WAITING_BYTES = 64 << 10
"""So much waits in the send queue of a connection that may not send more."""


def lost_packets(evidence: Evidence) -> Finding | None:
    """Segments are sent again on the way to a server."""
    frames = _frames(evidence)
    each = [one for frame in frames for one in frame.connections or ()]
    lost = sum(one.retrans or 0 for one in each)
    sent = sum(one.segments or 0 for one in each)
    hit = [frame for frame in frames if any(one.retrans for one in frame.connections or ())]
    if lost < LOST_SEGMENTS or 100 * lost < LOST_PERCENT * sent or len(hit) < ENOUGH_SECONDS:
        return None
    rtt = [one.rtt for one in frames[-1].connections or () if one.rtt is not None]
    return Finding(
        "net-loss",
        f"{lost} of {units.number(sent)} TCP segments to {_servers(each)} were sent again in the "
        f"last {len(frames)} s ({100 * lost / sent:.1f} %): packets are lost or late (RTT "
        f"{units.milliseconds(max(rtt, default=None))})",
        "look at the link: ip -s link, ethtool -S, the switch's drops; a too large MTU loses "
        "only long packets",
    )


def full_window(evidence: Evidence) -> Finding | None:
    """A server does not read what was sent to it."""
    frames = _frames(evidence)
    for one in frames[-1].connections or () if frames else ():
        found = _same(one, frames)
        if found and all((each.rwnd_limited or 0.0) >= WINDOW_PERCENT for each in found):
            percent = min(each.rwnd_limited or 0.0 for each in found)
            return Finding(
                "net-window",
                f"{one.server} ({one.kind}) lets this machine send only when it has read: its "
                f"receive window held the connection up at least {percent:.0f} % of the time",
                "the server is the limit: its CPU, its disk, or its receive buffer (tcp_rmem)",
            )
    return None


def full_connection(evidence: Evidence) -> Finding | None:
    """All I/O of a mount goes over one connection that always has more to send."""
    frames = _frames(evidence)
    if not frames or any(len(frame.connections or ()) != 1 for frame in frames):
        return None
    each = [one for frame in frames for one in frame.connections or ()]
    one = each[-1]
    waits = all((found.unsent or 0) >= WAITING_BYTES for found in each)
    held = any((found.rwnd_limited or 0.0) >= WINDOW_PERCENT or found.retrans for found in each)
    if one.kind != "NFS" or not waits or held:
        return None
    least = min(found.unsent or 0 for found in each)
    return Finding(
        "net-full",
        f"the only connection to {one.server} is full: at least {units.size(least)} wait to be "
        f"sent, {units.size(one.sent_s)}/s are",
        "mount with nconnect=4, so that several connections share the work",
    )


def _frames(evidence: Evidence) -> Sequence[Frame]:
    frames = recent_frames(evidence)
    return frames if all(frame.connections for frame in frames) else []


def _same(one: Connection, frames: Sequence[Frame]) -> list[Connection]:
    """The connection in each of the frames; empty if it was not in one."""
    found = [
        each
        for frame in frames
        for each in frame.connections or ()
        if (each.server, each.local_port) == (one.server, one.local_port)
    ]
    return found if len(found) == len(frames) else []


def _servers(each: Sequence[Connection]) -> str:
    return ", ".join(sorted({one.server for one in each}))
