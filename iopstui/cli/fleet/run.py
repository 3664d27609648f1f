"""Run a job on many hosts: totals on standard output, messages on standard error."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import resource
import sys
from collections.abc import Sequence
from typing import Any

from iopstui.cli.fleet.agent_orders import AgentOrders, launch_words
from iopstui.cli.fleet.one_run import FleetRunReporter, code_of, judged, spread_words, terms_of
from iopstui.cli.terminal import answering, at_once, has_screen, print_message
from iopstui.errors import (
    UsageError,
)
from iopstui.fleet.fleet import Fleet, FleetCallbacks
from iopstui.fleet.hosts.nodes import Node, nodes_of
from iopstui.fleet.hosts.slurm import SLURM, slurm_hosts
from iopstui.fleet.merging.figures import AbortCondition, FleetExpectation, wanted
from iopstui.fleet.merging.merger import Merger
from iopstui.format import print_line
from iopstui.model.experiment.expectation import parse_tolerance
from iopstui.model.metrics.paths import DEVICE
from iopstui.safety.signals import StopSignals

Object = dict[str, Any]
# descriptors for each host, and for everything else
FDS, OWN_FDS = 4, 64
GC_THRESHOLD_PER_HOST = 500
"""Objects that a host's seconds make before garbage is looked for: they end by themselves."""


def run_fleet(arguments: argparse.Namespace) -> int:
    """The exit code."""
    if SLURM not in (arguments.hosts, arguments.launcher):
        if arguments.allocate is not None:
            raise UsageError("--allocate is for Slurm.", "For example: iopstui fleet slurm DIR "
                             "--allocate '-N 4' --job JOB")  # fmt: skip
        return _run_on(arguments)
    if arguments.launcher not in ("", SLURM):
        raise UsageError(f"HOSTS {SLURM} and --launcher {arguments.launcher!r} cannot be combined.")
    with slurm_hosts(arguments.hosts, arguments.allocate, os.environ, print_message) as found:
        arguments.hosts, arguments.launcher = found.nodes, found.launcher
        return _run_on(arguments)


def _run_on(arguments: argparse.Namespace) -> int:
    nodes = nodes_of(arguments.hosts)
    orders = AgentOrders(arguments, nodes)
    expected = [wanted(text, parse_tolerance(arguments.tolerance)) for text in arguments.expect]
    least = len(nodes) if arguments.min_hosts is None else arguments.min_hosts
    if not 1 <= least <= len(nodes):
        raise UsageError(f"--min-hosts {least}: there are {len(nodes)} hosts.")
    if arguments.rotate and not arguments.split:
        raise UsageError("--rotate is for the parts of --split.",
                         "For example: iopstui fleet node[1-4] FILE --split --rotate --job "
                         "JOB")  # fmt: skip
    if arguments.until_steady and (arguments.job is None or arguments.axis):
        raise UsageError("--until-steady needs a --job, and does not work with --axis.")
    if arguments.job is None and (expected or arguments.set or arguments.size):
        raise UsageError("--expect, --set and --size need a --job.")
    _need_probe(arguments, expected)
    _allow(len(nodes))
    young, *older = gc.get_threshold()
    gc.set_threshold(young + len(nodes) * GC_THRESHOLD_PER_HOST, *older)
    on_screen = arguments.format is None and has_screen()
    if arguments.axis and not on_screen:
        from iopstui.cli.fleet.host_sweep import run_axis

        return run_axis(arguments, nodes, expected, arguments.min_hosts)
    if on_screen:
        from iopstui.cli.fleet.screen import show_fleet

        return show_fleet(arguments, nodes, expected, least)
    return _run_without_screen(arguments, nodes, orders, expected, least)


def _run_without_screen(
    arguments: argparse.Namespace,
    nodes: Sequence[Node],
    orders: AgentOrders,
    expected: Sequence[FleetExpectation],
    least: int,
) -> int:
    """Run the fleet and print its totals; the exit code."""
    merger = Merger(arguments.interval, keep_bins=any(one.each for one in expected))
    run = FleetRunReporter(arguments, sys.stdout, sys.stderr)
    fleet = Fleet(
        nodes,
        lambda node: launch_words(node, arguments.launcher, arguments.bring, arguments.sudo),
        orders.of,
        merger,
        terms_of(arguments, least),
        # where lines are kept they are asked for as JSON
        FleetCallbacks(print_message, run.second, run.row, run.stop, lambda: run.steady),
    )
    StopSignals(fleet.interrupt, at_once(fleet.kill))
    with contextlib.closing(run), answering(arguments.expect):
        fleet.run()
        run.sink().end(merger)
    words = spread_words(fleet)
    if words:
        print_message(words)
    met, outcomes = judged(merger, expected)
    for text in outcomes:
        print_line(text, sys.stderr)
    return code_of(fleet, run, met)


def _need_probe(arguments: argparse.Namespace, expected: Sequence[FleetExpectation]) -> None:
    """UsageError for a figure of the device's that nobody would count."""
    named = [(f"--expect {one.text!r}", one.expectation.path) for one in expected]
    named += [(f"--abort {text!r}", AbortCondition(text).path) for text in arguments.abort]
    for asked, path in named:
        if path[0] == DEVICE and not arguments.probe:
            raise UsageError(f"{asked}: device latencies need --probe.")


def _allow(hosts: int) -> None:
    """Enough descriptors for all hosts, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = hosts * FDS + OWN_FDS
    if soft != resource.RLIM_INFINITY and soft < need:
        more = need if hard == resource.RLIM_INFINITY else min(need, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
