"""Rules on the TCP connections to a target's servers: lost packets, a full receive window, a
connection that always has more to send."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as units
from iopstui.model.findings.advice import advise
from iopstui.model.findings.evidence import ENOUGH_SECONDS, Evidence, recent_frames
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import Frame
from iopstui.model.network import Connection

LOST_PERCENT, LOST_SEGMENTS = 0.5, 5
"""Least retransmitted segments, per 100 sent and in all: fewer are normal on a busy link."""
WINDOW_PERCENT = 50.0
"""Percent of the time that the server's receive window limits the sender."""
WAITING_BYTES = 64 << 10
"""Least bytes in the send queue of a connection that counts as full."""


def lost_packets(evidence: Evidence) -> Finding | None:
    """Segments are sent again on the way to a server."""
    frames = _recent_frames(evidence)
    connections = [connection for frame in frames for connection in frame.connections or ()]
    lost = sum(connection.retrans or 0 for connection in connections)
    sent = sum(connection.segments or 0 for connection in connections)
    hit = [
        frame
        for frame in frames
        if any(connection.retrans for connection in frame.connections or ())
    ]
    if lost < LOST_SEGMENTS or 100 * lost < LOST_PERCENT * sent or len(hit) < ENOUGH_SECONDS:
        return None
    rtt = [
        connection.rtt for connection in frames[-1].connections or () if connection.rtt is not None
    ]
    return Finding(
        "net-loss",
        f"{lost} of {units.number(sent)} TCP segments to {_server_names(connections)} were sent "
        f"again in the last {len(frames)} s ({100 * lost / sent:.1f} %): packets are lost or late "
        f"(RTT {units.milliseconds(max(rtt, default=None))})",
        advise("net-loss"),
    )


def full_window(evidence: Evidence) -> Finding | None:
    """A server's receive window is full."""
    frames = _recent_frames(evidence)
    for connection in frames[-1].connections or () if frames else ():
        history = _connection_history(connection, frames)
        if history and all((reading.rwnd_limited or 0.0) >= WINDOW_PERCENT for reading in history):
            percent = min(reading.rwnd_limited or 0.0 for reading in history)
            return Finding(
                "net-window",
                f"{connection.server} ({connection.kind}) has no room for more: its full "
                f"receive window stopped the sending at least {percent:.0f} % of the time",
                advise("net-window"),
            )
    return None


def full_connection(evidence: Evidence) -> Finding | None:
    """All I/O of a mount goes over one connection that always has more to send."""
    frames = _recent_frames(evidence)
    if not frames or any(len(frame.connections or ()) != 1 for frame in frames):
        return None
    history = [connection for frame in frames for connection in frame.connections or ()]
    connection = history[-1]
    waits = all((reading.unsent or 0) >= WAITING_BYTES for reading in history)
    limited = any(
        (reading.rwnd_limited or 0.0) >= WINDOW_PERCENT or reading.retrans for reading in history
    )
    if connection.kind != "NFS" or not waits or limited:
        return None
    least = min(reading.unsent or 0 for reading in history)
    return Finding(
        "net-full",
        f"the only connection to {connection.server} is full: at least {units.size(least)} wait "
        f"to be sent, {units.size(connection.sent_s)}/s are",
        advise("nconnect"),
    )


def _recent_frames(evidence: Evidence) -> Sequence[Frame]:
    frames = recent_frames(evidence)
    return frames if all(frame.connections for frame in frames) else []


def _connection_history(connection: Connection, frames: Sequence[Frame]) -> list[Connection]:
    """The readings of the connection, one for each frame; empty if a frame lacks it."""
    history = [
        reading
        for frame in frames
        for reading in frame.connections or ()
        if (reading.server, reading.local_port) == (connection.server, connection.local_port)
    ]
    return history if len(history) == len(frames) else []


def _server_names(connections: Sequence[Connection]) -> str:
    return ", ".join(sorted({connection.server for connection in connections}))
