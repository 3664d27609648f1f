"""Rows on a chart's time axis: the labels of marks, the values of an option, a whole recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from iopstui.format import clock
from iopstui.ui.draw.density import bars
from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import BOLD, BORDER, DIM, FOCUS, MARK, Charset

# The labels of a chart's marks, above its plot, in one or more rows used in turn.
#
# A label that does not fit is shortened: to its change ("rq_affinity 2", "1 → 2"), then to its
# value ("QD 32": "32"), or, if it is a sentence, to its first words; at last only its arrow
# remains. Words are never cut.


ARROW = "▾"


def mark_label_rows(
    marks: Sequence[tuple[int, str]], axis: int, columns: int, width: int, rows: int,
    charset: Charset, means: Mapping[int, str],
) -> list[Row]:  # fmt: skip
    """``rows`` lines of ``width`` cells; a mark is (column, label) in a plot of ``columns`` columns
    that starts at ``axis``. Marks are ordered by column; ``means`` are the figures measured after
    the marks, by the marks' columns."""
    lines = [Line(width, charset).fill_to(axis) for _ in range(rows)]
    for index, (column, label) in enumerate(marks):
        # rows are used in turn: a label may reach up to the next mark in its row
        following = marks[index + rows][0] if index + rows < len(marks) else columns
        turn_lines = [lines[(index + n) % rows] for n in range(rows)]
        last = index + rows >= len(marks)
        for start, text in _label_texts(axis + column, label, last, means.get(column, "")):
            before = start < axis + column
            end, gap = axis + (columns if before else following), 2 if before else 0
            fits = (
                o for o in turn_lines if o.used + gap <= start and start + cell_len(text) <= end
            )
            line = next(fits, None)
            if line is not None:
                line.fill_to(start).add(text, MARK)
                break
    return [line.build() for line in lines]


def _label_texts(start: int, label: str, last: bool, mean: str) -> Iterator[tuple[int, str]]:
    """The texts to try, the most informative first, and where they start: the last label may also
    be left of its arrow."""
    texts: list[str] = []
    for text in (label, *_shorter_values(label)):
        texts += (f"{text}: {mean}", text) if mean else (text,)
    for text in dict.fromkeys(texts):
        yield start, ARROW + text
        if last:
            yield start - cell_len(text), text + ARROW
    yield start, ARROW


def _shorter_values(text: str) -> list[str]:
    """Shorter forms of a label: the values of changed options, or for other text its first
    words."""
    parts = [part.replace("=", " ").split() for part in text.split(",")]
    if all(len(part) <= 2 or "→" in part or "->" in part for part in parts):
        values = " ".join(part[-1] for part in parts if part)
        changed = len(parts) == 1 and len(parts[0]) > 3
        return [f"{parts[0][0]} {values}", " ".join(parts[0][1:]), values] if changed else [values]
    first = text.split()
    return [" ".join(first[:count]) + "…" for count in range(len(first) - 1, 0, -1)]


# A row below a chart: the values of an option as steps, on the chart's time axis.


@dataclass(frozen=True, slots=True)
class OptionStep:
    """A value between two moments; ``end`` is ``None`` while it lasts. ``level`` is its rank among
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
    """The row: the option's name below the y axis, then a bar for each value, whose height shows
    the value's rank, and the value at its beginning if there is room. ``start`` is the time of the
    first of the ``columns``, ``now`` the newest time."""
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


# A whole recording as a bar, with the position in it and its marks.


EDGE = 9
"""The width of the texts left and right of the bar: the position and the recording's length."""


def time_bar(
    at: float, end: float, marks: Sequence[tuple[float, str]], width: int, labelled: bool,
    charset: Charset,
) -> list[Row]:  # fmt: skip
    """The bar from 0 to ``end``, with the position ``at`` in it. ``labelled``: a row above it shows
    the labels of ``marks``, which are pairs (second, label)."""
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
