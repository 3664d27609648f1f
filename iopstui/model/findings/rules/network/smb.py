"""Rules on a target's SMB mount: a server that does not answer, lost connections, a slow server,
small requests. They need no job, except to know the size of its I/Os."""

from __future__ import annotations

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
from iopstui.model.findings.rules.network.nfs import (
    SLOW_RTT_MS,
    recent_shares,
    split_text,
    sum_shares,
)
from iopstui.model.metrics.frame import FINAL, Frame
from iopstui.model.metrics.shares import SMB_PROTOCOL

FEW_ANSWERS = 10
"""Fewer answers than this have no exact mean time, because times are counted in ticks."""


def unanswered_requests(evidence: Evidence) -> Finding | None:
    """During a run no server has answered a read or write for some seconds."""
    quiet = newest_frames_while(evidence, _is_unanswered)
    if len(quiet) < ENOUGH_SECONDS:
        return None
    seconds, last = sum(frame.seconds or 0.0 for frame in quiet), quiet[-1].share
    if last is None or last.smb is None:
        return None
    waiting = f"{last.smb.in_flight} requests wait"
    state = "the connection is lost" if last.smb.disconnected else waiting
    return Finding(
        "smb-stalled",
        f"no SMB read or write was answered for {seconds:.0f} s, {state}: the server is down or "
        "cannot be reached",
        advise("smb-stalled"),
        since=frame_start_s(quiet[0]),
        until=quiet[-1].t,
    )


def _is_unanswered(frame: Frame) -> bool:
    """Whether nothing was answered although something waits. Requests in flight are counted for all
    servers and shares; with several it is unknown whose they are."""
    share, completed = frame.share, frame.fio is not None and frame.fio.total.ios
    if completed or FINAL in frame.flags or share is None or share.smb is None:
        return False
    if share.data.bytes or share.smb.answers:
        return False
    alone = share.smb.sessions == 1 and (share.smb.answers is not None or share.smb.shares == 1)
    return (alone and bool(share.smb.in_flight)) or share.smb.disconnected > 0


def reconnects(evidence: Evidence) -> Finding | None:
    """Connections were lost in the last seconds."""
    frames = recent_frames(evidence)
    if not frames:
        return None
    # while a server is gone, and in the second in which it is back, fio may report nothing
    since, until = frame_start_s(frames[0]), evidence.frames[-1].t
    states = [
        frame.share.smb
        for frame in evidence.frames
        if frame.share is not None and frame.share.smb is not None and frame.t > since
    ]
    times = sum(state.reconnects or 0 for state in states)
    lost = states[-1].disconnected if states else 0
    if not times and not lost:
        return None
    # reconnects are counted for all servers together
    one_server = bool(lost) or all(state.sessions == 1 for state in states)
    subject = "the SMB server" if one_server else "an SMB server of this machine"
    now = ", and is not there now" if lost else ""
    how_often = f" {units.counted(times, 'time')}" if times else ""
    return Finding(
        "smb-reconnect",
        f"the connection to {subject} was lost{how_often} in the last {until - since:.0f} s"
        f"{now}: I/O in flight failed or was sent again",
        advise("smb-reconnect"),
        since=since,
        until=until,
    )


def slow_server(evidence: Evidence) -> Finding | None:
    """Answers to reads and writes take long in all of the last seconds."""
    shares = recent_shares(evidence, SMB_PROTOCOL)
    if not shares or any(
        data.latency is None or data.latency < SLOW_RTT_MS or (data.answers or 0) < FEW_ANSWERS
        for data in (share.data for share in shares)
    ):
        return None
    total = sum_shares(shares, data=True)
    last = shares[-1].smb
    of = "this share" if last is not None and last.shares == 1 else "all shares of the connection"
    slow = sum(share.smb.slow or 0 for share in shares if share.smb is not None)
    more = f", {units.counted(slow, 'answer')} took more than 1 s" if slow else ""
    return Finding(
        "smb-server",
        f"READ and WRITE take {units.milliseconds(total.latency)} from the request to its end, of "
        f"{of}{more}: they wait for network and server, or to be sent",
        advise("smb-server"),
    )


def small_requests(evidence: Evidence) -> Finding | None:
    """Each direct I/O of the job is split into several requests."""
    split = split_text(evidence, recent_shares(evidence, SMB_PROTOCOL), "requests")
    if split is None:
        return None
    return Finding("smb-rsize", split, advise("smb-rsize"))
