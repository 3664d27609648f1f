"""`fleet --axis hosts=1,2,4..`: repeat a job on more and more hosts and measure scaling."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence

from iopstui.cli.fleet.run_planner import FleetRecorder, FleetRunPlanner
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
from iopstui.fleet.hosts.host_tunables import HostTunables
from iopstui.fleet.hosts.nodes import Node
from iopstui.fleet.merging.figures import FleetExpectation
from iopstui.fleet.scaling_curve import ScalePoint, SweepPosition, parse_host_counts
from iopstui.fleet.session import RunVerdict
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


class _HostSweep:
    """Runs points one after another. ``code`` is the exit code so far."""

    def __init__(self, planner: FleetRunPlanner, job: str) -> None:
        self.code = EXIT_OK
        self._planner = planner
        self._job = job
        self._fleet: Fleet | None = None
        self._stopped = False
        StopSignals(self._interrupt, kill_without_waiting(self._kill))

    def _interrupt(self) -> None:
        self._stopped = True
        if self._fleet is not None:
            self._fleet.interrupt()

    def _kill(self) -> None:
        self._stopped = True
        if self._fleet is not None:
            self._fleet.kill()

    def run(self, position: SweepPosition) -> RunVerdict:
        """Run one point. Raises what Fleet.run raises."""
        planned = self._planner(position.number + 1, self._job, {}, position)
        callbacks = FleetCallbacks(
            print_message, planned.on_interval, planned.on_row, planned.stop_reason,
            planned.is_completed,
        )  # fmt: skip
        fleet = self._fleet = planned.make_fleet(callbacks)
        verdict = RunVerdict(EXIT_INTERRUPTED, ends_sweep=True)
        if not self._stopped:
            try:
                fleet.run()
            except IopstuiError as error:
                self._planner.note_failure(error)
                raise
            judged = planned.judge(fleet)
            verdict = verdict if self._stopped else judged
        self.code = max(self.code, verdict.code, key=_CODES_BY_SEVERITY.index)
        for message in verdict.messages:
            print_line(f"hosts={position.hosts}: {message}", sys.stderr)
        return verdict


def run_host_sweep(
    arguments: argparse.Namespace,
    nodes: Sequence[Node],
    expected: Sequence[FleetExpectation],
    min_hosts: int,
) -> int:
    """The exit code. ``min_hosts`` are enough for a point of more."""
    counts = host_counts(arguments, len(nodes))
    recorder = FleetRecorder(arguments.record, print_message)
    planner = FleetRunPlanner(arguments, nodes, expected, min_hosts, recorder, HostTunables())
    curve = _HostSweep(planner, arguments.job)
    with contextlib.closing(recorder), exit_on_closed_output(arguments.expect):
        _run_points(curve, counts, arguments.format)
    return curve.code


def _run_points(curve: _HostSweep, counts: Sequence[int], kind: str) -> None:
    sink = scaling_sink(kind, sys.stdout, sys.stderr)
    points: list[ScalePoint] = []
    try:
        for index, hosts in enumerate(counts):
            print_message(f"hosts={hosts} ({index + 1} of {len(counts)})")
            verdict = curve.run(SweepPosition(tuple(counts), index))
            if verdict.point is not None:
                points.append(verdict.point)
                sink.point(verdict.point, points[0])
            if verdict.ends_sweep:
                break
    except IopstuiError:
        # what was measured before is shown all the same
        if not points:
            raise
        sink.end(analyse_scaling([(p.hosts, p.iops) for p in points]))
        raise
    sink.end(analyse_scaling([(p.hosts, p.iops) for p in points]))
