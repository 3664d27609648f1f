"""A comparison's panes: the seconds of all runs on one chart, the runs, the figures, the
result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from iopstui import format as f
from iopstui.events import PointFinished
from iopstui.model.experiment.comparison import CpuShift, FigureComparison
from iopstui.model.experiment.comparison_text import CPUS_SHOWN, difference_text
from iopstui.model.experiment.plan import PlannedPoint, variant_letter
from iopstui.model.experiment.point import POINT
from iopstui.tables import Column
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.xy_chart import Flag, XAxis, XYChart, XYLine, XYSpec, linear_axis
from iopstui.ui.draw.charts.xy_chart import Point as XY
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.rows import Line, Piece, Row, Table, fit
from iopstui.ui.draw.style import DIM, FINDING, MARK, Charset
from iopstui.ui.experiment.rows import (
    FIGURES,
    RESULT,
    STYLES,
    SortOrder,
    StepTable,
    further_rows,
    pane_title,
    position_note,
    result_pane,
    sentence_rows,
    title_at,
    window,
)
from iopstui.ui.state.experiment import ExperimentState, Trace, variant_names

NAME_WIDTH = 25
LABEL_WIDTH = 7
RUNS_HEAD = "    #".ljust(LABEL_WIDTH)


def _busiest_cpu_text(event: PointFinished) -> str:
    busiest = max(event.point.completions.items(), key=lambda item: item[1], default=None)
    return "" if busiest is None else f"CPU{busiest[0]} {100 * busiest[1]:.0f} %"


CPU = POINT["cpu_us"].column()
COLUMNS = (
    *FIGURES,
    replace(CPU, form=lambda us: _short(CPU.form(us)), rank=1),
    Column("", "most on", 11, read=_busiest_cpu_text, rank=2),
)


class CompareView:
    """Makes the rows of each pane; ``top`` is the first row shown of a pane that scrolls."""

    PANES = ("seconds", "runs", "figures", RESULT)
    FINAL_PANE = "figures"
    """The pane that small terminals show at the end."""

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self.order: SortOrder | None = None
        self.can_renew = self.result_alone = False
        self._seconds = XYChart(charset)

    def rows(
        self, pane: str, state: ExperimentState, width: int, height: int, top: int | None,
        pointer: tuple[int, int] | None = None, keys: str = "",
    ) -> list[Row]:  # fmt: skip
        """Exactly ``height`` rows of ``width`` cells. ``pointer`` is the cell under the mouse,
        ``keys`` are those that show the rows of a pane that do not fit."""
        if pane == "seconds":
            return self._seconds.rows(seconds_spec(state), width, height, pointer)
        if pane == "runs":
            return runs_pane(state, width, height, self._charset, top, self.order, keys)
        if pane == "figures":
            return figures_pane(state, width, height, self._charset, top, keys)
        further: Sequence[Row] = ()
        if self.result_alone:
            further = further_rows(
                state, width, self._charset, RUNS_HEAD, state.steps, state.points, _run_label
            )
        return result_pane(state, width, height, self._charset, top, keys, self.can_renew, further)

    def pane_boxes(self, state: ExperimentState, box: Box, above: int) -> dict[str, Box]:
        """All panes at once: the result in ``above`` rows, the chart, runs and figures side by
        side."""
        rows = min(max(state.total + 3, 14), max(10, (box.height - above) * 3 // 5))
        right = min(84, box.width - 48)
        left_width, y = box.width - right, box.y + box.height - rows
        return {
            RESULT: Box(box.x, box.y, box.width, above),
            "seconds": Box(box.x, box.y + above, box.width, y - box.y - above),
            "runs": Box(box.x, y, left_width, rows),
            "figures": Box(box.x + left_width, y, right, rows),
        }

    def title_at(self, pane: str, state: ExperimentState, width: int, column: int) -> str | None:
        """The title over a column of the runs; ``None`` in other panes."""
        table: Table[PointFinished] = Table(COLUMNS, LABEL_WIDTH, width, self._charset)
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
    max_x = max([plan.settle + plan.measure, *(x for line in lines for x, _ in line.points)])
    ticks = linear_axis(max_x, lambda s: f"{s:g} s").ticks
    return XYSpec(
        "IOPS per second of each run; line: mean of the run",
        # space for the names at the lines' ends
        XAxis(0.0, 1.1 * max_x, tuple(tick for tick in ticks if tick[0] <= 1.1 * max_x)),
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
    for index in range(longest):
        seconds = [trace.seconds[index] for trace in traces if index < len(trace.seconds)]
        yield sum(x for x, _ in seconds) / len(seconds), sum(y for _, y in seconds) / len(seconds)


# -- tables


def runs_pane(
    state: ExperimentState, width: int, height: int, charset: Charset, top: int | None,
    order: SortOrder | None = None, keys: str = "",
) -> list[Row]:  # fmt: skip
    """A row for each run, in the order in which they are made, or sorted by a column."""
    return StepTable(
        "runs", Table(COLUMNS, LABEL_WIDTH, width, charset), RUNS_HEAD, state.steps, state.points,
        frozenset(), state.current_point.index if state.current_point is not None else None,
        _run_label,
    ).rows(state, (width, height), charset, top, order, keys)  # fmt: skip


def _run_label(step: PlannedPoint) -> str:
    return f"{step.index + 1:>4} {variant_letter(step.variant)}"


def figures_pane(
    state: ExperimentState, width: int, height: int, charset: Charset, top: int | None,
    keys: str = "",
) -> list[Row]:  # fmt: skip
    """Differences, figure by figure, then CPU by CPU."""
    results = state.results()
    rows: list[Row] = []
    if results is None or results.complete < results.least:
        needed = "two" if state.plan.until is None else "six"
        message = f"Figures appear after {needed} complete repeats."
        rows = sentence_rows([message], width, charset)
    else:
        for number, comparisons in enumerate(results.tested, 1):
            rows += _comparison_rows(number, comparisons, width, charset)
            rows += _cpu_rows(number, results.shifts[number - 1], width, charset)
    visible_rows, first = window(rows, height - 1, width, top or 0, 0)
    name = "figures" if not state.active else "figures so far"
    return [
        pane_title(name, width, charset, position_note(first, height - 1, len(rows), keys)),
        *visible_rows,
    ]


def _comparison_rows(
    number: int, comparisons: Sequence[FigureComparison], width: int, charset: Charset
) -> Iterator[Row]:
    name = max(12, min(NAME_WIDTH, width - 47))
    first, second = variant_letter(0), variant_letter(number)
    head = f" {'':{name}}{first:>8}{second:>9}  {second} against {first} (95 %)"
    yield Line(width, charset).add(head, DIM).build()
    for comparison in comparisons:
        means = [
            _short(comparison.metric.text(mean)) for mean in (comparison.first, comparison.second)
        ]
        line = Line(width, charset).add(f" {fit(comparison.metric.name, name)}")
        line.add(f"{means[0]:>8} {means[1]:>8}  ")
        line.add(
            difference_text(comparison) + _significance_mark(comparison),
            FINDING if comparison.shown and not comparison.disturbed else None,
        )
        yield line.build()


def _significance_mark(comparison: FigureComparison) -> str:
    """ " *" if the runs show a difference, " *?" if they do but some were disturbed."""
    return "" if not comparison.shown else " *?" if comparison.disturbed else " *"


def _short(text: str) -> str:
    """A figure as on the dashboard: "38.5µs", "93 %"."""
    return text.replace(" ", "").replace("%", " %")


def _cpu_rows(
    number: int, shifts: Sequence[CpuShift], width: int, charset: Charset
) -> Iterator[Row]:
    if not shifts:
        return
    first, second = variant_letter(0), variant_letter(number)
    shown_shifts = sorted(shifts[:CPUS_SHOWN], key=lambda shift: shift.cpu)
    more = f" of {len(shifts)}" if len(shifts) > len(shown_shifts) else ""
    head = f" {'CPU' + more:<13}load {first:>7}{second:>8}   completions {first:>5}{second:>6}"
    yield Line(width, charset).add(head, DIM).build()
    for shift in shown_shifts:
        loads = f"{shift.load[0]:>9.1f} %{shift.load[1]:>6.1f} %{' *' if shift.shown else '  '}"
        completions = "".join(f"{100 * share:>4.0f} %" for share in shift.completions)
        text = f" {shift.cpu:>3}{'':11}{loads}{'':12}{completions}{' *' if shift.moved else ''}"
        yield Line(width, charset).add(text).build()
