"""Plan each run of many hosts from the command line and the changes made on the screen."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, EXIT_VERDICT, IopstuiError
from iopstui.features.fleet.fleet import Fleet, FleetCallbacks, FleetOptions
from iopstui.features.fleet.fleet_events import FleetRunStarted
from iopstui.features.fleet.fleet_state import FAILED
from iopstui.features.fleet.host_sweep import RunVerdict, host_point
from iopstui.features.fleet.hosts.host_tunables import HostTunables
from iopstui.features.fleet.hosts.nodes import Node
from iopstui.features.fleet.merging.figures import FleetExpectation
from iopstui.features.fleet.merging.merger import Merger, certify_merge
from iopstui.features.fleet.output.wording import judge_expectations, totals_text
from iopstui.features.fleet.program.agent_orders import AgentOrders, launch_command, new_record_path
from iopstui.features.fleet.program.record_file import (
    RecordFile,
    run_over_object,
    run_started_object,
)
from iopstui.features.fleet.program.run_reporter import (
    RunLimits,
    run_verdict,
    start_spread_text,
)
from iopstui.features.fleet.session import (
    PlannedRun,
    failed_hosts,
    failure_text,
    state_for_exit_code,
)
from iopstui.model.experiment.host_sweep import HostPoint, SweptPoint
from iopstui.session.tick.outcomes import outcome_event_text

Object = dict[str, Any]


class FleetRecorder:
    """Records the lines of all hosts, and where each run begins and ends. ``warn``: where warnings
    go without a screen."""

    def __init__(self, name: str | None, warn: Callable[[str], None] | None = None) -> None:
        self._warnings: list[str] = []
        self.on_warning: Callable[[str], None] = lambda message: None
        self._file = RecordFile(new_record_path(name), warn or self._warn) if name else None

    def _warn(self, message: str) -> None:
        """Show the warning on the screen at once, and again after the screen has closed."""
        self._warnings.append(message)
        self.on_warning(message)

    def write(self, row: Object) -> None:
        """Write one line, unless it is nested too deeply."""
        if self._file is not None:
            self._file.write_row(row)

    def write_host_row(self, name: str, row: Object) -> None:
        """A line of this host's."""
        if self._file is not None:
            self._file.write_row({**row, "host": name})

    def close(self) -> None:
        """No more come."""
        if self._file is not None:
            self._file.close()
        while self._warnings:
            print_message(self._warnings.pop(0))


class FleetRunPlanner:
    """Plans runs from the command line and the changes made on the screen."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        nodes: Sequence[Node],
        expected: Sequence[FleetExpectation],
        min_hosts: int,
        recorder: FleetRecorder,
        settings: HostTunables,
    ) -> None:
        self._arguments = arguments
        self._nodes = nodes
        self._expected = expected
        self._min_hosts = min_hosts
        self._recorder = recorder
        self._settings = settings
        self._devices_by_host: dict[str, list[str]] = {}

    def __call__(
        self, number: int, job: str, options: Mapping[str, str], point: SweptPoint | None = None
    ) -> PlannedRun:
        """Run ``number``, on all hosts or (a point of a sweep) on the first of them. Raises what
        the command line would raise."""
        nodes = self._nodes if point is None else self._nodes[: point.hosts]
        min_hosts = min(self._min_hosts, len(nodes))
        arguments = argparse.Namespace(**vars(self._arguments))
        changed = [f"{name}={value}" for name, value in options.items()]
        arguments.set = [*self._arguments.set, *changed]
        arguments.job, arguments.record, arguments.format = job or None, None, None
        orders = AgentOrders(arguments, self._nodes, bool(self._arguments.record))
        # an expectation of each host needs the host's bins
        keep_bins = any(expectation.per_host for expectation in self._expected)
        merger, run = Merger(arguments.interval, keep_bins=keep_bins), RunLimits(arguments)
        names = tuple(node.name for node in nodes)
        event = FleetRunStarted(number, names, time.time(), job, not job, point=point)
        self._recorder.write(run_started_object(event, arguments.interval))

        def fleet(callbacks: FleetCallbacks) -> Fleet:
            def order(node: Node) -> Object:
                return self._with_tunables(node, orders.order_for(node, len(nodes)))

            options = FleetOptions(
                min_hosts, arguments.on_loss == "stop", not job, arguments.assume_apart,
                arguments.connect_timeout, arguments.split,
            )  # fmt: skip
            return Fleet(
                nodes, partial(launch_command, arguments), order, merger, options, callbacks
            )

        def judge(fleet: Fleet) -> RunVerdict:
            return self._judge(fleet, merger, run, min_hosts if point is not None else None)

        return PlannedRun(
            fleet, merger, event, self._record_row, run.stop_reason, judge,
            lambda: run.is_steady,
        )  # fmt: skip

    def plan_watch(self) -> PlannedRun:
        """Watch the disks of every reachable host between two runs. Nothing is recorded."""
        orders, merger = AgentOrders(self._arguments, self._nodes), Merger(self._arguments.interval)
        names = tuple(node.name for node in self._nodes)
        options = FleetOptions(1, watching=True, connect_timeout_s=self._arguments.connect_timeout)

        def order(node: Node) -> Object:
            return self._with_tunables(
                node, orders.watch_order(node, self._devices_by_host.get(node.name, ()))
            )

        return PlannedRun(
            lambda callbacks: Fleet(
                self._nodes, partial(launch_command, self._arguments), order, merger, options,
                callbacks,
            ),
            merger, FleetRunStarted(0, names, time.time(), watching=True, between_runs=True),
            lambda name, row: None, lambda second: "",
            lambda fleet: RunVerdict(EXIT_OK),
        )  # fmt: skip

    def note_failure(self, error: IopstuiError) -> None:
        """Record that a planned run could not be made."""
        self._recorder.write(run_over_object(error.exit_code, [error.message]))

    def _with_tunables(self, node: Node, order: Object) -> Object:
        """The order with the tunables that were changed on this host's disks."""
        tunables = self._settings.initial_settings(node.name)
        return {**order, "tunables": tunables} if tunables else order

    def _record_row(self, name: str, row: Object) -> None:
        if row["event"] == "session":
            devices = row.get("opened")
            self._devices_by_host[name] = (
                [str(device) for device in devices] if type(devices) is list else []
            )
        self._recorder.write_host_row(name, row)

    def _judge(
        self, fleet: Fleet, merger: Merger, run: RunLimits, min_hosts: int | None
    ) -> RunVerdict:
        """Exit code of a run. ``min_hosts``: needed for a point of a sweep."""
        outcomes = judge_expectations(merger, self._expected)
        met = all(outcome.passed for outcome in outcomes)
        code, point, spread = run_verdict(fleet, run, met).exit_code, None, start_spread_text(fleet)
        messages = [*map(outcome_event_text, outcomes), *([spread] if spread else ())]
        if min_hosts is not None:
            passed = met if self._expected else None
            point, notes = judge_point(fleet, merger, len(fleet.members), min_hosts, passed)
            code = _point_exit_code(code, point, met)
            failed = failed_hosts(fleet)
            if point is None and failed:
                notes = [": ".join([*notes, failure_text(failed)])]
            messages = [*(notes if code != EXIT_INTERRUPTED else ()), *messages]
        elif state_for_exit_code(code) == FAILED:
            messages.insert(0, failure_reason(fleet))
        lines = (totals_text(merger), *messages)
        self._recorder.write(run_over_object(code, messages))
        return RunVerdict(code, tuple(messages), lines, point, run.aborted)


def judge_point(
    fleet: Fleet, merger: Merger, hosts: int, min_hosts: int, met: bool | None
) -> tuple[HostPoint | None, list[str]]:
    """The point of a finished run on ``hosts`` (at least ``min_hosts`` must have finished), and
    messages. The point is ``None`` if it does not count; a message says why. ``met``: whether its
    expectations were met."""
    began = sum(member.executed_ns is not None for member in fleet.members.values())
    finished = certify_merge(merger).finished
    if finished < max(began, min_hosts) or fleet.stop_reason:
        return None, [f"not counted: the job finished on {finished} of {hosts}"]
    return host_point(finished, hosts, merger, met), []


def _point_exit_code(code: int, point: HostPoint | None, met: bool) -> int:
    """The exit code of a point: a host that took no part in a point that counts has not failed
    it."""
    if point is not None:
        return EXIT_OK if met else EXIT_VERDICT
    return EXIT_JOB_FAILED if code in (EXIT_OK, EXIT_VERDICT) else code


def failure_reason(fleet: Fleet) -> str:
    """Names of hosts that failed or were lost, or why all were stopped."""
    failed = failed_hosts(fleet)
    if fleet.stop_reason:
        reason = f"; {failure_text(failed)}" if failed else ""
        return f"all hosts were stopped: {fleet.stop_reason}{reason}"
    return (
        f"{len(failed)} of {len(fleet.members)} hosts failed or were lost: {failure_text(failed)}"
    )
