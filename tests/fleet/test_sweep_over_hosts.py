"""A sweep over hosts beside a screen: its points one after another, and what ends it."""

from __future__ import annotations

import argparse
import queue
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from made import stream
from test_fleet_session import WITHIN_S, Made

from iopstui.cli.commands import fleet as command
from iopstui.cli.fleet.record_file import run_over_object, run_started_object
from iopstui.cli.fleet.screen import FleetRecorder, FleetRunPlanner
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, EXIT_VERDICT, UsageError
from iopstui.fleet.fleet import Fleet
from iopstui.fleet.fleet_events import FleetEvent, FleetRunStarted
from iopstui.fleet.fleet_state import IDLE, FleetState
from iopstui.fleet.hosts.host_tunables import HostTunables
from iopstui.fleet.hosts.nodes import parse_nodes
from iopstui.fleet.merging.merger import Merger
from iopstui.fleet.replay import FleetReplay
from iopstui.fleet.scaling_curve import (
    ScalePoint,
    ScalingCurve,
    SweepPosition,
    default_host_counts,
    parse_host_counts,
)
from iopstui.fleet.session import FleetSession, PlannedRun, RunVerdict
from iopstui.output.fleet.scaling import scaling_texts

FAKE = Path(__file__).parents[1] / "helpers" / "fake_agent.py"


class Swept:
    """A session whose points come to what ``ends`` says; "stays": goes on until it is stopped."""

    def __init__(self, ends: Sequence[RunVerdict | str | Exception]) -> None:
        self.asked: list[tuple[int, str, dict[str, str], SweepPosition | None]] = []
        self.told: queue.Queue[FleetEvent] = queue.Queue()
        self._ends = list(ends)
        self.session = FleetSession(
            self.plan, hosts=("a", "b", "c"),
            table=lambda points: tuple(f"{one.hosts} hosts" for one in points),
        )  # fmt: skip
        self.session.start(self.told.put)

    def plan(
        self, number: int, job: str, options: Mapping[str, str], place: SweepPosition | None
    ) -> PlannedRun:
        self.asked.append((number, job, dict(options), place))
        end = self._ends[number - 1]
        if isinstance(end, Exception):
            raise end
        done = end if isinstance(end, RunVerdict) else RunVerdict(EXIT_INTERRUPTED, ("a spread",))
        begun = FleetRunStarted(
            number, ("a", "b", "c")[: place.hosts if place else 3], 0.0, job, sweep_position=place
        )
        made = cast("Fleet", Made(end == "stays"))
        return PlannedRun(lambda callbacks: made, Merger(), begun, lambda second: None,
                       lambda name, row: None, lambda second: "", lambda fleet: done)  # fmt: skip

    def until(self, kind: type) -> FleetEvent:
        while True:
            one = self.told.get(timeout=WITHIN_S)
            if type(one) is kind:
                return one

    def over(self) -> ScalingCurve:
        while True:
            one = self.until(ScalingCurve)
            assert isinstance(one, ScalingCurve)
            if one.point_number is None:
                return one


def counts(hosts: int) -> RunVerdict:
    return RunVerdict(EXIT_OK, point=ScalePoint(hosts, Merger().run_sums()))


def test_points_are_run_one_after_another_on_the_first_hosts() -> None:
    late = RunVerdict(EXIT_VERDICT, point=ScalePoint(2, Merger().run_sums()))
    swept = Swept([counts(1), late, counts(3)])
    swept.session.sweep((1, 2, 3), "one", {"runtime": "5"})
    for at in range(3):
        one = swept.until(ScalingCurve)
        assert isinstance(one, ScalingCurve) and (one.point_number, len(one.points)) == (at, at)
        begun = swept.until(FleetRunStarted)
        assert isinstance(begun, FleetRunStarted) and begun.hosts == ("a", "b", "c")[: at + 1]
    over = swept.over()
    assert [one.hosts for one in over.measured_points] == [1, 2, 3] and not over.end_reason
    assert over.exit_lines == ("1 hosts", "2 hosts", "3 hosts") and over.code == EXIT_VERDICT
    assert not swept.session.running
    swept.session.close()
    assert swept.asked == [
        (n + 1, "one", {"runtime": "5"}, SweepPosition((1, 2, 3), n)) for n in range(3)
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["stop", "run", "close"])
def test_what_was_measured_before_it_is_stopped_stays(how: str) -> None:
    swept = Swept([counts(1), "stays", counts(3), counts(3)])
    swept.session.sweep((1, 2, 3), "one", {})
    while len(swept.asked) < 2:
        swept.until(FleetRunStarted)
    assert swept.session.running
    {"stop": swept.session.stop, "run": lambda: swept.session.run("two", {}),
     "close": swept.session.close}[how]()  # fmt: skip
    over = swept.over()
    assert over.end_reason == "stopped" and [*over.points] == [0] and over.notes == {1: "stopped"}
    # what a key has stopped has not failed
    assert over.code == EXIT_INTERRUPTED and over.exit_lines[-1] == over.end_text
    if how == "run":
        swept.until(FleetRunStarted)
    swept.session.close()
    jobs = [(job, place) for _, job, _, place in swept.asked[2:]]
    assert jobs == ([("two", None)] if how == "run" else [])


def test_a_point_that_does_not_count_is_noted_and_what_can_t_be_run_ends_it() -> None:
    swept = Swept([
        counts(1), RunVerdict(EXIT_JOB_FAILED, ("does not count",)), UsageError("That can't be."),
    ])  # fmt: skip
    swept.session.sweep((1, 2, 3, 2), "one", {})
    over = swept.over()
    assert over.notes == {1: "does not count", 2: "That can't be."}
    assert over.end_reason.startswith("That can't be.") and len(swept.asked) == 3
    assert over.code == 2
    swept.session.close()


def test_a_fault_at_a_later_point_is_said() -> None:
    swept = Swept([counts(1), ZeroDivisionError("ours")])
    swept.session.sweep((1, 2, 3), "one", {})
    over = swept.over()
    assert over.end_reason == "an internal error of iopstui" and [*over.points] == [0]
    swept.session.close()


def test_the_last_point_that_is_stopped_ends_it_early_and_one_that_failed_does_not() -> None:
    curve = ScalingCurve("one", (1, 2), 1, {0: ScalePoint(1, Merger().run_sums())})
    assert (
        curve.with_point(None, EXIT_INTERRUPTED, ()).with_end("stopped").end_text
        == "ended early: stopped"
    )
    assert (
        curve.with_point(None, EXIT_JOB_FAILED, ("it broke",)).with_end("it broke").end_text == ""
    )
    assert curve.with_end("cut off").end_text == "ended early: cut off"


def test_an_abort_ends_it() -> None:
    swept = Swept([RunVerdict(EXIT_JOB_FAILED, ("does not count",), ends_sweep=True), counts(2)])
    swept.session.sweep((1, 2), "one", {})
    assert swept.over().end_reason == "does not count" and len(swept.asked) == 1
    swept.session.close()


def test_a_point_has_the_first_hosts_and_one_that_is_lost_is_no_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    launcher = f"{shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} {{host}}"
    record = tmp_path / "all.jsonl"
    said = parser.parse_args(["good1,die1", "--job", "randread-4k", "--launcher", launcher,
                              "--record", str(record)])  # fmt: skip
    nodes, recorder = parse_nodes(said.hosts), FleetRecorder(str(record))
    planner = FleetRunPlanner(said, nodes, (), 2, recorder, HostTunables())
    told: queue.Queue[FleetEvent] = queue.Queue()
    session = FleetSession(planner, table=scaling_texts)
    session.start(told.put)
    session.sweep((1, 2), "randread-4k", {})
    over = None
    while not isinstance(over, ScalingCurve) or over.point_number is not None:
        over = told.get(timeout=WITHIN_S)
    session.close()
    recorder.close()
    (point,) = over.measured_points
    assert (point.hosts, point.iops, [*point.iops_by_host]) == (1, 100, ["good1"])
    assert over.notes == {1: "not counted: the job finished on 1 of 2: die1 (its connection has"
                             " ended)"}  # fmt: skip
    assert over.exit_lines[1].split()[:2] == ["1", "100"]
    kept = record.read_text()
    assert '"axis":[1,2],"point":1' in kept and kept.count('"event":"fleet_over"') == 2


def recorded() -> list[tuple[str, dict[str, object]]]:
    """Two points, of which the second one failed, and then a run that is no point."""
    rows: list[tuple[str, dict[str, object]]] = []
    for number, (hosts, code) in enumerate([(1, 0), (2, 1), (2, 0)]):
        names = tuple(f"h{n}" for n in range(hosts))
        place = SweepPosition((1, 2, 2), number) if number < 2 else None
        begun = FleetRunStarted(
            number + 1, names, 1_800_000_000.0 + 700 * number, "one", sweep_position=place
        )
        rows.append(("fleet", run_started_object(begun, 1.0)))
        begin_ms = begun.wall_s * 1000
        for name in names:
            rows += [(name, row) for row in stream(name, number, 4, begin_ms)]
        rows.append(("fleet", run_over_object(code, ["it broke"] if code else [])))
    return rows


def test_a_recording_of_one_tells_the_same_also_after_a_jump() -> None:
    rows = recorded()
    told: queue.Queue[FleetEvent] = queue.Queue()
    replay = FleetReplay(lambda: iter(rows), speed=1e9)
    # farther than what a chart keeps
    replay.seek(replay.end)
    replay.start(told.put)
    over = None
    while not isinstance(over, ScalingCurve) or over.point_number is not None:
        over = told.get(timeout=WITHIN_S)
    replay.close()
    assert over.counts == (1, 2, 2) and [one.hosts for one in over.measured_points] == [1]
    assert (
        over.measured_points[0].iops > 0
        and over.notes == {1: "it broke"}
        and over.end_reason == "it broke"
    )


def test_hosts_that_take_no_part_rest() -> None:
    scene = FleetState()
    scene.apply(FleetRunStarted(1, ("a", "b"), 0.0, "one"))
    scene.apply(FleetRunStarted(2, ("a",), 0.0, "one", sweep_position=SweepPosition((1, 2), 0)))
    assert [one.state for one in scene.hosts.values()] == ["connects", IDLE]


@pytest.mark.parametrize(("hosts", "values"), [
    (2, "1,2"), (3, "1,2,3"), (4, "1,2,3,4"), (5, "1,2,4,5"), (16, "1,2,4,8,16"),
    (40, "1,2,4,8,16,32,40"),
])  # fmt: skip
def test_the_usual_axis(hosts: int, values: str) -> None:
    assert default_host_counts(hosts) == values
    assert parse_host_counts(f"hosts={values}", hosts)[-1] == hosts
