"""A comparison's panes: the seconds of all runs over each other, the runs, the figures, the
result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iopstui import format as f
from iopstui.events import PointFinished
from iopstui.model.experiment.comparison import CpuShift, FigureComparison
from iopstui.model.experiment.comparison_text import (
    CPUS_SHOWN,
    cpu_text,
    difference_text,
    value_text,
)
from iopstui.model.experiment.plan import variant_letter
from iopstui.model.experiment.point import Point
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.xy_chart import Flag, XAxis, XYChart, XYLine, XYSpec, linear_axis
from iopstui.ui.draw.charts.xy_chart import Point as XY
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.rows import Column, Line, Piece, Row, Table, fit
from iopstui.ui.draw.style import BOLD, DIM, FINDING, FIO, MARK, WARNING, Charset
from iopstui.ui.experiment.rows import (
    FIGURES,
    RESULT,
    STYLES,
    place_note,
    point,
    result_pane,
    sentences,
    title,
    window,
)
from iopstui.ui.experiment.sorting import Order, in_order, title_at
from iopstui.ui.state.experiment import ExperimentState, Trace, variant_names

NAME_WIDTH = 25
LABEL = 7


def _busiest_cpu_text(run: Point) -> str:
    most = max(run.completions.items(), key=lambda item: item[1], default=None)
    return "" if most is None else f"CPU{most[0]} {100 * most[1]:.0f}%"


COLUMNS: tuple[Column[PointFinished], ...] = (
    *FIGURES,
    Column("CPU/IO", 8, point(lambda p: cpu_text(p.cpu_us).replace(" ", "")), drop=1),
    Column("most on", 12, point(_busiest_cpu_text), drop=2),
)  # fmt: skip


class CompareView:
    """Makes the rows of each pane; ``top`` is the first row of one that scrolls."""

    PANES = ("seconds", "runs", "figures", RESULT)
    LAST = "figures"
    """The pane that small terminals show at the end."""

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self.order: Order | None = None
        self._seconds = XYChart(charset)

    def rows(
        self, pane: str, state: ExperimentState, width: int, height: int, top: int | None,
        at: tuple[int, int] | None = None,
    ) -> list[Row]:  # fmt: skip
        """Exactly ``height`` rows of ``width`` cells. ``at`` is the cell under the mouse."""
        if pane == "seconds":
            return self._seconds.rows(seconds_spec(state), width, height, at)
        if pane == "runs":
            return runs(state, width, height, self._charset, top, self.order)
        if pane == "figures":
            return figures(state, width, height, self._charset, top)
        return result_pane(state, width, height, self._charset, top)

    def places(self, state: ExperimentState, box: Box) -> dict[str, Box]:
        """All panes at once: the chart, runs and figures side by side, the result."""
        result_height = max(7, min(10, box.height // 5))
        rows = min(max(state.total + 3, 14), max(10, (box.height - result_height) * 3 // 5))
        right = min(84, box.width - 48)
        left_width, top = box.width - right, box.height - rows - result_height
        return {
            "seconds": Box(box.x, box.y, box.width, top),
            "runs": Box(box.x, box.y + top, left_width, rows),
            "figures": Box(box.x + left_width, box.y + top, right, rows),
            RESULT: Box(box.x, box.y + top + rows, box.width, result_height),
        }

    def title_at(self, pane: str, state: ExperimentState, width: int, column: int) -> str | None:
        """The title over a column of the runs; ``None`` in other panes."""
        table: Table[PointFinished] = Table(COLUMNS, LABEL, width, self._charset)
        return title_at(table, column) if pane == "runs" else None


# -- the seconds of all runs


def seconds_spec(state: ExperimentState) -> XYSpec:
    """Each second of each run as its variant's letter, and each variant's mean as a line."""
    plan = state.plan
    lines: list[XYLine] = []
    for number in range(len(plan.variants)):
        variant_traces = [trace for trace in state.traces if trace.variant == number]
        points = tuple(point for trace in variant_traces for point in trace.seconds)
        lines.append(
            XYLine(variant_letter(number), points, STYLES[number % len(STYLES)], joined=False)
        )
    for number in range(len(plan.variants)):
        variant_traces = [trace for trace in state.traces if trace.variant == number]
        lines.append(XYLine("", tuple(mean_line(variant_traces)), STYLES[number % len(STYLES)]))
    names: list[Piece] = [
        (f"{name}   ", STYLES[n % len(STYLES)]) for n, name in enumerate(variant_names(plan))
    ]
    if plan.settle:
        names.append(("│ measurement begins", MARK))
    ends = [
        (n, line.points[-1]) for n, line in enumerate(lines[len(plan.variants) :]) if line.points
    ]
    most = max([plan.settle + plan.measure, *(x for line in lines for x, _ in line.points)])
    ticks = linear_axis(most, lambda s: f"{s:g} s").ticks
    return XYSpec(
        "IOPS per second of each run; line: mean of the run",
        # room for the names at the lines' ends
        XAxis(0.0, 1.1 * most, tuple(tick for tick in ticks if tick[0] <= 1.1 * most)),
        plotting.linear_scale([y for line in lines for _, y in line.points], None, True),
        f.axis_number,
        tuple(lines),
        tuple(names),
        tuple(Flag(point, variant_letter(number)) for number, point in ends),
        verticals=(plan.settle,) if plan.settle else (),
        value_text=lambda point: f"{point[0]:.1f} s: {f.number(point[1])} IOPS",
    )


def mean_line(traces: Sequence[Trace]) -> Iterator[XY]:
    """The mean of the runs' first intervals, of their second ones, and so on."""
    longest = max((len(trace.seconds) for trace in traces), default=0)
    for place in range(longest):
        seconds = [trace.seconds[place] for trace in traces if place < len(trace.seconds)]
        yield sum(x for x, _ in seconds) / len(seconds), sum(y for _, y in seconds) / len(seconds)


# -- tables


def runs(
    state: ExperimentState, width: int, height: int, charset: Charset, top: int | None,
    order: Order | None = None,
) -> list[Row]:  # fmt: skip
    """A row a run, in the order they are made or by a column."""
    table: Table[PointFinished] = Table(COLUMNS, LABEL, width, charset)
    running = state.current_point.index if state.current_point is not None else None
    focus = len(state.points) if running is None else running
    visible, steps = max(1, height - 2), state.steps
    follows = focus - visible + 2 if order is None else 0
    first = max(0, min(len(steps) - visible, follows if top is None else top))
    rows = []
    for step in in_order(steps, state.points, order)[first : first + visible]:
        mark = ">" if step.index == running else " "
        label = f"{mark}{step.index + 1:>4} {variant_letter(step.variant)}"
        result = state.points.get(step.index)
        if result is not None:
            rows.append(table.row(label, result, label_style=None))
            continue
        line = Line(width, charset).add(label, BOLD if step.index == running else DIM)
        if step.index == running:
            line.fill_to(table.used_width - sum(column_width for _, column_width in table.columns))
            iops = "" if state.iops is None else f.number(state.iops)
            line.add(iops.rjust(table.columns[0][1]), FIO).add(
                f"  {state.activity_text()}", WARNING
            )
        rows.append(line.build())
    visible_rows, _ = window(rows, visible, width, 0, 0)
    parts = (order.words if order is not None else "", place_note(first, visible, len(steps)))
    head = table.header("    #", order.title if order is not None else "")
    note = "  ".join(part for part in parts if part)
    return [title("runs", width, charset, note), head, *visible_rows][:height]


def figures(
    state: ExperimentState, width: int, height: int, charset: Charset, top: int | None
) -> list[Row]:
    """Differences, figure by figure, then CPU by CPU."""
    results = state.results()
    rows: list[Row] = []
    if results is None or results.complete < results.least:
        least = "two" if state.plan.until is None else "six"
        message = f"Figures appear after {least} complete repeats."
        rows = sentences([message], width, charset)
    else:
        for number, tested in enumerate(results.tested, 1):
            rows += _figures(number, tested, width, charset)
            rows += _cpus(number, results.shifts[number - 1], width, charset)
    visible_rows, first = window(rows, height - 1, width, top or 0, 0)
    name = "figures" if not state.active else "figures so far"
    return [title(name, width, charset, place_note(first, height - 1, len(rows))), *visible_rows]


def _figures(
    number: int, tested: Sequence[FigureComparison], width: int, charset: Charset
) -> Iterator[Row]:
    name = max(12, min(NAME_WIDTH, width - 47))
    first, second = variant_letter(0), variant_letter(number)
    head = f" {'':{name}}{first:>8}{second:>9}  {second} against {first} (95 %)"
    yield Line(width, charset).add(head, DIM).build()
    for comparison in tested:
        means = [
            _without_blanks(value_text(comparison.metric.unit, mean))
            for mean in (comparison.first, comparison.second)
        ]
        line = Line(width, charset).add(f" {fit(comparison.metric.name, name)}")
        line.add(f"{means[0]:>8} {means[1]:>8}  ")
        line.add(
            difference_text(comparison) + (" *" if comparison.shown else ""),
            FINDING if comparison.shown else None,
        )
        yield line.build()


def _without_blanks(text: str) -> str:
    return text.replace(" ", "")


def _cpus(number: int, shifts: Sequence[CpuShift], width: int, charset: Charset) -> Iterator[Row]:
    if not shifts:
        return
    first, second = variant_letter(0), variant_letter(number)
    chosen = sorted(shifts[:CPUS_SHOWN], key=lambda shift: shift.cpu)
    more = f" of {len(shifts)}" if len(shifts) > len(chosen) else ""
    head = f" {'CPU' + more:<13}load {first:>6}{second:>7}   completions {first:>5}{second:>6}"
    yield Line(width, charset).add(head, DIM).build()
    for shift in chosen:
        loads = f"{shift.load[0]:>9.1f}%{shift.load[1]:>6.1f}%{' *' if shift.shown else '  '}"
        completions = "".join(f"{100 * share:>5.0f}%" for share in shift.completions)
        text = f" {shift.cpu:>3}{'':11}{loads}{'':12}{completions}{' *' if shift.moved else ''}"
        yield Line(width, charset).add(text).build()
