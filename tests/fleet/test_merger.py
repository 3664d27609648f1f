"""Totals of many hosts: exact, in any order, merged in any tree; absent hosts are named, not
counted."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made import START_MS, Row, finals, frame, frames, stream

from iopstui.features.fleet.merging.combined_frame import frame_of_second
from iopstui.features.fleet.merging.merger import MergedInterval, Merger, certify_merge
from iopstui.features.fleet.merging.sums import MalformedRow
from iopstui.features.fleet.output.labelled_rows import merged_streams
from iopstui.features.fleet.output.sinks import (
    ending,
    merged_object,
    second_object,
    session_object,
    totals_text,
)
from iopstui.model.figures.disk import DiskRates
from iopstui.model.histogram import merge, percentile_name, percentiles


def merged(streams: Sequence[Sequence[Row]], label: str = "all") -> list[Row]:
    """The merged rows as `iopstui merge` makes them: through JSON, in the order of the clocks."""
    merger = Merger()
    seconds: list[MergedInterval] = []
    sources = [[(row["host"], row) for row in rows] for rows in streams]
    for name, row in merged_streams(sources, pytest.fail):
        merger.feed(name, row)
        seconds += merger.close_seconds(early=False)
    seconds += merger.finish()
    rows = [session_object(label), *(second_object(one, label) for one in seconds)]
    found: list[Row] = json.loads(json.dumps([*rows, merged_object(merger, label)]))
    return found


def test_util_is_the_mean_of_the_hosts_that_are_counted() -> None:
    merger = Merger()
    for name, util in (("a", 10.0), ("b", 40.0), ("c", None)):
        row = frame(name, random.Random(1), 1.0, START_MS + 1000.0)
        row["kernel"]["total"]["util"] = util
        merger.feed(name, row)
    (second, *_) = merger.finish()
    assert second.util == pytest.approx(25.0) and second.counted == 3
    disk = frame_of_second(second, 1.0, 1).total
    assert disk is not None and disk.util == second.util


hosts = st.lists(
    st.tuples(
        st.integers(0, 1000),  # seed
        st.integers(1, 6),  # frames
        st.floats(0, 4000),  # when the run begins, ms
        st.sampled_from([0.0, 0.3, 0.9]),  # length of the last frame, s
        st.booleans(),  # whether the run's end was received
        st.integers(0, 7),  # the frame that is lost
    ),
    min_size=2,
    max_size=6,
)


Made = tuple[int, int, float, float, bool, int]


@example([(0, 6, 1751.0, 0.0, False, 1), (0, 1, 0.0, 0.0, False, 0), (0, 1, 0.0, 0.3, False, 0)], 1)
@settings(max_examples=40, deadline=None)
@given(hosts, st.integers(1, 5))
def test_a_tree_of_mergers_gives_what_one_gives(made: list[Made], cut: int) -> None:
    streams = []
    for index, (seed, count, begin, last, ends, hole) in enumerate(made):
        rows = stream(f"h{index}", seed, count, START_MS + begin, last)
        rows = [row for n, row in enumerate(rows) if n != hole + 1 or row["event"] != "frame"]
        streams.append(rows if ends else [row for row in rows if row["event"] != "step_finished"
                                          and row["event"] != "ended"])  # fmt: skip
    cut = min(cut, len(streams) - 1)
    left, right = merged(streams[:cut], "left"), merged(streams[cut:], "right")
    tree = merged([left, right])
    assert tree == merged(streams)
    assert tree == merged([right, left])


def test_what_a_host_says_first_is_not_late_because_it_says_no_more() -> None:
    """A second is complete when the next frame comes, but this host has no next frame."""
    only = [row for row in stream("b", 2, 1, last=0.3) if row["event"] == "session"]
    only += frames(stream("b", 2, 1, last=0.3))[1:]
    _, *seconds, whole = merged([only, stream("a", 1, 6, START_MS + 2000)])
    assert whole["late"] == {} and seconds[0]["hosts"]["incomplete"] == ["b"]


def test_a_merger_above_another_tells_who_was_late_there() -> None:
    below = merged([stream("a", 1), stream("b", 2)])
    assert below[-1]["late"] == {}
    below[-1]["late"] = {"b": 1}
    assert merged([below, stream("c", 3)])[-1]["late"] == {"b": 1}
    below[-1]["late"] = {"b": "often"}
    with pytest.raises(MalformedRow):
        merged([below])


def test_hosts_of_a_merger_that_was_cut_off_are_not_said_to_be_verified() -> None:
    *cut, _ = merged([stream("a", 1), stream("b", 2)], "cut")
    *_, whole = merged([cut, stream("c", 3)])
    assert whole["hosts"]["total"] == 3 and whole["hosts"]["finished"] == 1
    assert whole["lost"] == whole["count"]["unchecked"] == ["cut"] and whole["count"]["exact"] == 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5, unique=True))
def test_percentiles_are_of_the_summed_bins(seeds: list[int]) -> None:
    streams = [stream(f"h{seed}", seed, 3) for seed in seeds]
    _, *rows, whole = merged(streams)
    for number, row in enumerate(rows[:3]):
        parts = [frames(one)[number]["fio"]["read"]["bins"] for one in streams]
        bins = merge([{int(key): count for key, count in part.items()} for part in parts])
        found = percentiles(bins)
        clat = row["fio"]["read"]["clat"]
        assert {int(key): count for key, count in clat["bins"].items()} == bins
        assert {p: clat[percentile_name(p)] for p in found} == found
        assert row["fio"]["read"]["ios"] == sum(
            frames(one)[number]["fio"]["read"]["ios"] for one in streams
        )
    assert whole["count"]["exact"] == len(seeds)
    assert whole["count"]["ios"] == whole["count"]["fio_ios"]
    assert whole["count"]["bytes"] == whole["count"]["fio_bytes"]


def test_a_host_with_a_hole_is_missing_there_and_not_0() -> None:
    whole, holed = stream("a", 1, 6), stream("b", 2, 6)
    del holed[3]
    _, *rows = merged([whole, holed])
    third = rows[2]
    assert third["hosts"] == {"expected": 2, "counted": 1, "missing": ["b"], "incomplete": []}
    assert third["fio"]["read"]["ios"] == frames(whole)[2]["fio"]["read"]["ios"]
    # frames that were lost are not in the sums, and the difference is reported
    assert rows[-1]["count"]["differs"] == ["b"]


def test_a_short_second_is_incomplete_and_still_in_the_whole() -> None:
    rows = stream("a", 1, 3, last=0.4)
    _, *seconds, whole = merged([rows])
    assert seconds[3]["hosts"] == {
        "expected": 1, "counted": 0, "missing": [], "incomplete": ["a"]
    }  # fmt: skip
    assert seconds[3]["fio"] is None
    assert whole["count"]["ios"] == sum(
        row["fio"][name]["ios"] for row in frames(rows) for name in ("read", "write")
    )


def test_one_that_ends_in_order_is_not_missing_afterwards_and_one_that_is_cut_is() -> None:
    long, short, cut = stream("a", 1, 6), stream("b", 2, 3, last=0), stream("c", 3, 3)[:4]
    _, *seconds, whole = merged([long, short, cut])
    assert [row["hosts"]["missing"] for row in seconds] == [[], [], [], ["c"], ["c"], ["c"], ["c"]]
    assert [row["hosts"]["expected"] for row in seconds] == [3, 3, 3, 2, 2, 2, 2]
    assert whole["lost"] == ["c"] and whole["hosts"]["finished"] == 2


def test_fio_counting_something_else_is_told() -> None:
    whole = merged([stream("a", 1), stream("b", 2, more=3)])[-1]
    assert whole["count"]["differs"] == ["b"] and whole["count"]["exact"] == 1


def test_a_clock_that_is_set_moves_nothing() -> None:
    rows = stream("a", 1, 6)
    for row in frames(rows)[3:]:
        row["wall_ms"] += 3_600_000
    merger = Merger()
    for row in rows:
        merger.feed("a", row)
    assert [one.number for one in merger.finish()] == [1_800_000_000 + n for n in range(7)]
    assert merger.hosts["a"].jumped_ms == 3_600_000


def test_frames_that_come_a_little_late_are_no_gaps() -> None:
    chance = random.Random(3)
    merger = Merger()
    # the middle of each frame is near the edge of a second, sometimes before and sometimes after it
    for n in range(40):
        late = chance.uniform(-20, 20)
        merger.feed("a", frame("a", chance, n + 1 + late / 1000, START_MS + n * 1000 + 500 + late))
    seconds = [*merger.close_seconds(), *merger.finish()]
    assert [one.counted for one in seconds] == [1] * 40


def test_short_samples_make_one_second() -> None:
    chance = random.Random(1)
    merger = Merger()
    for n in range(8):
        end = (n + 1) * 0.25
        merger.feed("a", frame("a", chance, end, START_MS + end * 1000, 0.25, ios=100))
    first, second = [*merger.close_seconds(), *merger.finish()]
    assert first.sums.fio["read"].ios == second.sums.fio["read"].ios == 400
    assert first.sums.fio["read"].iops == 400.0
    assert first.sums.kernel.value(DiskRates.w_s) == 1.5 and first.sums.kernel.hosts == 1


def test_what_comes_after_its_row_is_said_and_in_the_whole() -> None:
    merger = Merger()
    late = stream("late", 2, 8)
    for row in stream("a", 1, 8):
        merger.feed("a", row)
    for row in late[:2]:
        merger.feed("late", row)
    list(merger.close_seconds())
    for row in late[2:]:
        merger.feed("late", row)
    list(merger.finish())
    assert merger.late_frames["late"] > 0
    assert certify_merge(merger).exact == 2


@pytest.mark.parametrize("change", [
    {"wall_ms": None}, {"wall_ms": "x"}, {"t": float("nan")}, {"wall_ms": 1e300},
    {"flags": "RAMP"}, {"fio": []}, {"fio": {"seconds": -1}},
    {"fio": {"seconds": 1.0, "total": {"ios": -5}}},
    {"fio": {"seconds": 1.0, "read": {"ios": "a"}}},
    {"fio": {"seconds": 1.0, "read": {"ios": 1, "clat": {"n": 1, "mean": 1},
                                      "bins_of": "clat", "bins": {"x": 1}}}},
    {"fio": {"seconds": 1.0, "read": {"ios": 1, "clat": {"n": 1, "mean": float("inf")}}}},
    {"fio": {"seconds": 1.0, "read": {"ios": 1, "clat": {"n": 1, "mean": 1},
                                      "bins_of": "clat", "bins": {"5": -1}}}},
])  # fmt: skip
def test_what_no_iopstui_writes_is_refused_whole(change: Row) -> None:
    merger = Merger()
    rows = stream("a", 1, 3)
    for row in rows[:3]:
        merger.feed("a", row)
    with pytest.raises(MalformedRow):
        merger.feed("a", {**rows[3], **change})
    merger.feed("a", finals("a", frames(rows[:3])))
    list(merger.finish())
    assert certify_merge(merger).exact == 1


def test_a_fio_that_was_killed_certifies_nothing() -> None:
    rows = stream("a", 1, 3)
    (end,) = [row for row in rows if row["event"] == "step_finished"]
    end["summary"]["final"] = False
    merger = Merger()
    for row in rows:
        merger.feed("a", row)
    list(merger.finish())
    found = certify_merge(merger)
    assert (found.exact, found.unchecked) == (0, ("a",))


@pytest.mark.parametrize(("later_s", "note"), [
    (0, ""), (2, ""),
    (6, "2 of 14 intervals have figures of all hosts; IOPS and MiB/s add up each host's"),
    (20, "0 of 16 intervals have figures of all hosts; IOPS and MiB/s add up each host's"),
])  # fmt: skip
def test_rates_of_hosts_that_hardly_ran_together_have_a_note(later_s: int, note: str) -> None:
    streams = [stream("a", 1, 8), stream("b", 2, 8, START_MS + later_s * 1000)]
    rows = [row for rows in streams for row in rows]
    merger, whole = Merger(), Merger()
    for row in sorted(rows, key=lambda row: row.get("wall_ms", 2 * START_MS)):
        merger.feed(row["host"], row)
    list(merger.finish())
    text = " ".join(ending(certify_merge(merger)))
    assert note in text and ("own mean" in text) == bool(note)
    for row in merged(streams):
        whole.feed("above", row)
    list(whole.finish())
    assert ("own mean" in " ".join(ending(certify_merge(whole)))) == bool(note)


@pytest.mark.parametrize(("more", "explained"), [(4, True), (5, False)])
def test_what_was_under_way_when_a_ramp_ended_is_told_as_such(more: int, explained: bool) -> None:
    streams = [stream("a", 1, 3, more=more), stream("b", 2, 3)]
    for rows in streams:
        rows[-2]["summary"]["rows"][0] |= {"ramp": True, "depth": 4}
    whole = merged(streams)[-1]
    assert whole["count"]["differs"] == ["a"]
    assert whole["count"]["ramp"] == ["a"] * explained
    merger = Merger()
    for row in merged([merged(streams, "left")]):
        merger.feed("above", row)
    words = " ".join(ending(certify_merge(merger)))
    why = " (the difference was under way when the ramp ended, which is where fio's count begins)"
    assert f"Verified on 1 of 2; different on a{why * explained}. In all: " in words


def test_a_host_that_never_sent_a_frame_is_missing_above_no_more_than_here() -> None:
    silent = [row for row in stream("a", 1, 1) if row["event"] == "session"]
    ended, long = stream("b", 2, 2), stream("c", 3, 5)
    whole = merged([silent, ended, long])
    assert all("a" not in row["hosts"]["missing"] for row in whole[1:-1])
    assert whole[-1]["lost"] == whole[-1]["hosts"]["unseen"] == ["a"]
    assert merged([merged([silent, ended], "left"), long]) == whole


@pytest.mark.parametrize(("later_s", "apart"), [(0, False), (4, False), (6, True), (86_400, True)])
def test_rates_of_hosts_that_ran_at_other_times_are_said_to_be_sums(
    later_s: int, apart: bool
) -> None:
    merger = Merger()
    for rows in (stream("a", 1), stream("b", 2, begin_ms=START_MS + later_s * 1000)):
        for row in rows:
            merger.feed(row["host"], row)
    list(merger.finish())
    assert ("ran at different times: IOPS and MiB/s" in totals_text(merger)) == apart
