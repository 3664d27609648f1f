"""What many hosts said in one turn is added at once, and comes to what it does one by one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import START_MS, Row, frame, stream

from iopstui.cli.fleet.agent import compact_frame
from iopstui.fleet.fleet_events import all_host_figures, host_figures
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.encoded_frame import MANY, EncodedFrame
from iopstui.fleet.merging.merger import MergedInterval, Merger
from iopstui.fleet.merging.sums import MalformedRow

ODD: tuple[Row, ...] = (
    {}, {"flags": ["LATE"]}, {"flags": ["RAMP"]}, {"flags": "RAMP"}, {"t": 1.0}, {"t": None},
    {"t": float("nan")}, {"wall_ms": 1e300}, {"wall_ms": START_MS + 9e6}, {"wall_ms": True},
    {"seconds": 0.3}, {"seconds": 1.9}, {"seconds": 1}, {"seconds": True}, {"sums": "00"},
    {"sums": 5}, {"sums": None}, {"util": 1e9}, {"util": 40}, {"schema": -1}, {"step": 0},
    {"event": "ended"}, {"event": "session"},
)  # fmt: skip
NEAR_S = START_MS / 1000 + 3


class Both:
    """Mergers of the same lines: one is fed each, the other all of a turn's at once."""

    def __init__(self, keep_bins: bool = False) -> None:
        self.each, self.turns = Merger(keep_bins=keep_bins), Merger(keep_bins=keep_bins)
        self.told: list[list[Any]] = [[], []]
        self.refused: list[list[str]] = [[], []]
        self.each.on_interval = lambda name, slot, counted: self.told[0].append(
            host_figures(name, slot, counted)
        )
        self.turns.on_interval = lambda name, slot, counted: self.told[1].append(
            host_figures(name, slot, counted)
        )
        self.turns.on_encoded = lambda ones: self.told[1].extend(all_host_figures(ones))

    def turn(self, rows: list[tuple[str, Row]]) -> tuple[list[MergedInterval], ...]:
        for name, row in rows:
            self.each.host(name).our_clock_s = NEAR_S
            try:
                self.each.feed(name, row)
            except MalformedRow as error:
                self.refused[0].append(f"{name} {error}")
        self.turns.feed_all(
            rows, NEAR_S, lambda name, error: self.refused[1].append(f"{name} {error}")
        )
        return tuple([*one.close_seconds()] for one in (self.each, self.turns))


def sent(row: Row) -> Row:
    """As an agent sends it: its sums, if it is a frame of a whole second."""
    if row["event"] != "frame":
        return row
    rest = {"own_cpu": None, "fio_age_s": 0.1, "skew_ms": 0.0, "probe": None, "throttled": None}
    total = {"util": 50.0, **row["kernel"]["total"]}
    found: Row = compact_frame({**rest, **row, "kernel": {"total": total}})
    return {"event": "frame", **json.loads(json.dumps(found))}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(2, 6), st.floats(0, 2500)), min_size=1,
             max_size=4),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from(ODD)), max_size=4),
    st.integers(1, 9),
)  # fmt: skip
def test_a_turn_gives_what_its_lines_give(
    made: list[tuple[int, int, float]], odd: list[tuple[int, Row]], size: int
) -> None:
    both = Both()
    streams = [
        [(f"h{at}", sent(row)) for row in stream(f"h{at}", seed, count, START_MS + begin)]
        for at, (seed, count, begin) in enumerate(made)
    ]
    rows: list[tuple[str, Row]] = []
    while any(streams):
        rows += [one.pop(0) for one in streams if one]
    for place, change in odd:
        name, row = rows[place % len(rows)]
        rows[place % len(rows)] = name, {**row, **change}
    for begin in range(0, len(rows), size):
        each, turns = both.turn(rows[begin : begin + size])
        assert each == turns
    assert [*both.each.finish()] == [*both.turns.finish()]
    same(both.each, both.turns)
    assert sorted(both.told[0], key=str) == sorted(both.told[1], key=str)
    assert both.refused[0] == both.refused[1]


def same(each: Merger, one: Merger) -> None:
    for name, host in each.hosts.items():
        other = one.hosts[name]
        assert (host.frames, host.measured_s, host.last) == (
            other.frames,
            other.measured_s,
            other.last,
        )
        assert host.run_sums() == other.run_sums()
    assert each.late_frames == one.late_frames and each.lost_hosts == one.lost_hosts
    assert each.run_sums() == one.run_sums()
    assert certify_merge(each) == certify_merge(one)


@pytest.mark.parametrize("keep_bins", [False, True])
def test_more_hosts_than_fit_into_a_field_in_one_turn(keep_bins: bool) -> None:
    both, chance = Both(keep_bins), random.Random(4)
    rows = [sent(frame("h", chance, 1.0, START_MS + 1000)) for _ in range(7)]
    names = [f"h{at:03d}" for at in range(2 * MANY + 9)]
    ios = 0
    for number in range(3):
        at = {"t": number + 1.0, "wall_ms": START_MS + (number + 1) * 1000}
        made = [(name, {**rows[place % 7], **at}) for place, name in enumerate(names)]
        ios = sum(EncodedFrame(row["sums"]).ios for _, row in made)
        each, turns = both.turn(made)
        assert each == turns and each[0].counted == len(names)
        assert each[0].sums.fio["total"].ios == ios
    assert sorted(both.told[0], key=str) == sorted(both.told[1], key=str)
    same(both.each, both.turns)
