"""A sweep's panes: the table of its points, IOPS over the load, latency over IOPS, the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.style import Style

from iopstui import format as f
from iopstui.events import PointFinished
from iopstui.model.experiment.host_sweep import HostPoint, ScalingLaw, curve_scaling
from iopstui.model.experiment.load_curve import RISING, LoadCurve, interval_text
from iopstui.model.experiment.plan import HOSTS, JOB, Plan, PlannedPoint
from iopstui.model.experiment.ramp import LOAD_OPTIONS
from iopstui.tables import Column
from iopstui.text import printable
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.xy_chart import (
    Flag,
    XAxis,
    XYChart,
    XYLine,
    XYSpec,
    linear_axis,
    values_axis,
)
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.rows import Piece, Row, Table, fit
from iopstui.ui.draw.style import DIM, FIO, P99, Charset
from iopstui.ui.experiment.rows import (
    FIGURES,
    RESULT,
    STYLES,
    SortOrder,
    StepTable,
    columns,
    figure_columns,
    further_rows,
    result_pane,
    title_at,
)
from iopstui.ui.state.experiment import ExperimentState

MAX_DRAWN = 9
MAX_NAME = 12
MEAN, TAIL = "o", "^"
LETTERS = "abcdefghi"
LAW_STEPS = 60
"""Steps in which a law is drawn."""
PointCurve = LoadCurve[PointFinished]


COLUMNS = (
    *FIGURES,
    *columns("aqu_sz", "seen"),
    Column("", "of", 5, read=lambda e: _depth_text(e), rank=1),
)
INTERVAL_COLUMN = Column(
    "point/iops_within", "95 %", 13, lambda within: interval_text(within, f.number)
)


def _depth_text(event: PointFinished) -> str:
    depth = f.MISSING if event.little.asked is None else str(event.little.asked)
    return depth + ("!" if event.little.holds is False else "")


@dataclass(frozen=True, slots=True)
class DrawnCurve:
    """A curve with the characters of its mean and tail, its style and its name."""

    curve: PointCurve
    mean: str
    tail: str
    style: Style | None
    name: str


class SweepView:
    """Makes the rows of each pane; ``top`` is the first row shown of a pane that scrolls."""

    PANES = ("points", "IOPS", "latency", RESULT)
    FINAL_PANE = "points"
    """The pane that small terminals show at the end."""

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self.order: SortOrder | None = None
        self.can_renew = self.result_alone = False
        self._iops, self._latency = XYChart(charset), XYChart(charset)

    def rows(
        self, pane: str, state: ExperimentState, width: int, height: int, top: int | None,
        pointer: tuple[int, int] | None = None, keys: str = "",
    ) -> list[Row]:  # fmt: skip
        """Exactly ``height`` rows of ``width`` cells. ``pointer`` is the cell under the mouse,
        ``keys`` are those that show the rows of a pane that do not fit."""
        if pane == "points":
            return points_pane(state, width, height, self._charset, top, self.order, keys)
        if pane == RESULT:
            further = self._further(state, width) if self.result_alone else ()
            return result_pane(
                state, width, height, self._charset, top, keys, self.can_renew, further
            )
        if pane == "IOPS":
            return self._iops.rows(iops_spec(state), width, height, pointer)
        return self._latency.rows(latency_spec(state), width, height, pointer)

    def _further(self, state: ExperimentState, width: int) -> list[Row]:
        _, widths, number = _points_table(state.plan, len(state.rows), width, self._charset)
        return further_rows(
            state, width, self._charset, _points_head(state.plan, widths, number), state.rows,
            state.points_by_place(), lambda step: _label(step, state.plan, widths, number),
        )  # fmt: skip

    def pane_boxes(self, state: ExperimentState, box: Box, above: int) -> dict[str, Box]:
        """All panes at once: the result in ``above`` rows, then the charts side by side, then the
        table."""
        needed, left = len(state.rows) + 3, box.height - above
        rows = needed if left - needed >= LEAST_CHART else min(needed, max(6, left // 2))
        left_width = (box.width + 1) // 2
        height, y = box.height - rows - above, box.y + above
        return {
            RESULT: Box(box.x, box.y, box.width, above),
            "IOPS": Box(box.x, y, left_width, height),
            "latency": Box(box.x + left_width, y, box.width - left_width, height),
            "points": Box(box.x, y + height, box.width, rows),
        }

    def title_at(self, pane: str, state: ExperimentState, width: int, column: int) -> str | None:
        """The title over a column of the table; ``None`` in other panes."""
        if pane != "points":
            return None
        return title_at(_points_table(state.plan, len(state.rows), width, self._charset)[0], column)


LEAST_CHART = 9
"""Rows of a chart beside which a short table is shown whole."""


# -- the table


def _points_table(
    plan: Plan, steps: int, width: int, charset: Charset
) -> tuple[Table[PointFinished], list[int], int]:
    """The table, the widths of the axes' columns, and the width of the points' numbers."""
    widths = [min(MAX_NAME, max(len(name), *map(len, values))) for name, values in _axes(plan)]
    number = max(2, len(str(steps)))
    label = 2 + number + sum(width + 1 for width in widths)
    shown = figure_columns(plan.columns) or COLUMNS
    if plan.repeats > 1:  # IOPS are then means
        shown = (shown[0], INTERVAL_COLUMN, *shown[1:])
    return Table(shown, label, width, charset), widths, number


def points_pane(
    state: ExperimentState, width: int, height: int, charset: Charset, top: int | None,
    order: SortOrder | None = None, keys: str = "",
) -> list[Row]:  # fmt: skip
    """A row for each point; the running one is marked, later ones are dim."""
    plan, steps = state.plan, state.rows
    table, widths, number = _points_table(plan, len(steps), width, charset)
    current = state.current_point
    return StepTable(
        "points", table, _points_head(plan, widths, number), steps,
        state.points_by_place(), frozenset(map(state.place, state.failed.values())),
        None if current is None else state.place(state.steps[current.index]),
        lambda step: _label(step, plan, widths, number),
    ).rows(state, (width, height), charset, top, order, keys)  # fmt: skip


def _points_head(plan: Plan, widths: list[int], number: int) -> str:
    names = [
        fit(name, wide).rjust(wide) for (name, _), wide in zip(_axes(plan), widths, strict=True)
    ]
    return " ".join(["  " + "#".rjust(number), *names])


def _axes(plan: Plan) -> list[tuple[str, tuple[str, ...]]]:
    jobs = [("job", plan.jobs)] if len(plan.jobs) > 1 else []
    return [*jobs, *((axis.name, axis.values) for axis in plan.axes)]


def _label(step: PlannedPoint, plan: Plan, widths: list[int], number: int) -> str:
    values = {setting.name: setting.value for setting in step.settings} | {"job": step.job}
    cells = [
        fit(printable(values[name]), width).strip().rjust(width)
        for (name, _), width in zip(_axes(plan), widths, strict=True)
    ]
    return " ".join([" " + str(step.index + 1).rjust(number), *cells])


# -- the charts


def drawn_curves(state: ExperimentState) -> list[DrawnCurve]:
    """The curves that are drawn, each with a letter if there are several."""
    curves = state.curves()
    if len(curves) == 1 and not curves[0].fixed:
        return [DrawnCurve(curves[0], MEAN, TAIL, FIO, "")]
    return [
        DrawnCurve(
            curve, LETTERS[n], LETTERS[n].upper(), STYLES[n % len(STYLES)], _curve_name(curve)
        )
        for n, curve in enumerate(curves[:MAX_DRAWN])
    ]


def _curve_name(curve: PointCurve) -> str:
    return printable(" ".join(f"{name}={value}" for name, value in curve.fixed))


def _axis_value(state: ExperimentState, event: PointFinished) -> str:
    if state.axis.kind == JOB:
        return event.job
    return dict(event.settings)[state.axis.name]


def iops_axis(state: ExperimentState) -> tuple[XAxis, Callable[[PointFinished], float]]:
    """The axis of load, and a function for the position of a point on it. If the load is a number
    of hosts, those that took part count."""
    if state.axis.kind != HOSTS:
        axis, positions = values_axis(state.axis.values)
        return axis, lambda event: positions[_axis_value(state, event)]
    counts = dict.fromkeys(state.axis.values)
    counts |= dict.fromkeys(_hosts_text(event) for event in state.points.values())
    axis, positions = values_axis(list(counts))
    return axis, lambda event: positions[_hosts_text(event)]


def _hosts_text(event: PointFinished) -> str:
    return str(event.point.hosts) if isinstance(event.point, HostPoint) else ""


def iops_spec(state: ExperimentState) -> XYSpec:
    """IOPS over the axis of load."""
    axis, place = iops_axis(state)
    lines: list[XYLine] = []
    flags: list[Flag] = []
    names = list(_legend(state, tails=False))
    for drawn_curve in drawn_curves(state):
        points = [(place(e), e.point.iops) for e in drawn_curve.curve.points]
        for (x, _), event in zip(points, drawn_curve.curve.points, strict=True):
            lines += _interval(x, event.point.iops_within, drawn_curve.style)
        law = _law(drawn_curve, axis, points) if state.axis.kind == HOSTS else None
        if law is not None:
            lines, names = [law[0], *lines], [*names, law[1]]
            flags += law[2]
        lines.append(XYLine(drawn_curve.mean, tuple(points), drawn_curve.style, joined=law is None))
        flags += list(_knee_flags(state, drawn_curve, points))
    return XYSpec(
        f"IOPS against {printable(state.axis.name)}",
        axis,
        plotting.linear_scale([y for line in lines for _, y in line.points], None, True),
        f.axis_number,
        tuple(lines),
        tuple(names),
        tuple(flags),
        note=_title_note(state),
        value_text=lambda point: f"{_axis_text(state, axis, point[0])}: {f.number(point[1])} IOPS",
    )


def _law(
    drawn_curve: DrawnCurve, axis: XAxis, points: Sequence[tuple[float, float]]
) -> tuple[XYLine, Piece, list[Flag]] | None:
    """The law of scaling as a line behind the points, its name, and its knee if that was measured;
    ``None`` if no law was found."""
    found = curve_scaling(drawn_curve.curve)
    if found.law is None:
        return None
    low, high = min(points)[0], max(points)[0]
    line = XYLine("", tuple(_law_points(found.law, axis, low, high)), DIM)
    of = f"of {drawn_curve.mean}" if drawn_curve.name else "of scaling"
    name = (f"   line: law {of}{' (see the result)' if found.doubt else ''}", DIM)
    if found.knee is None or not low <= found.knee <= high:
        return line, name, []
    of = f"{drawn_curve.mean}: " if drawn_curve.name else ""
    knee = found.knee
    return line, name, [Flag((knee, found.law.at(knee)), f"{of}knee {knee:.3g}")]


def _law_points(
    law: ScalingLaw, axis: XAxis, low: float, high: float
) -> Iterator[tuple[float, float]]:
    for step in range(LAW_STEPS + 1):
        share = step / LAW_STEPS
        # even steps on the screen
        hosts = low * (high / low) ** share if axis.log else low + share * (high - low)
        yield hosts, law.at(hosts)


def _interval(x: float, within: tuple[float, float] | None, style: Style | None) -> list[XYLine]:
    low, high = within or (0.0, 0.0)
    return [XYLine("", ((x, low), (x, high)), style)] if high else []


def latency_spec(state: ExperimentState) -> XYSpec:
    """The hockey stick: latency over IOPS, mean and p99."""
    lines, flags = [], []
    several, load = len(drawn_curves(state)) > 1, state.axis.name in RISING
    for drawn_curve in drawn_curves(state):
        events = drawn_curve.curve.points
        means = [(e.point.iops, e.point.latency_ns or 0.0) for e in events]
        tails = [(e.point.iops, e.point.p99_ns) for e in events if e.point.p99_ns]
        positive = [point for point in means if point[1] > 0]
        style = drawn_curve.style if several else P99
        # lines only where they follow the load
        lines.append(XYLine(drawn_curve.tail, tuple(tails), style, joined=load and not several))
        for event in events:
            lines += _interval(event.point.iops, event.point.latency_within, drawn_curve.style)
        lines.append(XYLine(drawn_curve.mean, tuple(positive), drawn_curve.style, joined=load))
        flags += list(_knee_flags(state, drawn_curve, means))
    values = [y for line in lines for _, y in line.points]
    max_iops = max((x for line in lines for x, _ in line.points), default=1.0)
    return XYSpec(
        f"latency{_latency_note(state)} against IOPS",
        linear_axis(max_iops, f.axis_number),
        plotting.log_scale(values, None, True),
        f.axis_latency,
        tuple(lines),
        tuple(_legend(state, tails=True)),
        tuple(flags),
        note=_title_note(state) or _tails_note(values, state),
        value_text=lambda point: f"{f.number(point[0])} IOPS: {f.latency(point[1])}",
    )


def _axis_text(state: ExperimentState, axis: XAxis, x: float) -> str:
    value = next((value for position, value in axis.ticks if position == x), "")
    return f"{printable(state.axis.name)} {printable(value)}"


def _tails_note(values: Sequence[float], state: ExperimentState) -> str:
    lettered = any(drawn_curve.tail != TAIL for drawn_curve in drawn_curves(state))
    return "no latency measured" if not values else "capitals: p99" if lettered else ""


def _latency_note(state: ExperimentState) -> str:
    kinds = {event.point.latency_of for event in state.points.values()}
    return " (the kernel's await)" if kinds == {"await"} else ""


def _title_note(state: ExperimentState) -> str:
    count = len(state.curves())
    if not state.points:
        return "no point yet"
    return f"{MAX_DRAWN} of {count} lines" if count > MAX_DRAWN else ""


def _knee_flags(
    state: ExperimentState, drawn_curve: DrawnCurve, points: list[tuple[float, float]]
) -> Iterator[Flag]:
    """Flag at the knee, once the curve is complete; none at the edge of the measured range."""
    knee = drawn_curve.curve.knee if state.axis.name in LOAD_OPTIONS and not state.active else None
    if knee is not None and knee.edge != "last" and points[knee.index][1] > 0:
        value = _axis_value(state, drawn_curve.curve.points[knee.index])
        yield Flag(
            points[knee.index],
            f"knee {value}" if drawn_curve.name == "" else f"{drawn_curve.mean}: knee {value}",
        )


def _legend(state: ExperimentState, tails: bool) -> Iterator[Piece]:
    curves = drawn_curves(state)
    if len(curves) == 1 and not curves[0].name:
        if tails:
            yield from ((f"{MEAN} mean", curves[0].style), (f"   {TAIL} p99", P99))
        return
    for curve in curves:
        yield f"{curve.mean} {curve.name}   ", curve.style
