"""Show many hosts on the screen; plan each run from the command line and the user's changes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from iopstui.cli.fleet.agent_orders import AgentOrders, kept, launch_command
from iopstui.cli.fleet.host_sweep import host_counts, measured_point
from iopstui.cli.fleet.record_file import LABEL, RecordFile, fleet_object, over_object
from iopstui.cli.fleet.run_reporter import (
    FleetRunReporter,
    fleet_options,
    judge_expectations,
    run_exit_code,
    start_spread_text,
)
from iopstui.cli.terminal import print_message, require_for_screen
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, EXIT_VERDICT
from iopstui.fio.library import shipped_jobs
from iopstui.fleet.fleet import Fleet, FleetCallbacks, FleetOptions
from iopstui.fleet.fleet_events import FleetRunStarted
from iopstui.fleet.fleet_state import FAILED
from iopstui.fleet.hosts.host_tunables import HostTunables
from iopstui.fleet.hosts.nodes import Node
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.figures import FleetExpectation
from iopstui.fleet.merging.merger import MergedSecond, Merger
from iopstui.fleet.replay import FleetReplay
from iopstui.fleet.scaling_curve import ScalePoint, SweepPosition
from iopstui.fleet.session import (
    FleetSession,
    PlannedRun,
    RunVerdict,
    failed_hosts,
    failure_text,
    state_for_exit_code,
)
from iopstui.output.fleet.labelled_rows import file_rows
from iopstui.output.fleet.scaling import scaling_texts
from iopstui.output.fleet.wording import totals_text
from iopstui.text import printable

Object = dict[str, Any]


class FleetRecorder:
    """Keeps the lines of all hosts, and where each run begins and ends."""

    def __init__(self, name: str | None) -> None:
        self._said: list[str] = []
        self.on_trouble: Callable[[str], None] = lambda message: None
        self._file = RecordFile(kept(name), self._warn) if name else None

    def _warn(self, message: str) -> None:
        """Show the warning on the screen at once, and again after the screen has closed."""
        self._said.append(message)
        self.on_trouble(message)

    def write(self, row: Object) -> None:
        """Write one line, unless it is nested too deeply."""
        if self._file is not None:
            self._file.row(row)

    def print_host_line(self, name: str, row: Object) -> None:
        """A line of this host's."""
        if self._file is not None:
            self._file.row({**row, "host": name})

    def close(self) -> None:
        """No more come."""
        if self._file is not None:
            self._file.close()
        while self._said:
            print_message(self._said.pop(0))


class FleetRunPlanner:
    """Makes a run of what the command line says and keys have changed."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        nodes: Sequence[Node],
        expected: Sequence[FleetExpectation],
        least: int,
        recorder: FleetRecorder,
        settings: HostTunables,
    ) -> None:
        self._arguments = arguments
        self._nodes = nodes
        self._expected = expected
        self._least = least
        self._recorder = recorder
        self._settings = settings
        self._opened: dict[str, list[str]] = {}

    def __call__(
        self, number: int, job: str, options: Mapping[str, str], place: SweepPosition | None = None
    ) -> PlannedRun:
        """Run ``number``, on all hosts or, as a point of a sweep, on the first of them. Raises what
        the command line would raise."""
        nodes = self._nodes if place is None else self._nodes[: place.hosts]
        least = min(self._least, len(nodes))
        arguments = argparse.Namespace(**vars(self._arguments))
        changed = [f"{name}={value}" for name, value in options.items()]
        arguments.set = [*self._arguments.set, *changed]
        arguments.job, arguments.record, arguments.format = job or None, None, None
        orders = AgentOrders(arguments, self._nodes, bool(self._arguments.record))
        keep_bins = any(expectation.each for expectation in self._expected)
        merger = Merger(arguments.interval, keep_bins=keep_bins)
        run = FleetRunReporter(arguments, sys.stdout, sys.stderr)
        names = tuple(node.name for node in nodes)
        event = FleetRunStarted(number, names, time.time(), job, not job, place=place)
        self._recorder.write(fleet_object(event, arguments.interval))

        def fleet(callbacks: FleetCallbacks) -> Fleet:
            return Fleet(
                nodes, self._launch, lambda node: self._set(node, orders.of(node, len(nodes))),
                merger, fleet_options(arguments, least), callbacks,
            )  # fmt: skip

        def judge(fleet: Fleet) -> RunVerdict:
            return self._exit_code(fleet, merger, run, least if place is not None else None)

        return PlannedRun(fleet, merger, event, _ignore_second, self._row, run.stop, judge,
                          lambda: run.steady)  # fmt: skip

    def watch(self) -> PlannedRun:
        """Watch the disks of every reachable host between two runs. Nothing is recorded."""
        orders, merger = AgentOrders(self._arguments, self._nodes), Merger(self._arguments.interval)
        names = tuple(node.name for node in self._nodes)
        terms = FleetOptions(1, watching=True, greet_within_s=self._arguments.connect_timeout)

        def order(node: Node) -> Object:
            return self._set(node, orders.watched(node, self._opened.get(node.name, ())))

        return PlannedRun(
            lambda callbacks: Fleet(
                self._nodes, self._launch, order, merger, terms, callbacks
            ),
            merger, FleetRunStarted(0, names, time.time(), watching=True, between=True),
            _ignore_second, lambda name, row: None, lambda second: "",
            lambda fleet: RunVerdict(EXIT_OK),
        )  # fmt: skip

    def _set(self, node: Node, order: Object) -> Object:
        """The order with the tunables that were changed on this host's disks."""
        tunables = self._settings.initial_settings(node.name)
        return {**order, "tunables": tunables} if tunables else order

    def _launch(self, node: Node) -> list[str]:
        arguments = self._arguments
        return launch_command(node, arguments.launcher, arguments.bring, arguments.sudo)

    def _row(self, name: str, row: Object) -> None:
        if row["event"] == "session":
            devices = row.get("opened")
            self._opened[name] = (
                [str(device) for device in devices] if type(devices) is list else []
            )
        self._recorder.print_host_line(name, row)

    def _exit_code(
        self, fleet: Fleet, merger: Merger, run: FleetRunReporter, least: int | None
    ) -> RunVerdict:
        """Exit code of a run. ``least``: hosts needed for a point of a sweep."""
        met, outcomes = judge_expectations(merger, self._expected)
        code, point, spread = run_exit_code(fleet, run, met), None, start_spread_text(fleet)
        messages = [*outcomes, *([spread] if spread else ())]
        if least is not None:
            passed = met if self._expected else None
            point, about = measured_point(fleet, merger, len(fleet.members), least, passed)
            code = _point_exit_code(code, point, met)
            failed = failed_hosts(fleet)
            about = (
                [": ".join([*about, failure_text(failed)])] if point is None and failed else about
            )
            messages = [*(about if code != EXIT_INTERRUPTED else ()), *messages]
        elif state_for_exit_code(code) == FAILED:
            messages.insert(0, why_failed(fleet))
        lines = (totals_text(merger.rated(), certify_merge(merger)), *messages)
        self._recorder.write(over_object(code, messages))
        return RunVerdict(code, tuple(messages), lines, point, run.aborted)


def _point_exit_code(code: int, point: ScalePoint | None, met: bool) -> int:
    """A host that took no part in a point that counts has not failed it."""
    if point is not None:
        return EXIT_OK if met else EXIT_VERDICT
    return EXIT_JOB_FAILED if code in (EXIT_OK, EXIT_VERDICT) else code


def why_failed(fleet: Fleet) -> str:
    """Names of hosts that failed or were lost, or why all were stopped."""
    failed = failed_hosts(fleet)
    if fleet.stopped:
        why = f"; {failure_text(failed)}" if failed else ""
        return f"all hosts were stopped: {fleet.stopped}{why}"
    return (
        f"{len(failed)} of {len(fleet.members)} hosts failed or were lost: {failure_text(failed)}"
    )


def _ignore_second(second: MergedSecond) -> None:
    """The screen has it already."""


def show_fleet(
    arguments: argparse.Namespace,
    nodes: Sequence[Node],
    expected: Sequence[FleetExpectation],
    least: int,
) -> int:
    """The screen, until it is left; the exit code."""
    require_for_screen(arguments)
    # what can't be so is said before there is a screen
    counts = host_counts(arguments, len(nodes)) if arguments.axis else []
    AgentOrders(arguments, nodes)
    FleetRunReporter(
        argparse.Namespace(**{**vars(arguments), "record": None}), sys.stdout, sys.stderr
    )
    recorder = FleetRecorder(arguments.record)
    settings = HostTunables()
    planner = FleetRunPlanner(arguments, nodes, expected, least, recorder, settings)
    session = FleetSession(
        planner, lambda row: recorder.write({**row, "host": LABEL}), planner.watch, settings,
        [node.name for node in nodes], scaling_texts,
    )  # fmt: skip
    recorder.on_trouble = session.warn
    from iopstui.ui.fleet_app import run_fleet_screen

    return run_fleet_screen(
        session, printable(arguments.hosts), arguments.job, shipped_jobs(), arguments.theme,
        recorder.close, counts, Path(arguments.record) if arguments.record else None,
    )  # fmt: skip


def show_recording(path: Path, speed: float, theme: str) -> int:
    """A fleet's recording on the screen, until it is left."""
    replay = FleetReplay(lambda: file_rows(path, "", lambda message: None), speed)
    from iopstui.ui.fleet_app import run_fleet_replay

    return run_fleet_replay(replay, printable(path.name), theme, path)
