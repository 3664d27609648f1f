"""Run a job on many hosts: totals on standard output, messages on standard error."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from iopstui.cli.terminal import (
    exit_on_closed_output,
    has_screen,
    kill_without_waiting,
    print_message,
)
from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, IopstuiError, UsageError
from iopstui.events import FrameReady
from iopstui.experiment.runner import new_seed
from iopstui.features.fleet.engines.kubernetes import (
    IMAGE,
    KUBERNETES,
    ManifestOptions,
    PodSelection,
    render_manifest,
    require_kubectl,
)
from iopstui.features.fleet.engines.kubernetes import (
    LABEL as POD_LABEL,
)
from iopstui.features.fleet.engines.slurm import SLURM, slurm_hosts
from iopstui.features.fleet.fleet import Fleet, FleetCallbacks
from iopstui.features.fleet.fleet_state import FAILED
from iopstui.features.fleet.host_sweep import (
    HostSweep,
    RunVerdict,
    job_seconds,
    sweep_exit_code,
    swept_options,
)
from iopstui.features.fleet.hosts.host_tunables import HostTunables
from iopstui.features.fleet.hosts.nodes import parse_nodes
from iopstui.features.fleet.merging.combined_frame import frame_of_second
from iopstui.features.fleet.merging.figures import (
    AbortCondition,
    FleetExpectation,
    parse_fleet_expectation,
)
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.program.agent_orders import AgentOrders
from iopstui.features.fleet.program.run_planner import (
    LABEL,
    FleetRecorder,
    FleetRunPlanner,
    RunPrinter,
)
from iopstui.features.fleet.session import PlannedRun, state_for_exit_code
from iopstui.format import print_line, print_sentence
from iopstui.model.experiment.expectation import parse_tolerance
from iopstui.model.experiment.host_sweep import HostPlan, SweptPoint, check_host_axes
from iopstui.model.experiment.plan import PlannedPoint, parse_axis
from iopstui.model.figures.figure import DEVICE
from iopstui.model.fio.jobfile import parse_override
from iopstui.output.experiment.sinks import ReportedExperiment, experiment_sink
from iopstui.safety.signals import StopSignals

# file descriptors for each host, and for everything else
FDS_PER_HOST, RESERVED_FDS = 4, 64
GC_THRESHOLD_PER_HOST = 500
"""New objects per host before Python looks for garbage. That may be rare, because hosts'
seconds contain no reference cycles."""


def prepare_for_hosts(hosts: int) -> None:
    """Raise the limit of descriptors as far as all hosts need or the system permits, and make
    garbage collection rarer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = hosts * FDS_PER_HOST + RESERVED_FDS
    if soft != resource.RLIM_INFINITY and soft < need:
        more = need if hard == resource.RLIM_INFINITY else min(need, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    young, *older = gc.get_threshold()
    gc.set_threshold(young + hosts * GC_THRESHOLD_PER_HOST, *older)


ENGINES = (SLURM, KUBERNETES)
POD_OPTIONS = ("selector", "namespace", "container")
MANIFEST_OPTIONS = ("pvc", "local_path", "replicas", "image")


@contextlib.contextmanager
def engine_hosts(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The hosts and the launcher's command line. An allocation that is made here ends with the
    context."""
    names = {arguments.hosts, arguments.launcher}
    if SLURM not in names and arguments.allocate is not None:
        raise UsageError("--allocate is for Slurm.", "For example: iopstui fleet slurm DIR "
                         "--allocate '-N 4' --job JOB")  # fmt: skip
    if KUBERNETES not in names:
        _refuse_options(arguments, POD_OPTIONS)
    _refuse_options(arguments, MANIFEST_OPTIONS)
    engine = next((name for name in (arguments.hosts, arguments.launcher) if name in ENGINES), None)
    if engine is None:
        yield arguments.hosts, arguments.launcher
        return
    if arguments.launcher not in ("", engine):
        raise UsageError(
            f"HOSTS {arguments.hosts} and --launcher {arguments.launcher!r} cannot be combined."
        )
    if engine == SLURM:
        with slurm_hosts(
            arguments.hosts, arguments.allocate, os.environ, print_message
        ) as allocation:
            yield allocation.nodes, allocation.launcher
        return
    pods = PodSelection(
        arguments.selector or POD_LABEL, arguments.namespace or "", arguments.container or ""
    )
    require_kubectl()
    hosts = arguments.hosts
    if hosts == KUBERNETES:
        found_pods = pods.wait(arguments.min_hosts, arguments.connect_timeout, print_message)
        hosts = ",".join(found_pods)
    yield hosts, pods.launcher


def _refuse_options(arguments: argparse.Namespace, names: tuple[str, ...]) -> None:
    option = next((name for name in names if getattr(arguments, name) is not None), None)
    if option is not None:
        with_what = "--print-manifest" if option in MANIFEST_OPTIONS else f"HOSTS {KUBERNETES}"
        raise UsageError(f"--{option.replace('_', '-')} is for {with_what}.")


Object = dict[str, Any]


def run_fleet(arguments: argparse.Namespace) -> int:
    """Run `iopstui fleet`. Returns the exit code."""
    if arguments.print_manifest is not None:
        return _print_manifest(arguments)
    with engine_hosts(arguments) as (arguments.hosts, arguments.launcher):
        return _run_on_hosts(arguments)


def _print_manifest(arguments: argparse.Namespace) -> int:
    if arguments.hosts != KUBERNETES:
        raise UsageError("--print-manifest is for Kubernetes.",
                         "For example: iopstui fleet k8s --print-manifest --pvc NAME --replicas "
                         "4")  # fmt: skip
    print_line(
        render_manifest(
            ManifestOptions(
                arguments.print_manifest, arguments.pvc, arguments.local_path, arguments.replicas,
                arguments.namespace or "", arguments.image or IMAGE,
            )
        ).rstrip("\n"),
        sys.stdout,
    )  # fmt: skip
    return EXIT_OK


def _run_on_hosts(arguments: argparse.Namespace) -> int:
    nodes = parse_nodes(arguments.hosts)
    # first refuse orders that no host could execute
    AgentOrders(arguments, nodes)
    tolerance = parse_tolerance(arguments.tolerance)
    expected = [parse_fleet_expectation(text, tolerance) for text in arguments.expect]
    min_hosts = len(nodes) if arguments.min_hosts is None else arguments.min_hosts
    if not 1 <= min_hosts <= len(nodes):
        raise UsageError(f"--min-hosts {min_hosts}: there are {len(nodes)} hosts.")
    if arguments.rotate and not arguments.split:
        raise UsageError("--rotate is for the parts of --split.",
                         "For example: iopstui fleet node[1-4] FILE --split --rotate --job "
                         "JOB")  # fmt: skip
    if arguments.until_steady and (arguments.job is None or arguments.axis):
        raise UsageError("--until-steady needs a --job, and does not work with --axis.")
    if arguments.job is None and (expected or arguments.set or arguments.size):
        raise UsageError("--expect, --set and --size need a --job.")
    _require_probe(arguments, expected)
    prepare_for_hosts(len(nodes))
    plan = sweep_plan(arguments, len(nodes))
    if arguments.format is None and has_screen():
        from iopstui.features.fleet.program.screen import show_fleet

        return show_fleet(arguments, nodes, expected, min_hosts, plan)
    with contextlib.closing(FleetRecorder(arguments.record, print_message)) as recorder:
        planner = FleetRunPlanner(
            arguments, nodes, expected, min_hosts, recorder, HostTunables()
        )  # fmt: skip
        if plan is not None:
            return run_host_sweep(arguments, planner, plan)
        return run_once(arguments, planner)


def _require_probe(arguments: argparse.Namespace, expected: Sequence[FleetExpectation]) -> None:
    """Raise UsageError for a device figure that needs --probe if that is missing."""
    figures = [
        (f"--expect {expectation.text!r}", expectation.expectation.path) for expectation in expected
    ]
    figures += [(f"--abort {text!r}", AbortCondition(text).path) for text in arguments.abort]
    for option, path in figures:
        if path[0] == DEVICE and not arguments.probe:
            raise UsageError(f"{option}: device latencies need --probe.")


# Runs on many hosts without a screen: a single one, or the points of a sweep (`fleet --axis`).


def sweep_plan(arguments: argparse.Namespace, hosts: int) -> HostPlan | None:
    """The sweep that the command line describes; ``None`` if there is none. Raises UsageError."""
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


class PrintedRuns:
    """Runs planned runs one after another, without a screen. ``on_second`` and ``on_row`` print."""

    def __init__(
        self,
        planner: FleetRunPlanner,
        on_second: Callable[[MergedInterval], None],
        on_row: Callable[[str, Object], None] = lambda name, row: None,
    ) -> None:
        self.stopped = False
        self._planner, self._on_second, self._on_row = planner, on_second, on_row
        self._fleet: Fleet | None = None
        StopSignals(self._interrupt, kill_without_waiting(self._kill))

    def _interrupt(self) -> None:
        self.stopped = True
        if self._fleet is not None:
            self._fleet.interrupt()

    def _kill(self) -> None:
        self.stopped = True
        if self._fleet is not None:
            self._fleet.kill()

    def run(self, planned: PlannedRun) -> RunVerdict | None:
        """Run a planned run. Returns the verdict, or ``None`` if it was stopped before it began.
        Raises what Fleet.run raises."""

        def on_row(name: str, row: Object) -> None:
            planned.on_row(name, row)
            self._on_row(name, row)

        fleet = self._fleet = planned.make_fleet(
            FleetCallbacks(print_message, self._on_second, on_row, planned.stop_reason,
                           planned.is_completed)
        )  # fmt: skip
        if self.stopped:
            return None
        try:
            fleet.run()
        except IopstuiError as error:
            self._planner.note_failure(error)
            raise
        return planned.judge(fleet)


def run_once(arguments: argparse.Namespace, planner: FleetRunPlanner) -> int:
    """Run once, and print the totals and outcomes. Returns the exit code."""
    planned = planner(1, arguments.job or "", {})
    printer = RunPrinter(arguments.format or "table", planned, sys.stdout, sys.stderr)
    with exit_on_closed_output(arguments.expect):
        verdict = PrintedRuns(planner, printer.second, printer.row).run(planned)
        if verdict is None:
            return EXIT_INTERRUPTED
        printer.sink().end(planned.merger)
    # without the first message of a failed run: failed hosts have already been reported
    for message in verdict.messages[state_for_exit_code(verdict.code) == FAILED :]:
        print_sentence(message, sys.stderr)
    return verdict.code


def run_host_sweep(arguments: argparse.Namespace, planner: FleetRunPlanner, plan: HostPlan) -> int:
    """Run all points of a sweep. Returns the exit code."""
    sink = experiment_sink(plan, arguments.format or "table", LABEL, None, sys.stdout, sys.stderr)
    reporter = ReportedExperiment(sink, sys.stderr, sys.stdout)
    began = time.monotonic()

    def on_second(second: MergedInterval) -> None:
        t = time.monotonic() - began
        reporter.handle(FrameReady(t, frame_of_second(second, t, 1)))

    runs, seed = PrintedRuns(planner, on_second), new_seed()

    def run_point(step: PlannedPoint) -> RunVerdict:
        point = SweptPoint(plan, step)
        verdict = runs.run(planner(step.index + 1, step.job, swept_options(point, seed), point))
        if verdict is None or runs.stopped:
            return RunVerdict(EXIT_INTERRUPTED, ends_sweep=True)
        # without the first message if the point does not count: the reason is printed with the
        # point
        for message in verdict.messages[verdict.point is None :]:
            print_sentence(f"{step.label}: {message}", sys.stderr)
        return verdict

    with exit_on_closed_output(arguments.expect):
        sweep = HostSweep(plan, run_point, reporter.handle, lambda: runs.stopped)
        try:
            sweep.run()
        finally:
            # show earlier results even after an error
            reporter.end()
    return sweep_exit_code(sweep.codes)
