"""A map of completions by CPU and time, which shows when they move to other CPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iopstui import format as f
from iopstui.model.metrics.cpus import CpuHistory
from iopstui.ui.draw import density
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.axis_rows import mark_label_rows
from iopstui.ui.draw.charts.chart import TimeWindow, time_labels
from iopstui.ui.draw.rows import Line, Piece, Row, message, pad, rule
from iopstui.ui.draw.style import BOLD, CURSOR, DIM, MARK, Charset
from iopstui.ui.state.live import LiveState

HEIGHT = 9
LABEL = 8
FRAME_ROWS = 3
"""Rows that are not for CPUs: title, marks, time."""
SHARES = (0.0, 0.05, 0.2, 0.5, 0.8)
LEGEND = ("any", "5", "20", "50", "80 %")
EMPTY = "no completions counted yet"


def rows(
    state: LiveState,
    window: TimeWindow,
    width: int,
    height: int,
    charset: Charset,
    cursor: float | None = None,
    has_controls: bool = True,
) -> list[Row]:
    """A row for each CPU (or group of neighbouring CPUs) over the time of ``window``. The fuller a
    cell, the larger the CPU's share of a second's completions. ``cursor``: the selected second;
    ``has_controls``: whether a key moves completions."""
    history, columns = state.completions, width - LABEL
    title = rule(width, charset, *_legend(charset), right=_title_note(has_controls))
    if history.end is None or columns < 10 or height < FRAME_ROWS + 1:
        return pad([title, message(width, charset, EMPTY)], height, width)
    column_s = window.length / columns
    shares = _shares(history, window, columns)
    marks = [(int((m.t - window.start) / column_s), m.text)
             for m in state.history.marks(window.start, window.start + window.length)]  # fmt: skip
    at = None if cursor is None else window.column(cursor, column_s)
    lines = [column for column, _ in marks]
    body = [
        _row(label, cpus, shares, lines, at, charset)
        for label, cpus in groups(history, height - FRAME_ROWS)
    ]
    flag_rows = mark_label_rows(marks, LABEL, columns, width, 1, charset, {})
    return pad(
        [title, *flag_rows, *body, time_labels(window, columns, width, charset)], height, width
    )


def _shares(history: CpuHistory, window: TimeWindow, columns: int) -> list[dict[int, float] | None]:
    """The CPUs' shares of completions in each column. A second may fill several columns."""
    column_s = window.length / columns
    if column_s >= window.sample_s:
        return history.columns(window.start, column_s, columns)
    first = math.floor(window.start / window.sample_s) * window.sample_s
    count = math.ceil(window.length / window.sample_s) + 1
    samples = history.columns(first, window.sample_s, count)
    middles = (window.start + (column + 0.5) * column_s for column in range(columns))
    return [samples[int((middle - first) / window.sample_s)] for middle in middles]


def groups(history: CpuHistory, max_rows: int) -> list[tuple[str, tuple[int, ...]]]:
    """Groups of CPUs for at most ``max_rows`` rows, each with its label."""
    cpus = history.cpus
    per_group = -(-len(cpus) // max_rows)
    parts = [tuple(cpus[at : at + per_group]) for at in range(0, len(cpus), per_group)]
    return [(f"CPU {f.ranges(part)}", part) for part in parts]


def _row(
    label: str,
    cpus: Sequence[int],
    shares: Sequence[dict[int, float] | None],
    marks: Sequence[int],
    cursor: int | None,
    charset: Charset,
) -> Row:
    shades = density.shades(charset)
    cells: list[plotting.Cell] = []
    for column, completions in enumerate(shares):
        share = sum(completions.get(cpu, 0.0) for cpu in cpus) if completions else 0.0
        level = sum(share > step for step in SHARES)
        cell: plotting.Cell = (" ", None)
        if level:
            cell = (shades[level - 1], density.HEAT[level - 1])
        elif column in marks:
            cell = (charset.mark, MARK)
        cells.append((charset.cursor, CURSOR) if column == cursor else cell)
    # "CPU 128-255" is too long
    head_label = label if len(label) < LABEL else label.removeprefix("CPU ")
    return (
        *Line(LABEL, charset).add(f.cut(head_label, LABEL - 1), DIM).build(),
        *plotting.cells_to_row(cells),
    )


def _legend(charset: Charset) -> list[Piece]:
    pieces: list[Piece] = [("Completions by CPU", BOLD), ("  share per second", DIM)]
    shades = density.shades(charset)
    for shade, style, text in zip(shades, density.HEAT, LEGEND, strict=True):
        pieces += [(f" {shade}", style), (f" {text}", DIM)]
    return pieces


def value(charset: Charset) -> list[Piece]:
    """The legend, for the border of its box."""
    return [("share per second", DIM), *_legend(charset)[2:]]


def _title_note(has_controls: bool) -> list[Piece]:
    return [("BLOCK softirqs" + ": a moves them" * has_controls, DIM)]
