"""Figures of an NFS mount. Those of the fixtures are nfsiostat's own (nfs-utils 2.6.2) for the same
two readings, 8 s apart."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import recordings as made
from plain_mountstats import parse_mountstats

from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.metrics.shares import (
    RPC_QUEUE,
    SENT,
    OperationRates,
    Share,
    place_on_share,
    share_rates,
)
from iopstui.model.metrics.waits import DirectionLoad, JobLoad
from iopstui.model.samples import RawSample
from iopstui.recording.coding import Decoder, encoder
from iopstui.recording.layout import NAMES, all_layouts

PROC = Path(__file__).parents[2] / "fixtures" / "proc"
BEFORE, AFTER = (
    (PROC / f"nfs-6.12-{name}.mountstats").read_bytes() for name in ("before", "after")
)


def share(mountpoint: str) -> Share:
    before, after = (parse_mountstats(data, [mountpoint]) for data in (BEFORE, AFTER))
    found = share_rates(after, before, 8.0)
    assert found is not None
    return found


def rounded(one: OperationRates) -> tuple[float | None, ...]:
    figures = (one.ops_s, one.kb_s, one.kb_op, one.retrans_percent, one.rtt, one.exe, one.queue)
    return tuple(None if figure is None else round(figure, 3) for figure in figures)


def test_nfs_3_has_the_figures_of_nfsiostat() -> None:
    found = share("/mnt/n3")
    assert found.ops_s == 79.25
    assert found.bklog == 0
    assert rounded(found.read) == (64.375, 1045.088, 16.234, 0, 5.083, 7.289, 1.814)
    assert rounded(found.write) == (14.75, 947.688, 64.25, 0, 5.847, 7.924, 1.559)
    assert rounded(found.others["getattr"]) == (0.125, 0.026, 0.207, 0, 1, 3, 0)
    assert (found.read.errors, found.write.errors) == (0, 0)


def test_nfs_4_counts_all_connections_and_read_plus() -> None:
    """nfsiostat has 18.625 ops/s, those of the last connection, and no reads at all."""
    found = share("/mnt/n4")
    assert found.connections == (150, 150, 149, 149)
    assert found.ops_s == sum(found.connections) / 8
    assert found.unanswered == 0
    assert rounded(found.write) == (20.875, 1342.116, 64.293, 0, 6.341, 8.832, 1.772)
    assert found.read == found.operations["read_plus"]
    assert found.read.ops > 100
    assert "read_plus" not in found.others
    assert found.total.ops == sum(one.ops for one in found.operations.values())


def test_counters_that_went_backwards_are_a_gap() -> None:
    before, after = {"read.ops": 5, "write.ops": 5}, {"read.ops": 4, "write.ops": 9}
    assert share_rates(after, before, 1.0) is None
    assert share_rates({"read.ops": 9}, before, 1.0) is None, "mounted again, and never written"
    assert share_rates(None, before, 1.0) is None
    assert share_rates(after, None, 1.0) is None
    assert share_rates(before, before, 0.0) is None


def test_an_operation_that_was_never_used_has_no_times() -> None:
    found = Share(1.0, 0, 0)
    assert (found.ops_s, found.bklog) == (0, None)
    assert found.read.ops_s == 0
    assert (found.read.rtt, found.read.kb_op, found.read.retrans_percent) == (None, None, None)


def test_retransmissions_and_errors_are_shares_of_the_operations() -> None:
    names = ("ops", "transmissions", "sent", "received", "queue_ms", "rtt_ms", "exe_ms", "errors")
    values = (200, 204, 0, 0, 0, 0, 0, 1)
    now = {f"read.{name}": value for name, value in zip(names, values, strict=True)}
    found = share_rates(now, {}, 1.0)
    assert found is not None
    assert (found.read.retransmissions, found.read.retrans_percent) == (4, 2.0)
    assert found.read.errors_percent == 0.5
    del now["read.errors"]
    old = share_rates(now, {}, 1.0)
    assert old is not None and old.read.errors is None and old.total.errors is None


def frame(found: Share | None) -> Frame:
    return Frame(0, 0, 0.0, 0.0, 1.0, frozenset(), None, None, None, share=found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nfs.read.rtt<=5ms", 5.083),
        ("nfs.write.exe<=5ms", 7.924),
        ("nfs.read.kB/s>=1", 1045.088),
        ("nfs.total.retrans%<=0", 0.0),
        ("nfs.ops/s>=1k", 79.25),
        ("nfs.others.getattr.rtt<=1s", 1.0),
    ],
)
def test_an_expectation_names_a_figure_of_the_share(text: str, value: float) -> None:
    one = parse_expectation(text)
    meter = Meter(one.path)
    assert meter.add(frame(share("/mnt/n3"))) == pytest.approx(value, abs=5e-4)
    assert Meter(one.path).add(frame(None)) is None


def test_a_run_s_time_is_weighted_by_its_operations() -> None:
    def second(ops: int, rtt_ms: int) -> Share:
        return Share(1.0, ops, 0, (), {"read": OperationRates(1.0, ops, 0, 0, 0, rtt_ms, 0, 0)})

    meter = Meter(parse_expectation("nfs.read.rtt<=5ms").path)
    for one in (second(1, 100), second(99, 99), second(0, 0)):
        meter.add(frame(one))
    assert meter.value == pytest.approx(199 / 100)


def test_the_places_of_a_job_s_ios_on_a_share() -> None:
    """8 reads of 64 KiB under way in fio, 100/s; each RPC takes 40 ms, 10 of them in the queue."""
    read = OperationRates(1.0, 100, 100 * 65536, 0, 900, 3000, 4000, 0)
    found = Share(1.0, 100, 0, (100,), {"read": read})
    load = JobLoad(8.0, 100, None,
                   directions=(DirectionLoad("r", 100, 100 * 65536.0, direct=True),))  # fmt: skip
    waits = place_on_share(found, load)
    assert waits is not None
    assert waits.ios == 8 and waits.above == pytest.approx(4)
    assert waits.layers == pytest.approx({RPC_QUEUE: 1, SENT: 3})
    alone = place_on_share(found)
    assert alone is not None and alone.ios == pytest.approx(4) and alone.above is None


def test_one_io_that_is_split_into_small_rpcs_counts_once() -> None:
    read = OperationRates(1.0, 400, 400 * 16384, 0, 0, 16000, 16000, 0)
    found = Share(1.0, 400, 0, (400,), {"read": read})
    load = JobLoad(8.0, 100, None,
                   directions=(DirectionLoad("r", 100, 100 * 65536.0, direct=True),))  # fmt: skip
    waits = place_on_share(found, load)
    assert waits is not None
    assert waits.layers[SENT] == pytest.approx(4), "16 RPCs in flight are 4 I/Os"
    assert place_on_share(replace(found, operations={})) is not None


def test_a_recording_keeps_the_counters_of_the_mount() -> None:
    plain, recorded = FrameBuilder(), FrameBuilder()
    decode, encode = Decoder(all_layouts(), NAMES), encoder(RawSample)
    shares = []
    for data, raw in zip((BEFORE, AFTER), made.raws(made.RUN), strict=False):
        assert raw.kernel is not None
        counters = parse_mountstats(data, ["/mnt/n4"])
        assert counters is not None
        raw = replace(raw, kernel=replace(raw.kernel, more={"nfs": counters}))
        again = decode(RawSample, json.loads(json.dumps(encode(raw))))
        shares.append((plain.feed(raw).share, recorded.feed(again).share))
    first, second = shares
    assert first == (None, None), "rates need two samples"
    assert second[0] is not None and second[0] == second[1]
    assert second[0].connections == (150, 150, 149, 149)
