"""Run a job on many hosts: totals on standard output, messages on standard error."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from iopstui.cli.fleet.agent_orders import AgentOrders, launch_command
from iopstui.cli.fleet.engine import engine_hosts
from iopstui.cli.fleet.process_limits import prepare_for_hosts
from iopstui.cli.fleet.run_reporter import (
    FleetRunReporter,
    fleet_options,
    judge_expectations,
    run_verdict,
    start_spread_text,
)
from iopstui.cli.terminal import (
    exit_on_closed_output,
    has_screen,
    kill_without_waiting,
    print_message,
)
from iopstui.errors import EXIT_OK, UsageError
from iopstui.fleet.answer import FleetAnswers
from iopstui.fleet.engines.kubernetes import KUBERNETES
from iopstui.fleet.engines.manifest import IMAGE, ManifestOptions, render_manifest
from iopstui.fleet.fleet import Fleet, FleetCallbacks
from iopstui.fleet.hosts.nodes import Node, parse_nodes
from iopstui.fleet.merging.figures import AbortCondition, FleetExpectation, parse_fleet_expectation
from iopstui.fleet.merging.merger import Merger
from iopstui.format import print_line
from iopstui.model.experiment.expectation import parse_tolerance
from iopstui.model.metrics.paths import DEVICE
from iopstui.safety.signals import StopSignals

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
    on_screen = arguments.format is None and has_screen()
    if arguments.axis and not on_screen:
        from iopstui.cli.fleet.host_sweep import run_host_sweep

        return run_host_sweep(arguments, nodes, expected, min_hosts)
    if on_screen:
        from iopstui.cli.fleet.screen import show_fleet

        return show_fleet(arguments, nodes, expected, min_hosts)
    return _run_without_screen(arguments, nodes, orders.order_for, expected, min_hosts)


def _run_without_screen(
    arguments: argparse.Namespace,
    nodes: Sequence[Node],
    order: Callable[[Node], Object],
    expected: Sequence[FleetExpectation],
    min_hosts: int,
) -> int:
    """Run the fleet and print its totals; the exit code."""
    merger = Merger(
        arguments.interval, keep_bins=any(expectation.per_host for expectation in expected)
    )
    run = FleetRunReporter(arguments, sys.stdout, sys.stderr)
    names = [node.name for node in nodes]
    run.answers = FleetAnswers(merger, names, watching=arguments.job is None)
    fleet = Fleet(
        nodes,
        lambda node: launch_command(node, arguments.launcher, arguments.bring, arguments.sudo),
        order,
        merger,
        fleet_options(arguments, min_hosts),
        # hosts send JSON lines if these are recorded
        FleetCallbacks(
            print_message, run.print_second, run.record_row, run.stop_reason, lambda: run.is_steady
        ),
    )
    StopSignals(fleet.interrupt, kill_without_waiting(fleet.kill))
    with contextlib.closing(run), exit_on_closed_output(arguments.expect):
        fleet.run()
        run.sink().end(merger)
    spread = start_spread_text(fleet)
    if spread:
        print_message(spread)
    met, outcomes = judge_expectations(merger, expected)
    for text in outcomes:
        print_line(text, sys.stderr)
    return run_verdict(fleet, run, met).exit_code


def _require_probe(arguments: argparse.Namespace, expected: Sequence[FleetExpectation]) -> None:
    """UsageError for a device figure that would need --probe."""
    figures = [
        (f"--expect {expectation.text!r}", expectation.expectation.path) for expectation in expected
    ]
    figures += [(f"--abort {text!r}", AbortCondition(text).path) for text in arguments.abort]
    for option, path in figures:
        if path[0] == DEVICE and not arguments.probe:
            raise UsageError(f"{option}: device latencies need --probe.")
