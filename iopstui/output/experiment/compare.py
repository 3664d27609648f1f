"""A comparison as a table, JSON lines or CSV: a row a run, then what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from iopstui import format as units
from iopstui.events import PointFailed, PointFinished
from iopstui.model.experiment.comparison import CpuShift, FigureComparison
from iopstui.model.experiment.plan import Plan, letter
from iopstui.model.experiment.point import Point
from iopstui.model.experiment.sensitivity import KNOWN_FROM, sensitivity_so_far
from iopstui.model.experiment.words import (
    CPUS_SHOWN,
    ComparisonResults,
    cpu_text,
    difference_text,
    method_text,
    value_text,
)
from iopstui.output.experiment.sink import CsvFile, ExperimentSink, JsonLines, point_object
from iopstui.output.jsonl import Object
from iopstui.output.verdict import wrapped
from iopstui.text import printable

NAME_WIDTH = 26


class CompareOut(ExperimentSink[ComparisonResults]):
    """A comparison's data and words."""

    def results(self) -> ComparisonResults:
        """Of the runs so far."""
        return ComparisonResults(self.plan, self._runs())

    def _runs(self) -> list[dict[int, Point]]:
        runs: list[dict[int, Point]] = [{} for _ in self.plan.variants]
        for event in self.points:
            runs[event.variant][event.repeat] = event.point
        return runs

    def midway(self) -> str:
        """What the planned repeats find with the spread seen so far, said once."""
        if len(self.points) != KNOWN_FROM * len(self.plan.variants):
            return ""
        return sensitivity_so_far(self.plan, self._runs()) if self.plan.repeats > KNOWN_FROM else ""

    def table(self, out: TextIO) -> CompareTable:
        """A row a run, a row a figure."""
        return CompareTable(self.plan, out)

    def json(self, lines: JsonLines) -> CompareJson:
        """A line a run, a line a figure."""
        return CompareJson(self.plan, lines)

    def csv(self, out: TextIO) -> CompareCsv:
        """A row a run."""
        return CompareCsv(self.plan, out)


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

    def point(self, event: PointFinished) -> None:
        """Write one run."""
        point = event.point
        cells = [units.number(point.iops), units.mib(point.bw), units.latency(point.latency_ns)]
        cells += [units.latency(ns) for ns in (point.p50_ns, point.p99_ns, point.p999_ns)]
        cells.append(cpu_text(point.cpu_us))
        most = sorted(point.completions.items(), key=lambda one: -one[1])[:1]
        spread = "".join(f"CPU{cpu} {100 * share:.0f}%" for cpu, share in most)
        row = " ".join(cell.rjust(7) for cell in cells)
        self._print(f"{event.index + 1:>4} {letter(event.variant)} {row}  {spread}".rstrip())

    def failed(self, event: PointFailed) -> None:
        """Nothing: a comparison ends with the first run that fails."""

    def end(self, results: ComparisonResults) -> None:
        """Write what differs."""
        if results.complete >= results.least:
            for number, tested in enumerate(results.tested, 1):
                self._figures(number, tested)
                self._cpus(number, results.shifts[number - 1])
        self._print("")
        for line in results.verdicts():
            self._print(wrapped(line, 0, 2))
        if results.complete >= results.least:
            self._print(wrapped(f"({method_text(self._plan)})", 0, 1))

    def _figures(self, number: int, tested: Sequence[FigureComparison]) -> None:
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
    """JSON lines: the session, the comparison, a line a run, a line a figure, the results."""

    def __init__(self, plan: Plan, lines: JsonLines) -> None:
        self._plan, self._lines = plan, lines
        lines.write("compare", {
            "job": plan.jobs[0], "repeats": plan.repeats, "seed": plan.seed, "until": plan.until,
            "variants": [variant.label for variant in plan.variants],
            "settle": plan.settle, "measure": plan.measure, "primary": plan.figure,
        })  # fmt: skip

    def point(self, event: PointFinished) -> None:
        """Write one run."""
        row = point_object(event)
        self._lines.write(row.pop("event"), row)

    def failed(self, event: PointFailed) -> None:
        """Nothing: a comparison ends with the first run that fails."""

    def end(self, results: ComparisonResults) -> None:
        """Write what differs."""
        for number, tested in enumerate(results.tested, 1):
            for one in tested:
                self._lines.write("difference", difference_object(number, one))
            cpus = [asdict(shift) for shift in results.shifts[number - 1]]
            self._lines.write("cpus", {"variant": number, "against": 0, "cpus": cpus})
        self._lines.write("compare_finished", {
            "complete": results.complete, "repeats": self._plan.repeats,
            "settled": results.settled if self._plan.until is not None else None,
            "words": list(results.verdicts()),
        })  # fmt: skip


def difference_object(number: int, one: FigureComparison) -> Object:
    """What one figure of variant ``number`` does against the first's, for JSON."""
    return {
        "variant": number, "against": 0, "figure": one.metric.name, "unit": one.metric.unit,
        "means": [one.first, one.second],
        "difference": asdict(one.difference) if one.difference else None,
        "p_corrected": one.p, "shown": one.shown, "better": one.better,
        "primary": one.primary,
    }  # fmt: skip


_CSV = ("seconds", "ios", "iops", "bw", "latency_ns", "latency_of", "p50_ns", "p99_ns",
        "p999_ns", "aqu_sz", "cpu_us", "most_completions", "steady", "device_p50_ns",
        "device_p99_ns", "stayed")  # fmt: skip


class CompareCsv:
    """A row a run; the results go to the words beside it."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan = plan
        self._file = CsvFile(out, ["index", "variant", "settings", "repeat", *_CSV])

    def point(self, event: PointFinished) -> None:
        """Write one run."""
        label = printable(self._plan.variants[event.variant].label)
        values = [getattr(event.point, name) for name in _CSV]
        self._file.row([event.index, letter(event.variant), label, event.repeat, *values])

    def failed(self, event: PointFailed) -> None:
        """Nothing: a comparison ends with the first run that fails."""

    def end(self, results: ComparisonResults) -> None:
        """Nothing: a CSV file holds rows only."""
