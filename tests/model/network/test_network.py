"""Figures of TCP connections in an interval, and the findings from them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from watch_frames import frame

from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.rules.network.tcp import full_connection, full_window, lost_packets
from iopstui.model.metrics.frame import Frame
from iopstui.model.network import Connection, connections, counter_name

SERVER = "10.9.0.2:2049"


def reading(n: int, port: int = 871) -> dict[str, int]:
    values = {
        "rtt_us": 250, "rttvar_us": 40, "min_rtt_us": 200, "retrans": 3 * n, "segments": 200 * n,
        "sent": 1_000_000 * n, "received": 2_000 * n, "send_queue": 90, "receive_queue": 7,
        "unsent": 50, "unacked": 4, "cwnd": 10, "busy_us": 1_500_000 * n,
        "rwnd_limited_us": 500_000 * n, "sndbuf_limited_us": 9_000_000 * n,
    }  # fmt: skip
    return {counter_name(what, port, SERVER, "NFS"): value for what, value in values.items()}


def test_readings_have_their_own_time() -> None:
    before, now = ({**reading(n), "at_ns": n * 4_000_000_000} for n in (1, 2))
    (one,) = connections(now, before, 2.0) or ()
    assert (one.seconds, one.sent_s) == (4.0, 250_000.0)


(USUAL,) = connections(reading(2), reading(1), 1.0) or ()
QUIET = replace(USUAL, retrans=0, unsent=0, rwnd_limited=0.0)


def seconds(*each: Connection, count: int = 3) -> list[Frame]:
    empty = frame(1.0, {}, 1.0)
    return [replace(empty, seq=n, step=0, t=float(n), connections=each) for n in range(count)]


def test_lost_packets_in_every_second() -> None:
    found = lost_packets(Evidence(seconds(USUAL, replace(QUIET, local_port=9))))
    assert found is not None and found.rule == "net-loss"
    assert found.text.startswith(
        "9 of 1.20k TCP segments to 10.9.0.2:2049 were sent again in the last 3 s (0.8 %)"
    )
    once = [*seconds(QUIET, count=2), *seconds(replace(USUAL, retrans=90), count=1)]
    few = seconds(replace(USUAL, retrans=1, segments=10_000))
    for frames in (once, few, seconds(QUIET), seconds(USUAL, count=2), seconds()):
        assert lost_packets(Evidence(frames)) is None


def test_a_server_that_does_not_read() -> None:
    held = replace(QUIET, rwnd_limited=80.0)
    found = full_window(Evidence(seconds(QUIET, replace(held, local_port=9))))
    assert found is not None and "at least 80 % of the time" in found.text
    turns = [*seconds(held, count=1), *seconds(replace(held, local_port=9), count=2)]
    for frames in (turns, seconds(QUIET), seconds()):
        assert full_window(Evidence(frames)) is None


@pytest.mark.parametrize(
    ("each", "told"),
    [
        ((replace(QUIET, unsent=1 << 20),), True),
        ((replace(QUIET, unsent=1 << 20), QUIET), False),
        ((replace(QUIET, unsent=1000),), False),
        ((replace(QUIET, unsent=1 << 20, retrans=4),), False),
        ((replace(QUIET, unsent=1 << 20, rwnd_limited=70.0),), False),
        ((replace(QUIET, unsent=1 << 20, kind="iSCSI"),), False),
        ((), False),
    ],
)
def test_the_only_connection_is_full(each: tuple[Connection, ...], told: bool) -> None:
    found = full_connection(Evidence(seconds(*each)))
    assert (found is not None) is told
    assert found is None or "at least 1 MiB wait" in found.text
