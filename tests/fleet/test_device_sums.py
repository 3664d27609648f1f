"""Sums of several hosts' probes: the same in any order, and not 0 if no probe counted."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import START_MS, Row, frame, frames, stream

from iopstui.errors import UsageError
from iopstui.events import FrameReady
from iopstui.features.fleet.merging.combined_frame import ALL_DEVICES, frame_of_second
from iopstui.features.fleet.merging.encoded_frame import EncodedFrame
from iopstui.features.fleet.merging.figures import AbortCondition, figure, parse_fleet_expectation
from iopstui.features.fleet.merging.merger import MergedInterval, Merger
from iopstui.features.fleet.merging.row_events import event_of
from iopstui.features.fleet.merging.sums import MAX_IN_BIN, MalformedRow, to_wire
from iopstui.features.fleet.output.sinks import (
    merged_object,
    second_object,
    session_object,
    totals_sink,
)
from iopstui.features.fleet.program.agent import compact_frame, trim_frame
from iopstui.model.histogram import bucket_key, merge, percentile_name, percentiles

KINDS = ("read", "write", "discard")


def requests(counts: dict[int, int]) -> Row:
    ios = sum(counts.values())
    return {"iops": float(ios), "ios": ios, "bins": {str(key): n for key, n in counts.items()}}


def device(chance: random.Random, seconds: float = 1.0, **more: Any) -> Row:
    kinds = {
        kind: requests({
            bucket_key(chance.randint(20_000, 10**8)): chance.randint(1, 900)
            for _ in range(chance.randint(0, most))
        }) for kind, most in zip(KINDS, (9, 4, 0), strict=True)
    }  # fmt: skip
    return {"seconds": seconds, "age_s": 0.0, **kinds, "disks": {"vda": kinds}, "missed": 0.0,
            "skipped": 0, "lost": 0, "full": 0, **more}  # fmt: skip


def probed(host: str, seed: int, seconds: int, begin: float = 0.0) -> list[Row]:
    chance = random.Random(seed)
    rows = stream(host, seed, seconds, START_MS + begin)
    return [{**row, "device": device(chance, row["seconds"])} if row["event"] == "frame" else row
            for row in rows]  # fmt: skip


def sent(row: Row, made: Any = compact_frame) -> Row:
    """A row as an agent sends it."""
    if row["event"] != "frame":
        return row
    whole = {"own_cpu": None, **row, "kernel": {"total": {"util": 5.0, **row["kernel"]["total"]}}}
    whole["fio"] = {**row["fio"], "trim": None, "mixed": None, "errors": 0}
    return {**json.loads(json.dumps(made(whole))), "host": row["host"]}


def merged(streams: list[list[Row]], label: str = "all") -> list[Row]:
    merger = Merger()
    found: list[MergedInterval] = []
    for at in range(max(map(len, streams))):
        for rows in streams:
            if at < len(rows):
                merger.feed(rows[at]["host"], rows[at])
        found += merger.close_seconds(early=False)
    found += merger.finish()
    rows = [session_object(label), *(second_object(one, label) for one in found)]
    made: list[Row] = json.loads(json.dumps([*rows, merged_object(merger, label)]))
    return made


hosts = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 4), st.booleans()),
                 min_size=2, max_size=5)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(hosts, st.data())
def test_any_tree_of_mergers_and_what_agents_send_give_the_same(
    made: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    streams = [
        probed(f"h{at}", seed, count) if has else stream(f"h{at}", seed, count)
        for at, (seed, count, has) in enumerate(made)
    ]
    flat = merged(streams)
    for form in (compact_frame, trim_frame):
        assert merged([[sent(row, form) for row in rows] for rows in streams]) == flat
    cut = data.draw(st.integers(1, len(streams) - 1))
    tree = [merged(streams[:cut], "left"), merged(streams[cut:], "right")]
    assert merged(tree) == merged(tree[::-1]) == flat
    having = sum(has for _, _, has in made)
    assert (flat[1]["device"] or {"hosts": 0})["hosts"] == having
    assert (flat[-1]["device"] or {"hosts": 0})["hosts"] == having
    for kind in KINDS if having else ():
        bins = merge(
            {int(key): n for key, n in row["device"][kind]["bins"].items()}
            for rows in streams for row in frames(rows) if "device" in row
        )  # fmt: skip
        found = flat[-1]["device"][kind]
        assert {int(key): n for key, n in found["bins"].items()} == bins
        for rank, value in percentiles(bins).items():
            assert found[percentile_name(rank)] == value
        assert found["ios"] == sum(bins.values())


def one_second(*streams: list[Row]) -> MergedInterval:
    merger = Merger()
    for rows in streams:
        for row in rows:
            merger.feed(row["host"], row)
    return next(iter(merger.finish()))


def test_a_second_is_a_frame_of_all_hosts_that_counted() -> None:
    rows = [probed("a", 1, 1), stream("b", 2, 1), probed("c", 3, 1)]
    second = one_second(*rows)
    assert second.counted == 3 and second.sums.device.describe(3) == "device: 2 of 3 hosts"
    probe = frame_of_second(second, 1.0, 1).probe
    assert probe is not None and not probe.doubtful
    for kind in KINDS:
        bins = merge(
            {int(key): n for key, n in frames(rows[at])[0]["device"][kind]["bins"].items()}
            for at in (0, 2)
        )
        part = probe.combined((ALL_DEVICES,), (kind,))
        assert part is not None and part.device.bins == bins
        assert figure(second.sums, ("device", kind, "p99")) == percentiles(bins).get(99.0)
        assert figure(second.sums, ("device", kind, "iops")) == sum(bins.values())
    nobody = one_second(stream("b", 2, 1))
    assert frame_of_second(nobody, 1.0, 1).probe is None
    assert figure(nobody.sums, ("device", "read", "iops")) is None
    assert nobody.sums.device.describe(1) == "" and second_object(nobody, "x")["device"] is None


def test_what_some_miss_all_miss() -> None:
    rows = [probed("a", 1, 1), probed("b", 2, 1)]
    frames(rows[1])[0]["device"] = device(random.Random(9), missed=20.0, lost=3)
    done = sum(frames(rows[1])[0]["device"][kind]["ios"] for kind in KINDS)
    second = one_second(*rows)
    counts = second.sums.device.counts
    assert counts["missed"] == round(done * 20 / 80) and counts["lost"] == 3
    probe = frame_of_second(second, 1.0, 1).probe
    assert probe is not None and probe.doubtful and probe.missed is not None and probe.missed > 1


def test_short_samples_of_a_host_are_one_host_with_its_rate() -> None:
    chance, merger = random.Random(1), Merger()
    counts = {bucket_key(100_000): 50}
    for n in range(1, 5):
        more = {kind: requests(counts if kind == "read" else {}) for kind in KINDS}
        merger.feed("a", {**frame("a", chance, n / 4, START_MS + n * 250, 0.25),
                          "device": {**device(chance, 0.25), **more}})  # fmt: skip
    (second,) = merger.finish()
    assert second.sums.device.hosts == 1
    part = second.sums.device.parts["read"]
    assert (part.ios, part.iops) == (200, 200.0)
    assert merger.run_sums().device.parts["read"].iops == 200.0


def test_rates_of_the_whole_are_those_of_each_host_s_own_time() -> None:
    merger = Merger()
    for host, seconds in (("a", 1), ("b", 4)):
        for row in probed(host, 7, seconds):
            if row["event"] == "frame":
                row["device"] |= {"read": requests({bucket_key(100_000): 100})}
                row["device"]["seconds"] = 1.0
            merger.feed(host, row)
    list(merger.finish())
    # one host did 200 in 2 s (its last frame is short), the other one 500 in 5 s
    assert merger.run_sums().device.parts["read"].iops == 200.0
    assert merger.run_sums().device.hosts == 2


GOOD = device(random.Random(3))
READ = {bucket_key(50_000): 5}
OVERFULL = to_wire({0: (1 << 64) - 1, 1: 1})


@pytest.mark.parametrize("change", [
    {"read": {"ios": 6, "bins": {str(key): n for key, n in READ.items()}}},
    {"read": {"ios": 5, "bins": {"5.5": 5}}}, {"read": {"ios": 5, "bins": {"-1": 5}}},
    {"read": {"ios": 5, "bins": [5]}}, {"read": {"ios": 5, "packed": "%%%"}},
    {"read": {"ios": 5, "packed": to_wire({50: 4})}}, {"read": {"ios": 5}},
    {"read": {"ios": 1, "packed": OVERFULL}}, {"read": {"ios": 0, "packed": OVERFULL}},
    {"read": {"ios": 2 * MAX_IN_BIN, "packed": to_wire({0: 2 * MAX_IN_BIN})}},
    {"read": {"ios": -5, "bins": {}}}, {"read": {"ios": "5", "bins": {}}}, {"read": 7},
    {"seconds": -1.0}, {"seconds": "1"}, {"seconds": float("nan")}, {"missed": 101.0},
    {"missed": -1.0}, {"lost": -1}, {"skipped": 1 << 90}, {"full": []},
])  # fmt: skip
def test_what_no_probe_counts_is_refused_whole(change: Row) -> None:
    merger = Merger()
    row = frame("a", random.Random(1), 1.0, START_MS)
    for line in (row, sent(row)):
        with pytest.raises(MalformedRow):
            merger.feed("a", {**line, "device": {**GOOD, **change}})
    assert not merger.hosts["a"].totals.fio and not merger.hosts["a"].io_totals.ios
    merger.feed("a", {**row, "device": GOOD})
    assert merger.hosts["a"].totals.device.hosts == 1


@pytest.mark.parametrize("change", [None, {"read": None}, {"seconds": 0.0}, {"seconds": None}])
def test_a_host_whose_disks_were_not_followed_is_not_counted(change: Row | None) -> None:
    own = None if change is None else {**GOOD, **change}
    rows = [{**row, "device": own} if row["event"] == "frame" else row for row in stream("a", 1, 1)]
    assert one_second(rows).sums.device.hosts == 0


@pytest.mark.parametrize("text", ["device.read.waiting.p99<=1ms", "device.disks.vda.read.p99<=1ms",
                                  "device.missed<=1%", "device.read.p99<=1"])  # fmt: skip
def test_only_the_device_s_own_latencies_are_expected(text: str) -> None:
    for named in (text, f"each.{text}"):
        with pytest.raises(UsageError):
            parse_fleet_expectation(named, 0.0)


def test_figures_of_the_device_are_expected_and_abort() -> None:
    found = parse_fleet_expectation("each.device.read.p99<=1ms", 0.0)
    assert found.per_host and found.expectation.path == ("device", "read", "p99")
    second = one_second(probed("a", 1, 1))
    assert AbortCondition("device.total.p99>1ns").feed(second)
    assert not AbortCondition("device.total.p99>1s").feed(second)
    assert not AbortCondition("device.total.p99>1ns").feed(one_second(stream("a", 1, 1)))


def test_a_host_s_own_frame_has_its_device() -> None:
    (_, row, *_) = probed("a", 5, 1)
    bins = {int(key): n for key, n in row["device"]["read"]["bins"].items()}
    lines = [
        row,
        sent(row),
        sent(row, trim_frame),
        {**row, "device": {**row["device"], "tasks": [{"comm": "fio"}]}},
    ]
    for line in lines:
        event = event_of(line, ("vda",))
        assert isinstance(event, FrameReady) and event.frame.probe is not None
        part = event.frame.probe.combined(("vda",), ("read",))
        assert part is not None and part.device.bins == bins
    # with two disks, the row does not say which of them was counted
    event = event_of(sent(row), ("vda", "vdb"))
    assert isinstance(event, FrameReady) and event.frame.probe is None
    assert event_of({**row, "device": {**row["device"], "disks": 5}}, ("vda",)) is None


def test_frames_without_a_probe_stay_short() -> None:
    (_, row, *_) = stream("a", 1, 1)
    assert EncodedFrame(sent(row)["sums"]).fio and "device" not in sent(row)
    (_, other, *_) = probed("a", 1, 1)
    # the histograms of the device are sent beside the text, as beside JSON lines
    assert "sums" in sent(other) and sent(other)["device"] == lean_device(other)
    assert "bins" not in json.dumps(lean_device(other))


def lean_device(row: Row) -> Any:
    fio = {**row["fio"], "trim": None, "mixed": None, "errors": 0}
    return trim_frame({"own_cpu": None, **row, "fio": fio})["device"]


def test_the_totals_say_of_how_many_hosts_it_is() -> None:
    merger, out, err = Merger(), io.StringIO(), io.StringIO()
    table, rows = totals_sink("table", out, err, "x"), io.StringIO()
    cells = totals_sink("csv", rows, io.StringIO(), "x")
    for one in (probed("a", 1, 2), stream("b", 2, 2)):
        for row in one:
            merger.feed(row["host"], row)
    for second in merger.finish():
        table.second(second)
        cells.second(second)
    table.end(merger)
    assert err.getvalue().count("device: 1 of 2 hosts") == 1
    assert "device: 1 of 2 hosts, from a request's issue" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 80
    first = next(iter(csv.DictReader(io.StringIO(rows.getvalue()))))
    assert first["device.hosts"] == "1" and float(first["device.total.p99"]) > 0
