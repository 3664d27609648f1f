"""A sweep of a fleet: its points in order, what ends it, its rows, its recording."""

from __future__ import annotations

import argparse
import io
import json
import queue
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from json_schema import check_line
from made import stream
from test_fleet_session import WITHIN_S, Made

from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, UsageError
from iopstui.events import ExperimentFinished, PointFailed, PointFinished, PointStarted
from iopstui.features.fleet import command_fleet as command
from iopstui.features.fleet.fleet import Fleet
from iopstui.features.fleet.fleet_events import FleetEvent, FleetRunStarted
from iopstui.features.fleet.fleet_state import IDLE, FleetState
from iopstui.features.fleet.host_sweep import (
    HostSweep,
    RunVerdict,
    SweepEvent,
    SweepEvents,
    host_point,
    job_seconds,
    sweep_exit_code,
)
from iopstui.features.fleet.hosts.host_tunables import HostTunables
from iopstui.features.fleet.hosts.nodes import parse_nodes
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.program.run import sweep_plan
from iopstui.features.fleet.program.run_planner import run_over_object, run_started_object
from iopstui.features.fleet.program.screen import FleetRecorder, FleetRunPlanner
from iopstui.features.fleet.replay import FleetReplay
from iopstui.features.fleet.session import FleetSession, PlannedRun
from iopstui.model.experiment.host_sweep import HostPlan, HostPoint, SweptPoint, usual_counts
from iopstui.model.experiment.plan import PlannedPoint, expand_plan, parse_axis
from iopstui.output.experiment.sinks import experiment_sink

FAKE = Path(__file__).parents[1] / "helpers" / "fake_agent.py"


def plan_of(*axes: str, repeats: int = 1, job: str = "randread-4k") -> HostPlan:
    made = tuple(map(parse_axis, axes))
    return HostPlan((job,), {"runtime": "5"}, made, repeats=repeats, settle=0, measure=5)


def measured(hosts: int, planned: int = 0, met: bool | None = None) -> HostPoint:
    merger = Merger()
    for number in range(hosts):
        for row in stream(f"h{number}", number, 4):
            merger.feed(f"h{number}", row)
    list(merger.finish())
    return host_point(hosts, planned or hosts, merger, met)


def counts(hosts: int) -> RunVerdict:
    return RunVerdict(EXIT_OK, point=measured(hosts))


class Swept:
    """A session whose points end as ``ends`` says; "stays": the point goes on until it is
    stopped."""

    def __init__(self, ends: Sequence[RunVerdict | str | Exception], stops_at: int = 0) -> None:
        """``stops_at``: the sweep is stopped just before the hosts of this run get their orders."""
        self._stops_at = stops_at
        self.asked: list[tuple[int, str, dict[str, str], int | None]] = []
        self.told: queue.Queue[FleetEvent] = queue.Queue()
        self.points: list[PointFinished] = []
        self.failed: list[PointFailed] = []
        self._ends = list(ends)
        self.session = FleetSession(self.plan, hosts=("a", "b", "c"))
        self.session.start(self.told.put)

    def plan(
        self, number: int, job: str, options: Mapping[str, str], point: SweptPoint | None
    ) -> PlannedRun:
        hosts = point.hosts if point is not None else None
        self.asked.append((number, job, dict(options), hosts))
        end = self._ends[number - 1]
        if number == self._stops_at:
            self.session.stop()
        if isinstance(end, Exception):
            raise end
        done = end if isinstance(end, RunVerdict) else RunVerdict(EXIT_INTERRUPTED, ("a spread",))
        begun = FleetRunStarted(number, ("a", "b", "c")[:hosts], 0.0, job, point=point)
        made = cast("Fleet", Made(end == "stays"))
        return PlannedRun(lambda callbacks: made, Merger(), begun, lambda name, row: None,
                          lambda second: "", lambda fleet: done)  # fmt: skip

    def until(self, kind: type) -> FleetEvent:
        while True:
            one = self.told.get(timeout=WITHIN_S)
            if isinstance(one, PointFinished):
                self.points.append(one)
            if isinstance(one, PointFailed):
                self.failed.append(one)
            if type(one) is kind:
                return one

    def over(self) -> ExperimentFinished:
        end = self.until(ExperimentFinished)
        assert isinstance(end, ExperimentFinished)
        return end


def test_points_are_run_one_after_another_on_the_first_hosts() -> None:
    swept = Swept([counts(1), counts(2), counts(3)])
    swept.session.sweep(plan_of("hosts=1,2,3"))
    for at in range(3):
        one = swept.until(PointStarted)
        assert isinstance(one, PointStarted) and one.index == at
        begun = swept.until(FleetRunStarted)
        assert isinstance(begun, FleetRunStarted) and begun.hosts == ("a", "b", "c")[: at + 1]
    over = swept.over()
    assert (over.done, over.interrupted, over.error, over.failed) == (3, False, "", 0)
    assert over.said == ("no scaling law fits: it needs 4 points, but there are 3 points",)
    assert [one.settings for one in swept.points] == [(("hosts", f"{n}"),) for n in (1, 2, 3)]
    assert not swept.session.running
    swept.session.close()
    seeds = [options.pop("randseed") for _, _, options, _ in swept.asked]
    assert len(set(seeds)) == 3  # each point reads other blocks
    options = {"randrepeat": "0", "runtime": "5"}
    assert swept.asked == [(n, "randread-4k", options, n) for n in (1, 2, 3)]


def test_an_option_of_fio_is_an_axis_beside_the_hosts() -> None:
    swept = Swept([counts(1), counts(2)] * 2)
    swept.session.sweep(plan_of("hosts=1,2", "iodepth=1,8"))
    assert swept.over().done == 4
    swept.session.close()
    assert [(options["iodepth"], hosts) for _, _, options, hosts in swept.asked] == [
        ("1", 1), ("1", 2), ("8", 1), ("8", 2),
    ]  # fmt: skip
    # each curve has its own first point
    shares = [one.point.linear for one in swept.points if isinstance(one.point, HostPoint)]
    assert shares[0] == shares[2] == 1 and shares[1] == shares[3]


@pytest.mark.parametrize("how", ["stop", "run", "close"])
def test_what_was_measured_before_it_is_stopped_stays(how: str) -> None:
    swept = Swept([counts(1), "stays", counts(3), counts(3)])
    swept.session.sweep(plan_of("hosts=1,2,3"))
    while len(swept.asked) < 2:
        swept.until(FleetRunStarted)
    assert swept.session.running
    {"stop": swept.session.stop, "run": lambda: swept.session.run("two", {}),
     "close": swept.session.close}[how]()  # fmt: skip
    over = swept.over()
    assert (over.done, over.interrupted, over.error) == (1, True, "")
    assert len(swept.points) == 1 and not swept.failed
    if how == "run":
        swept.until(FleetRunStarted)
    swept.session.close()
    jobs = [(job, hosts) for _, job, _, hosts in swept.asked[2:]]
    assert jobs == ([("two", None)] if how == "run" else [])


def test_a_sweep_is_stopped_before_the_hosts_of_a_point_are_asked() -> None:
    swept = Swept([counts(1), "stays", counts(3)], stops_at=2)
    swept.session.sweep(plan_of("hosts=1,2,3"))
    over = swept.over()
    assert (over.done, over.interrupted, over.error) == (1, True, "")
    swept.session.close()


def test_a_point_that_does_not_count_is_noted_and_what_can_t_be_run_ends_it() -> None:
    swept = Swept([
        counts(1), RunVerdict(EXIT_JOB_FAILED, ("does not count",)), UsageError("That can't be."),
    ])  # fmt: skip
    swept.session.sweep(plan_of("hosts=1,2,3", "iodepth=1,2"))
    over = swept.over()
    assert [(one.index, one.error) for one in swept.failed] == [
        (1, "does not count"), (2, "That can't be.")
    ]  # fmt: skip
    assert over.error.startswith("That can't be.") and len(swept.asked) == 3 and over.failed == 2
    swept.session.close()


def test_a_fault_at_a_later_point_is_said() -> None:
    swept = Swept([counts(1), ZeroDivisionError("ours")])
    swept.session.sweep(plan_of("hosts=1,2,3"))
    over = swept.over()
    assert over.error == "an internal error of iopstui" and over.done == 1
    swept.session.close()


def test_an_abort_ends_it() -> None:
    swept = Swept([RunVerdict(EXIT_JOB_FAILED, ("does not count",), ends_sweep=True), counts(2)])
    swept.session.sweep(plan_of("hosts=1,2"))
    assert swept.over().error == "does not count" and len(swept.asked) == 1
    swept.session.close()


@pytest.mark.parametrize(("codes", "screen", "code"), [
    ([0, 0], False, 0), ([0, 4, 0], False, 4), ([4, 1], False, 1), ([4, 1, 130], False, 130),
    ([4, 130], True, 4), ([1, 2], False, 2), ([], False, 0),
])  # fmt: skip
def test_the_exit_code_is_that_of_all_points(codes: list[int], screen: bool, code: int) -> None:
    assert sweep_exit_code(codes, screen) == code


def fake_fleet(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    launcher = f"{shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} {{host}}"
    return parser.parse_args([*words, "--job", "randread-4k", "--launcher", launcher])


@pytest.mark.parametrize(("enough", "points"), [(2, 1), (1, 2)])
def test_a_point_has_the_first_hosts_and_enough_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enough: int, points: int
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    record = tmp_path / "all.jsonl"
    second = "queued1" if enough == 1 else "die1"
    said = fake_fleet(f"good1,{second}", "--record", str(record), "--connect-timeout", "1s")
    nodes, recorder = parse_nodes(said.hosts), FleetRecorder(str(record))
    planner = FleetRunPlanner(said, nodes, (), enough, recorder, HostTunables())
    told: queue.Queue[FleetEvent] = queue.Queue()
    session = FleetSession(planner)
    session.start(told.put)
    session.sweep(plan_of("hosts=1,2", job="randread-4k"))
    events: list[FleetEvent] = []
    while not events or not isinstance(events[-1], ExperimentFinished):
        events.append(told.get(timeout=WITHIN_S))
    session.close()
    recorder.close()
    done = [one for one in events if isinstance(one, PointFinished)]
    assert len(done) == points
    for one in done:
        assert isinstance(one.point, HostPoint)
        assert (one.point.hosts, one.point.iops, [*one.point.iops_by_host]) == (1, 100, ["good1"])
    if points == 2:
        assert done[1].point.disturbed == ("only 1 of 2 hosts took part",)
    else:
        (failed,) = [one for one in events if isinstance(one, PointFailed)]
        assert failed.error == (
            "not counted: the job finished on 1 of 2: die1 (its connection has ended)"
        )
    kept = record.read_text()
    assert '"axes":{"hosts":["1","2"]}' in kept and '"point":1' in kept
    assert kept.count('"event":"fleet_over"') == 2


def recorded(older: bool = False) -> list[tuple[str, dict[str, object]]]:
    """Lines of two points, the second of which failed, and of a run that is not a point. ``older``:
    in the old format, which has only the number of hosts of each point."""
    rows: list[tuple[str, dict[str, object]]] = []
    steps = [*expand_plan(plan_of("hosts=1,2,3"))]
    for number, (hosts, code) in enumerate([(1, 0), (2, 1), (2, 0)]):
        names = tuple(f"h{n}" for n in range(hosts))
        point = SweptPoint(plan_of("hosts=1,2,3"), steps[number]) if number < 2 else None
        begun = FleetRunStarted(number + 1, names, 1_800_000_000.0 + 700 * number, "one",
                                point=point)  # fmt: skip
        row = run_started_object(begun, 1.0)
        if older and row.pop("axes", None):
            row["axis"] = [1, 2, 3]
        rows.append(("fleet", row))
        begin_ms = begun.wall_s * 1000
        for name in names:
            rows += [(name, row) for row in stream(name, number, 4, begin_ms)]
        rows.append(("fleet", run_over_object(code, ["it broke"] if code else [])))
    return rows


@pytest.mark.parametrize("older", [False, True])
def test_a_recording_of_one_tells_the_same_also_after_a_jump(older: bool) -> None:
    rows = recorded(older)
    told: queue.Queue[FleetEvent] = queue.Queue()
    replay = FleetReplay(lambda: iter(rows), speed=1e9)
    # further than the charts keep seconds
    replay.seek(replay.end)
    replay.start(told.put)
    events: list[FleetEvent] = []
    while not events or not isinstance(events[-1], ExperimentFinished):
        events.append(told.get(timeout=WITHIN_S))
    replay.close()
    (done,) = [one for one in events if isinstance(one, PointFinished)]
    (failed,) = [one for one in events if isinstance(one, PointFailed)]
    assert isinstance(done.point, HostPoint) and done.point.hosts == 1 and done.point.iops > 0
    assert (done.total, failed.label, failed.error) == (3, "hosts=2", "it broke")
    end = events[-1]
    assert isinstance(end, ExperimentFinished) and end.error == "it broke" and end.done == 1


@pytest.mark.parametrize("row", [
    {"axes": {"hosts": []}}, {"axes": {}}, {"axes": [1]}, {"axis": ["x"]}, {"axis": 3},
    {"axis": [1, 1]}, {"axes": {"rq_affinity": ["1"]}}, {"axes": {"hosts": ["1"], "bs": 3}},
    {"axes": {"hosts": ["1..99999"], "iodepth": ["1..99999"]}}, {"axis": [1], "point": 7},
    {"axis": [1], "point": True}, {"axes": {"hosts": [[]]}}, {"axis": [1], "repeats": 10**9},
])  # fmt: skip
def test_a_recorded_run_with_odd_axes_belongs_to_no_sweep(row: dict[str, object]) -> None:
    rows = recorded()
    rows[0] = ("fleet", {**{key: value for key, value in rows[0][1].items() if key != "axes"},
                         **row})  # fmt: skip
    told: list[FleetEvent] = []
    replay = FleetReplay(lambda: iter(rows[: 1 + 4]), speed=1e9)
    replay._sink = told.append
    for item in replay._items(None):
        replay._show(item)
    assert any(isinstance(one, FleetRunStarted) and one.point is None for one in told)


def test_hosts_that_take_no_part_rest() -> None:
    scene = FleetState()
    scene.apply(FleetRunStarted(1, ("a", "b"), 0.0, "one"))
    scene.apply(FleetRunStarted(2, ("a",), 0.0, "one"))
    assert [one.state for one in scene.hosts.values()] == ["connects", IDLE]


class HalfLinear(HostPlan):
    """Ends the sweep when a host does less than half of what it did at the first point."""

    __slots__ = ()

    def next(self, done: Sequence[Any], left: Sequence[PlannedPoint]) -> PlannedPoint | None:
        slow = bool(done) and done[-1].point.linear < 0.5
        return None if slow else super().next(done, left)


def test_a_plan_of_a_fleet_ends_when_it_says_so() -> None:
    axis, events = (parse_axis("hosts=1,2,3"),), list[SweepEvent]()
    plan = HalfLinear(("one",), {}, axis, settle=0, measure=5)

    def run(step: PlannedPoint) -> RunVerdict:
        point = measured(1)
        return RunVerdict(EXIT_OK, point=replace(point, iops=point.iops / (1 + 2 * step.index)))

    HostSweep(plan, run, events.append, lambda: False).run()
    points = [event.label for event in events if isinstance(event, PointFinished)]
    assert points == ["hosts=1", "hosts=2"]
    (end,) = [event for event in events if isinstance(event, ExperimentFinished)]
    assert (end.done, end.total, end.enough, end.error) == (2, 3, True, "")


# -- its rows


def printed(kind: str, *axes: str, repeats: int = 1) -> str:
    plan, out = plan_of(*axes, repeats=repeats), io.StringIO()
    sink = experiment_sink(plan, kind, "fleet", None, out, io.StringIO())
    events: list[SweepEvent] = []
    sweep = SweepEvents(plan, events.append)
    for step in expand_plan(plan):
        sweep.begin(step)
        sweep.finish(step, measured(SweptPoint(plan, step).hosts or 3, met=True))
    sweep.end()
    for event in events:
        sink.handle(event)
    sink.end()
    return out.getvalue()


@pytest.mark.parametrize(("axes", "repeats"), [
    (("hosts=1,2,4,8",), 1), (("hosts=1,2,4,8", "iodepth=1,16"), 1), (("hosts=1,2",), 2),
])  # fmt: skip
def test_the_table_fits_into_80_columns(axes: tuple[str, ...], repeats: int) -> None:
    lines = printed("table", *axes, repeats=repeats).splitlines()
    assert lines[0].split()[:2] == ["#", "hosts"] and "linear" in lines[0]
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("expectations: ")


@pytest.mark.parametrize("repeats", [1, 2])
def test_rows_of_json_and_csv_have_what_each_host_did(repeats: int) -> None:
    rows = [json.loads(line) for line in printed("jsonl", "hosts=1,2,4,8", repeats=repeats)
            .splitlines()]  # fmt: skip
    for row in rows:
        check_line(row)
    points = [row["point"] for row in rows if row["event"] == "point_finished"]
    last = points[-1]
    assert last["iops_lowest"] <= last["iops_host"] <= last["iops_highest"]
    assert last["linear"] == pytest.approx(last["iops"] / 8 / points[0]["iops"])
    assert sum(last["iops_by_host"].values()) == pytest.approx(last["iops"])
    law = next(row for row in rows if row["event"] == "scaling")
    assert [hosts for hosts, _ in law["points"]] == [1, 2, 4, 8]
    head, *table = printed("csv", "hosts=1,2,4,8").splitlines()
    assert len(table) == 4 and {line.count(",") for line in table} == {head.count(",")}
    assert head.split(",")[:3] == ["index", "job", "hosts"]


# -- what can be asked for


@pytest.mark.parametrize(("hosts", "values"), [
    (2, "1,2"), (3, "1,2,3"), (4, "1,2,3,4"), (5, "1,2,4,5"), (16, "1,2,4,8,16"),
    (40, "1,2,4,8,16,32,40"),
])  # fmt: skip
def test_the_usual_axis(hosts: int, values: str) -> None:
    assert usual_counts(hosts) == values


def asked(*axes: str, **more: object) -> HostPlan | None:
    said = fake_fleet("x", *(word for axis in axes for word in ("--axis", axis)))
    return sweep_plan(argparse.Namespace(**{**vars(said), **more}), 16)


def test_a_sweep_knows_how_long_its_job_runs() -> None:
    plan = asked("hosts=1,2,4..16", set=["runtime=7"])
    assert plan is not None and plan.measure == 7 and plan.points == 5
    assert job_seconds("randread-4k", {"runtime": "2m"}) == 120
    assert asked() is None


@pytest.mark.parametrize(("axes", "more"), [
    (["hosts=0,1"], {}), (["hosts=1,2,4..32"], {}), (["hosts=x"], {}), (["hosts="], {}),
    (["hosts=1,1"], {}), (["hosts=1.5"], {}), (["hosts=-1"], {}), (["hosts=²"], {}),
    (["rq_affinity=1,2"], {}), (["size=1m,2m"], {}), (["hosts=1,2"], {"job": None}),
    (["hosts=" + "9" * 5000], {}), (["hosts=1,2", "hosts=3,4"], {}), ([], {"repeats": 2}),
    (["iodepth=1,2"], {"set": ["iodepth=4"]}), (["hosts=1,2"], {"job": "no-such-job"}),
])  # fmt: skip
def test_what_is_no_axis_of_a_fleet(axes: list[str], more: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        asked(*axes, **more)
