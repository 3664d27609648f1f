"""A row below a chart: the values of an option as steps, on the chart's time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.ui.draw.density import bars
from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import DIM, MARK, Charset


@dataclass(frozen=True, slots=True)
class OptionStep:
    """A value between two moments; ``end`` is ``None`` while it lasts. ``level`` is its place among
    all values that the option had, from 0 to 1."""

    start: float
    end: float | None
    value: str
    level: float


def option_row(
    name: str,
    steps: Sequence[OptionStep],
    start: float,
    column_s: float,
    columns: int,
    now: float,
    axis_width: int,
    charset: Charset,
) -> Row:
    """The row: the option's name below the y axis, then each value where it begins, if there is
    room, and a bar as high as the value is among all of them. ``start`` is the time of the first
    of ``columns``, ``now`` the newest."""
    line = Line(axis_width + columns, charset)
    line.add(name[: axis_width - 1].rjust(axis_width - 1), DIM).add(" ")
    heights, shown = bars(charset), ""
    for step in steps:
        first = max(0, int((step.start - start) / column_s))
        last = int((now - start) / column_s) + 1
        if step.end is not None:
            last = int((step.end - start) / column_s)
        width = min(last, columns) - first
        if width <= 0:
            continue
        text = step.value if len(step.value) < width and step.value != shown else ""
        shown = text or shown
        line.fill_to(axis_width + first).add(text, MARK)
        line.add(heights[round(step.level * (len(heights) - 1))] * (width - len(text)), DIM)
    return line.build()
