"""Rules on an NFS mount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from evidence_frames import fio, fired, seconds

from iopstui.model.findings.diagnosis import diagnose
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.findings.rules.network import nfs as nfs_rules
from iopstui.model.metrics.shares import OperationRates, Share

QUIET = OperationRates(1.0, 1000, 1000 * 65536, 0, 10, 500, 520, 0)
"""1,000 operations/s of 64 KiB; RTT 0.5 ms."""
NO_JOB = JobShape()


def share(connections: int = 1, **operations: OperationRates) -> Share:
    return Share(1.0, 1000, 0, (1000,) * connections, {"read": QUIET, **operations})


def on_nfs(*shares: Share | None, shape: JobShape = NO_JOB, step: int = 0) -> Evidence:
    frames = seconds(len(shares), step=step, disks={})
    each = [replace(frame, share=one) for frame, one in zip(frames, shares, strict=True)]
    return Evidence(tuple(each), shape=shape)


def lasting(one: Share, shape: JobShape = NO_JOB) -> Evidence:
    return on_nfs(one, one, one, shape=shape)


def test_a_quiet_mount_has_no_finding() -> None:
    assert diagnose(lasting(share())) == []
    assert diagnose(lasting(Share(1.0, 0, 0))) == [], "nothing happens there"


def test_one_retransmission_in_the_last_seconds_is_reported() -> None:
    lost = share(read=replace(QUIET, retransmissions=2))
    found = fired(nfs_rules.retransmissions(on_nfs(share(), lost, share())))
    assert found.text.startswith("2 of 3.00k NFS requests were sent again in the last 3 s")
    assert nfs_rules.retransmissions(on_nfs(lost, share(), share(), share())) is None, "long ago"


def test_retransmissions_of_a_part_of_a_second_count() -> None:
    """fio's status is late while the server is gone, and the first one afterwards follows at once:
    the kernel's interval is then a short one."""
    frames = seconds(4, interval=fio(10), disks={})
    each = [replace(one, share=share()) for one in frames]
    lost = share(read=replace(QUIET, retransmissions=4))
    each[1] = replace(each[1], share=lost, seconds=0.2)
    found = fired(nfs_rules.retransmissions(Evidence(tuple(each))))
    assert found.text.startswith("4 of ")


def test_a_slow_server_in_all_seconds() -> None:
    slow = share(read=replace(QUIET, ops=100, rtt_ms=3000, exe_ms=3100))
    found = fired(nfs_rules.slow_server(lasting(slow)))
    assert "READ and WRITE wait 30.0 ms for network and server (RTT) of 31.0 ms in all" in (
        found.text
    )
    assert nfs_rules.client_queue(lasting(slow)) is None
    assert nfs_rules.slow_server(on_nfs(slow, share(), slow)) is None
    full = share(read=replace(QUIET, ops=100, rtt_ms=3000, exe_ms=9000))
    assert nfs_rules.slow_server(lasting(full)) is None, "the client takes longer"


@pytest.mark.parametrize(("connections", "advice"), [(1, "mount with nconnect=4"), (4, "raise")])
def test_requests_that_wait_in_the_client(connections: int, advice: str) -> None:
    full = share(connections, read=replace(QUIET, rtt_ms=2000, exe_ms=9000))
    found = fired(nfs_rules.client_queue(lasting(full)))
    assert found.text.startswith("7.00 RPCs wait in this client before they are sent over "
                                 f"{connections} connection")  # fmt: skip
    assert found.advice.startswith(advice)
    assert nfs_rules.client_queue(on_nfs(full, full, share())) is None
    slower = share(connections, read=replace(QUIET, rtt_ms=3000, exe_ms=5000))
    assert nfs_rules.client_queue(lasting(slower)) is None, "the server takes longer"
    few = share(read=replace(QUIET, ops=10, rtt_ms=20, exe_ms=900))
    assert nfs_rules.client_queue(lasting(few)) is None, "less than one waits"


def test_direct_ios_that_are_split() -> None:
    shape = JobShape(block_size=1 << 20, direct=True)
    found = fired(nfs_rules.small_requests(lasting(share(), shape)))
    assert found.text.startswith("each I/O of 1 MiB is split into 16 RPCs of 64 KiB on average")
    for other in (replace(shape, direct=False), replace(shape, block_size=65536), JobShape()):
        assert nfs_rules.small_requests(lasting(share(), other)) is None
    assert nfs_rules.small_requests(lasting(Share(1.0, 0, 0), shape)) is None


@pytest.mark.parametrize(
    ("getattr_s", "lookup_s", "read_s", "storm"),
    [(400, 200, 100, True), (400, 0, 100, False), (60, 30, 0, False), (100, 0, 0, True)],
)
def test_attribute_storms(getattr_s: int, lookup_s: int, read_s: int, storm: bool) -> None:
    operations: Mapping[str, OperationRates] = {
        "getattr": replace(QUIET, ops=getattr_s), "lookup": replace(QUIET, ops=lookup_s),
        "read": replace(QUIET, ops=read_s),
    }  # fmt: skip
    found = nfs_rules.attribute_storm(lasting(share(**operations)))
    assert (found is not None) == storm
    if found is not None:
        assert f"{getattr_s + lookup_s} requests/s ask for attributes" in found.text


def hanging(count: int, waiting: int = 32, ops: int = 0, ios: int = 0, step: int = 1) -> Evidence:
    """Seconds of an NFS mount; without ``ios``, fio reported nothing in them."""
    operations = {"read": replace(QUIET, ops=ops)} if ops else {}
    share = Share(1.0, 0, 0, (0,), operations, waiting)
    done = fio(ios) if ios else None
    frames = seconds(count, interval=done, step=step, disks={})
    return Evidence(tuple(replace(one, share=share) for one in frames))


def test_a_server_that_does_not_answer() -> None:
    found = fired(nfs_rules.unanswered_requests(hanging(5)))
    assert found.text.startswith("no NFS request has finished for 5 s, 32 wait for an answer")
    assert (found.since, found.until) == (0.0, 5.0), "not only the seconds in which fio answered"
    assert nfs_rules.unanswered_requests(hanging(2)) is None
    assert nfs_rules.unanswered_requests(hanging(5, waiting=0)) is None, "the job pauses"
    assert nfs_rules.unanswered_requests(hanging(5, ops=1)) is None
    assert nfs_rules.unanswered_requests(hanging(5, ios=1)) is None, "the page cache answers"
    assert nfs_rules.unanswered_requests(hanging(5, step=0)) is None, "no job runs"


def test_a_second_without_the_mount_silences_them() -> None:
    lost = share(read=replace(QUIET, retransmissions=2))
    slow = share(read=replace(QUIET, ops=100, rtt_ms=3000, exe_ms=3100))
    assert nfs_rules.slow_server(on_nfs(slow, None, slow)) is None
    assert nfs_rules.retransmissions(on_nfs(lost, lost)) is None, "two seconds are too few"
