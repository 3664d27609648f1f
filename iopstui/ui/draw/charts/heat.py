"""The latency heat map. Each second's histogram is a column; the more I/Os, the fuller the cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from iopstui.model.histogram import bucket_key
from iopstui.model.metrics.history import History
from iopstui.model.metrics.latency_history import LatencyHistory, middle_of, step_of
from iopstui.ui.draw import density, frame
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.chart import Chart, ChartSpec, TimeWindow
from iopstui.ui.draw.rows import Piece, Row, capital, rule
from iopstui.ui.draw.style import BOLD, CURSOR, DIM, MARK, SELECTED, Charset

SHARES = (0.0, 0.001, 0.01, 0.1, 0.3)
"""A cell's shade is the number of these shares that its part of the second's I/Os exceeds."""
LEGEND = ("any", ".1", "1", "10", "30 %")

_LINES = {"utf8": "━─┄", "console": "=-~", "ascii": "=-~"}
LINE_STYLE = BOLD
CHOSEN_CHAR = "+"
"""The character of the chosen cell. It is shown reversed, which would make a full block
invisible."""

_Steps = dict[int, int]
_Levels = list[int]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A cell: between the moments ``begin`` and ``end`` (seconds of the session), ``count`` I/Os
    took ``low`` to ``high`` (ns)."""

    begin: float
    end: float
    low: float
    high: float
    row: int
    rows: int
    count: int
    scale: plotting.Scale

    @property
    def middle(self) -> float:
        """The geometric middle of the cell's latencies (ns)."""
        return math.sqrt(self.low * self.high)

    def contains(self, latency_ns: int) -> bool:
        """Whether an I/O of this latency is counted in this cell's row."""
        bucket_middle = middle_of(step_of(bucket_key(latency_ns)))
        # the scale covers all I/Os of this map, so a value beyond it belongs to another one
        inside = self.scale.low <= bucket_middle <= self.scale.high
        return inside and self.row == self.scale.row(bucket_middle, self.rows)


class HeatMap(Chart):
    """Replaces the latency lines, over the same time. Usually only new columns are computed; all of
    them when the window moves or the scale grows."""

    def __init__(self, spec: ChartSpec, charset: Charset) -> None:
        super().__init__(spec, charset)
        self._data: list[_Steps | None] = []
        self._levels: list[_Levels | None] = []
        self._key: object = None
        self._computed_until = 0.0
        self.title_text = spec.title
        self.min_scale: plotting.Scale | None = None
        """The scale of a map beside this one; the axis covers at least this range."""
        self.chosen: HeatCell | None = None
        """The cell that is marked."""
        self._window = TimeWindow()

    @property
    def scale(self) -> plotting.Scale | None:
        """The scale of the axis; ``None`` before anything was shown."""
        return self._scale

    def show(
        self,
        latencies: LatencyHistory,
        history: History,
        window: TimeWindow,
        note: Sequence[Piece],
        lines: bool,
        cursor: float | None = None,
    ) -> int:
        """Paint the span ``window``, with percentile lines over it if ``lines``. Returns how many
        columns were computed."""
        if not self.shown:
            return 0
        moved = self._window_start != window.start
        self._window_start = window.start
        self._window, column_s = replace(window), self.column_s(window)
        first, after = self._read_columns(latencies, window, column_s)
        scale = self._heat_scale(moved)
        if scale != self._scale:
            self._scale = scale
            self._tile_keys.clear()
            first, self._levels = 0, [None] * self._columns
            self.axis.show(self._axis_rows(scale))
        self._show_borders(window)
        for column in range(first, after):
            self._levels[column] = self._shade(self._data[column], scale)
        marks = history.flagged_columns(window.start, column_s, self._columns)
        self.title.show([self._legend(note), *self._with_sides(self._flag_lines(marks))])
        curves = self._curves(history, window) if lines else []
        at = None if cursor is None else window.column(cursor, column_s)
        self._heat_tiles(scale, [column for column, _ in marks], curves, at)
        ends = self._curve_labels(curves, scale) if curves else []
        self.labels.show(
            self._label_rows([(row, self._columns, text, style) for row, _, text, style in ends])
        )
        return after - first

    def cells(self, t: float) -> list[HeatCell]:
        """The cells with I/Os in the column of the sample that ended at ``t``, from top to bottom,
        as last shown."""
        if not self.shown or self._scale is None or self._window_start is None:
            return []
        column = self._window.column(t, self.column_s(self._window))
        steps = self._data[column] if 0 <= column < len(self._data) else None
        counts: dict[int, int] = {}
        for step, count in (steps or {}).items():
            row = self._scale.row(middle_of(step), self._rows)
            counts[row] = counts.get(row, 0) + count
        begin = self.begin_of(column, self._window)
        return [self._cell(row, counts[row], begin, self._scale) for row in sorted(counts)]

    def _cell(self, row: int, count: int, begin: float, scale: plotting.Scale) -> HeatCell:
        ratio = scale.high / scale.low
        low, high = (
            scale.low * ratio ** ((self._rows - row - edge) / self._rows) for edge in (1, 0)
        )
        end = begin + self.column_s(self._window)
        return HeatCell(begin, end, low, high, row, self._rows, count, scale)

    def row_at(self, y: int) -> int:
        """The row of the plot at a row of the screen."""
        return y - self.axis.box.y

    def _read_columns(
        self, latencies: LatencyHistory, window: TimeWindow, column_s: float
    ) -> tuple[int, int]:
        """Read the columns that may have changed. Returns their range."""
        key = (window.start, window.length, self._columns, id(latencies))
        end = latencies.end or 0.0
        after = min(self._columns, max(0, int((end - window.start) / column_s) + 1))
        # one column earlier, because an interval belongs to the column of its middle
        first = max(0, int((self._computed_until - window.start) / column_s) - 1)
        if key != self._key:
            self._key = key
            self._data, self._levels = [None] * self._columns, [None] * self._columns
            first = 0
        elif end == self._computed_until:
            first = after
        self._computed_until = end
        for column in range(first, after):
            low = window.start + column * column_s
            self._data[column] = latencies.column(low, low + column_s)
        return min(first, after), after

    def _heat_scale(self, moved: bool) -> plotting.Scale:
        columns = [steps for steps in self._data if steps]
        ends = [middle_of(end) for steps in columns for end in (min(steps), max(steps))]
        scale = plotting.log_scale(ends, self._scale, moved or not self._had_data_before(columns))
        least = self.min_scale
        if least is None:
            return scale
        return replace(scale, low=min(scale.low, least.low), high=max(scale.high, least.high))

    def _had_data_before(self, columns: Sequence[object]) -> bool:
        before, self._had_data = self._had_data, bool(columns)
        return before

    def _shade(self, steps: _Steps | None, scale: plotting.Scale) -> _Levels | None:
        """The shade of every row of a column, from 0 (nothing) to 5."""
        if not steps:
            return None
        counts = [0] * self._rows
        for step, count in steps.items():
            counts[scale.row(middle_of(step), self._rows)] += count
        total = sum(counts)
        return [sum(count > share * total for share in SHARES) for count in counts]

    def _legend(self, note: Sequence[Piece]) -> Row:
        if self.framed:
            return self._framed_legend(note)
        if note:
            return rule(
                self._box.width,
                self._charset,
                (f"{capital(self.title_text)}, heat map", BOLD),
                right=note,
            )
        pieces: list[Piece] = [(capital(self.title_text), BOLD), ("  share of I/Os", DIM)]
        shades = density.shades(self._charset)
        for shade, style, text in zip(shades, density.HEAT, LEGEND, strict=True):
            pieces += [(f" {shade}", style), (f" {text}", DIM)]
        return rule(self._box.width, self._charset, *pieces)

    def _framed_legend(self, note: Sequence[Piece]) -> Row:
        title = capital(self.title_text)
        value_pieces: list[Piece] = list(note)
        if not note:
            value_pieces.append(("share of I/Os", DIM))
            shades = density.shades(self._charset)
            for shade, style, text in zip(shades, density.HEAT, LEGEND, strict=True):
                value_pieces += [(f" {shade}", style), (f" {text}", DIM)]
        return frame.top(
            self._box.width,
            self._charset,
            self.number,
            frame.title_pieces(title),
            value_pieces,
            self.focused,
        )

    def _curves(self, history: History, window: TimeWindow) -> list[list[float | None]]:
        series = [
            self._curve_cache.get(history, curve, window, self.dots) for curve in self.spec.curves
        ]
        return [values for values, _ in series]

    def _heat_tiles(
        self,
        scale: plotting.Scale,
        marks: Sequence[int],
        curves: Sequence[Sequence[float | None]],
        cursor: int | None,
    ) -> None:
        rows_of = [self._line_rows(curve, scale) for curve in curves]
        for index, tile in enumerate(self.tiles):
            if not tile.shown:
                break
            first = index * plotting.TILE_COLUMNS
            last = first + tile.box.width
            marks_here = tuple(mark for mark in marks if first <= mark < last)
            drawn = tuple(tuple(rows[first:last]) for rows in rows_of)
            levels = self._levels[first:last]
            at = cursor - first if cursor is not None and first <= cursor < last else None
            chosen = self.chosen
            key = (marks_here, drawn, at, chosen, [level and tuple(level) for level in levels])
            if self._tile_keys.get(index) != key:
                self._tile_keys[index] = key
                tile.show(self._tile(levels, [mark - first for mark in marks_here], drawn, at))

    def _line_rows(self, values: Sequence[float | None], scale: plotting.Scale) -> list[int | None]:
        """The row of a line in every column: the highest of the column's samples."""
        dots = self._charset.dots
        line_rows: list[int | None] = []
        for column in range(self._columns):
            part = [v for v in values[column * dots : (column + 1) * dots] if v is not None]
            line_rows.append(scale.row(max(part), self._rows) if part else None)
        return line_rows

    def _tile(
        self,
        levels: Sequence[_Levels | None],
        marks: Sequence[int],
        lines: Sequence[Sequence[int | None]],
        cursor: int | None,
    ) -> list[Row]:
        shades = density.shades(self._charset)
        chars = _LINES[self._charset.name]
        drawn: list[Row] = []
        for row in range(self._rows):
            line: list[plotting.Cell] = []
            for column, column_levels in enumerate(levels):
                level = column_levels[row] if column_levels else 0
                cell: plotting.Cell = (" ", None)
                if level:
                    cell = (shades[level - 1], density.HEAT[level - 1])
                elif column in marks:
                    cell = (self._charset.mark, MARK)
                # the highest percentile comes first, so p50 is drawn over the others
                for place, rows in enumerate(lines):
                    if rows[column] == row:
                        cell = (chars[len(lines) - 1 - place], LINE_STYLE)
                line.append(cell)
            if cursor is not None and self.chosen is not None and self.chosen.row == row:
                line[cursor] = (CHOSEN_CHAR, SELECTED)
            elif cursor is not None and (self.chosen is None or line[cursor][0] == " "):
                line[cursor] = (self._charset.cursor, CURSOR)
            drawn.append(plotting.cells_to_row(line))
        return drawn
