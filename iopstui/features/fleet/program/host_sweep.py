"""`fleet --axis`: a sweep of a job on many hosts, without a screen."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence

from iopstui.cli.terminal import exit_on_closed_output, kill_without_waiting, print_message
from iopstui.errors import EXIT_INTERRUPTED, IopstuiError, UsageError
from iopstui.events import FrameReady
from iopstui.features.fleet.fleet import Fleet, FleetCallbacks
from iopstui.features.fleet.host_sweep import HostSweep, RunVerdict, job_seconds, sweep_exit_code
from iopstui.features.fleet.hosts.host_tunables import HostTunables
from iopstui.features.fleet.hosts.nodes import Node
from iopstui.features.fleet.merging.combined_frame import frame_of_second
from iopstui.features.fleet.merging.figures import FleetExpectation
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.program.record_file import LABEL
from iopstui.features.fleet.program.run_planner import FleetRecorder, FleetRunPlanner
from iopstui.format import print_line
from iopstui.model.experiment.host_sweep import HostPlan, SweptPoint, check_host_axes
from iopstui.model.experiment.plan import PlannedPoint, parse_axis
from iopstui.model.fio.jobfile import parse_override
from iopstui.output.experiment.sinks import ReportedExperiment, experiment_sink
from iopstui.safety.signals import StopSignals


def sweep_plan(arguments: argparse.Namespace, hosts: int) -> HostPlan | None:
    """The sweep that the command line asks for; ``None``: none. Raises UsageError."""
    if not arguments.axis:
        if arguments.repeats != 1:
            raise UsageError("--repeats is for the points of --axis.",
                             "For example: --axis hosts=1,2,4 --repeats 3")  # fmt: skip
        return None
    if arguments.job is None:
        raise UsageError("--axis needs a --job.")
    options = dict(map(parse_override, arguments.set))
    axes = tuple(map(parse_axis, arguments.axis))
    check_host_axes(axes, options, hosts)
    return HostPlan((arguments.job,), options, axes, repeats=arguments.repeats, settle=0.0,
                    measure=job_seconds(arguments.job, options) or 0.0)  # fmt: skip


class _Points:
    """Runs points one after another."""

    def __init__(
        self, planner: FleetRunPlanner, plan: HostPlan, reporter: ReportedExperiment
    ) -> None:
        self.stopped = False
        self._planner, self._plan, self._reporter = planner, plan, reporter
        self._fleet: Fleet | None = None
        self._began = time.monotonic()
        StopSignals(self._interrupt, kill_without_waiting(self._kill))

    def _interrupt(self) -> None:
        self.stopped = True
        if self._fleet is not None:
            self._fleet.interrupt()

    def _kill(self) -> None:
        self.stopped = True
        if self._fleet is not None:
            self._fleet.kill()

    def run(self, step: PlannedPoint) -> RunVerdict:
        """Run one point. Raises what Fleet.run raises."""
        point = SweptPoint(self._plan, step)
        planned = self._planner(step.index + 1, step.job, point.options, point)
        callbacks = FleetCallbacks(
            print_message, self._show_second, planned.on_row, planned.stop_reason,
            planned.is_completed,
        )  # fmt: skip
        fleet = self._fleet = planned.make_fleet(callbacks)
        if self.stopped:
            return RunVerdict(EXIT_INTERRUPTED, ends_sweep=True)
        try:
            fleet.run()
        except IopstuiError as error:
            self._planner.note_failure(error)
            raise
        verdict = planned.judge(fleet)
        if self.stopped:
            return RunVerdict(EXIT_INTERRUPTED, ends_sweep=True)
        # why a point does not count is told with it
        for message in verdict.messages[verdict.point is None :]:
            print_line(f"{step.label}: {message}", sys.stderr)
        return verdict

    def _show_second(self, second: MergedInterval) -> None:
        t = time.monotonic() - self._began
        self._reporter.handle(FrameReady(t, frame_of_second(second, t, 1)))


def run_host_sweep(
    arguments: argparse.Namespace,
    nodes: Sequence[Node],
    expected: Sequence[FleetExpectation],
    min_hosts: int,
    plan: HostPlan,
) -> int:
    """The exit code. ``min_hosts`` are enough for a point of more."""
    recorder = FleetRecorder(arguments.record, print_message)
    planner = FleetRunPlanner(arguments, nodes, expected, min_hosts, recorder, HostTunables())
    kind = arguments.format or "table"
    sink = experiment_sink(plan, kind, LABEL, None, sys.stdout, sys.stderr)
    reporter = ReportedExperiment(sink, sys.stderr, sys.stdout)
    points = _Points(planner, plan, reporter)
    with contextlib.closing(recorder), exit_on_closed_output(arguments.expect):
        sweep = HostSweep(plan, points.run, reporter.handle, lambda: points.stopped)
        try:
            sweep.run()
        finally:
            # what was measured before is shown all the same
            reporter.end()
    return sweep_exit_code(sweep.codes)
