"""Completions as a map of CPU and time: when they move to other CPUs, that is seen."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as f
from iopstui.model.metrics.cpus.cpu_history import CpuHistory
from iopstui.ui.draw import density
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.chart import TIME_STEPS
from iopstui.ui.draw.charts.mark_labels import mark_label_rows
from iopstui.ui.draw.rows import Line, Piece, Row, message, pad, rule
from iopstui.ui.draw.style import BOLD, CURSOR, DIM, MARK, Charset
from iopstui.ui.state.live import LiveState

HEIGHT = 9
LABEL = 8
FRAME_ROWS = 3
"""Rows that are no CPU's: title, marks, time."""
SHARES = (0.0, 0.05, 0.2, 0.5, 0.8)
LEGEND = ("any", "5", "20", "50", "80 %")
EMPTY = "no completions counted yet"


def rows(
    state: LiveState,
    width: int,
    height: int,
    charset: Charset,
    cursor: float | None = None,
    has_controls: bool = True,
) -> list[Row]:
    """A row for each CPU (or group of neighbouring CPUs), a column for each second: the darker, the
    larger its share of that second's completions. ``cursor``: the selected second;
    ``has_controls``: whether a key moves completions."""
    history, columns = state.completions, width - LABEL
    title = rule(width, charset, *_legend(charset), right=_title_note(has_controls))
    if history.end is None or columns < 10 or height < FRAME_ROWS + 1:
        return pad([title, message(width, charset, EMPTY)], height, width)
    start = window_start(
        history.end if cursor is None else max(cursor, history.end - columns), columns
    )
    shares = history.columns(start, 1.0, columns)
    marks = [(int(m.t - start), m.text) for m in state.history.marks(start, start + columns)]
    at = None if cursor is None else int(cursor - start - 1e-6)
    lines = [column for column, _ in marks]
    body = [
        _row(label, cpus, shares, lines, at, charset)
        for label, cpus in groups(history, height - FRAME_ROWS)
    ]
    flag_rows = mark_label_rows(marks, LABEL, columns, width, 1, charset, {})
    return pad([title, *flag_rows, *body, _time(start, width, charset)], height, width)


def window_start(t: float, columns: int) -> float:
    """Start of the time window, which stays until it is full, then moves by a quarter."""
    if t < columns:
        return 0.0
    quarter = max(1, columns // 4)
    return float(((t - columns) // quarter + 1) * quarter)


def groups(history: CpuHistory, max_rows: int) -> list[tuple[str, tuple[int, ...]]]:
    """Groups of CPUs for at most ``max_rows`` rows: each with its label."""
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
    # "CPU 128-255" does not fit
    head_label = label if len(label) < LABEL else label.removeprefix("CPU ")
    return (
        *Line(LABEL, charset).add(f.cut(head_label, LABEL - 1), DIM).build(),
        *plotting.cells_to_row(cells),
    )


def _time(start: float, width: int, charset: Charset) -> Row:
    line = Line(width, charset)
    step = next(step for step in TIME_STEPS if step >= 10)
    first = int(-(-start // step) * step)
    for t in range(first, int(start) + width - LABEL, step):
        label = f.clock(t)
        column = LABEL + t - int(start)
        if column + len(label) > width:
            break
        if column >= line.used:
            line.fill_to(column).add(label, DIM)
    return line.build()


def _legend(charset: Charset) -> list[Piece]:
    pieces: list[Piece] = [("Completions by CPU", BOLD), ("  share of the second's", DIM)]
    shades = density.shades(charset)
    for shade, style, text in zip(shades, density.HEAT, LEGEND, strict=True):
        pieces += [(f" {shade}", style), (f" {text}", DIM)]
    return pieces


def value(charset: Charset) -> list[Piece]:
    """Return the text for the border of its box: the legend."""
    return [("share of the second's", DIM), *_legend(charset)[2:]]


def _title_note(has_controls: bool) -> list[Piece]:
    return [("BLOCK softirqs" + ": a moves them" * has_controls, DIM)]
