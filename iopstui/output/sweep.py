"""A sweep as a table, JSON lines or CSV: a row a point, then what its curves say."""

from __future__ import annotations

import argparse
import csv
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from iopstui import units
from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_VERDICT, UsageError
from iopstui.model.curve import Curve, conclusions, curves_of
from iopstui.model.expectation import Expectation, parse_tolerance
from iopstui.model.plan import Plan, check_axes, parse_axis
from iopstui.model.target import Target
from iopstui.output.experiment import Told, ask, say
from iopstui.output.experiment_setup import progress_of, session_of, set_up
from iopstui.output.jsonl import dumps, event_object, session_object
from iopstui.output.signals import StopSignals
from iopstui.output.verdict import wrapped
from iopstui.session.asked import Choose
from iopstui.session.events import Event, PointFinished
from iopstui.session.experiment import Setup, dry_run
from iopstui.session.promises import expectations_of, sections_of
from iopstui.session.runner import Runner
from iopstui.session.verdicts import judged_event, outcome_text, value_text
from iopstui.text import printable

NAME_MOST = 14


def run_sweep(arguments: argparse.Namespace, overrides: Mapping[str, str], choose: Choose) -> int:
    """`iopstui sweep`; the exit code."""
    axes = tuple(map(parse_axis, arguments.axis))
    check_axes(axes, overrides)
    if not axes and len(arguments.job) < 2:
        raise UsageError("A sweep needs something to vary.",
                         "For example: --axis iodepth=1,2,4..256, or several --job")  # fmt: skip
    plan = Plan(
        tuple(dict.fromkeys(arguments.job)), dict(overrides), axes,
        settle=arguments.settle, measure=arguments.measure,
    )  # fmt: skip
    if not arguments.dry_run:
        ask(plan, arguments.yes)
    setup = set_up(arguments, plan, choose)
    expected = _expected(arguments, setup)
    progress = progress_of(setup, "sweep", arguments, [one.text for one in expected])
    if arguments.dry_run:
        for line in dry_run(setup, progress):
            units.put(line, sys.stdout)
        return EXIT_OK
    sweep = SweepOut(plan, arguments.format, socket.gethostname(), setup.target,
                     sys.stdout, sys.stderr)  # fmt: skip
    told = Told(plan, sweep)
    runner = Runner(
        session_of(setup, arguments, goes_on=bool(progress and progress.points)), plan,
        setup.job_target, setup.conditions, told.handle, progress, expected,
    )  # fmt: skip
    StopSignals(runner.stop, runner.kill)
    try:
        runner.run()
    finally:
        told.end()
    return _ending(runner, sweep)


def _ending(runner: Runner, sweep: SweepOut) -> int:
    progress = runner.progress
    if runner.interrupted:
        if progress is not None and progress.points:
            say([f"interrupted: {len(progress.points)} of {runner.plan.points} points are kept in "
                 f"{progress.path}; the same command goes on from there"])  # fmt: skip
        else:
            say(["interrupted before the first point was measured; nothing is kept"])
        return EXIT_INTERRUPTED
    if progress is not None:
        progress.remove()
    outcomes = [one for event in sweep.points for one in event.outcomes]
    for one in outcomes:
        if one.measured is None:
            raise UsageError(f"--expect {one.expectation.text!r} can't be judged: "
                             "a point has no such figure.")  # fmt: skip
    return EXIT_OK if all(one.passed for one in outcomes) else EXIT_VERDICT


def _expected(arguments: argparse.Namespace, setup: Setup) -> tuple[Expectation, ...]:
    if not arguments.expect:
        return ()
    return expectations_of(
        arguments.expect, parse_tolerance(arguments.tolerance), setup.target,
        sections_of(setup.plan), {axis.name for axis in setup.plan.axes},
    )  # fmt: skip


class SweepOut:
    """A sweep's data on ``out`` and words on ``err``, measured now or recorded. ``begun``: the
    first of the JSON lines, which says whose they are, is written already."""

    def __init__(
        self,
        plan: Plan,
        kind: str,
        host: str,
        target: Target,
        out: TextIO,
        err: TextIO,
        begun: bool = False,
    ) -> None:
        self._err = err
        self._plan = plan
        self.points: list[PointFinished] = []
        self._table = kind == "table"
        self._out: SweepTable | SweepJson | SweepCsv
        if kind == "jsonl":
            self._out = SweepJson(plan, out, host, target, begun)
        elif kind == "csv":
            self._out = SweepCsv(plan, out)
        else:
            self._out = SweepTable(plan, out)

    def handle(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, PointFinished):
            self.points.append(event)
            self._out.point(event)

    def end(self) -> None:
        """Say what all points together say."""
        if not self.points:
            return
        curves = curves_of(self._plan, self.points)
        lines = conclusions(self.points, curves)
        self._out.end(lines, curves, pass_table(self._plan, self.points))
        if not self._table:
            for line in lines:
                units.put(line, self._err)


class SweepTable:
    """A row a point on ``out``."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan = plan
        self._out = out
        self._columns = list(columns(plan))
        self._started = False

    def point(self, event: PointFinished) -> None:
        """One point and its verdicts."""
        if not self._started:
            self._started = True
            self._print(" ".join(title.rjust(width) for title, width in self._columns))
        cells = row(self._plan, event)
        texts = [c.rjust(w) for c, (_, w) in zip(cells, self._columns, strict=True)]
        self._print(" ".join(texts))
        for outcome in event.outcomes:
            self._print(wrapped(outcome_text(outcome), 6, 12))

    def end(
        self,
        lines: Sequence[str],
        curves: Sequence[Curve[PointFinished]],
        table: Sequence[str] = (),
    ) -> None:
        """What the whole sweep says."""
        if lines:
            self._print("\n" + "\n".join(wrapped(line, 0, 2) for line in lines))
        for line in table:
            self._print(line)

    def _print(self, text: str) -> None:
        units.put(text, self._out)


def columns(plan: Plan) -> Iterator[tuple[str, int]]:
    """Titles and widths of the table; 80 columns with one or two short axes."""
    yield "#", max(2, len(str(plan.points)))
    if len(plan.jobs) > 1:
        yield "job", min(NAME_MOST, max(map(len, plan.jobs)))
    for axis in plan.axes:
        yield (
            units.cut(axis.name, NAME_MOST),
            min(NAME_MOST, max(len(axis.name), *map(len, axis.values))),
        )
    yield from (("IOPS", 5), ("MiB/s", 5), ("mean", 7), ("p50", 7), ("p99", 7), ("p99.9", 7),
                ("aqu-sz", 6), ("N=X*R", 5), ("of", 4))  # fmt: skip


def row(plan: Plan, event: PointFinished) -> list[str]:
    """The cells of one point."""
    point, law = event.point, event.little
    settings = dict(event.settings)
    cells = [str(event.index + 1)]
    if len(plan.jobs) > 1:
        cells.append(units.cut(printable(event.job), NAME_MOST))
    cells += [units.cut(printable(settings[axis.name]), NAME_MOST) for axis in plan.axes]
    cells += [units.number(point.iops), units.mib(point.bw), units.latency(point.latency_ns)]
    cells += [units.latency(ns) for ns in (point.p50_ns, point.p99_ns, point.p999_ns)]
    cells += [
        units.number(point.aqu_sz),
        units.number(law.seen),
        (units.MISSING if law.asked is None else str(law.asked)) + ("" if law.holds else "!"),
    ]
    return cells


class SweepJson:
    """JSON lines: the session, the sweep, a line a point, its verdicts, a line a curve."""

    def __init__(
        self, plan: Plan, out: TextIO, host: str, target: Target | None, begun: bool = False
    ) -> None:
        self._out, self._host = out, host
        if not begun:
            self._write(session_object(host, target))
        axes = {axis.name: list(axis.values) for axis in plan.axes}
        self._write({"event": "sweep", "host": host, "jobs": list(plan.jobs), "axes": axes,
                     "settle": plan.settle, "measure": plan.measure,
                     "points": plan.points})  # fmt: skip

    def point(self, event: PointFinished) -> None:
        """One point and its verdicts."""
        line = event_object(event)
        line["settings"] = dict(event.settings)
        del line["outcomes"]
        line["point"]["in_flight"] = event.point.in_flight
        self._write({"event": line.pop("event"), "host": self._host, **line})
        for outcome in event.outcomes:
            judged = event_object(judged_event(event.t, event.index, outcome))
            del judged["step"]
            self._write({"event": judged.pop("event"), "host": self._host,
                         "index": event.index, **judged})  # fmt: skip

    def end(
        self,
        lines: Sequence[str],
        curves: Sequence[Curve[PointFinished]],
        table: Sequence[str] = (),
    ) -> None:
        """What the whole sweep says."""
        for curve in curves:
            self._write({"event": "curve", "host": self._host, **curve_object(curve)})
        self._write({"event": "sweep_finished", "host": self._host, "words": list(lines)})

    def _write(self, line: dict[str, Any]) -> None:
        self._out.write(dumps(line) + "\n")
        self._out.flush()


def curve_object(curve: Curve[PointFinished]) -> dict[str, Any]:
    """A curve and its knee by the points' places in the plan, for JSON."""
    knee = curve.knee
    return {
        "axis": curve.axis.name,
        "fixed": dict(curve.fixed),
        "points": [event.index for event in curve.points],
        "knee": curve.points[knee.index].index if knee else None,
        "edge": knee.edge if knee else None,
    }


_CSV = ("seconds", "ios", "iops", "bw", "read_iops", "write_iops", "latency_ns", "latency_of",
        "p50_ns", "p99_ns", "p999_ns", "device_iops", "aqu_sz", "util", "cpu_us", "in_flight",
        "steady")  # fmt: skip


class SweepCsv:
    """A row a point; verdicts and curves go to the words beside it."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._out = out
        self._axes = [axis.name for axis in plan.axes]
        self._writer = csv.writer(out, lineterminator="\n")
        self._writer.writerow(["index", "job", *map(printable, self._axes), *_CSV, "asked"])

    def point(self, event: PointFinished) -> None:
        """One point."""
        settings = dict(event.settings)
        values = [getattr(event.point, name) for name in _CSV]
        named = [printable(one) for one in (event.job, *(settings[name] for name in self._axes))]
        cells = [event.index, *named, *values]
        self._writer.writerow("" if c is None else c for c in [*cells, event.little.asked])
        self._out.flush()

    def end(
        self,
        lines: Sequence[str],
        curves: Sequence[Curve[PointFinished]],
        table: Sequence[str] = (),
    ) -> None:
        """Nothing: a CSV file holds rows only."""


def pass_table(plan: Plan, points: Sequence[PointFinished]) -> list[str]:
    """The verdicts of several jobs at a glance: a row a job, a column for each setting."""
    labels = list(dict.fromkeys(_without_job(event) for event in points))
    judged = [event for event in points if event.outcomes]
    if len(plan.jobs) < 2 or not judged or len(labels) > 4:
        return []
    width = max(len(printable(job)) for job in plan.jobs)
    columns = [max(len(label), 4) for label in labels]
    lines = []
    for number, first in enumerate(judged[0].outcomes):
        one = first.expectation
        lines += ["", f"{printable(one.name)} {one.op} {value_text(one.required, one.unit)}"]
        cells = "  ".join(f"{label:>{w}}" for label, w in zip(labels, columns, strict=True))
        lines.append(f"{'':{width}}  {cells}".rstrip())
        for job in plan.jobs:
            words = {_without_job(e): _word(e, number) for e in judged if e.job == job}
            cells = "  ".join(
                f"{words.get(label, '')}".rjust(w) for label, w in zip(labels, columns, strict=True)
            )
            lines.append(f"{printable(job):{width}}  {cells}".rstrip())
    return lines


def _without_job(event: PointFinished) -> str:
    return printable(" ".join(f"{n}={v}" for n, v in event.settings if n != "job"))


def _word(event: PointFinished, number: int) -> str:
    passed = event.outcomes[number].passed
    return units.MISSING if passed is None else "PASS" if passed else "FAIL"
