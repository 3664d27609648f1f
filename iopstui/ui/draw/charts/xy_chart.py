"""A chart of points over any x: a title, the names of its lines, the plot and its axes. Lines do
not differ in colour alone: the points of each have their own character, which is shown with its
name above the plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rich.style import Style

from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.rows import Line, Piece, Row, capital, pad, rule
from iopstui.ui.draw.style import BOLD, DIM, MARK, Charset

AXIS_WIDTH = 8
MIN_WIDTH, MIN_HEIGHT = 24, 7
TITLE_ROWS = 2
"""Rows above the plot: the title and the names."""
MOUSE_REACH = 6
"""How many cells the mouse may be away from a point that it selects."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class XAxis:
    """The x axis from ``low`` to ``high``; ``ticks`` are (value, label), left to right."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def fraction(self, value: float) -> float:
        """The position of ``value``, from 0 (left) to 1 (right)."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class XYLine:
    """The points of a line, each drawn as ``char``. ``joined``: lines connect them in their order.
    Without ``char`` only the lines are drawn."""

    char: str
    points: tuple[Point, ...]
    style: Style | None
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Flag:
    """A label beside a point; the point is shown reversed."""

    at: Point
    text: str


@dataclass(frozen=True, slots=True)
class XYSpec:
    """A whole chart. Later lines are drawn over earlier ones. ``verticals`` are x values that get a
    vertical line."""

    title: str
    x: XAxis
    y: plotting.Scale
    unit: Callable[[float], str]
    lines: tuple[XYLine, ...]
    names: tuple[Piece, ...] = ()
    flags: tuple[Flag, ...] = ()
    verticals: tuple[float, ...] = ()
    note: str = ""
    value_text: Callable[[Point], str] | None = field(default=None, compare=False)
    """Returns a point's values as text, for the point under the mouse."""


class XYChart:
    """Makes the chart's rows, and keeps them until something changes."""

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self._cached_rows: tuple[object, list[Row]] | None = None

    def rows(
        self, spec: XYSpec, width: int, height: int, at: tuple[int, int] | None = None
    ) -> list[Row]:
        """Exactly ``height`` rows of ``width`` cells. The title shows the values of the point
        nearest to the cell ``at`` (column, row)."""
        point = nearest(spec, width, height, at) if at is not None else None
        if point is not None and spec.value_text is not None:
            spec = replace(spec, note=spec.value_text(point), flags=(*spec.flags, Flag(point, "")))
        key = (spec, width, height)
        if self._cached_rows is None or self._cached_rows[0] != key:
            self._cached_rows = (key, chart_rows(spec, width, height, self._charset))
        return self._cached_rows[1]


def nearest(spec: XYSpec, width: int, height: int, at: tuple[int, int]) -> Point | None:
    """The point nearest to a cell of the chart; ``None`` if none is near."""
    columns, rows = _plot_size(width, height)
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return None
    by_distance: list[tuple[int, Point]] = []
    for point in (point for line in spec.lines if line.char for point in line.points):
        column, row = _cell(spec, point, columns, rows)
        # a cell is about twice as high as wide
        distance = abs(at[0] - AXIS_WIDTH - column) + 2 * abs(at[1] - TITLE_ROWS - row)
        by_distance.append((distance, point))
    distance, point = min(by_distance, default=(MOUSE_REACH + 1, (0.0, 0.0)))
    return point if distance <= MOUSE_REACH else None


def _plot_size(width: int, height: int) -> tuple[int, int]:
    return width - AXIS_WIDTH - 1, height - TITLE_ROWS - 1


def chart_rows(spec: XYSpec, width: int, height: int, charset: Charset) -> list[Row]:
    """The rows of the chart; only the title if there is no room for more."""
    title = rule(
        width, charset, (capital(spec.title), BOLD), right=((spec.note, DIM),) if spec.note else ()
    )
    columns, rows = _plot_size(width, height)
    if width < MIN_WIDTH or height < MIN_HEIGHT:
        return pad([title], height, width)
    names = (
        Line(width, charset)
        .fill_to(AXIS_WIDTH)
        .extend([(charset.text(text), style) for text, style in _fit_pieces(spec.names, columns)])
    )
    labelled = plotting.ticks(spec.y, rows)
    body: list[Row] = []
    for number, plotted in enumerate(_plot(spec, columns, rows, charset)):
        text = spec.unit(labelled[number]) if number in labelled else ""
        line = Line(width, charset).add(text.rjust(AXIS_WIDTH - 1), DIM).add(" ")
        body.append(line.extend(plotted).build())
    return pad(
        [title, names.build(), *body, _ticks(spec.x, columns, width, charset)], height, width
    )


def _fit_pieces(pieces: Sequence[Piece], width: int) -> list[Piece]:
    """As many pieces as fit, with an ellipsis if some are left out."""
    if sum(len(text) for text, _ in pieces) <= width:
        return list(pieces)
    fitting: list[Piece] = []
    for text, style in pieces:
        if sum(len(text) for text, _ in fitting) + len(text) > width - 2:
            return [*fitting, (" …", DIM)]
        fitting.append((text, style))
    return fitting


def _plot(spec: XYSpec, columns: int, rows: int, charset: Charset) -> list[Row]:
    cells = plotting.blank_cells(columns, rows, spec.y, charset)
    for x in spec.verticals:
        column = _column(spec.x.fraction(x), columns)
        for line in cells:
            line[column] = (charset.mark, MARK)
    joined = [line for line in spec.lines if line.joined and len(line.points) > 1]
    places = [[_position(spec, point) for point in line.points] for line in joined]
    for curve, text in zip(
        joined, plotting.draw_polylines(places, columns, rows, charset.line), strict=True
    ):
        plotting.overlay(cells, text, curve.style)
    for curve in spec.lines:
        for point in curve.points if curve.char else ():
            column, row = _cell(spec, point, columns, rows)
            cells[row][column] = (charset.text(curve.char), curve.style)
    _put_flags(spec, cells, charset)
    return [plotting.cells_to_row(line) for line in cells]


def _put_flags(spec: XYSpec, cells: list[list[plotting.Cell]], charset: Charset) -> None:
    """Put labels right or left of their points, wherever they cover less."""
    rows, columns = len(cells), len(cells[0])
    for flag in spec.flags:
        column, row = _cell(spec, flag.at, columns, rows)
        char, style = cells[row][column]
        cells[row][column] = (char, (style or Style()) + Style(reverse=True, bold=True))
        text = charset.text(flag.text)
        choices: list[tuple[int, int, int, int]] = []
        for line in (row, row - 1, row + 1):
            for start in (column + 2, column - 1 - len(text)):
                if 0 <= line < rows and start >= 0 and start + len(text) <= columns:
                    covered = [cells[line][start + n][0] for n in range(len(text))]
                    empty = f" ⠀{charset.grid}"
                    choices.append(
                        (sum(c not in empty for c in covered), len(choices), line, start)
                    )
        if choices:
            _, _, line, start = min(choices)
            for offset, letter in enumerate(text):
                cells[line][start + offset] = (letter, BOLD)


def _position(spec: XYSpec, point: Point) -> Point:
    return spec.x.fraction(point[0]), spec.y.fraction(point[1])


def _cell(spec: XYSpec, point: Point, columns: int, rows: int) -> tuple[int, int]:
    x, y = _position(spec, point)
    return _column(x, columns), min(rows - 1, max(0, rows - 1 - math.floor(y * rows)))


def _column(fraction: float, columns: int) -> int:
    return min(columns - 1, max(0, math.floor(fraction * columns)))


def _ticks(axis: XAxis, columns: int, width: int, charset: Charset) -> Row:
    """The labels under the plot: the first and the last, and others if they fit."""
    placed: list[tuple[int, str]] = []
    ends = [*axis.ticks[-1:], *axis.ticks[:1]]
    for value, label in [*ends, *axis.ticks[1:-1]] if len(axis.ticks) > 1 else axis.ticks:
        start = AXIS_WIDTH + _column(axis.fraction(value), columns) - len(label) // 2
        start = max(0, min(start, width - len(label)))
        if all(start > s + len(t) or start + len(label) < s for s, t in placed):
            placed.append((start, label))
    line = Line(width, charset)
    for start, label in sorted(placed):
        line.fill_to(start).add(label, DIM)
    return line.build()


def linear_axis(high: float, unit: Callable[[float], str], low: float = 0.0) -> XAxis:
    """An axis from ``low`` to a round number that is not below ``high``."""
    step = plotting.tick_step(max(high - low, 1e-9))
    count = max(1, math.ceil((high - low) / step - 1e-9))
    ticks = [low + step * n for n in range(count + 1)]
    return XAxis(low, ticks[-1], tuple((value, unit(value)) for value in ticks))


def values_axis(values: Sequence[str]) -> tuple[XAxis, dict[str, float]]:
    """An axis for these values, with a margin at both ends, and the position of each value. Numbers
    are placed by size (logarithmically if they span a factor of 8), other values side by side."""
    if len(values) > 1 and all(v.isdecimal() and int(v) > 0 for v in values):
        numbers = {v: float(v) for v in values}
        low, high = min(numbers.values()), max(numbers.values())
        if high >= 8 * low:
            edge = (high / low) ** 0.04
            ticks = tuple(sorted((n, v) for v, n in numbers.items()))
            return XAxis(low / edge, high * edge, ticks, log=True), numbers
        if high > low:
            edge = 0.04 * (high - low)
            ticks = tuple(sorted((n, v) for v, n in numbers.items()))
            return XAxis(low - edge, high + edge, ticks), numbers
    places = {value: float(n) for n, value in enumerate(values)}
    ticks = tuple((n, value) for value, n in places.items())
    return XAxis(-0.5, len(values) - 0.5, ticks), places
