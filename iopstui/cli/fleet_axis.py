"""`fleet --axis hosts=1,2,4..`: the same job on more and more hosts, and how throughput grows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from iopstui.cli.fleet_words import Orders, launch_words
from iopstui.cli.terminal import say
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, IopstuiError, UsageError
from iopstui.fleet.figures import Abort
from iopstui.fleet.fleet import Fleet, Terms, Voices
from iopstui.fleet.merger import Merger, Second
from iopstui.fleet.nodes import Node
from iopstui.fleet.outcome import certified
from iopstui.format import counted
from iopstui.model.experiment.plan import parse_axis
from iopstui.model.experiment.scaling import scaling
from iopstui.output.fleet.scaling import ScalePoint, scale_point, scaling_sink
from iopstui.safety.signals import StopSignals

AXIS = "hosts"
# what says something of one run, of which there are several here
_ONE_RUN = ("expect", "record", "min_hosts")


def host_counts(arguments: argparse.Namespace, hosts: int) -> list[int]:
    """How many hosts each point has, in the order in which they are run. UsageError."""
    if len(arguments.axis) > 1:
        raise UsageError("A fleet has one axis.", "For example: --axis hosts=1,2,4..32")
    axis = parse_axis(arguments.axis[0])
    if axis.name != AXIS:
        raise UsageError(f"A fleet's axis is hosts=, not {axis.name}=.",
                         "Options of the job are varied on one host: iopstui sweep",
                         )  # fmt: skip
    for name in _ONE_RUN:
        if getattr(arguments, name) not in (None, []):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for one run, and --axis makes several.")
    if arguments.job is None:
        raise UsageError("--axis hosts= needs a --job.")
    found = []
    for value in axis.values:
        if not (value.isdecimal() and 1 <= int(value) <= hosts):
            raise UsageError(f"--axis hosts={value}: there are {counted(hosts, 'host')}.")
        found.append(int(value))
    return found


class _Curve:
    """Runs points one after another. ``code`` is the exit code so far."""

    def __init__(self, arguments: argparse.Namespace, nodes: Sequence[Node]) -> None:
        self.code = EXIT_OK
        self._arguments = arguments
        self._nodes = nodes
        self._orders = Orders(arguments, nodes)
        self._fleet: Fleet | None = None
        self._stop = False
        self._aborts: list[Abort] = []
        self._aborted = False
        StopSignals(self._interrupt, self._kill)

    def _interrupt(self) -> None:
        self._stop = True
        if self._fleet is not None:
            self._fleet.interrupt()

    def _kill(self) -> None:
        self._stop = True
        if self._fleet is not None:
            self._fleet.kill()

    def run(self, hosts: int) -> ScalePoint | None:
        """One point; ``None`` if it does not count. Raises what Fleet.run raises."""
        arguments = self._arguments
        merger = Merger(arguments.interval)
        self._aborts = [Abort(text) for text in arguments.abort]
        fleet = self._fleet = Fleet(
            self._nodes[:hosts],
            lambda node: launch_words(node, arguments.launcher, arguments.bring, arguments.sudo),
            self._orders.of,
            merger,
            Terms(hosts, arguments.on_loss == "stop"),
            Voices(say, lambda second: None, lambda name, row: None, self._why_stop),
        )
        if not self._stop:
            fleet.run()
        if self._stop:
            self.code = EXIT_INTERRUPTED
            return None
        done = certified(merger).finished
        if done < hosts or fleet.stopped:
            self.code = EXIT_JOB_FAILED
            say(f"hosts={hosts} does not count: the job finished on {done} of them")
            return None
        return scale_point(hosts, merger)

    @property
    def over(self) -> bool:
        """Whether nothing more is to be run."""
        return self._stop or self._aborted

    def _why_stop(self, second: Second) -> str:
        for abort in self._aborts:
            if abort.feed(second):
                self._aborted = True
                return f"--abort {abort.text}"
        return ""


def run_axis(arguments: argparse.Namespace, nodes: Sequence[Node]) -> int:
    """The exit code."""
    counts = host_counts(arguments, len(nodes))
    curve = _Curve(arguments, nodes)
    sink = scaling_sink(arguments.format, sys.stdout, sys.stderr)
    points: list[ScalePoint] = []
    try:
        for place, hosts in enumerate(counts):
            say(f"hosts={hosts} ({place + 1} of {len(counts)})")
            point = curve.run(hosts)
            if point is not None:
                points.append(point)
                sink.point(point, points[0])
            if curve.over:
                break
    except IopstuiError:
        # what was measured before is shown all the same
        if not points:
            raise
        sink.end(scaling([(one.hosts, one.iops) for one in points]))
        raise
    sink.end(scaling([(one.hosts, one.iops) for one in points]))
    return curve.code
