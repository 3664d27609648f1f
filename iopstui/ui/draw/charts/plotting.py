"""Charts: scales and labels, the tiles of live charts, and plotext, which draws curves. If plotext
can't be loaded, ``_draw_lines`` draws them.

Three things make a live chart cheap. The time axis stays for a few seconds while new samples fill
the last columns, then it moves, so that the present stays close to the right edge. The plot is
divided into tiles of a few columns, so that a new sample redraws only one tile. And its lines have
one value for each column of dots, which is simpler to draw than arbitrary lines. plotext's figure
is one global object, which is cleared for every picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import pairwise
from operator import or_
from typing import Any

from rich.style import Style

from iopstui.ui.draw.rows import Row
from iopstui.ui.draw.style import BORDER, CURSOR, Charset

TILE_COLUMNS = 12
LINE, POINTS, FINE_POINTS, AREA = "line", "points", "fine points", "area"
BRAILLE_SAMPLES = {LINE: "⠒⠒", POINTS: "⠂⠐", FINE_POINTS: "⠁⠈"}
"""A sample of a curve of each kind, in braille, shown beside its name."""
_STEPS = (1.0, 2.0, 5.0, 10.0)
_BRAILLE = 0x2800

_plotext: Any = None
_import_tried = False


def load_plotext() -> Any:
    """plotext, imported on first use (about 0.1 s: live charts do not need it); ``None`` if that
    fails."""
    global _plotext, _import_tried
    if not _import_tried:
        _import_tried = True
        try:
            import plotext
        except (
            ImportError,
            OSError,
        ):  # the compiled part of plotext is missing, or for another kind of machine
            return None
        # by default plotext cuts a chart to the size that it assumes for the terminal
        plotext.terminal.limit(False, False)
        # for all pictures: only the plot area, with the limits at its edges
        figure = plotext.figure
        figure.clear()
        figure.axes(False)
        for axis in ("x", "y"):
            figure.ruler(axis).frequency(0).alignment(lim="edge")
        _plotext = plotext
    return _plotext


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart: a value for every dot of the time axis; ``None`` is a gap. ``kind`` is
    LINE, POINTS or FINE_POINTS (dotted lines) or AREA (filled down to the axis). ``marker`` is
    "braille" or a single character. Later series are drawn over earlier ones."""

    values: Sequence[float | None]
    kind: str
    marker: str
    style: Style | None


@dataclass(frozen=True, slots=True)
class Scale:
    """The y axis."""

    low: float
    high: float
    log: bool = False

    def fraction(self, value: float) -> float:
        """The position of ``value``, from 0 (bottom) to 1 (top)."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        floor = max(value, self.low)
        return math.log(floor / self.low) / math.log(self.high / self.low)

    def row(self, value: float, rows: int) -> int:
        """The row (0 = top) in which ``value`` is drawn."""
        return min(rows - 1, max(0, rows - 1 - math.floor(self.fraction(value) * rows)))


def nice_above(value: float) -> float:
    """The smallest of 1, 2, 5 × 10^n that is not below ``value``."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    # a tolerance, because 10 ** log10(x) may be slightly below x
    return next(step * power for step in _STEPS if step * power >= value * (1 - 1e-9))


def nice_below(value: float) -> float:
    """The largest of 1, 2, 5 × 10^n that is not above ``value`` (> 0)."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        (step * power for step in reversed(_STEPS) if step * power <= value * (1 + 1e-9)), power
    )


def linear_scale(values: Sequence[float], previous: Scale | None, may_shrink: bool) -> Scale:
    """A scale from 0 to a round maximum. It grows if necessary, and shrinks only if
    ``may_shrink``."""
    least_top = max(max(values, default=0.0) * 1.05, 1.0)
    step = tick_step(least_top)
    top = step * math.ceil(least_top / step - 1e-9)
    if previous is not None and not previous.log and not may_shrink:
        top = max(top, previous.high)
    return Scale(0.0, top)


def tick_step(top: float) -> float:
    """Distance between labels: 1, 2 or 5 × 10^n, at most five of them below ``top``."""
    return nice_above(top / 5)


def log_scale(values: Sequence[float], previous: Scale | None, may_shrink: bool) -> Scale:
    """A scale between two round values, at least a decade apart. Values below 1 (ns) are
    ignored."""
    positive = [value for value in values if value >= 1]
    if not positive:
        return previous or Scale(1e4, 1e7, log=True)
    low, high = nice_below(min(positive)), nice_above(max(positive) * 1.05)
    if previous is not None and previous.log and not may_shrink:
        low, high = min(low, previous.low), max(high, previous.high)
    while high / low < 9.9:
        high = nice_above(high * 1.5)
    return Scale(low, high, log=True)


@lru_cache(32)
def ticks(scale: Scale, rows: int) -> Mapping[int, float]:
    """The labelled values by row: as many as fit, at most one per row."""
    if not scale.log:
        return _even_ticks(scale, rows)
    values_by_row: dict[int, float] = {}
    for value in _tick_values(scale):
        row = scale.row(value, rows)
        if value >= scale.high:
            row = 0
        if all(abs(row - other_row) >= 2 for other_row in values_by_row):
            values_by_row[row] = value
    return values_by_row


def _even_ticks(scale: Scale, rows: int) -> dict[int, float]:
    """Ticks in equal steps from 0 to the top. They are left out evenly, because a single gap would
    look like another scale."""
    step = tick_step(scale.high)
    parts = max(1, round(scale.high / step))
    for stride in (n for n in range(1, parts + 1) if parts % n == 0):
        values = [scale.high, *(step * index for index in range(parts - stride, 0, -stride)), 0.0]
        values_by_row = {0 if n == 0 else scale.row(v, rows): v for n, v in enumerate(values)}
        places = sorted(values_by_row)
        if len(values_by_row) == len(values) and all(b - a >= 2 for a, b in pairwise(places)):
            return values_by_row
    bottom = scale.row(0.0, rows)
    return {0: scale.high, bottom: 0.0} if bottom >= 2 else {0: scale.high}


def _tick_values(scale: Scale) -> list[float]:
    values = [scale.high, scale.low]
    for steps in ((1.0,), (2.0, 5.0)):
        power = 10.0 ** math.floor(math.log10(scale.low))
        while power <= scale.high:
            values += [s * power for s in steps if scale.low < s * power < scale.high * 0.99]
            power *= 10
    return values


def draw_line(
    series: Series, first: int, columns: int, rows: int, scale: Scale, dots: int
) -> list[str]:
    """The dots of ``columns`` columns, beginning with column ``first``, as ``rows`` strings.

    The dot beyond each edge is included in the drawing, so that lines of neighbouring tiles
    meet."""
    low, high = first * dots, (first + columns) * dots - 1
    heights: dict[int, float] = {}
    for dot in range(max(0, low - 1), min(len(series.values), high + 2)):
        value = series.values[dot]
        if value is not None and math.isfinite(value) and not (scale.log and value <= 0):
            heights[dot] = scale.fraction(value)
    if not heights:
        return [" " * columns] * rows
    return draw(heights, low, columns, rows, series.marker, series.kind == LINE)


def draw_polylines(
    lines: Sequence[Sequence[tuple[float, float]]], columns: int, rows: int, marker: str
) -> list[list[str]]:
    """Draw lines through points (x, y), which range from 0 to 1, as ``rows`` strings for each line.
    plotext draws all lines in one figure, each in its own band, because a figure costs more than a
    line in it. plotext 6.1 aborts the process with density("full") and with values that are not
    numbers, and sometimes fails with logarithmic axes, so it gets linear coordinates between 0 and
    1 and its default density."""
    if not any(lines) or columns < 1 or rows < 1:
        return [[" " * columns] * rows for _ in lines]
    curves = [
        [(_clamp(x), _clamp(y)) for x, y in points if math.isfinite(x + y)] for points in lines
    ]
    plotext = load_plotext()
    if plotext is None:
        return [_draw_lines(points, columns, rows, marker) for points in curves]
    figure = plotext.figure
    figure.clear.data()
    figure.plot_size(columns, rows * len(curves))
    for band, points in enumerate(curves):
        if points:
            base = len(curves) - 1 - band
            signal = figure.signal(
                [x for x, _ in points], [base + y for _, y in points], marker=marker
            )
            signal.lines()
            figure.draw(signal)
    figure.ruler("x").lim(0, 1)
    figure.ruler("y").lim(0, len(curves))
    text: str = figure.build().string(colorless=True)
    drawn = [line.ljust(columns)[:columns] for line in text.split("\n")]
    return [drawn[band * rows : (band + 1) * rows] for band in range(len(curves))]


def _clamp(share: float) -> float:
    return min(max(share, EDGE), 1 - EDGE)


Cell = tuple[str, "Style | None"]
Level = tuple[int, int, int]
"""A level line: its first column, the column after its last one, and its row."""
PlotLabel = tuple[int, int, str, "Style | None"]
"""A label: row and column of the plot, text, style."""


@dataclass(frozen=True, slots=True)
class Section:
    """The columns of a plot that a tile shows, and how to draw them."""

    first: int
    columns: int
    rows: int
    scale: Scale
    charset: Charset

    def contains(self, column: int) -> bool:
        return self.first <= column < self.first + self.columns


def draw_tile(
    series: Sequence[Series],
    section: Section,
    marks: Sequence[int] = (),
    mark_style: Style | None = None,
    cursor: int | None = None,
    levels: Sequence[Level] = (),
    labels: Sequence[PlotLabel] = (),
) -> list[Row]:
    """Draw a section of a plot, as rows of styled pieces. ``marks`` are columns with a vertical
    line, which is over areas and under lines; ``cursor`` is a column with a line over everything.
    ``levels`` are level lines under all lines, ``labels`` are written over the lines."""
    first, columns, charset = section.first, section.columns, section.charset
    cells = blank_cells(columns, section.rows, section.scale, charset)
    for curve in series:
        if curve.kind == AREA:
            _fill(cells, curve, first, columns, section.scale, charset)
    for column in filter(section.contains, marks):
        _vertical(cells, column - first, (charset.mark, mark_style))
    for begin, end, row in levels:
        for column in range(max(begin, first), min(end, first + columns)):
            cells[row][column - first] = (charset.level, mark_style)
    for curve in series:
        if curve.kind != AREA:
            text = draw_line(curve, first, columns, section.rows, section.scale, charset.dots)
            overlay(cells, text, curve.style)
    for row, begin, label, style in labels:
        for column, char in enumerate(charset.text(label), begin):
            if section.contains(column):
                cells[row][column - first] = (char, style)
    if cursor is not None:
        _vertical(cells, cursor - first, (charset.cursor, CURSOR))
    return [cells_to_row(line) for line in cells]


def blank_cells(columns: int, rows: int, scale: Scale, charset: Charset) -> list[list[Cell]]:
    """The cells of an empty plot: only a faint line at each labelled value."""
    lines = ticks(scale, rows)
    return [
        [(charset.grid, BORDER) if row in lines else (" ", None)] * columns for row in range(rows)
    ]


def _vertical(cells: list[list[Cell]], column: int, cell: Cell) -> None:
    for line in cells:
        line[column] = cell


def _fill(
    cells: list[list[Cell]],
    series: Series,
    first: int,
    columns: int,
    scale: Scale,
    charset: Charset,
) -> None:
    rows = len(cells)
    for column in range(columns):
        start = (first + column) * charset.dots
        dots = series.values[start : start + charset.dots]
        values = [v for v in dots if v is not None and math.isfinite(v)]
        if not values:
            continue
        height = round(scale.fraction(sum(values) / len(values)) * rows)
        for row in range(max(0, rows - max(height, 1)), rows):
            cells[row][column] = (charset.area, series.style)


def overlay(cells: list[list[Cell]], drawn: Sequence[str], style: Style | None) -> None:
    """Draw characters over the cells. Braille dots are added to those in the cell."""
    for line, text in zip(cells, drawn, strict=False):
        if text.isspace():
            continue
        for column, char in enumerate(text):
            if char in (" ", "⠀"):
                continue
            below = ord(line[column][0]) - _BRAILLE
            if 0 < below < 256 and ord(char) > _BRAILLE:
                char = chr(ord(char) | below)
            line[column] = (char, style)


def _is_reversed(style: Style | None) -> bool:
    return style is not None and bool(style.reverse)


def cells_to_row(cells: Sequence[Cell]) -> Row:
    """Merge neighbouring cells of one style into pieces. A blank may take the style of its
    neighbour, if that does not make it visible."""
    row: list[Cell] = []
    run, style = cells[0]
    for char, next_style in cells[1:]:
        if next_style is style or (char == " " and not _is_reversed(style)):
            run += char
        elif not run.strip() and not _is_reversed(style) and not _is_reversed(next_style):
            run, style = run + char, next_style
        else:
            row.append((run, style))
            run, style = char, next_style
    row.append((run, style))
    return tuple(row)


def _draw_lines(
    points: Sequence[tuple[float, float]], columns: int, rows: int, marker: str
) -> list[str]:
    """A line through points (x, y), which range from 0 to 1, as ``rows`` strings. Used without
    plotext, whose compiled part does not exist for musl, ppc64le and s390x. ``marker`` is "braille"
    or a character."""
    across, up = DOTS_OF_BRAILLE if marker == BRAILLE else (1, 1)
    wide, tall = columns * across, rows * up
    ends = [(math.floor(x * wide), math.floor((1 - y) * tall)) for x, y in points]
    dots = [0] * wide
    for number, end in enumerate(ends):
        for x, y in _line_dots(ends[max(0, number - 1)], end):
            if 0 <= x < wide and 0 <= y < tall:
                dots[x] |= 1 << (tall - 1 - y)
    return picture(dots, rows, marker)


def _line_dots(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for step in range(steps + 1):
        yield (start[0] + round((end[0] - start[0]) * step / steps),
               start[1] + round((end[1] - start[1]) * step / steps))  # fmt: skip


# Characters for the dots of a live chart, which has one value for each dot of the time axis.
#
# A live chart redraws a tile every second, so this works with integers: a column of dots is one
# number, with bit 0 at the bottom. plotext, which can draw any line, takes about fifty times longer
# for the same picture.


BRAILLE = "braille"
DOTS_OF_BRAILLE = 2, 4
"""The dots of a braille character: columns, rows."""
EDGE = 1e-4
"""How far values are kept from the edges, so that each is in a row of the picture."""

_EMPTY_BRAILLE = 0x2800
# the bits of Unicode's braille dots: the left column from the bottom up, then the right one
_LEFT, _RIGHT = (0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08)


def _table(bits: Sequence[int]) -> tuple[int, ...]:
    return tuple(sum(bits[n] for n in range(4) if nibble >> n & 1) for nibble in range(16))


_OF_LEFT, _OF_RIGHT = _table(_LEFT), _table(_RIGHT)
_CHARACTERS = " " + "".join(chr(_EMPTY_BRAILLE + cell) for cell in range(1, 256))


def draw(
    heights: Mapping[int, float], first: int, columns: int, rows: int, marker: str, joined: bool
) -> list[str]:
    """Draw ``columns`` characters in each of ``rows`` strings, beginning with dot ``first``.

    ``heights`` are fractions of the picture's height (0 at the bottom), by the number of the dot.
    If dots are ``joined``, neighbours are connected by a vertical run of dots, half of it in the
    column of each; so the dots just beside the picture matter, too. ``marker`` is "braille" (two
    columns and four rows of dots a character) or the character that stands for a dot."""
    across, up = DOTS_OF_BRAILLE if marker == BRAILLE else (1, 1)
    return picture(_dots(heights, first, columns * across, rows * up, joined), rows, marker)


def picture(dots: Sequence[int], rows: int, marker: str) -> list[str]:
    """Columns of dots, bit 0 at the bottom, as ``rows`` strings."""
    if marker == BRAILLE:
        return _braille(dots, rows)
    return [
        "".join(marker if dot >> row & 1 else " " for dot in dots)
        for row in range(rows - 1, -1, -1)
    ]


def _dots(
    heights: Mapping[int, float], first: int, count: int, rows: int, joined: bool
) -> list[int]:
    dots = [0] * count
    before: tuple[int, int] | None = None
    for at in range(-1, count + 1):
        height = heights.get(first + at)
        if height is None:
            continue
        row = math.floor(min(max(height, EDGE), 1 - EDGE) * rows)
        if 0 <= at < count:
            dots[at] |= 1 << row
        if joined and before is not None and before[0] == at - 1:
            near, far = _split_run(before[1], row)
            if at > 0:
                dots[at - 1] |= near
            if at < count:
                dots[at] |= far
        before = at, row
    return dots


def _split_run(begin: int, end: int) -> tuple[int, int]:
    """Split the vertical run from row ``begin`` to row ``end``: the half beside the first dot, and
    the rest."""
    length = abs(end - begin)
    near_length = (length + 1) // 2
    if end >= begin:
        return _run(begin, begin + near_length - 1), _run(begin + near_length, end)
    return _run(begin - near_length + 1, begin), _run(end, begin - near_length)


def _run(low: int, high: int) -> int:
    return ((1 << (high - low + 1)) - 1) << low if high >= low else 0


def _braille(dots: Sequence[int], rows: int) -> list[str]:
    pairs = [*zip(dots[::2], dots[1::2], strict=True)]
    blank, used_rows = " " * len(pairs), reduce(or_, dots, 0)
    lines = []
    for shift in range(4 * rows - 4, -1, -4):
        # most rows of a line's picture are empty
        lines.append(
            "".join([
                _CHARACTERS[_OF_LEFT[left >> shift & 15] | _OF_RIGHT[right >> shift & 15]]
                for left, right in pairs
            ])
            if used_rows >> shift & 15
            else blank
        )  # fmt: skip
    return lines
