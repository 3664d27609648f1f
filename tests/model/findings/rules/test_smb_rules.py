"""Rules on an SMB mount."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evidence_frames import fio, fired, seconds

from iopstui.model.findings.diagnosis import diagnose
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.findings.rules.network import smb as smb_rules
from iopstui.model.metrics.shares import OperationRates, Share, SmbClient

NOTHING = (None, None, None, None)
QUIET = OperationRates(1.0, 1000, 1000 * 65536, *NOTHING, 0, answers=1000, answers_ms=2000.0)
"""1,000 operations/s of 64 KiB; 2 ms each."""
CLIENT = SmbClient(1, 4, 0, 0, 1, 1000, 0, 4.0)
SHARE = Share(1.0, 1000, None, operations={"read": QUIET}, unanswered=4, smb=CLIENT)
SILENT = replace(SHARE, operations={}, smb=replace(CLIENT, answers=0))


def on_smb(*shares: Share | None, shape: JobShape | None = None, step: int = 0) -> Evidence:
    frames = seconds(len(shares), step=step, disks={})
    each = [replace(frame, share=one) for frame, one in zip(frames, shares, strict=True)]
    return Evidence(tuple(each), shape=shape or JobShape())


def client(share: Share, **changed: Any) -> Share:
    assert share.smb is not None
    return replace(share, smb=replace(share.smb, **changed))


def test_a_quiet_mount_has_no_finding() -> None:
    assert diagnose(on_smb(SHARE, SHARE, SHARE)) == []
    assert diagnose(on_smb(SILENT, SILENT, SILENT)) == [], "no job runs"


def hanging(share: Share, count: int = 5, ios: int = 0, step: int = 1) -> Evidence:
    done = fio(ios) if ios else None
    frames = seconds(count, interval=done, step=step, disks={})
    return Evidence(tuple(replace(one, share=share) for one in frames))


def test_a_server_that_does_not_answer() -> None:
    found = fired(smb_rules.unanswered_requests(hanging(SILENT)))
    assert found.text.startswith("no SMB read or write was answered for 5 s, 4 requests wait")
    assert (found.since, found.until) == (0.0, 5.0)
    lost = fired(
        smb_rules.unanswered_requests(hanging(client(SILENT, disconnected=1, in_flight=0)))
    )
    assert "the connection is lost" in lost.text


def test_what_is_no_silent_server() -> None:
    for share in (
        client(SILENT, in_flight=0),
        client(SILENT, sessions=2),
        client(SILENT, answers=1),
        client(SILENT, answers=None, shares=2),
        SHARE,
    ):
        assert smb_rules.unanswered_requests(hanging(share)) is None, share
    assert smb_rules.unanswered_requests(hanging(client(SILENT, answers=None))) is not None
    assert smb_rules.unanswered_requests(hanging(SILENT, 2)) is None
    assert smb_rules.unanswered_requests(hanging(SILENT, ios=1)) is None, "the page cache answers"
    assert smb_rules.unanswered_requests(hanging(SILENT, step=0)) is None, "no job runs"


def test_lost_connections() -> None:
    again = client(SHARE, reconnects=2)
    found = fired(smb_rules.reconnects(on_smb(SHARE, again, SHARE)))
    assert found.text.startswith("the connection to the SMB server was lost 2 times in the last 3")
    assert (found.since, found.until) == (0.0, 3.0)
    others = fired(smb_rules.reconnects(on_smb(*[client(again, sessions=2)] * 3)))
    assert "an SMB server of this machine" in others.text
    gone = fired(smb_rules.reconnects(on_smb(SHARE, SHARE, client(SHARE, disconnected=1))))
    assert "was lost in the last 3 s, and is not there now" in gone.text
    assert smb_rules.reconnects(on_smb(again, SHARE, SHARE, SHARE)) is None, "long ago"
    assert smb_rules.reconnects(on_smb(again, again)) is None, "two seconds are too few"
    assert smb_rules.reconnects(on_smb(*[client(SHARE, reconnects=None)] * 3)) is None


def test_slow_answers_in_all_seconds() -> None:
    slow = replace(SHARE, operations={"read": replace(QUIET, answers=100, answers_ms=3000.0)})
    found = fired(smb_rules.slow_server(on_smb(slow, slow, client(slow, slow=2))))
    assert found.text.startswith("READ and WRITE take 30.0 ms from the request to its end, of this")
    assert "2 answers took more than 1 s" in found.text
    shared = fired(smb_rules.slow_server(on_smb(*[client(slow, shares=2)] * 3)))
    assert "of all shares of the connection" in shared.text
    assert smb_rules.slow_server(on_smb(slow, SHARE, slow)) is None
    few = replace(SHARE, operations={"read": replace(QUIET, answers=9, answers_ms=900.0)})
    assert smb_rules.slow_server(on_smb(few, few, few)) is None
    untimed = replace(SHARE, operations={"read": replace(QUIET, answers=None, answers_ms=None)})
    assert smb_rules.slow_server(on_smb(untimed, untimed, untimed)) is None


def test_small_requests_of_direct_ios() -> None:
    shape = JobShape(block_size=1 << 20, direct=True)
    found = fired(smb_rules.small_requests(on_smb(SHARE, SHARE, SHARE, shape=shape)))
    assert found.text.startswith("each I/O of 1 MiB is split into 16 requests of 64 KiB on average")
    for other in (replace(shape, direct=False), replace(shape, block_size=65536), JobShape()):
        assert smb_rules.small_requests(on_smb(SHARE, SHARE, SHARE, shape=other)) is None


def test_a_second_without_the_mount_silences_them() -> None:
    slow = replace(SHARE, operations={"read": replace(QUIET, answers=100, answers_ms=3000.0)})
    assert smb_rules.slow_server(on_smb(slow, None, slow)) is None
