"""`fleet --axis hosts=1,2,4..`: repeat a job on more and more hosts and measure scaling."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from typing import Any

from iopstui.cli.fleet.agent_orders import AgentOrders, launch_command, new_record_path
from iopstui.cli.fleet.record_file import RecordFile, run_over_object, run_started_object
from iopstui.cli.fleet.run_reporter import fleet_options, judge_expectations
from iopstui.cli.terminal import exit_on_closed_output, kill_without_waiting, print_message
from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    EXIT_VERDICT,
    IopstuiError,
    UsageError,
)
from iopstui.fleet.fleet import Fleet, FleetCallbacks
from iopstui.fleet.fleet_events import FleetRunStarted
from iopstui.fleet.hosts.nodes import Node
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.figures import AbortCondition, FleetExpectation
from iopstui.fleet.merging.merger import MergedInterval, Merger
from iopstui.fleet.scaling_curve import ScalePoint, SweepPosition, parse_host_counts, scale_point
from iopstui.format import print_line
from iopstui.model.experiment.scaling import analyse_scaling
from iopstui.output.fleet.scaling import scaling_sink
from iopstui.safety.signals import StopSignals

# the worst of all points is the exit code; a signal's is that of the whole, other than on a screen
# (fleet/scaling_curve.py)
_CODES_BY_SEVERITY = (EXIT_OK, EXIT_VERDICT, EXIT_JOB_FAILED, EXIT_INTERRUPTED)


def host_counts(arguments: argparse.Namespace, hosts: int) -> list[int]:
    """Number of hosts at each point, in running order. Raises UsageError."""
    if len(arguments.axis) > 1:
        raise UsageError(
            "A fleet sweep has only the axis hosts.", "For example: --axis hosts=1,2,4..32"
        )
    counts = parse_host_counts(arguments.axis[0], hosts)
    if arguments.job is None:
        raise UsageError("--axis hosts= needs a --job.")
    return counts


def judge_point(
    fleet: Fleet, merger: Merger, hosts: int, min_hosts: int, met: bool | None
) -> tuple[ScalePoint | None, list[str]]:
    """The point of a finished run on ``hosts``, of which ``min_hosts`` are enough, and notes on it;
    ``None`` if it does not count. ``met`` as in ``ScalePoint``."""
    began = sum(member.executed_ns is not None for member in fleet.members.values())
    finished = certify_merge(merger).finished
    if finished < max(began, min_hosts) or fleet.stop_reason:
        return None, [f"not counted: the job finished on {finished} of {hosts}"]
    notes = (
        []
        if finished == hosts
        else [f"only {finished} took part, so this is the point for {finished}"]
    )
    return scale_point(finished, merger, met), notes


class _HostSweep:
    """Runs points one after another. ``code`` is the exit code so far; ``min_hosts`` are enough for
    a point of more."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        nodes: Sequence[Node],
        expected: Sequence[FleetExpectation],
        min_hosts: int | None,
    ) -> None:
        self.code = EXIT_OK
        self._arguments = arguments
        self._nodes = nodes
        self._expected = expected
        self._min_hosts = min_hosts
        self._orders = AgentOrders(arguments, nodes)
        self._record = (
            RecordFile(new_record_path(arguments.record), print_message)
            if arguments.record
            else None
        )
        self._fleet: Fleet | None = None
        self._stopped = False
        self._aborts: list[AbortCondition] = []
        self._aborted = False
        self._number = 0
        StopSignals(self._interrupt, kill_without_waiting(self._kill))

    def _interrupt(self) -> None:
        self._stopped = True
        if self._fleet is not None:
            self._fleet.interrupt()

    def _kill(self) -> None:
        self._stopped = True
        if self._fleet is not None:
            self._fleet.kill()

    def run(self, position: SweepPosition) -> ScalePoint | None:
        """Run one point; ``None`` if it does not count. Raises what Fleet.run raises."""
        self._number += 1
        hosts = position.hosts
        names = tuple(node.name for node in self._nodes[:hosts])
        job = self._arguments.job
        event = FleetRunStarted(self._number, names, time.time(), job, sweep_position=position)
        self._record_row(run_started_object(event, self._arguments.interval))
        code, messages = EXIT_JOB_FAILED, ["it did not finish"]
        try:
            code, messages, point = self._run(hosts)
        except IopstuiError as error:
            code, messages = error.exit_code, [error.message]
            raise
        finally:
            self._record_row(run_over_object(code, messages))
        self.code = max(self.code, code, key=_CODES_BY_SEVERITY.index)
        for message in messages:
            print_line(f"hosts={hosts}: {message}", sys.stderr)
        return point

    def _run(self, hosts: int) -> tuple[int, list[str], ScalePoint | None]:
        """The exit code of a point, its messages, and the point if it counts."""
        arguments = self._arguments
        merger = Merger(
            arguments.interval,
            keep_bins=any(expectation.per_host for expectation in self._expected),
        )
        self._aborts = [AbortCondition(text) for text in arguments.abort]
        min_hosts = hosts if self._min_hosts is None else min(self._min_hosts, hosts)
        fleet = self._fleet = Fleet(
            self._nodes[:hosts],
            lambda node: launch_command(node, arguments.launcher, arguments.bring, arguments.sudo),
            lambda node: self._orders.order_for(node, hosts),
            merger,
            fleet_options(arguments, min_hosts),
            FleetCallbacks(
                print_message, lambda second: None, self._record_host_row, self._stop_reason
            ),
        )
        if not self._stopped:
            fleet.run()
        if self._stopped:
            return EXIT_INTERRUPTED, [], None
        met, outcomes = judge_expectations(merger, self._expected)
        point, notes = judge_point(fleet, merger, hosts, min_hosts, met if self._expected else None)
        if point is None:
            return EXIT_JOB_FAILED, notes, None
        return EXIT_OK if met else EXIT_VERDICT, [*notes, *outcomes], point

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be run."""
        return self._stopped or self._aborted

    def close(self) -> None:
        """No more points come."""
        if self._record is not None:
            self._record.close()

    def _record_host_row(self, name: str, row: dict[str, Any]) -> None:
        self._record_row({**row, "host": name})

    def _record_row(self, row: dict[str, Any]) -> None:
        if self._record is not None:
            self._record.write_row(row)

    def _stop_reason(self, second: MergedInterval) -> str:
        for abort in self._aborts:
            if abort.feed(second):
                self._aborted = True
                return f"--abort {abort.text}"
        return ""


def run_host_sweep(
    arguments: argparse.Namespace,
    nodes: Sequence[Node],
    expected: Sequence[FleetExpectation],
    min_hosts: int | None,
) -> int:
    """The exit code. ``min_hosts`` as in ``_HostSweep``."""
    counts = host_counts(arguments, len(nodes))
    curve = _HostSweep(arguments, nodes, expected, min_hosts)
    with contextlib.closing(curve), exit_on_closed_output(arguments.expect):
        _run_points(curve, counts, arguments.format)
    return curve.code


def _run_points(curve: _HostSweep, counts: Sequence[int], kind: str) -> None:
    sink = scaling_sink(kind, sys.stdout, sys.stderr)
    points: list[ScalePoint] = []
    try:
        for index, hosts in enumerate(counts):
            print_message(f"hosts={hosts} ({index + 1} of {len(counts)})")
            point = curve.run(SweepPosition(tuple(counts), index))
            if point is not None:
                points.append(point)
                sink.point(point, points[0])
            if curve.is_over:
                break
    except IopstuiError:
        # what was measured before is shown all the same
        if not points:
            raise
        sink.end(analyse_scaling([(p.hosts, p.iops) for p in points]))
        raise
    sink.end(analyse_scaling([(p.hosts, p.iops) for p in points]))
