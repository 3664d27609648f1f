"""What a screen knows of each host: its last minutes, its progress, how unusual it is."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import frames, stream

from iopstui.features.fleet import fleet_state as s
from iopstui.features.fleet.fleet_events import (
    FleetRunFinished,
    FleetRunStarted,
    HostFigures,
    HostFiguresBatch,
    HostRow,
    HostStateChanged,
    host_figures,
)
from iopstui.features.fleet.fleet_state import FigureHistory, FleetState, HostState
from iopstui.features.fleet.merging.merger import MergedInterval, Merger
from iopstui.features.fleet.screen.hosts import NAME, OUTLIERS, order_hosts

Put = list[tuple[int, float]]


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1e6, width=32)), max_size=60))
def test_the_past_is_what_was_put_and_nothing_else(steps: Put) -> None:
    past, kept, second = FigureHistory(), {}, 1000
    for step, value in steps:
        second += step
        past.add(second, value)
        kept[second] = value
    for at in range(second - s.HISTORY_SECONDS - 5, second + 5):
        wanted = kept.get(at) if second - s.HISTORY_SECONDS < at <= second else None
        assert past.at(at) == wanted
    first = second - 70
    assert past.between(first, second + 2) == [past.at(at) for at in range(first, second + 2)]


def test_a_second_that_comes_late_changes_nothing() -> None:
    past = FigureHistory()
    past.add(10, 1.0)
    past.add(9, 2.0)
    assert (past.at(9), past.at(10)) == (None, 1.0)


def told(streams: dict[str, list[dict[str, object]]]) -> FleetState:
    """The state after the events of these streams."""
    scene, merger = FleetState(), Merger()
    merger.on_interval = lambda name, slot, counted: scene.apply(host_figures(name, slot, counted))
    scene.apply(FleetRunStarted(1, tuple(streams), 0.0, "job"))
    for rows in zip(*streams.values(), strict=True):
        for name, row in zip(streams, rows, strict=True):
            scene.apply(HostRow(name, row))
            merger.feed(name, row)
    for second in merger.finish():
        scene.apply(second)
    return scene


def test_a_host_s_seconds_are_those_of_its_lines() -> None:
    streams = {name: stream(name, seed, last=0.0) for name, seed in (("h1", 1), ("h2", 2))}
    scene = told(streams)
    second = scene.number
    for name, rows in streams.items():
        row = frames(rows)[-1]
        fio, line = row["fio"], scene.hosts[name]
        assert line.value(s.IOPS, second) == pytest.approx(fio["total"]["ios"])
        assert line.value(s.BW, second) == pytest.approx(fio["total"]["bytes"])
        assert line.value(s.WAIT, second) == fio["total"]["clat"]["p99"]
        disk = row["kernel"]["total"]
        if disk["reads"]:
            # reads take 0.125 ms each, writes take no time
            wanted = 125_000 * disk["reads"] / (disk["reads"] + disk["writes"])
            assert line.value(s.AWAIT, second) == pytest.approx(wanted, rel=1e-6)
        assert line.state == s.DONE
    total = scene.second.sums.total if scene.second else None
    assert total is not None
    assert scene.sums[s.IOPS].at(second) == pytest.approx(total.iops)


def test_who_is_missing_is_named_and_comes_back() -> None:
    scene = FleetState()
    scene.apply(FleetRunStarted(1, ("a", "b"), 0.0))
    for name in ("a", "b"):
        scene.apply(HostStateChanged(name, s.RUNNING))
    scene.apply(MergedInterval(5, 1.0, expected=2, counted=1, missing=("b",)))
    assert scene.hosts["b"].state == s.MISSING and s.active_hosts_text(scene) == "1 of 2 hosts"
    scene.apply(HostStateChanged("b", s.RUNNING))
    assert scene.hosts["b"].state == s.MISSING
    scene.apply(MergedInterval(6, 1.0, expected=2, counted=2))
    assert scene.hosts["b"].state == s.RUNNING
    scene.apply(HostStateChanged("b", s.LOST, "its connection has ended"))
    scene.apply(MergedInterval(7, 1.0, expected=2, counted=1, missing=("b",)))
    assert (scene.hosts["b"].state, scene.hosts["b"].error) == (s.LOST, "its connection has ended")
    scene.apply(FleetRunFinished(s.DONE))
    assert [one.state for one in scene.hosts.values()] == [s.DONE, s.LOST]


seconds_of_hosts = st.lists(st.builds(
    HostFigures, st.sampled_from("abc"), st.integers(0, 9), st.booleans(),
    *[st.none() | st.floats(0, 1e6, width=32)] * 5,
), max_size=30)  # fmt: skip


@given(seconds_of_hosts)
def test_seconds_that_come_together_are_those_that_come_alone(told: list[HostFigures]) -> None:
    alone, together = FleetState(), FleetState()
    for one in told:
        alone.apply(one)
    together.apply(HostFiguresBatch(tuple(told)))
    for scene in (alone, together):
        scene.apply(MergedInterval(9, 1.0, expected=3, counted=3))
    assert [*alone.hosts] == [*together.hosts]
    for name, other in together.hosts.items():
        line = alone.hosts[name]
        assert (line.state, line.oddness) == (other.state, other.oddness)
        for figure, past in line.history.items():
            assert past.between(0, 10) == other.history[figure].between(0, 10)


@given(seconds_of_hosts)
def test_a_hosts_figures_are_the_newest_that_came_of_each_second(told: list[HostFigures]) -> None:
    scene, kept, last = FleetState(), {}, {}
    for one in told:
        scene.apply(one)
        if one.complete and one.number >= last.get(one.name, 0):
            last[one.name] = one.number
            kept[one.name, one.number] = one.iops
    for name, newest in last.items():
        found = scene.hosts[name].history[s.IOPS].between(0, newest + 1)
        assert found == [kept.get((name, second)) for second in range(newest + 1)]


def test_the_odd_one_is_found_whether_it_is_slow_or_late() -> None:
    scene = FleetState()
    for second in range(10):
        for at in range(8):
            slow = HostFigures(f"h{at}", second, True, 50.0 if at == 3 else 100.0, 1.0,
                              4e6 if at == 5 else 1e6)  # fmt: skip
            scene.apply(slow)
        scene.apply(MergedInterval(second, 1.0, expected=8, counted=8))
    hosts = [*scene.hosts.values()]
    assert [one.name for one in order_hosts(hosts, OUTLIERS, 9)[:2]] == ["h5", "h3"]
    assert order_hosts(hosts, s.IOPS, 9)[0].name == "h3"
    assert order_hosts(hosts, s.WAIT, 9)[0].name == "h5"


def test_starts_are_compared_by_one_clock() -> None:
    scene = FleetState()
    for name, wall, offset in (("a", 1000.0, 0.0), ("b", 61_004.5, 60_000.0)):
        row = {"event": "executed", "wall_ms": wall, "offset_ms": offset, "error_ms": 0.25}
        scene.apply(HostRow(name, row))
    assert scene.spread() == (4.5, 0.5, 2)


def test_names_are_in_the_order_of_their_numbers() -> None:
    names = [f"n{n}" for n in range(1, 13)] + ["n2b", "a"]
    shuffled = random.Random(1).sample(names, len(names))
    found = [one.name for one in order_hosts([HostState(name) for name in shuffled], NAME, 0)]
    assert found == ["a", "n1", "n2", "n2b", *(f"n{n}" for n in range(3, 13))]


@pytest.mark.parametrize(("names", "words"), [
    (["n7"], "n7"), (["node001", "node002", "node067"], "node001-067"), (["a1", "b2"], "a1..b2"),
    (["n9", "n10"], "n9-10"), (["db1.x", "db2.x"], "db1.x-2.x"),
])  # fmt: skip
def test_a_row_of_hosts_in_a_word(names: list[str], words: str) -> None:
    assert s.name_range(names) == words


def watched_after(how: str, states: dict[str, HostStateChanged]) -> FleetState:
    """The state after a run that ended in this way, and a second of watching its hosts."""
    scene = FleetState()
    scene.apply(FleetRunStarted(1, tuple(states), 0.0, "job"))
    for name, state in states.items():
        scene.apply(HostFigures(name, 10, True, 1.0, 1.0, 1.0, 1.0))
        scene.apply(state)
    scene.apply(MergedInterval(10, 1.0, expected=len(states), counted=len(states)))
    scene.apply(FleetRunFinished(how))
    scene.apply(FleetRunStarted(0, tuple(states), 20.0, watching=True, between_runs=True))
    for name in states:
        scene.apply(HostStateChanged(name, s.READY))
        scene.apply(HostRow(name, {"event": "session", "opened": ["vda"]}))
    assert s.active_hosts_text(scene) == s.counted(len(states), "host")
    for name in states:
        scene.apply(HostFigures(name, 25, True, 2.0, 1.0, 1.0, 1.0))
    scene.apply(MergedInterval(25, 1.0, expected=len(states), counted=len(states)))
    return scene


def test_between_two_runs_hosts_are_watched_and_who_failed_keeps_its_reason() -> None:
    scene = watched_after(
        s.FAILED,
        {"a": HostStateChanged("a", s.RUNNING), "b": HostStateChanged("b", s.FAILED, "no room")},
    )
    a, b = scene.hosts["a"], scene.hosts["b"]
    assert (a.state, b.state, b.error) == (s.WATCHED, s.FAILED, "no room")
    assert (a.value(s.IOPS, 25), b.value(s.IOPS, 25)) == (2.0, 2.0)
    assert s.active_hosts_text(scene) == "2 of 2 hosts watched" and scene.run_start == 10
    # a watched host can be lost; why the watch ended is known
    scene.apply(HostStateChanged("a", s.LOST, "cut"))
    assert (a.state, a.error) == (s.LOST, "cut")
    scene.apply(FleetRunFinished(s.STOPPED, messages=("nobody is there",), between_runs=True))
    assert scene.watch_end_reason == "nobody is there" and not scene.running
    scene.apply(FleetRunStarted(2, ("a", "b"), 30.0, "job"))
    assert (b.state, b.error, scene.watch_end_reason, scene.run_start) == (
        s.CONNECTING,
        "",
        "",
        None,
    )


def test_who_was_missing_when_a_recording_ends_is_lost_and_not_done() -> None:
    scene = FleetState()
    scene.apply(FleetRunStarted(1, ("a", "b"), 0.0, "job"))
    for name in ("a", "b"):
        scene.apply(HostFigures(name, 10, True, 1.0, 1.0, 1.0, 1.0))
    scene.apply(MergedInterval(11, 1.0, expected=2, counted=1, missing=("b",)))
    scene.apply(FleetRunFinished(s.DONE))
    assert [(one.state, one.error) for one in scene.hosts.values()] == [
        (s.DONE, ""), (s.LOST, s.NO_END_REASON)
    ]  # fmt: skip


def test_who_was_only_stopped_by_another_s_failure_has_not_failed() -> None:
    scene = FleetState()
    scene.apply(FleetRunStarted(1, ("a", "b"), 0.0, "job"))
    scene.apply(HostStateChanged("b", s.LEFT_OUT, "it lacks fio"))
    scene.apply(FleetRunFinished(s.FAILED))
    assert [one.state for one in scene.hosts.values()] == [s.STOPPED, s.LEFT_OUT]
