"""A job on many hosts to its end: totals on standard output, words on standard error."""

from __future__ import annotations

import argparse
import contextlib
import gc
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

from iopstui.cli.fleet.record import LABEL, RecordFile
from iopstui.cli.fleet.words import Orders, kept, launch_words
from iopstui.cli.terminal import answering, at_once, has_screen, say
from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_OK,
    EXIT_VERDICT,
    UsageError,
)
from iopstui.fleet.fleet import Fleet, Terms, Voices, spread
from iopstui.fleet.hosts.nodes import nodes_of
from iopstui.fleet.merging.figures import Abort, Wanted, figure, wanted
from iopstui.fleet.merging.merger import Merger, Second
from iopstui.format import put
from iopstui.model.experiment.expectation import Outcome, parse_tolerance
from iopstui.model.metrics.fields import DEVICE
from iopstui.output.fleet.sinks import TotalsSink, totals_sink
from iopstui.output.fleet.words import outcome_text
from iopstui.output.jsonl import dumps
from iopstui.safety.signals import StopSignals

Object = dict[str, Any]
# descriptors for each host, and for everything else
FDS, OWN_FDS = 4, 64
YOUNG_OF_HOST = 500
"""Objects that a host's seconds make before garbage is looked for: they end by themselves."""


class Run:
    """What is told while a fleet runs."""

    def __init__(self, arguments: argparse.Namespace, out: TextIO, err: TextIO) -> None:
        self.length_s = arguments.length
        self.kind = arguments.format
        self._out, self._err = out, err
        self._aborts = [Abort(text) for text in arguments.abort]
        self._until: float | None = None
        self._record: RecordFile | None = None
        self._sink: TotalsSink | None = None
        self.aborted = False
        self.reached = False
        if arguments.record:
            self._record = RecordFile(kept(arguments.record), say)

    def sink(self) -> TotalsSink:
        """Begun with the first second: nothing is printed where nothing starts."""
        if self._sink is None:
            self._sink = totals_sink(self.kind or "table", self._out, self._err, LABEL)
        return self._sink

    def second(self, second: Second) -> None:
        """Print a second."""
        self.sink().second(second)

    def row(self, name: str, row: Object) -> None:
        """Keep a host's line."""
        if self._record is not None:
            self._record.row({**row, "host": name})
        if row["event"] == "executed" and self.kind == "jsonl":
            self.sink()
            with contextlib.suppress(RecursionError):
                put(dumps({**row, "host": name}), self._out)

    def stop(self, second: Second) -> str:
        """Why the run ends with this second; "" if it goes on."""
        for abort in self._aborts:
            if abort.feed(second):
                self.aborted = True
                return f"--abort {abort.text}"
        if self.length_s is None:
            return ""
        self._until = self._until or time.monotonic() + self.length_s
        self.reached = time.monotonic() >= self._until
        return "the time is over" if self.reached else ""

    def close(self) -> None:
        """No more lines come."""
        if self._record is not None:
            self._record.close()


def run_fleet(arguments: argparse.Namespace) -> int:
    """The exit code."""
    nodes = nodes_of(arguments.hosts)
    orders = Orders(arguments, nodes)
    expected = [wanted(text, parse_tolerance(arguments.tolerance)) for text in arguments.expect]
    least = len(nodes) if arguments.min_hosts is None else arguments.min_hosts
    if not 1 <= least <= len(nodes):
        raise UsageError(f"--min-hosts {least}: there are {len(nodes)} hosts.")
    if arguments.job is None and (expected or arguments.set or arguments.size):
        raise UsageError("Without --job nothing runs: --expect, --set and --size are for a job.")
    _need_probe(arguments, expected)
    _allow(len(nodes))
    young, *older = gc.get_threshold()
    gc.set_threshold(young + len(nodes) * YOUNG_OF_HOST, *older)
    on_screen = arguments.format is None and has_screen()
    if arguments.axis and not on_screen:
        from iopstui.cli.fleet.axis import run_axis

        return run_axis(arguments, nodes, expected, arguments.min_hosts)
    if on_screen:
        from iopstui.cli.fleet.screen import show_fleet

        return show_fleet(arguments, nodes, expected, least)
    merger = Merger(arguments.interval, keep_bins=any(one.each for one in expected))
    run = Run(arguments, sys.stdout, sys.stderr)
    fleet = Fleet(
        nodes,
        lambda node: launch_words(node, arguments.launcher, arguments.bring, arguments.sudo),
        orders.of,
        merger,
        terms_of(arguments, least),
        # where lines are kept they are asked for as JSON
        Voices(say, run.second, run.row, run.stop, lambda lines: None),
    )
    StopSignals(fleet.interrupt, at_once(fleet.kill))
    with contextlib.closing(run), answering(arguments.expect):
        fleet.run()
        run.sink().end(merger)
    words = spread_words(fleet)
    if words:
        say(words)
    met, outcomes = judged(merger, expected)
    for text in outcomes:
        put(text, sys.stderr)
    return code_of(fleet, run, met)


def terms_of(arguments: argparse.Namespace, least: int) -> Terms:
    """How a fleet is run by these words; ``least`` hosts are enough."""
    return Terms(least, arguments.on_loss == "stop", arguments.job is None, arguments.assume_apart)


def _need_probe(arguments: argparse.Namespace, expected: Sequence[Wanted]) -> None:
    """UsageError for a figure of the device's that nobody would count."""
    named = [(f"--expect {one.text!r}", one.expectation.path) for one in expected]
    named += [(f"--abort {text!r}", Abort(text).path) for text in arguments.abort]
    for asked, path in named:
        if path[0] == DEVICE and not arguments.probe:
            raise UsageError(f"{asked}: the device's own latencies are counted with --probe alone.")


def _allow(hosts: int) -> None:
    """Enough descriptors for all hosts, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = hosts * FDS + OWN_FDS
    if soft != resource.RLIM_INFINITY and soft < need:
        more = need if hard == resource.RLIM_INFINITY else min(need, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))


def spread_words(fleet: Fleet) -> str:
    """How far apart the hosts began; "" of fewer than two."""
    found = spread(fleet.members)
    began = sum(one.executed_ns is not None for one in fleet.members.values())
    if found is None or began < 2:
        return ""
    who = "all hosts" if began == len(fleet.members) else f"{began} of {len(fleet.members)} hosts"
    return (f"fio was executed within {found[0]:.1f} ms on {who} (their clocks are known to "
            f"within {found[1]:.2f} ms)")  # fmt: skip


def judged(merger: Merger, expected: Sequence[Wanted]) -> tuple[bool, list[str]]:
    """Whether all expectations were met, and what came of each in words."""
    met, words = True, []
    whole = merger.rated()
    for one in expected:
        sums = {"": whole}
        if one.each:
            sums = {name: host.rated() for name, host in merger.hosts.items()}
        found = {
            name: Outcome(one.expectation, figure(each, one.expectation.path), None)
            for name, each in sums.items()
        }
        met &= all(outcome.passed is True for outcome in found.values()) and bool(found)
        words.append(outcome_text(one.text, found))
    return met, words


def code_of(fleet: Fleet, run: Run, met: bool) -> int:
    """The exit code of a run that is over."""
    failed = any(one.error for one in fleet.members.values())
    if run.reached:
        return EXIT_OK
    if fleet.stopped and not run.aborted:
        lost = any(one.lost for one in fleet.members.values())
        return EXIT_JOB_FAILED if lost else EXIT_INTERRUPTED
    if run.aborted or failed:
        return EXIT_JOB_FAILED
    return EXIT_OK if met else EXIT_VERDICT
