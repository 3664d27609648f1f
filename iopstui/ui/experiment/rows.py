"""Shared parts of the panes of sweep and comparison: the result, and tables that scroll."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.style import Style

from iopstui import format as f
from iopstui.events import PointFinished
from iopstui.model.experiment.point import Point
from iopstui.ui.draw import frame
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.rows import Column, Line, Piece, Row, capital, pad, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, FIO, MARK, P50, P99, Charset
from iopstui.ui.state.experiment import ExperimentState

STYLES: tuple[Style | None, ...] = (FIO, DEVICE, P99, MARK, None, P50)
"""For lines side by side; their letters distinguish them."""


def point_text(show: Callable[[Point], str]) -> Callable[[PointFinished], str]:
    """A column's text, from the figures of a run."""
    return lambda event: show(event.point)


RESULT = "result"
DISTURBED = "~"
"""Mark before a run that was disturbed; the result says by what."""
MIN_RESULT_ROWS = 4
FIGURES: tuple[Column[PointFinished], ...] = (
    Column("IOPS", 7, point_text(lambda p: f.number(p.iops)), style=FIO),
    Column("MiB/s", 7, point_text(lambda p: f.mib(p.bw)), drop=6),
    Column("mean", 8, point_text(lambda p: f.latency(p.latency_ns, ""))),
    Column("p50", 8, point_text(lambda p: f.latency(p.p50_ns, "")), drop=5),
    Column("p99", 8, point_text(lambda p: f.latency(p.p99_ns, ""))),
    Column("p99.9", 8, point_text(lambda p: f.latency(p.p999_ns, "")), drop=3),
)  # fmt: skip
"""The columns that a sweep's points and a comparison's runs share."""


def pane_title(text: str, width: int, charset: Charset, note: str = "") -> Row:
    """A pane's title."""
    return rule(width, charset, (capital(text), BOLD), right=((note, DIM),) if note else ())


def boxed(rows: Sequence[Row], width: int, charset: Charset, number: str = "") -> list[Row]:
    """Draw a box around a pane's rows (``frame.BORDER_COLUMNS`` narrower than ``width``). The first
    row is the title on the border, ``number`` its key."""
    head, *body = rows
    pieces = [(capital(text), style) for text, style in frame.head_title(head)]
    first = frame.top(width, charset, number, pieces, frame.head_value(head))
    return frame.box_rows(first, body, frame.bottom(width, charset), charset, False)


def inner_box(box: Box, framed: bool) -> Box:
    """Rows left inside a pane's box; the first is on the border."""
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
    """``height`` of the rows, and the first one's number: ``top``, or, if that is ``None``, such
    that row ``focus`` is visible."""
    last = max(0, len(rows) - height)
    first = focus - height + 2 if top is None else top
    first = max(0, min(first, last))
    return pad(rows[first : first + height], height, width), first


def position_note(first: int, height: int, total: int) -> str:
    """The visible rows of a longer table; "" if all are visible."""
    return f"{first + 1}-{min(total, first + height)} of {total}" if total > height else ""


def boxes_with_result(pane: str, box: Box, used_rows: int) -> dict[str, Box]:
    """Boxes of a pane that uses ``used_rows`` of ``box``, and of the result below it, if it
    fits."""
    if box.height - used_rows < MIN_RESULT_ROWS:
        return {pane: box}
    result_box = Box(box.x, box.y + used_rows, box.width, box.height - used_rows)
    return {pane: Box(box.x, box.y, box.width, used_rows), RESULT: result_box}


def result_pane(
    state: ExperimentState, width: int, height: int, charset: Charset, top: int | None
) -> list[Row]:
    """The pane of sentences: the results so far."""
    rows = sentence_rows(state.sentences(), width, charset)
    if not rows:
        rows = sentence_rows(["First run in progress."], width, charset)
    visible_rows, first = window(rows, height - 1, width, top or 0, 0)
    name = RESULT if not state.active else "so far"
    return [
        pane_title(name, width, charset, position_note(first, height - 1, len(rows))),
        *visible_rows,
    ]
