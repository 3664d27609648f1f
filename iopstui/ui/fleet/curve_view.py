"""The views of a sweep over hosts: the table of its points, the curve, the conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iopstui import format as f
from iopstui.fleet.fleet_state import IOPS, FleetState, active_hosts_text
from iopstui.fleet.scaling_curve import ScalingCurve, linear_text
from iopstui.format import counted
from iopstui.model.experiment.scaling import Scaling, ScalingLaw
from iopstui.tables import Column
from iopstui.text import printable
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.xy_chart import Flag, XAxis, XYChart, XYLine, XYSpec, values_axis
from iopstui.ui.draw.rows import Line, Row, Table, pad
from iopstui.ui.draw.style import BOLD, DIM, FIO, P99, WARNING, Charset
from iopstui.ui.experiment.rows import pane_title, position_note, sentence_rows, window

POINT_SIGN = "o"
SAMPLES = 60
"""Points of the law's line."""
LABEL_WIDTH = 9
MIN_CHART = 7


Figures = Mapping[str, float | int | None]
COLUMNS = (
    Column("iops", "IOPS", 6, f.number, style=FIO),
    Column("bw", "MiB/s", 6, f.mib, rank=2),
    *(Column(name, name, 7, f.dense, rank=rank, style=style)
      for name, rank, style in (("p50", 6, None), ("p99", 0, P99), ("p99.9", 5, None))),
    Column("iops_host", "a host", 6, f.number),
    Column("iops_lowest", "lowest", 6, f.number, rank=3),
    Column("iops_highest", "highest", 7, f.number, rank=4),
    Column("linear", "linear", 7, linear_text),
)  # fmt: skip


class CurveView:
    """Makes the rows of the three panes for ``curve``, and caches the expensive parts."""

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self._chart = XYChart(charset)
        self._curve: ScalingCurve | None = None
        self._scaling = Scaling((), None, "")
        self._cached_table: tuple[int, Table[Figures], dict[int, Row]] | None = None

    def set_curve(self, curve: ScalingCurve) -> None:
        """Take the curve to show."""
        if curve is not self._curve:
            self._curve, self._cached_table = curve, None
            self._scaling = curve.scaling()

    @property
    def curve(self) -> ScalingCurve:
        """The curve shown."""
        assert self._curve is not None
        return self._curve

    def heights(self, width: int, height: int) -> tuple[int, int, int]:
        """Heights of the chart, the table and the conclusions."""
        conclusions = min(len(self.sentences(width)) + 1, max(3, height // 3))
        table = min(len(self.curve.counts) + 2, max(4, height - conclusions - MIN_CHART))
        return max(0, height - conclusions - table), table, conclusions

    # -- the conclusions

    def sentences(self, width: int) -> list[Row]:
        """The conclusions in rows."""
        return sentence_rows(conclusion_sentences(self.curve, self._scaling), width, self._charset)

    def conclusions(self, width: int, height: int) -> list[Row]:
        """Conclusions from the points."""
        head = "so far" if self.curve.point_number is not None else "result"
        rows = [pane_title(head, width, self._charset), *self.sentences(width)]
        return pad(rows, height, width)

    # -- the table

    def table(self, fleet: FleetState, width: int, height: int, top: int | None) -> list[Row]:
        """A row for each point; the running one is marked, later ones are dim."""
        curve = self.curve
        if self._cached_table is None or self._cached_table[0] != width:
            table: Table[Figures] = Table(COLUMNS, LABEL_WIDTH, width, self._charset)
            point_rows = {n: self._point_row(table, n) for n in curve.points}
            self._cached_table = (width, table, point_rows)
        _, table, point_rows = self._cached_table
        rows = [
            point_rows.get(number) or self._unmeasured_row(number, fleet, width, table)
            for number in range(len(curve.counts))
        ]
        focus = curve.point_number if curve.point_number is not None else len(rows)
        visible_rows, first = window(rows, height - 2, width, top, focus)
        note = position_note(first, height - 2, len(rows))
        return [
            pane_title("points", width, self._charset, note),
            table.header("    hosts"),
            *visible_rows,
        ]

    def _point_row(self, table: Table[Figures], number: int) -> Row:
        curve = self.curve
        point, hosts = curve.points[number], curve.counts[number]
        part = "" if point.hosts == hosts else f"{point.hosts} of "
        return table.row(
            f"{part}{hosts}".rjust(LABEL_WIDTH), point.figures(curve.measured_points[0])
        )

    def _unmeasured_row(
        self, number: int, fleet: FleetState, width: int, table: Table[Figures]
    ) -> Row:
        """Row of a point that runs, comes later, or does not count."""
        curve, is_running = self.curve, self.curve.point_number == number
        line = Line(width, self._charset).add(">" if is_running else " ", BOLD)
        line.add(str(curve.counts[number]).rjust(LABEL_WIDTH - 1), BOLD if is_running else DIM)
        if is_running:
            line.fill_to(table.used_width - sum(column_width for _, column_width in table.columns))
            line.add(f.number(current_iops(fleet)).rjust(table.columns[0][1]), FIO)
            line.add(f"  {point_progress(fleet)}", WARNING)
        elif number in curve.notes:
            line.add(f"  {printable(curve.notes[number])}", WARNING)
        return line.build()

    # -- the curve

    def chart(self, width: int, height: int, pointer: tuple[int, int] | None = None) -> list[Row]:
        """Measured points and the fitted law; ``pointer`` is the cell under the mouse."""
        return self._chart.rows(chart_spec(self.curve, self._scaling), width, height, pointer)


def point_progress(fleet: FleetState) -> str:
    """Progress of the running point."""
    if fleet.running and fleet.run_start is not None and fleet.second is not None:
        return f"{active_hosts_text(fleet)}, {fleet.number - fleet.run_start + 1} s"
    return active_hosts_text(fleet) if fleet.running else "begins"


def current_iops(fleet: FleetState) -> float | None:
    """I/Os per second of the running point in its newest second."""
    if not fleet.running or fleet.run_start is None:
        return None
    return fleet.sums[IOPS].at(fleet.number)


def progress(curve: ScalingCurve) -> str:
    """The running point, or the number of measured points."""
    if curve.point_number is None:
        suffix = ", ended early" if curve.end_reason else ""
        return f"{len(curve.points)} of {counted(len(curve.counts), 'point')} measured{suffix}"
    hosts = counted(curve.counts[curve.point_number], "host")
    return f"point {curve.point_number + 1} of {len(curve.counts)}: {hosts}"


def conclusion_sentences(curve: ScalingCurve, scaling: Scaling) -> list[str]:
    """The conclusions, a sentence each."""
    reasons = [printable(curve.end_text)] if curve.end_reason else []
    if not curve.points:
        text = "no point was measured" if curve.point_number is None else "first point in progress"
        return [text, *reasons]
    return [*scaling.sentences(), *reasons]


def chart_spec(curve: ScalingCurve, scaling: Scaling) -> XYSpec:
    """The chart of a curve."""
    points = sorted((float(point.hosts), point.iops) for point in curve.measured_points)
    axis = axis_of({*curve.counts, *(point.hosts for point in curve.measured_points)})
    law = (
        tuple(_law_points(scaling.law, axis, points)) if scaling.law is not None and points else ()
    )
    measured = XYLine(POINT_SIGN, tuple(points), FIO, joined=not law)
    names = [(f"{POINT_SIGN} measured", FIO)]
    if law:
        note = " (see the note below)" if scaling.doubt else ""
        names.append((f"   line: fitted law of scaling{note}", DIM))
    return XYSpec(
        "IOPS of all hosts against their number", axis,
        plotting.linear_scale([y for _, y in (*points, *law)], None, True), f.axis_number,
        (XYLine("", law, DIM), measured) if law else (measured,), tuple(names),
        tuple(_knee_flags(scaling, points)), note="" if points else "no point yet",
        value_text=lambda point: f"{counted(int(point[0]), 'host')}: {f.number(point[1])} IOPS",
    )  # fmt: skip


def axis_of(hosts: set[int]) -> XAxis:
    """An axis for these numbers of hosts; a single one is in the middle."""
    values = sorted(hosts)
    if len(values) == 1:
        (value,) = values
        return XAxis(value - 0.5, value + 0.5, ((float(value), str(value)),))
    return values_axis([str(number) for number in values])[0]


def _law_points(law: ScalingLaw, axis: XAxis, points: Sequence[tuple[float, float]]) -> Iterator[
    tuple[float, float]
]:  # fmt: skip
    low, high = points[0][0], points[-1][0]
    for step in range(SAMPLES + 1):
        share = step / SAMPLES
        # even steps on the screen
        hosts = low * (high / low) ** share if axis.log else low + share * (high - low)
        yield hosts, law.at(hosts)


def _knee_flags(scaling: Scaling, points: Sequence[tuple[float, float]]) -> Iterator[Flag]:
    """Maximum of the law within the measured range."""
    knee, law = scaling.knee, scaling.law
    if knee is not None and law is not None and points[0][0] <= knee <= points[-1][0]:
        yield Flag((knee, law.at(knee)), f"knee {knee:.3g}")
