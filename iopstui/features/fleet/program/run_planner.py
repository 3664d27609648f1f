"""Plan the runs of many hosts; print, record and judge each."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from iopstui.cli.terminal import print_message
from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    EXIT_VERDICT,
    IopstuiError,
    UsageError,
    note_incomplete,
)
from iopstui.features.fleet.findings import FleetAnswers
from iopstui.features.fleet.fleet import Fleet, FleetCallbacks, FleetOptions, start_spread_ms
from iopstui.features.fleet.fleet_events import FLEET, FLEET_OVER, FleetRunStarted
from iopstui.features.fleet.fleet_state import FAILED
from iopstui.features.fleet.host_sweep import RunVerdict, host_point
from iopstui.features.fleet.hosts.host_tunables import HostTunables
from iopstui.features.fleet.hosts.nodes import Node
from iopstui.features.fleet.merging.figures import AbortCondition, FleetExpectation
from iopstui.features.fleet.merging.merger import MergedInterval, Merger, certify_merge
from iopstui.features.fleet.output.sinks import (
    TotalsSink,
    executed_text,
    judge_expectations,
    totals_sink,
    totals_text,
)
from iopstui.features.fleet.program.agent_orders import AgentOrders, launch_command, new_record_path
from iopstui.features.fleet.session import (
    PlannedRun,
    failed_hosts,
    failure_text,
    state_for_exit_code,
)
from iopstui.format import print_line
from iopstui.model.experiment.host_sweep import HostPoint, SweptPoint
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.model.metrics.load_series import LoadSeries
from iopstui.output.jsonl import dumps
from iopstui.session.tick.outcomes import NEVER_STEADY, SteadyStop, outcome_event_text
from iopstui.text import printable

LABEL = "fleet"


def run_started_object(event: FleetRunStarted, interval_s: float) -> dict[str, Any]:
    """The line that begins a run in a recording. For a point of a sweep it also describes the
    sweep."""
    point = event.point
    sweep: dict[str, Any] = {}
    if point is not None:
        plan = point.plan
        sweep = {
            "axes": {axis.name: list(axis.values) for axis in plan.axes},
            "repeats": plan.repeats, "measure_s": plan.measure, "point": point.step.index,
        }  # fmt: skip
    return {
        "event": FLEET, "host": LABEL, "wall_ms": event.wall_s * 1000, "run": event.number,
        "job": event.job, "watching": event.watching, "interval_s": interval_s,
        "hosts": list(event.hosts), **sweep,
    }  # fmt: skip


def run_over_object(code: int, messages: Sequence[str]) -> dict[str, Any]:
    """The line that ends a run in a recording, with its exit code and message."""
    return {
        "event": FLEET_OVER, "host": LABEL, "wall_ms": time.time() * 1000, "code": code,
        "how": state_for_exit_code(code), "said": list(messages),
    }  # fmt: skip


class RecordFile:
    """A new file for a recording. Raises UsageError if it cannot be created. If a write fails,
    ``report`` is called once with a message, what was written is kept, and the run continues."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self._path = path
        self._report = report
        try:
            self._file: TextIO | None = path.open("x", encoding="ascii")
        except OSError as error:
            raise UsageError(f"--record {printable(str(path))}: {error.strerror}.",
                             "Choose a new file in a directory you can write to.",
                             ) from error  # fmt: skip

    def write_row(self, row: dict[str, Any]) -> None:
        """Write an object as a line. One that is nested too deeply is left out, because iopstui
        writes no such rows."""
        with contextlib.suppress(RecursionError):
            self.write(dumps(row) + "\n")

    def write(self, text: str) -> None:
        """Write complete lines."""
        if self._file is not None:
            try:
                self._file.write(text)
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._report_failure(error)

    def _give_up(self, error: OSError) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
        self._report_failure(error)

    def _report_failure(self, error: OSError) -> None:
        name = printable(str(self._path))
        note_incomplete(f"the recording is incomplete: {name}: {error.strerror}")
        kept = "what was written is kept"
        with contextlib.suppress(OSError):
            if not self._path.stat().st_size:
                # remove the empty file: the next run could not use its name
                self._path.unlink()
                kept = "nothing was written"
        self._report(
            f"the recording {name} has stopped: {error.strerror}. The run continues, and {kept}"
        )


Object = dict[str, Any]


class RunPrinter:
    """Prints the seconds of a run, its answers, and when fio started. ``kind`` is the format."""

    def __init__(self, kind: str, planned: PlannedRun, out: TextIO, err: TextIO) -> None:
        self._kind, self._out, self._err = kind, out, err
        self._sink: TotalsSink | None = None
        self._first: int | None = None
        started = planned.start_event
        self._answers = FleetAnswers(planned.merger, started.hosts, started.watching)

    def sink(self) -> TotalsSink:
        """The sink, which is made with the first second, so that nothing is printed if no run
        starts."""
        if self._sink is None:
            self._sink = totals_sink(self._kind, self._out, self._err, LABEL)
        return self._sink

    def second(self, second: MergedInterval) -> None:
        """Print a second, and the answer if it has changed."""
        self.sink().second(second)
        if self._first is None:
            self._first = second.number
        answer = self._answers.second(second)
        if answer is not None:
            self.sink().answer((second.number - self._first) * second.interval_s, answer)

    def row(self, name: str, row: Object) -> None:
        """Process a line of a host."""
        self._answers.note_row(name, row)
        if row["event"] == "executed" and self._kind == "jsonl":
            self.sink()
            with contextlib.suppress(RecursionError):
                print_line(dumps({**row, "host": name}), self._out)


class RunLimits:
    """Ends a run before its job ends, because of --abort, --for or --until-steady."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._length_s = arguments.length
        self._aborts = [AbortCondition(text) for text in arguments.abort]
        self._deadline: float | None = None
        self.aborted = False
        self.length_reached = False
        self.until_steady: float | None = arguments.until_steady
        self._series = LoadSeries()
        self._steady = SteadyStop(self.until_steady or 0.0)

    def stop_reason(self, second: MergedInterval) -> str:
        """Why the run must end with this second; "" if it continues."""
        for abort in self._aborts:
            if abort.feed(second):
                self.aborted = True
                return f"--abort {abort.text}"
        if self.until_steady and (reason := self._steady_reason(second)):
            return reason
        if self._length_s is None:
            return ""
        self._deadline = self._deadline or time.monotonic() + self._length_s
        self.length_reached = time.monotonic() >= self._deadline
        return "the time is over" if self.length_reached else ""

    @property
    def is_steady(self) -> bool:
        """Whether the run was ended because its total was steady."""
        return self._steady.steadiness is not None

    def _steady_reason(self, second: MergedInterval) -> str:
        """Why the run is steady enough to end with this second; "" if it continues. Hosts that are
        missing in a second are assumed to be as fast as the others."""
        total = second.sums.total
        if total is None or not second.counted:
            return ""
        iops = total.iops * second.expected / second.counted
        self._series.add_interval(second.interval_s, iops * second.interval_s)
        return self._steady.check(self._series)


def start_spread_text(fleet: Fleet) -> str:
    """The difference between the hosts' start times in words; "" for fewer than two."""
    start_spread = start_spread_ms(fleet.members)
    began = sum(member.executed_ns is not None for member in fleet.members.values())
    hosts = len(fleet.members)
    if start_spread is None or began < 2:
        return ""
    subject = "all hosts" if began == hosts else f"{began} of {hosts} hosts"
    return executed_text(*start_spread, subject)


def run_verdict(fleet: Fleet, run: RunLimits, met: bool) -> Verdict:
    """The verdict on a finished run. ``met``: its expectations were met."""
    if run.length_reached:
        return Verdict()
    if fleet.stop_reason and not run.aborted and not run.is_steady:
        lost = sum(member.is_lost for member in fleet.members.values())
        return Verdict(interrupted=not lost, failed=lost)
    failed = sum(bool(member.error) for member in fleet.members.values()) or int(run.aborted)
    is_steady = not run.until_steady or run.is_steady
    if not failed and not is_steady:
        print_message(NEVER_STEADY)
    return Verdict((Check("--expect", met), Check("steady state", is_steady)), failed=failed)


class FleetRecorder:
    """Records the lines of all hosts, and where each run begins and ends. ``warn`` is called with
    warnings if there is no screen."""

    def __init__(self, name: str | None, warn: Callable[[str], None] | None = None) -> None:
        self._warnings: list[str] = []
        self.on_warning: Callable[[str], None] = lambda message: None
        self._file = RecordFile(new_record_path(name), warn or self._warn) if name else None

    def _warn(self, message: str) -> None:
        """Show the warning on the screen, and print it again after the screen has closed."""
        self._warnings.append(message)
        self.on_warning(message)

    def write(self, row: Object) -> None:
        """Write a line, unless it is nested too deeply."""
        if self._file is not None:
            self._file.write_row(row)

    def write_host_row(self, name: str, row: Object) -> None:
        if self._file is not None:
            self._file.write_row({**row, "host": name})

    def close(self) -> None:
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
        """Plan run ``number``, on all hosts or, for a point of a sweep, on the first of them.
        Raises the same errors as the command line."""
        nodes = self._nodes if point is None else self._nodes[: point.hosts]
        min_hosts = min(self._min_hosts, len(nodes))
        arguments = argparse.Namespace(**vars(self._arguments))
        changed = [f"{name}={value}" for name, value in options.items()]
        arguments.set = [*self._arguments.set, *changed]
        arguments.job, arguments.record, arguments.format = job or None, None, None
        orders = AgentOrders(arguments, self._nodes, bool(self._arguments.record))
        # keep each host's bins if an expectation is about each host
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
        """Plan to watch the disks of every reachable host between two runs. Nothing is recorded."""
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
        self._recorder.write(run_over_object(error.exit_code, [error.message]))

    def _with_tunables(self, node: Node, order: Object) -> Object:
        """The order, with the tunables added that were changed on this host's disks."""
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
        """Judge a run. ``min_hosts`` is the number of hosts that a point of a sweep needs to
        count."""
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
    messages. The point is ``None`` if it does not count, and a message then says why. ``met``:
    whether its expectations were met."""
    began = sum(member.executed_ns is not None for member in fleet.members.values())
    finished = certify_merge(merger).finished
    if finished < max(began, min_hosts) or fleet.stop_reason:
        return None, [f"not counted: the job finished on {finished} of {hosts}"]
    return host_point(finished, hosts, merger, met), []


def _point_exit_code(code: int, point: HostPoint | None, met: bool) -> int:
    """The exit code of a point. If the point counts, a host that did not take part is no
    failure."""
    if point is not None:
        return EXIT_OK if met else EXIT_VERDICT
    return EXIT_JOB_FAILED if code in (EXIT_OK, EXIT_VERDICT) else code


def failure_reason(fleet: Fleet) -> str:
    """The names of hosts that failed or were lost, or why all hosts were stopped."""
    failed = failed_hosts(fleet)
    if fleet.stop_reason:
        reason = f"; {failure_text(failed)}" if failed else ""
        return f"all hosts were stopped: {fleet.stop_reason}{reason}"
    return (
        f"{len(failed)} of {len(fleet.members)} hosts failed or were lost: {failure_text(failed)}"
    )
