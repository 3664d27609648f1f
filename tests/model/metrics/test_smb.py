"""Figures of an SMB share, from two readings of a kernel while fio read and wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import recordings as made

from iopstui.linux.counters.smb_stats import parse_smb_stats
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.metrics.shares import Share, smb_rates
from iopstui.model.samples import RawSample
from iopstui.recording.coding import Decoder, encoder
from iopstui.recording.layout import NAMES, all_layouts

PROC = Path(__file__).parents[2] / "fixtures" / "proc"
BEFORE, AFTER = ((PROC / f"smb-6.12-{name}.stats").read_bytes() for name in ("before", "after"))
SHARE = "//10.9.0.1/share"


def counters(data: bytes) -> dict[str, int]:
    found = parse_smb_stats(data, [SHARE])
    assert found is not None
    return found


def share(after: bytes = AFTER, seconds: float = 8.0) -> Share:
    found = smb_rates(counters(after), counters(BEFORE), seconds)
    assert found is not None
    return found


def test_rates_are_the_differences_by_hand() -> None:
    found = share()
    read, write = found.read, found.write
    assert found.ops_s == (13534 - 3031) / 8
    assert (read.ops_s, write.ops_s) == ((9410 - 2053) / 8, (4060 - 914) / 8)
    assert read.kb_s == (154107904 - 33587200) / 1024 / 8
    assert write.kb_op == pytest.approx((83230720 - 31670272) / 1024 / (4060 - 914))
    assert read.latency == pytest.approx(4.0 * (5786 - 1648) / (9406 - 2050)), "ticks of 4 ms"
    assert (read.errors, read.errors_percent) == (0, 0)
    assert found.smb is not None
    assert (found.smb.in_flight, found.smb.shares, found.smb.clock_ms) == (4, 2, 4.0)


def test_what_the_smb_client_does_not_count_is_missing() -> None:
    found = share()
    for one in (found.read, found.write, found.other, found.total):
        assert (one.retransmissions, one.rtt, one.exe, one.queue) == (None,) * 4
    assert found.bklog is None
    assert found.others == {} and found.other.ops == 0


def test_without_times_there_is_no_latency() -> None:
    plain = [
        {key: value for key, value in counters(data).items()
         if key == "server.shares" or not key.startswith("server.")}
        for data in (AFTER, BEFORE)
    ]  # fmt: skip
    found = smb_rates(plain[0], plain[1], 8.0)
    assert found is not None and found.smb is not None
    assert found.read.latency is None and found.read.ops == 7357
    assert (found.smb.slow, found.smb.clock_ms) == (None, None)


def test_a_reset_of_the_counters_is_a_gap() -> None:
    before, after = counters(BEFORE), counters(AFTER)
    assert smb_rates(before, after, 8.0) is None, "they went backwards"
    later = after | {"since": after["since"] + 60}
    assert smb_rates(later, before, 8.0) is None, "the kernel says since when it counts"
    emptied = {key: value for key, value in after.items() if not key.startswith("read.")}
    assert smb_rates(emptied, before, 8.0) is None
    assert smb_rates(None, before, 8.0) is None
    assert smb_rates(after, None, 8.0) is None
    assert smb_rates(after, before, None) is None


def test_failures_of_requests_sent_before_are_not_lost() -> None:
    """A lost connection fails all that is under way at once, and nothing is sent any more."""
    after = counters(AFTER)
    failed = smb_rates(after | {"read.errors": 32, "server.read.count": 9500}, after, 1.0)
    assert failed is not None
    assert (failed.read.ops, failed.read.errors, failed.total.errors) == (0, 32, 32)


def test_waiting_for_other_clients_is_no_latency() -> None:
    before, after = counters(BEFORE), counters(AFTER)
    for name in ("lock", "query_info"):
        before |= {f"{name}.ops": 0, f"server.{name}.count": 0, f"server.{name}.jiffies": 0}
        after |= {f"{name}.ops": 1, f"server.{name}.count": 1, f"server.{name}.jiffies": 500}
    found = smb_rates(after, before, 8.0)
    assert found is not None
    assert found.others["lock"].latency is None
    assert found.other.latency == 2000.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("smb.read.ops/s>=1", 919.625),
        ("smb.write.kB/s>=1", 6294),
        ("smb.read.latency<=5ms", 2.2501),
        ("smb.total.errors%<=0", 0.0),
        ("smb.in_flight<=64", 4),
        ("smb.ops/s>=1k", 1312.875),
    ],
)
def test_an_expectation_names_a_figure_of_the_share(text: str, value: float) -> None:
    one = parse_expectation(text)
    frame = Frame(1, 1, 0.0, 0.0, 8.0, frozenset(), None, None, None, share=share())
    assert Meter(one.path).add(frame) == pytest.approx(value, abs=5e-4)
    assert Meter(one.path).add(replace(frame, share=None)) is None
    nfs = Meter(parse_expectation("nfs.read.rtt<=5ms").path)
    assert nfs.add(frame) is None, "it is not on NFS"


def test_a_recording_keeps_the_counters_of_the_share() -> None:
    plain, recorded = FrameBuilder(), FrameBuilder()
    decode, encode = Decoder(all_layouts(), NAMES), encoder(RawSample)
    shares = []
    for data, raw in zip((BEFORE, AFTER), made.raws(made.RUN), strict=False):
        assert raw.kernel is not None
        raw = replace(raw, kernel=replace(raw.kernel, more={"smb": counters(data)}))
        again = decode(RawSample, json.loads(json.dumps(encode(raw))))
        frame = plain.feed(raw)
        shares.append((frame.share, recorded.feed(again).share))
    first, second = shares
    assert first == (None, None), "rates need two samples"
    assert second[0] is not None and second[0] == second[1]
    assert second[0].read.ops == 7357
