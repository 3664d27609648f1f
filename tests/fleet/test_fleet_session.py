"""A fleet beside a screen: runs that can't start are reported, and the session goes on."""

from __future__ import annotations

import argparse
import errno
import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_VERDICT, JobFailed, UsageError
from iopstui.features.fleet import fleet_state
from iopstui.features.fleet.fleet import LATE_AFTER_S, Fleet, FleetCallbacks, FleetOptions
from iopstui.features.fleet.fleet_events import FleetEvent, FleetRunFinished, FleetRunStarted
from iopstui.features.fleet.host_sweep import RunVerdict
from iopstui.features.fleet.hosts.member import GREETED, LAUNCHED, OVER, STARTED, Member
from iopstui.features.fleet.hosts.nodes import parse_nodes
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.program.agent_orders import AgentOrders, launch_command, new_record_path
from iopstui.features.fleet.program.screen import FleetRecorder
from iopstui.features.fleet.session import (
    FleetSession,
    PlannedRun,
    failed_hosts,
    failure_text,
    state_for_exit_code,
)
from iopstui.model.experiment.host_sweep import SweptPoint

WITHIN_S = 30.0


def test_what_can_t_be_planned_is_told_and_the_next_run_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    asked: list[tuple[int, str, dict[str, str]]] = []
    told: queue.Queue[FleetEvent] = queue.Queue()

    def plan(
        number: int, job: str, options: Mapping[str, str], place: SweptPoint | None
    ) -> PlannedRun:
        asked.append((number, job, dict(options)))
        if number == 1:
            raise UsageError("That can't be.", "Something else can.")
        raise RuntimeError("a fault of ours")

    session = FleetSession(plan)
    session.start(told.put)
    session.run("one", {"bs": "8k"})
    first = told.get(timeout=WITHIN_S)
    assert isinstance(first, FleetRunFinished)
    assert (first.state, first.code, first.messages) == (
        fleet_state.FAILED, 2, ("That can't be. Something else can.",)
    )  # fmt: skip
    session.run("two", {})
    second = told.get(timeout=WITHIN_S)
    assert isinstance(second, FleetRunFinished) and second.state == fleet_state.FAILED
    assert "internal error" in second.messages[0] and not session.running
    session.close()
    assert asked == [(1, "one", {"bs": "8k"}), (2, "two", {})]


def test_a_missed_verdict_is_no_failure_of_the_run() -> None:
    assert [state_for_exit_code(code) for code in (EXIT_OK, EXIT_VERDICT, EXIT_INTERRUPTED, 1)] == [
        fleet_state.DONE, fleet_state.DONE, fleet_state.STOPPED, fleet_state.FAILED
    ]  # fmt: skip


def test_a_full_disk_is_told_on_the_screen_at_once(tmp_path: Path) -> None:
    recorder = FleetRecorder(str(tmp_path / "all.jsonl"))
    told: list[str] = []
    recorder.on_warning = told.append
    assert recorder._file is not None
    recorder._file._give_up(OSError(errno.ENOSPC, "No space left on device"))
    assert told and "The run continues" in told[0]
    recorder.close()
    assert len(told) == 1


def test_a_launcher_is_a_command_and_becomes_root_only_where_that_is_asked() -> None:
    (node,) = parse_nodes("web1")
    with pytest.raises(UsageError, match="is not a command"):
        launch_command(argparse.Namespace(launcher=" ", bring=False, sudo=False), node)
    words = launch_command(argparse.Namespace(launcher="run {host}", bring=False, sudo=True), node)
    assert words[:2] == ["run", "web1"] and "sudo -n" in words[2]


def test_the_program_that_can_t_be_begun_is_named(tmp_path: Path) -> None:
    (node,) = parse_nodes("web1")
    callbacks = FleetCallbacks(lambda text: None, lambda second: None, lambda name, row: None,
                    lambda second: "")  # fmt: skip
    fleet = Fleet((node,), lambda node: [str(tmp_path / "kubectl")], lambda node: {}, Merger(),
                  FleetOptions(1), callbacks)  # fmt: skip
    with pytest.raises(JobFailed, match="kubectl: No such file") as found:
        fleet.run()
    assert "kubectl installed?" in str(found.value.hint)


class Made:
    """A fleet that runs until it is interrupted, or ends at once."""

    def __init__(self, stays: bool) -> None:
        self.members: dict[str, object] = {}
        self.stopped = ""
        self.has_changes = False
        self.on_tick: Callable[[], None] = lambda: None
        self._stays = stays
        self._end = threading.Event()

    def interrupt(self) -> None:
        self.stopped = "interrupted"
        self._end.set()

    def run(self) -> None:
        while self._stays and not self._end.wait(0.01):
            self.on_tick()


def planned(begun: FleetRunStarted, stays: bool) -> PlannedRun:
    fleet = cast("Fleet", Made(stays))
    return PlannedRun(
        lambda callbacks: fleet, Merger(), begun, lambda name, row: None, lambda second: "",
        lambda fleet: RunVerdict(0),
    )  # fmt: skip


def test_after_a_run_the_hosts_are_watched_until_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("iopstui.features.fleet.session.PAUSE_BEFORE_WATCHING_S", 0.01)
    told: queue.Queue[FleetEvent] = queue.Queue()

    def heard() -> tuple[type, bool]:
        one = told.get(timeout=WITHIN_S)
        assert isinstance(one, FleetRunStarted | FleetRunFinished)
        return type(one), one.between_runs

    session = FleetSession(
        lambda number, job, options, place: planned(
            FleetRunStarted(number, ("a",), 0.0, job), False
        ),
        watch=lambda: planned(
            FleetRunStarted(0, ("a",), 0.0, watching=True, between_runs=True), True
        ),
    )
    session.start(told.put)
    session.run("one", {})
    run, watch = (
        [(FleetRunStarted, False), (FleetRunFinished, False)],
        [(FleetRunStarted, True), (FleetRunFinished, True)],
    )
    assert [heard() for _ in range(3)] == [*run, watch[0]]
    # a run that has ended is not stopped, and watching is not a run
    session.stop()
    assert not session.running
    session.run("two", {})
    assert [heard() for _ in range(4)] == [watch[1], *run, watch[0]]
    session.close()
    assert heard() == watch[1]


def test_who_failed_is_named_with_the_reason_and_who_was_told_to_stop_is_not() -> None:
    errors = {"a": "interrupted", "b": "it lacks fio.", "c": "", "d": "cut", "e": "cut"}
    members = {name: SimpleNamespace(error=error) for name, error in errors.items()}
    found = failed_hosts(cast("Fleet", SimpleNamespace(members=members)))
    assert failure_text(found) == "b (it lacks fio), d (cut) and 1 more"


@pytest.mark.parametrize(
    ("opened", "target", "destroy", "watches"),
    [
        (["nvme0n1"], ["/mnt/x"], [], "/dev/nvme0n1"),
        ([], ["/mnt/x"], [], "/mnt/x"),
        ([], [], ["web1:/dev/disk/by-id/wwn-1"], "/dev/disk/by-id/wwn-1"),
        ([], [], [], "."),
    ],
)
def test_what_is_watched_between_two_runs_is_what_they_work_on_and_nothing_is_written(
    opened: list[str], target: list[str], destroy: list[str], watches: str
) -> None:
    (node,) = parse_nodes("web1")
    said = argparse.Namespace(job="randread-4k", target=target, destroy_data=destroy, interval=2.0,
                              set=[], knob=[], size=None, bind=None, no_fence=False,
                              record=None, probe=False, split=False,
                              until_steady=None)  # fmt: skip
    assert AgentOrders(said, (node,)).watch_order(node, opened) == {
        "arguments": [watches, "--interval", "2"], "job": None
    }  # fmt: skip
    said.probe = True
    assert AgentOrders(said, (node,)).watch_order(node, opened)["arguments"][-1] == "--probe"
    assert "--probe" in AgentOrders(said, (node,)).order_for(node)["arguments"]


def one_host(**more: object) -> tuple[Fleet, SimpleNamespace, list[str], list[object]]:
    """A fleet that watches one made-up host, its messages, and the orders to the host."""
    said: list[str] = []
    orders: list[object] = []
    callbacks = FleetCallbacks(
        said.append, lambda second: None, lambda name, row: None, lambda second: ""
    )
    fleet = Fleet(
        (), lambda node: [], lambda node: {}, Merger(), FleetOptions(1, watching=True), callbacks
    )
    host = SimpleNamespace(
        name="a", send_order=orders.append, ask_time=lambda: None,
        link=SimpleNamespace(unsent=False), silent_s=0.0, comparing_s=0.0, error="", is_lost=False,
        is_late=False, executed_ns=None, probe_problem="", **more,
    )  # fmt: skip
    fleet.members["a"] = cast("Member", host)
    return fleet, host, said, orders


def test_a_fleet_says_whether_a_hosts_state_may_be_another_one() -> None:
    fleet, host, _, _ = one_host(state=STARTED, last_row_ns=time.monotonic_ns())
    fleet.has_changes = False
    fleet._poll()
    assert not fleet.has_changes
    host.invalid_lines, host.silent_s, host.last_row_ns = 0, LATE_AFTER_S + 1, 0
    fleet._next_tick_s = fleet._next_check_s = 0.0
    fleet._poll()
    assert fleet.has_changes and host.is_late
    fleet.has_changes, fleet._next_tick_s, fleet._next_check_s = False, 0.0, 0.0
    fleet._poll()
    assert not fleet.has_changes
    fleet._handle_row(cast("Member", host), {"event": "frame"})
    assert fleet.has_changes and not host.is_late


def test_a_host_that_still_reads_the_package_is_given_no_order() -> None:
    fleet, host, _, orders = one_host(state=LAUNCHED)
    fleet.send_order("a", {"op": "tunables"})
    fleet._poll()
    assert orders == []
    host.state, fleet._next_check_s = GREETED, 0.0
    fleet.send_order("a", {"op": "tunables"})
    fleet._poll()
    assert orders == [{"op": "tunables"}]


def test_a_host_that_has_no_probe_is_named_once() -> None:
    fleet, host, said, _ = one_host(state=GREETED)
    for why in ("", "no BTF", "no BTF"):
        host.probe_problem, fleet._next_check_s = why, 0.0
        fleet._poll()
    assert said == ["a: no device percentiles: no BTF"]


def test_many_late_hosts_are_named_in_one_line() -> None:
    fleet, host, said, _ = one_host(state=STARTED)
    for count in (1, 5, 700):
        for n in range(count):
            host.name, host.silent_s, host.is_late = f"h{n}", 3.0, False
            fleet._check_member(cast("Member", host))
        fleet._report_late_hosts(100.0 * count)
        fleet._report_late_hosts(100.0 * count + 1)
    assert said[:2] == ["h0 is late: no data for 2.5 s"] * 2 and len(said) == 7
    assert said[-1] == "700 hosts are late: no data for 2.5 s: h0, h1, h2, h3, h4 ..."


def test_a_host_that_is_lost_without_a_job_is_named_once() -> None:
    fleet, host, said, _ = one_host(state=OVER)
    host.error, host.is_lost = "its connection has ended", True
    fleet._merger.host("a")
    for _ in range(2):
        fleet._next_check_s = 0.0
        fleet._poll()
    assert said == ["a: lost: its connection has ended"]


def test_a_recording_s_name_that_can_not_be_looked_at_is_told_where_it_is_made(
    tmp_path: Path,
) -> None:
    (tmp_path / "there").touch()
    with pytest.raises(UsageError, match="exists already"):
        new_record_path(str(tmp_path / "there"))
    assert new_record_path("x" * 300) == Path("x" * 300)
