"""`iopstui compare`: the same job under two or more settings in turn, and what differs."""

from __future__ import annotations

import argparse
import csv
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TextIO

from iopstui import units
from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK
from iopstui.model.comparison import CpuShift, Tested, compare, cpu_shifts, pairs
from iopstui.model.plan import Plan, check_variants, kept_apart, letter, parse_variant
from iopstui.model.point import Point
from iopstui.model.target import Target
from iopstui.output.experiment import Teller, ask, stop_on_signals
from iopstui.output.experiment_setup import Choose, Setup, dry_run, set_up
from iopstui.output.jsonl import dumps, event_object, session_object
from iopstui.output.verdict import wrapped
from iopstui.session.events import Event, PointFinished
from iopstui.session.runner import Runner
from iopstui.text import printable

CPUS_SHOWN = 8
MOVED = 0.05
NAME_WIDTH = 26
METHOD = (
    "compared are figures of whole runs, in pairs of the same repeat (the seconds of one run "
    "depend on each other); intervals: 95 %, paired t; * = shown at 5 % after correction for "
    "the number of figures (Holm)"
)


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
    plan = replace(plan, variants=kept_apart(variants, setup.rehearsed.knobs))
    setup = replace(setup, plan=plan)
    if arguments.dry_run:
        for line in dry_run(setup, None):
            print(units.fit(line, sys.stdout.encoding))
        return EXIT_OK
    comparison = _Comparison(arguments.format, setup)
    runner = Runner(
        setup.session(arguments), plan, setup.job_target, setup.conditions,
        comparison.handle,
    )  # fmt: skip
    stop_on_signals(runner)
    try:
        runner.run()
    finally:
        comparison.end()
    return EXIT_INTERRUPTED if runner.interrupted else EXIT_OK


class _Comparison:
    """The sinks of one comparison."""

    def __init__(self, kind: str, setup: Setup) -> None:
        self._plan = setup.plan
        self._kind = kind
        self._teller = Teller(sys.stderr, self._plan.settle + self._plan.measure)
        self._runs: list[dict[int, Point]] = [{} for _ in self._plan.variants]
        self._out: CompareTable | CompareJson | CompareCsv
        if kind == "jsonl":
            self._out = CompareJson(self._plan, sys.stdout, socket.gethostname(), setup.target)
        elif kind == "csv":
            self._out = CompareCsv(self._plan, sys.stdout)
        else:
            self._out = CompareTable(self._plan, sys.stdout)

    def handle(self, event: Event) -> None:
        """Take one event."""
        self._teller.handle(event)
        if isinstance(event, PointFinished):
            self._runs[event.variant][event.repeat] = event.point
            self._out.run(event)

    def end(self) -> None:
        """Say what differs."""
        self._teller.clear()
        if not any(self._runs):
            return
        results = Results(self._plan, self._runs)
        self._out.end(results)
        if self._kind != "table":
            for line in results.verdicts():
                print(units.fit(line, sys.stderr.encoding), file=sys.stderr)


class Results:
    """What the runs so far show."""

    def __init__(self, plan: Plan, runs: Sequence[Mapping[int, Point]]) -> None:
        self.plan = plan
        self.runs = runs
        self.complete = min(len(pairs(runs[0], other)) for other in runs[1:])
        self.tested = compare(runs)
        self.shifts = [cpu_shifts(runs[0], other) for other in runs[1:]]

    def verdicts(self) -> Iterator[str]:
        """One sentence for each variant after the first, and what they are worth."""
        if self.complete < 2:
            yield (
                f"not enough: {self.complete} complete repeat of {self.plan.repeats}; nothing can "
                "be told from chance with fewer than 2"
            )
            return
        for number, (tested, shifts) in enumerate(zip(self.tested, self.shifts, strict=True), 1):
            yield verdict(self.plan, number, tested, self.complete)
            yield from moved(shifts, letter(0), letter(number))
        if self.complete < self.plan.repeats:
            yield (
                f"interrupted after {self.complete} of {self.plan.repeats} repeats: that is not "
                "enough of what was planned; take it as a hint and run it again"
            )


def verdict(plan: Plan, number: int, tested: Sequence[Tested], runs: int) -> str:
    """What one variant does against the first, in one sentence."""
    name = f"{letter(number)} ({plan.variants[number].label}) against "
    name += f"{letter(0)} ({plan.variants[0].label}): "
    shown = [one for one in tested if one.shown]
    if not shown:
        return printable(f"{name}no difference that {runs} runs of each can show{_within(tested)}")
    parts = [f"{one.metric.name} {difference_text(one)}" for one in shown]
    better = [one.better for one in shown if one.better is not None]
    judgement = ""
    if better:
        judgement = "better: " if all(better) else "worse: " if not any(better) else "mixed: "
    rest = [one.metric.name for one in tested if not one.shown]
    tail = f"; no difference shown in {', '.join(rest)}" if rest else ""
    return printable(f"{name}{judgement}{', '.join(parts)}{tail}")


def _within(tested: Sequence[Tested]) -> str:
    """How large a difference in IOPS may still be."""
    iops = next((one.difference for one in tested if one.metric.name == "IOPS"), None)
    if iops is None:
        return ""
    return (
        f"; in IOPS it lies between {100 * iops.low:+.1f} and {100 * iops.high:+.1f} % "
        "(95 % confidence)"
    )


def difference_text(one: Tested) -> str:
    """ "+12.3 % (+8.0 to +16.8)"; shares in percentage points."""
    found = one.difference
    if found is None:
        return units.MISSING
    unit = "%" if found.relative else "points"
    values = [100 * value for value in (found.mean, found.low, found.high)]
    return f"{_signed(values[0])} {unit} ({_signed(values[1])} to {_signed(values[2])})"


def _signed(value: float) -> str:
    return f"{value:+.1f}" if abs(value) < 99.95 else f"{value:+.0f}"


def moved(shifts: Sequence[CpuShift], first: str, second: str) -> Iterator[str]:
    """Which CPU pays, and where completions went, in words; only what is shown and matters."""
    paying = [shift for shift in shifts if shift.shown and abs(shift.load[1] - shift.load[0]) >= 1]
    for shift in paying[:2]:
        more = "pays" if shift.load[1] > shift.load[0] else "is relieved"
        yield (
            f"CPU {shift.cpu} {more} with {second}: its load goes from {shift.load[0]:.0f} to "
            f"{shift.load[1]:.0f} %"
        )
    went = [s for s in shifts if s.moved and abs(s.completions[1] - s.completions[0]) >= MOVED]
    if went:
        parts = [
            f"CPU {s.cpu} {100 * s.completions[0]:.0f} → {100 * s.completions[1]:.0f} %"
            for s in sorted(went, key=lambda s: s.cpu)[:CPUS_SHOWN]
        ]
        yield f"completions move from {first} to {second}: {', '.join(parts)}"


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
        cells.append(_cpu(point.cpu_us))
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
            means = [_value(one.metric.unit, mean) for mean in (one.first, one.second)]
            text = f"{one.metric.name:<{NAME_WIDTH}}{means[0]:>8} {means[1]:>8}  "
            self._print(text + difference_text(one) + (" *" if one.shown else ""))

    def _cpus(self, number: int, shifts: Sequence[CpuShift]) -> None:
        first, second = letter(0), letter(number)
        if not shifts:
            return
        chosen = sorted(shifts[:CPUS_SHOWN], key=lambda shift: shift.cpu)
        more = f" (of {len(shifts)}, the most changed)" if len(shifts) > len(chosen) else ""
        self._print(
            f"\nCPU{more:<28} load {first:>4}{second:>6}   completions {first:>4}{second:>6}"
        )
        for shift in chosen:
            mark = " *" if shift.shown else ""
            loads = f"{shift.load[0]:>9.1f}{shift.load[1]:>6.1f}{mark:<3}"
            done = "".join(f"{100 * share:>6.0f}" for share in shift.completions)
            self._print(f"{shift.cpu:>3}{'':28}{loads}{'':11}{done}")

    def _print(self, text: str) -> None:
        self._out.write(units.fit(text, self._out.encoding) + "\n")
        self._out.flush()


def _value(unit: str, value: float) -> str:
    if unit == "ns":
        return units.latency(value)
    if unit == "us":
        return _cpu(value)
    return f"{100 * value:.0f} %" if unit == "share" else units.number(value)


def _cpu(cpu_us: float | None) -> str:
    return units.latency(None if cpu_us is None else cpu_us * 1000)


class CompareJson:
    """JSON lines: the session, the comparison, a line a run, a line a figure, the verdicts."""

    def __init__(self, plan: Plan, out: TextIO, host: str, target: Target | None) -> None:
        self._plan, self._out, self._host = plan, out, host
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
                self._write({
                    "event": "difference", "host": self._host, "variant": number,
                    "against": 0, "figure": one.metric.name, "unit": one.metric.unit,
                    "means": [one.first, one.second],
                    "difference": asdict(one.difference) if one.difference else None,
                    "p_corrected": one.p, "shown": one.shown, "better": one.better,
                })  # fmt: skip
            self._write({"event": "cpus", "host": self._host, "variant": number, "against": 0,
                         "cpus": [asdict(s) for s in results.shifts[number - 1]]})  # fmt: skip
        self._write({"event": "compare_finished", "host": self._host,
                     "complete": results.complete, "repeats": self._plan.repeats,
                     "words": list(results.verdicts())})  # fmt: skip

    def _write(self, line: dict[str, Any]) -> None:
        self._out.write(dumps(line) + "\n")
        self._out.flush()


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
        label = self._plan.variants[event.variant].label
        values = [getattr(event.point, name) for name in _CSV]
        cells = [event.index, letter(event.variant), label, event.repeat, *values]
        self._writer.writerow("" if cell is None else cell for cell in cells)
        self._out.flush()

    def end(self, results: Results) -> None:
        """Nothing: a CSV file holds rows only."""
