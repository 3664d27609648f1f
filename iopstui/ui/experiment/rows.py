"""Shared parts of the panes of sweep and comparison: the result, tables that scroll and sort."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.style import Style

from iopstui import format as f
from iopstui.events import PointFinished
from iopstui.model.experiment.host_sweep import OF_HOSTS
from iopstui.model.experiment.load_curve import LITTLES_LAW
from iopstui.model.experiment.plan import PlannedPoint
from iopstui.model.experiment.point import POINT
from iopstui.model.figures.figure import Figure
from iopstui.session.run_rows import DISTURBED
from iopstui.tables import DOWN, Column, in_order
from iopstui.text import printable
from iopstui.ui.draw import frame
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.rows import Line, Piece, Row, Table, capital, pad, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, FIO, MARK, P50, P99, WARNING, Charset
from iopstui.ui.state.experiment import ExperimentState

STYLES: tuple[Style | None, ...] = (FIO, DEVICE, P99, MARK, None, P50)
"""For lines side by side; their letters distinguish them."""


RESULT = "result"
LEAST_ROWS = 6
"""Rows of the pane below the result on a small terminal: title, head and some points."""
HELP = "A sweep or a comparison (w, c)"
"""The title of the help's section on their keys and terms."""
DISTURBED_MEANING = (
    "disturbed: others did more than 5 % of the I/Os or bytes, filled a CPU that the job needs, an "
    "interrupt moved, or hosts were missing; the result says which"
)


def columns(*names: str) -> list[Column]:
    return figure_columns([POINT[name] for name in names])


def figure_columns(figures: Sequence[Figure]) -> list[Column]:
    made = [figure.screen_column(FIO if figure.name == "iops" else None) for figure in figures]
    return [replace(column, width=max(6, column.width)) for column in made]


FIGURES = columns("iops", "bw", "latency_ns", "p50_ns", "p99_ns", "p999_ns")
"""The columns that a sweep's points and a comparison's runs share."""


def _most_waits(most: tuple[str, float] | None) -> str:
    return f"{printable(most[0])} {most[1]:.1f}" if most else f.MISSING


def _cpu_time(microseconds: float | None) -> str:
    return f.dense(None if microseconds is None else microseconds * 1000)


def _share(share: float | None) -> str:
    return f.MISSING if share is None else f"{100 * share:.0f} %"


FURTHER = (
    Column("point/iops_low", "IOPS from", 9, f.number),
    Column("point/iops_high", "to", 6, f.number),
    POINT["max_ns"].screen_column(title="slowest", width=7),
    POINT["await_ns"].screen_column(title="await", width=6, rank=1),
    POINT["util"].screen_column(),
    POINT["cpu_us"].screen_column(width=7, form=_cpu_time, rank=2),
    POINT["others"].screen_column(title="others", width=6, form=_share),
    Column("point/most_waits", "waits most in", 13, _most_waits, rank=3),
)
"""What the tables of points and runs have no room for: worst and best second, slowest I/O, the
kernel's figures, the share of others, and where I/Os wait."""


VALUES = {figure.title: figure for figure in (*POINT.values(), *OF_HOSTS.values()) if figure.title}
"""What a click on a title sorts by."""


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The order of rows: by the column ``title``; ``descending``: the largest first."""

    title: str
    descending: bool = True

    @property
    def text(self) -> str:
        """Text for the border of the table."""
        return f"by {self.title}, {'largest' if self.descending else 'smallest'} first"


def next_order(order: SortOrder | None, title: str) -> SortOrder | None:
    """The order after a click on a title: the largest first, then the smallest, then as planned."""
    if title not in VALUES:
        return None
    if order is None or order.title != title:
        return SortOrder(title)
    return SortOrder(title, descending=False) if order.descending else None


def title_at(table: Table[PointFinished], column: int) -> str:
    """The title of the column at this cell; "": the number of the point."""
    return next((title for begin, end, title in table.spans("") if begin <= column < end), "")


def sort_points(
    steps: Sequence[PlannedPoint], measured: Mapping[int, PointFinished], order: SortOrder | None
) -> Sequence[PlannedPoint]:
    """Sort the points; those without a value come last, in the order of the plan."""
    if order is None:
        return steps
    value = VALUES[order.title].value
    column = Column("", order.title, sorts=DOWN, read=lambda step: value(measured.get(step.index)))
    return in_order(steps, (column,), order.title, not order.descending)


@dataclass(frozen=True)
class StepTable:
    """A table with a row for each step, which is a point of a sweep or a run of a comparison.
    ``measured`` has the finished steps by their index; ``label`` is the text of a step, after its
    mark."""

    name: str
    table: Table[PointFinished]
    head: str
    steps: Sequence[PlannedPoint]
    measured: Mapping[int, PointFinished]
    failed: frozenset[int]
    running: int | None
    label: Callable[[PlannedPoint], str]

    def rows(
        self, state: ExperimentState, box: tuple[int, int], charset: Charset, top: int | None,
        order: SortOrder | None, keys: str = "",
    ) -> list[Row]:  # fmt: skip
        """The rows of the pane in a ``box`` (width, height), from row ``top`` on; by default, so
        that the running step is visible. Its row is marked, later ones are dim. ``keys`` show the
        rows that do not fit."""
        width, height = box
        focus = len(self.measured) if self.running is None else self.running
        visible = max(1, height - 2)
        default_top = focus - visible + 2 if order is None else 0
        first = max(0, min(len(self.steps) - visible, default_top if top is None else top))
        shown = sort_points(self.steps, self.measured, order)[first : first + visible]
        rows = pad((self._row(state, step, width, charset) for step in shown), visible, width)
        place = position_note(first, visible, len(self.steps), keys)
        by = order.text if order is not None else ""
        note = "  ".join(filter(None, (self._legend, by, place)))
        head = self.table.header(self.head, order.title if order is not None else "")
        return [pane_title(self.name, width, charset, note), head, *rows][:height]

    @property
    def _legend(self) -> str:
        """What the mark before a row means, if one has it."""
        disturbed = any(event.point.disturbed for event in self.measured.values())
        return f"{DISTURBED} disturbed" if disturbed else ""

    def _row(self, state: ExperimentState, step: PlannedPoint, width: int, charset: Charset) -> Row:
        event, runs = self.measured.get(step.index), step.index == self.running
        disturbed = event is not None and bool(event.point.disturbed)
        text = f"{'>' if runs else DISTURBED if disturbed else ' '}{self.label(step)}"
        if event is not None and not runs:
            return self.table.row(text, event, label_style=None)
        line = Line(width, charset)
        if step.index in self.failed and not runs:
            return line.add(text, BOLD).add("  failed", WARNING).build()
        line.add(text, BOLD if runs else DIM)
        if runs:
            columns = self.table.columns
            line.fill_to(self.table.used_width - sum(column_width for _, column_width in columns))
            iops = "" if state.iops is None else f.number(state.iops)
            line.add(iops.rjust(columns[0][1]), FIO).add(f"  {state.activity_text()}", WARNING)
        return line.build()


def pane_title(text: str, width: int, charset: Charset, note: str = "") -> Row:
    return rule(width, charset, (capital(text), BOLD), right=((note, DIM),) if note else ())


def boxed(rows: Sequence[Row], width: int, charset: Charset, number: str = "") -> list[Row]:
    """Draw a box around a pane's rows (``frame.BORDER_COLUMNS`` narrower than ``width``). The first
    row is the title on the border, ``number`` its key."""
    head, *body = rows
    pieces = [(capital(text), style) for text, style in frame.head_title(head)]
    first = frame.top(width, charset, number, pieces, frame.head_value(head))
    return frame.box_rows(first, body, frame.bottom(width, charset), charset, False)


def inner_box(box: Box, framed: bool) -> Box:
    """The box for a pane's rows inside its border; the first row is on the border."""
    if not framed:
        return box
    return Box(
        box.x + frame.BORDER_COLUMNS // 2,
        box.y,
        max(0, box.width - frame.BORDER_COLUMNS),
        box.height - 1,
    )


def sentence_rows(lines: Sequence[str], width: int, charset: Charset) -> list[Row]:
    """Wrap each line into rows, all but its first one indented."""
    rows: list[Row] = []
    for line in lines:
        for number, row in enumerate(wrap(width - 2, charset, line, None)):
            indent: Piece = ("  " if number else "", None)
            rows.append(Line(width, charset).extend([indent, *row]).build())
    return rows


def window(
    rows: Sequence[Row], height: int, width: int, top: int | None, focus: int
) -> tuple[list[Row], int]:
    """``height`` of the rows, and the number of the first one: ``top``, or (``None``) one that
    leaves row ``focus`` visible."""
    last = max(0, len(rows) - height)
    first = focus - height + 2 if top is None else top
    first = max(0, min(first, last))
    return pad(rows[first : first + height], height, width), first


def position_note(first: int, height: int, total: int, keys: str = "") -> str:
    """The visible rows of a longer table, and the keys for the others; "" if all are visible."""
    if total <= height:
        return ""
    return "  ".join(filter(None, (keys, f"{first + 1}-{min(total, first + height)} of {total}")))


def result_height(needed: int, height: int) -> int:
    """The rows of the result in its box over the other panes, which keep half of ``height``.
    ``needed`` has a row for the title, which is in the box's border."""
    return max(7, min(needed + 1, height // 2, height - 16))


def below_result(pane: str, box: Box, result_rows: int, pane_rows: int) -> dict[str, Box]:
    """The boxes of the result, which takes what it needs as long as some rows are left for the pane
    below it, and of that pane."""
    height = min(result_rows, box.height - min(pane_rows, LEAST_ROWS))
    return {
        RESULT: Box(box.x, box.y, box.width, height),
        pane: Box(box.x, box.y + height, box.width, box.height - height),
    }


def further_rows(
    state: ExperimentState, width: int, charset: Charset, head: str,
    steps: Sequence[PlannedPoint], measured: Mapping[int, PointFinished],
    label: Callable[[PlannedPoint], str],
) -> list[Row]:  # fmt: skip
    """A table of the measured steps with the figures that their own pane has no room for.
    ``head`` is the title of the ``label`` of each."""
    done = [step for step in steps if step.index in measured]
    events = [measured[step.index] for step in done]
    known = [one for one in FURTHER if any(one.get(event) is not None for event in events)]
    if not known:
        return []
    table: Table[PointFinished] = Table(known, len(head), width, charset)
    return StepTable("further figures", table, head, done, measured, frozenset(), None, label).rows(
        state, (width, len(done) + 2), charset, 0, None
    )


def result_pane(
    state: ExperimentState, width: int, height: int, charset: Charset, top: int | None,
    keys: str = "", can_renew: bool = False, further: Sequence[Row] = (),
) -> list[Row]:  # fmt: skip
    """The pane of sentences: the results so far, with the rows ``further`` below them. ``keys``
    show the rows that do not fit. ``can_renew``: n measures again."""
    lines = state.sentences()
    if can_renew and state.repeat_advice:
        # checks that only confirm the figures come last
        last = next((n for n, line in enumerate(lines) if line.startswith(LITTLES_LAW)), len(lines))
        lines.insert(last, state.repeat_advice)
    rows = sentence_rows(lines, width, charset)
    if not rows:
        rows = sentence_rows(["First run in progress."], width, charset)
    rows += further
    visible_rows, first = window(rows, height - 1, width, top or 0, 0)
    name = RESULT if not state.active else "so far"
    return [
        pane_title(name, width, charset, position_note(first, height - 1, len(rows), keys)),
        *visible_rows,
    ]
