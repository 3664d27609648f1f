"""The mouse on the dashboard: what is under it, and which key a click stands for."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.ui.core.key import KeyHint
from iopstui.ui.dashboard.bars import footer_ends
from iopstui.ui.draw.charts.chart import Chart
from iopstui.ui.draw.layout import Box

MIN_DRAG = 3
"""A drag over fewer columns counts as a click."""
SCROLL_ROWS = 3


def inside(box: Box, x: int, y: int) -> bool:
    return box.x <= x < box.x + box.width and box.y <= y < box.y + box.height


def chart_at(charts: Sequence[Chart], x: int, y: int) -> Chart | None:
    """The chart that has this cell in its plot."""
    return next(
        (chart for chart in charts if chart.shown and chart.column_at(x, y) is not None), None
    )


def footer_keys(
    hints: Sequence[KeyHint], width: int, quit_label: str = "Quit"
) -> list[tuple[int, int, str]]:
    """(begin, end, key) of each key in the footer, as bars.footer_line draws it. If a hint has
    several keys, each key has its own cells, and the text belongs to the first key."""
    ends = footer_ends(quit_label)
    width_left = width - sum(len(hint.key) + len(hint.description) + 3 for hint in ends)
    at, spans = 1, []
    fitting = []
    for hint in hints:
        size = len(hint.key) + len(hint.description) + 3
        if at + size > width_left:
            break
        fitting.append(hint)
        at += size
    at = 1
    for hint in (*fitting, *ends):
        keys = hint.key.split(" ") if " " in hint.key.strip() else [hint.key]
        begin = at
        for key in keys:
            spans.append((begin, begin + len(key), key))
            begin += len(key) + 1
        spans.append((at + len(hint.key), at + len(hint.key) + 1 + len(hint.description), keys[0]))
        at += len(hint.key) + len(hint.description) + 3
    return spans


def footer_key_at(
    hints: Sequence[KeyHint], width: int, x: int, quit_label: str = "Quit"
) -> str | None:
    spans = footer_keys(hints, width, quit_label)
    return next((key for begin, end, key in spans if begin <= x < end), None)


def tab_at(titles: Sequence[str], x: int) -> int | None:
    """The tab at this column of the line that bars.tabs_line draws."""
    at = 1
    for index, title in enumerate(titles):
        size = len(f" {index + 1} {title} ") + 2
        if at <= x < at + size:
            return index
        at += size
    return None
