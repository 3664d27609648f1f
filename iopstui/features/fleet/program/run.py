"""Run a job on many hosts: totals on standard output, messages on standard error."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from iopstui.cli.terminal import (
    exit_on_closed_output,
    has_screen,
    kill_without_waiting,
    print_message,
)
from iopstui.errors import EXIT_OK, UsageError
from iopstui.features.fleet.answer import FleetAnswers
from iopstui.features.fleet.engines.kubernetes import (
    IMAGE,
    KUBERNETES,
    LABEL,
    ManifestOptions,
    PodSelection,
    render_manifest,
    require_kubectl,
)
from iopstui.features.fleet.engines.slurm import SLURM, slurm_hosts
from iopstui.features.fleet.fleet import FleetCallbacks
from iopstui.features.fleet.hosts.nodes import Node, parse_nodes
from iopstui.features.fleet.merging.figures import (
    AbortCondition,
    FleetExpectation,
    parse_fleet_expectation,
)
from iopstui.features.fleet.output.wording import judge_expectations
from iopstui.features.fleet.program.agent_orders import AgentOrders
from iopstui.features.fleet.program.host_sweep import run_host_sweep, sweep_plan
from iopstui.features.fleet.program.run_planner import job_fleet, job_merger
from iopstui.features.fleet.program.run_reporter import (
    FleetRunReporter,
    run_verdict,
    start_spread_text,
)
from iopstui.format import print_line
from iopstui.model.experiment.expectation import parse_tolerance
from iopstui.model.metrics.paths import DEVICE
from iopstui.safety.signals import StopSignals
from iopstui.session.tick.outcomes import outcome_event_text

# descriptors for each host, and for everything else
FDS_PER_HOST, RESERVED_FDS = 4, 64
GC_THRESHOLD_PER_HOST = 500
"""Objects that a host's seconds make before garbage is looked for: they end by themselves."""


def prepare_for_hosts(hosts: int) -> None:
    """Enough descriptors for all hosts, as far as the system lets us, and less looking for
    garbage."""
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
    """The hosts, and the launcher's words. An allocation that is made here ends with the block."""
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
        arguments.selector or LABEL, arguments.namespace or "", arguments.container or ""
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
    """The exit code."""
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
    orders = AgentOrders(arguments, nodes)
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
    if plan is not None:
        return run_host_sweep(arguments, nodes, expected, min_hosts, plan)
    return _run_without_screen(arguments, nodes, orders.order_for, expected, min_hosts)


def _run_without_screen(
    arguments: argparse.Namespace,
    nodes: Sequence[Node],
    order: Callable[[Node], Object],
    expected: Sequence[FleetExpectation],
    min_hosts: int,
) -> int:
    """Run the fleet and print its totals; the exit code."""
    merger = job_merger(arguments, expected)
    run = FleetRunReporter(arguments, sys.stdout, sys.stderr)
    names = [node.name for node in nodes]
    run.answers = FleetAnswers(merger, names, watching=arguments.job is None)
    # hosts send JSON lines if these are recorded
    callbacks = FleetCallbacks(
        print_message, run.print_second, run.record_row, run.stop_reason, lambda: run.is_steady
    )
    fleet = job_fleet(arguments, nodes, order, merger, min_hosts, callbacks)
    StopSignals(fleet.interrupt, kill_without_waiting(fleet.kill))
    with contextlib.closing(run), exit_on_closed_output(arguments.expect):
        fleet.run()
        run.sink().end(merger)
    spread = start_spread_text(fleet)
    if spread:
        print_message(spread)
    outcomes = judge_expectations(merger, expected)
    for outcome in outcomes:
        print_line(outcome_event_text(outcome), sys.stderr)
    return run_verdict(fleet, run, all(each.passed for each in outcomes)).exit_code


def _require_probe(arguments: argparse.Namespace, expected: Sequence[FleetExpectation]) -> None:
    """UsageError for a device figure that would need --probe."""
    figures = [
        (f"--expect {expectation.text!r}", expectation.expectation.path) for expectation in expected
    ]
    figures += [(f"--abort {text!r}", AbortCondition(text).path) for text in arguments.abort]
    for option, path in figures:
        if path[0] == DEVICE and not arguments.probe:
            raise UsageError(f"{option}: device latencies need --probe.")
