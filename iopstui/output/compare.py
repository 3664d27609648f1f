"""`iopstui compare`: the same job under two or more settings in turn, and what differs."""

from __future__ import annotations

import argparse
import csv
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from iopstui import units
from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK
from iopstui.model.comparison import CpuShift, Tested
from iopstui.model.plan import Plan, check_variants, letter, parse_variant
from iopstui.model.point import Point
from iopstui.model.target import Target
from iopstui.model.verdict_words import (
    CPUS_SHOWN,
    METHOD,
    Results,
    cpu_text,
    difference_text,
    value_text,
)
from iopstui.output.experiment import Told, ask
from iopstui.output.experiment_setup import session_of, set_up
from iopstui.output.jsonl import dumps, event_object, session_object
from iopstui.output.signals import StopSignals
from iopstui.output.verdict import wrapped
from iopstui.session.asked import Choose
from iopstui.session.events import Event, PointFinished
from iopstui.session.experiment import dry_run
from iopstui.session.runner import Runner
from iopstui.text import printable

NAME_WIDTH = 26


def run_compare(arguments: argparse.Namespace, overrides: Mapping[str, str], choose: Choose) -> int:
    """The exit code."""
    variants = tuple(map(parse_variant, arguments.variant))
    check_variants(variants, overrides)
    plan = Plan(
        (arguments.job,), dict(overrides), variants=variants, repeats=arguments.repeats,
        settle=arguments.settle, measure=arguments.measure,
    )  # fmt: skip
    if not arguments.dry_run:
        ask(plan, arguments.yes)
    setup = set_up(arguments, plan, choose)
    plan = setup.plan
    if arguments.dry_run:
        for line in dry_run(setup, None):
            units.put(line, sys.stdout)
        return EXIT_OK
    told = Told(plan, CompareOut(plan, arguments.format, socket.gethostname(), setup.target,
                                 sys.stdout, sys.stderr))  # fmt: skip
    runner = Runner(
        session_of(setup, arguments), plan, setup.job_target, setup.conditions,
        told.handle,
    )  # fmt: skip
    StopSignals(runner.stop, runner.kill)
    try:
        runner.run()
    finally:
        told.end()
    return EXIT_INTERRUPTED if runner.interrupted else EXIT_OK


class CompareOut:
    """A comparison's data on ``out`` and words on ``err``, measured now or recorded. ``begun``: the
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
        self._kind = kind
        self._runs: list[dict[int, Point]] = [{} for _ in plan.variants]
        self._out: CompareTable | CompareJson | CompareCsv
        if kind == "jsonl":
            self._out = CompareJson(plan, out, host, target, begun)
        elif kind == "csv":
            self._out = CompareCsv(plan, out)
        else:
            self._out = CompareTable(plan, out)

    def handle(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, PointFinished):
            self._runs[event.variant][event.repeat] = event.point
            self._out.run(event)

    def end(self) -> None:
        """Say what differs."""
        if not any(self._runs):
            return
        results = Results(self._plan, self._runs)
        self._out.end(results)
        if self._kind != "table":
            for line in results.verdicts():
                units.put(line, self._err)


class CompareTable:
    """A row a run, then a row a figure."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan = plan
        self._out = out
        for number, variant in enumerate(plan.variants):
            self._print(f"{letter(number)}: {printable(variant.label)}")
        titles = [f"{'run':>4}", " ", *(f"{t:>7}" for t in ("IOPS", "MiB/s", "mean", "p50", "p99",
                                                           "p99.9", "CPU/IO"))]  # fmt: skip
        self._print("\n" + " ".join(titles) + "  most on")

    def run(self, event: PointFinished) -> None:
        """One run."""
        point = event.point
        cells = [units.number(point.iops), units.mib(point.bw), units.latency(point.latency_ns)]
        cells += [units.latency(ns) for ns in (point.p50_ns, point.p99_ns, point.p999_ns)]
        cells.append(cpu_text(point.cpu_us))
        most = sorted(point.completions.items(), key=lambda one: -one[1])[:1]
        spread = "".join(f"CPU{cpu} {100 * share:.0f}%" for cpu, share in most)
        row = " ".join(cell.rjust(7) for cell in cells)
        self._print(f"{event.index + 1:>4} {letter(event.variant)} {row}  {spread}".rstrip())

    def end(self, results: Results) -> None:
        """What differs."""
        if results.complete >= 2:
            for number, tested in enumerate(results.tested, 1):
                self._figures(number, tested)
                self._cpus(number, results.shifts[number - 1])
        self._print("")
        for line in results.verdicts():
            self._print(wrapped(line, 0, 2))
        if results.complete >= 2:
            self._print(wrapped(f"({METHOD})", 0, 1))

    def _figures(self, number: int, tested: Sequence[Tested]) -> None:
        first, second = letter(0), letter(number)
        self._print(f"\n{'':{NAME_WIDTH}}{first:>8}{second:>9}  {second} against {first}")
        for one in tested:
            means = [value_text(one.metric.unit, mean) for mean in (one.first, one.second)]
            text = f"{one.metric.name:<{NAME_WIDTH}}{means[0]:>8} {means[1]:>8}  "
            self._print(text + difference_text(one) + (" *" if one.shown else ""))

    def _cpus(self, number: int, shifts: Sequence[CpuShift]) -> None:
        first, second = letter(0), letter(number)
        if not shifts:
            return
        chosen = sorted(shifts[:CPUS_SHOWN], key=lambda shift: shift.cpu)
        more = f" (of {len(shifts)}, the most changed)" if len(shifts) > len(chosen) else ""
        self._print(
            f"\nCPU{more:<28} load % {first:>2}{second:>6}   completions % {first:>2}{second:>6}"
        )
        for shift in chosen:
            mark = " *" if shift.shown else ""
            loads = f"{shift.load[0]:>9.1f}{shift.load[1]:>6.1f}{mark:<3}"
            done = "".join(f"{100 * share:>6.0f}" for share in shift.completions)
            moved = " *" if shift.moved else ""
            self._print(f"{shift.cpu:>3}{'':28}{loads}{'':11}{done}{moved}")

    def _print(self, text: str) -> None:
        units.put(text, self._out)


class CompareJson:
    """JSON lines: the session, the comparison, a line a run, a line a figure, the verdicts."""

    def __init__(
        self, plan: Plan, out: TextIO, host: str, target: Target | None, begun: bool = False
    ) -> None:
        self._plan, self._out, self._host = plan, out, host
        if not begun:
            self._write(session_object(host, target))
        self._write({
            "event": "compare", "host": host, "job": plan.jobs[0], "repeats": plan.repeats,
            "variants": [variant.label for variant in plan.variants],
            "settle": plan.settle, "measure": plan.measure,
        })  # fmt: skip

    def run(self, event: PointFinished) -> None:
        """One run."""
        line = event_object(event)
        line["settings"] = dict(event.settings)
        del line["outcomes"]
        self._write({"event": line.pop("event"), "host": self._host, **line})

    def end(self, results: Results) -> None:
        """What differs."""
        for number, tested in enumerate(results.tested, 1):
            for one in tested:
                row = difference_object(number, one)
                self._write({"event": "difference", "host": self._host, **row})
            self._write({"event": "cpus", "host": self._host, "variant": number, "against": 0,
                         "cpus": [asdict(s) for s in results.shifts[number - 1]]})  # fmt: skip
        self._write({"event": "compare_finished", "host": self._host,
                     "complete": results.complete, "repeats": self._plan.repeats,
                     "words": list(results.verdicts())})  # fmt: skip

    def _write(self, line: dict[str, Any]) -> None:
        self._out.write(dumps(line) + "\n")
        self._out.flush()


def difference_object(number: int, one: Tested) -> dict[str, Any]:
    """What one figure of variant ``number`` does against the first's, for JSON."""
    return {
        "variant": number, "against": 0, "figure": one.metric.name, "unit": one.metric.unit,
        "means": [one.first, one.second],
        "difference": asdict(one.difference) if one.difference else None,
        "p_corrected": one.p, "shown": one.shown, "better": one.better,
    }  # fmt: skip


_CSV = ("seconds", "ios", "iops", "bw", "latency_ns", "latency_of", "p50_ns", "p99_ns",
        "p999_ns", "aqu_sz", "cpu_us", "most_completions", "steady")  # fmt: skip


class CompareCsv:
    """A row a run; the verdicts go to the words beside it."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan, self._out = plan, out
        self._writer = csv.writer(out, lineterminator="\n")
        self._writer.writerow(["index", "variant", "settings", "repeat", *_CSV])

    def run(self, event: PointFinished) -> None:
        """One run."""
        label = printable(self._plan.variants[event.variant].label)
        values = [getattr(event.point, name) for name in _CSV]
        cells = [event.index, letter(event.variant), label, event.repeat, *values]
        self._writer.writerow("" if cell is None else cell for cell in cells)
        self._out.flush()

    def end(self, results: Results) -> None:
        """Nothing: a CSV file holds rows only."""
