"""A comparison as a table, JSON lines or CSV: one row per run, then the differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TextIO, cast

from iopstui.events import PointFailed, PointFinished
from iopstui.model.experiment.comparison import (
    NOISE_KNOWN_FROM,
    CpuShift,
    FigureComparison,
    sensitivity_so_far,
    variant_runs,
)
from iopstui.model.experiment.comparison_text import (
    CPUS_SHOWN,
    ComparisonResults,
    difference_text,
    method_text,
)
from iopstui.model.experiment.plan import Plan, variant_letter
from iopstui.model.experiment.point import POINT
from iopstui.output.experiment.sink import (
    Cell,
    ExperimentRows,
    ExperimentTable,
    JsonLines,
    cells,
    disturbed_text,
    point_object,
)
from iopstui.output.experiment.sweep import FIGURES
from iopstui.output.jsonl import Object
from iopstui.tables import Column, head_line, row_line
from iopstui.text import printable, wrapped

NAME_WIDTH = 26


def _busiest_cpu_text(completions: Mapping[int, float]) -> str:
    most = max(completions.items(), key=lambda cpu: cpu[1], default=None)
    return "" if most is None else f"CPU {most[0]}, {100 * most[1]:.0f} %"


COLUMNS = (
    *(replace(column, width=7) for column in FIGURES[:6]),
    POINT["cpu_us"].column(),
    Column("point/completions", "most on", 12, _busiest_cpu_text, left=True),
)


def comparison_results(
    plan: Plan, points: Sequence[PointFinished], failed: Sequence[PointFailed] = (),
    said: Sequence[str] = (),
) -> ComparisonResults:  # fmt: skip
    return ComparisonResults(plan, variant_runs(plan, points))


def progress_note(plan: Plan, points: Sequence[PointFinished]) -> str:
    """Which differences the planned repeats can detect, given the spread so far; shown once."""
    newly_known = len(points) == NOISE_KNOWN_FROM * len(plan.variants)
    if not newly_known or plan.repeats <= NOISE_KNOWN_FROM:
        return ""
    return sensitivity_so_far(plan, variant_runs(plan, points))


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def shown_text(figure: FigureComparison) -> str:
    """Whether the runs show a difference; "yes?" if runs were disturbed."""
    return f"{_yes_or_no(figure.shown)}{'?' if figure.shown and figure.disturbed else ''}"


def difference_columns(number: int) -> Sequence[Column]:
    """The columns for each figure: the first variant, variant ``number``, and the difference."""
    first, second = variant_letter(0), variant_letter(number)
    return (
        Column("metric/name", "figure", NAME_WIDTH, left=True),
        Column("", first, 8, read=lambda figure: figure.metric.text(figure.first)),
        Column("", second, 8, read=lambda figure: figure.metric.text(figure.second)),
        Column("", f"{second} against {first}, 95 %", 29, read=difference_text),
        Column("", "shown", 5, read=shown_text),
    )


def cpu_columns(number: int) -> Sequence[Column]:
    """The columns for a CPU: its load, and its share of the completions, under the first variant
    and variant ``number``."""
    first, second = variant_letter(0), variant_letter(number)
    return (
        Column("cpu", "CPU", 3),
        *(Column("", title, 8, "{:.1f}".format, read=_shift_of("load", n))
          for n, title in enumerate((f"load % {first}", second))),
        Column("shown", "shown", 5, _yes_or_no),
        *(Column("", title, 15, lambda share: f"{100 * share:.0f}",
                 read=_shift_of("completions", n))
          for n, title in enumerate((f"completions % {first}", second))),
        Column("moved", "shown", 5, _yes_or_no),
    )  # fmt: skip


def _shift_of(name: str, place: int) -> Callable[[CpuShift], float]:
    return lambda shift: cast(float, getattr(shift, name)[place])


class CompareTable(ExperimentTable[ComparisonResults]):
    """A comparison as a table: one row per run, then one row per figure."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        super().__init__(plan, out)
        for number, variant in enumerate(plan.variants):
            self._print(f"{variant_letter(number)}: {printable(variant.label)}")
        self._print(f"\n run   {head_line(COLUMNS)}")

    def point(self, event: PointFinished) -> None:
        self._print(
            f"{event.index + 1:>4} {variant_letter(event.variant)} {row_line(COLUMNS, event)}"
        )
        self._sentences(f"disturbed: {text}" for text in event.point.disturbed)

    def end(self, results: ComparisonResults) -> None:
        if results.complete >= results.least:
            for number, tested in enumerate(results.tested, 1):
                self._rows(difference_columns(number), tested)
                self._cpus(number, results.shifts[number - 1])
        self._print("")
        for line in results.verdicts():
            self._print(wrapped(line, 0, 2))
        if results.complete >= results.least:
            self._print(wrapped(f"({method_text(self._plan, 'shown')})", 0, 1))

    def _rows(self, columns: Sequence[Column], rows: Sequence[object]) -> None:
        self._print("\n" + head_line(columns))
        for row in rows:
            self._print(row_line(columns, row))

    def _cpus(self, number: int, shifts: Sequence[CpuShift]) -> None:
        chosen = sorted(shifts[:CPUS_SHOWN], key=lambda shift: shift.cpu)
        if chosen:
            self._rows(cpu_columns(number), chosen)
        if len(shifts) > len(chosen):
            self._print(f"({len(chosen)} of {len(shifts)} CPUs: those whose load changed most)")


class CompareJson(ExperimentRows[ComparisonResults]):
    """JSON lines: the session, the comparison, a line for each run, a line for each figure, and the
    results."""

    def __init__(self, plan: Plan, lines: JsonLines) -> None:
        self._plan, self._lines = plan, lines
        lines.write("compare", {
            "plan": plan.name or None, "job": plan.jobs[0], "repeats": plan.repeats,
            "seed": plan.seed, "until": plan.until,
            "variants": [variant.label for variant in plan.variants],
            "settle": plan.settle, "measure": plan.measure, "primary": plan.figure,
        })  # fmt: skip

    def point(self, event: PointFinished) -> None:
        row = point_object(event)
        self._lines.write(row.pop("event"), row)

    def end(self, results: ComparisonResults) -> None:
        for number, tested in enumerate(results.tested, 1):
            for figure in tested:
                self._lines.write("difference", difference_object(number, figure))
            cpus = [asdict(shift) for shift in results.shifts[number - 1]]
            self._lines.write("cpus", {"variant": number, "against": 0, "cpus": cpus})
        self._lines.write("compare_finished", {
            "complete": results.complete, "repeats": self._plan.repeats,
            "settled": results.settled if self._plan.until is not None else None,
            "words": list(results.verdicts()),
        })  # fmt: skip


def difference_object(number: int, figure: FigureComparison) -> Object:
    """Effect of variant ``number`` on one figure against the first variant, for JSON."""
    return {
        "variant": number, "against": 0, "figure": figure.metric.name, "unit": figure.metric.unit,
        "means": [figure.first, figure.second],
        "difference": asdict(figure.difference) if figure.difference else None,
        "p_corrected": figure.p, "shown": figure.shown, "better": figure.better,
        "primary": figure.primary, "disturbed": figure.disturbed,
    }  # fmt: skip


def csv_cells(plan: Plan) -> list[Cell]:
    """The columns of CSV: one row per run."""
    return [
        ("index", "index"),
        ("variant", lambda event: variant_letter(event.variant)),
        ("settings", lambda event: printable(plan.variants[event.variant].label)),
        ("repeat", "repeat"),
        *cells("seconds ios iops bw latency_ns latency_of p50_ns p99_ns p999_ns aqu_sz cpu_us "
               "most_completions steady device_p50_ns device_p99_ns stayed watts ios_per_joule "
               "others"),
        ("disturbed", disturbed_text),
    ]  # fmt: skip
