"""A whole recording as a bar: the position in it, and its marks."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.format import clock
from iopstui.ui.draw.charts.mark_labels import mark_label_rows
from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import BOLD, BORDER, DIM, FOCUS, MARK, Charset

EDGE = 9
"""Columns of the position at the left, and of the length at the right."""


def time_bar(
    at: float, end: float, marks: Sequence[tuple[float, str]], width: int, labelled: bool,
    charset: Charset,
) -> list[Row]:  # fmt: skip
    """The bar from 0 to ``end`` with ``at`` in it; ``labelled``: over it a row with the labels of
    ``marks``, which are (second, label)."""
    columns = max(1, width - 2 * EDGE)
    labels: dict[int, str] = {}
    for t, text in marks:
        labels.setdefault(_column(t, end, columns), text)
    now = _column(at, end, columns)
    line = Line(width, charset).add(clock(at).rjust(EDGE - 1), BOLD).fill_to(EDGE)
    for column in range(columns):
        if column == now:
            line.add(charset.cursor, FOCUS)
        elif column in labels:
            line.add(charset.mark, MARK)
        else:
            line.add(charset.rule, FOCUS if column < now else BORDER)
    bar = line.add(" ").add(clock(end), DIM).build()
    if not labelled:
        return [bar]
    label_rows = mark_label_rows(sorted(labels.items()), EDGE, columns, width, 1, charset, {})
    return [*label_rows, bar]


def time_at(column: int, end: float, width: int) -> float:
    """The second at a column of the bar."""
    columns = max(1, width - 2 * EDGE)
    return min(max((column - EDGE + 0.5) / columns, 0.0), 1.0) * end


def _column(t: float, end: float, columns: int) -> int:
    return min(columns - 1, max(0, int(t / end * columns))) if end > 0 else 0
