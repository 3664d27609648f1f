"""A chart on the dashboard: title, y axis, the plot's tiles, labels, time axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.cells import cell_len
from rich.style import Style

from iopstui.format import clock, latency, number
from iopstui.model.metrics.history import History
from iopstui.ui.draw import frame
from iopstui.ui.draw.canvas import Lines
from iopstui.ui.draw.charts import plotting
from iopstui.ui.draw.charts.axis_rows import OptionStep, mark_label_rows, option_row
from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.rows import Line, Piece, Row, capital, rule
from iopstui.ui.draw.style import BOLD, DIM, MARK, Charset

AXIS_WIDTH = 8
FLAG_ROWS, FLAGS_FROM = 2, 12
"""How many rows the labels of marks have in a chart that is at least 12 rows high; in others they
have one."""
STEPS_FROM = 9
"""From this height on, a chart has room for a row with an option's values."""
LIMIT_NEAR = 3.0
"""A limit above this multiple of all values is not drawn, because it would flatten the curves."""
SHORTEST_S = 10.0
"""The shortest time span of a chart."""
LEAD = 0.04
"""The share of a chart's width that may be empty at its right edge."""
TINY_S = 1e-6
LABEL_SHARE, LABEL_COLUMNS = 0.18, 8
"""The least distance between labels of the time axis: as a share of the axis, and in columns; the
larger one counts."""
TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600)


@dataclass(frozen=True)
class Curve:
    """A series of a chart: its name in the history, its title, and its style."""

    name: str
    label: str
    kind: str
    style: Style
    merge: str = "mean"

    def marker(self, charset: Charset) -> str:
        """The character that draws its dots, or "braille"."""
        of_points = {plotting.POINTS: charset.points[0], plotting.FINE_POINTS: charset.points[1]}
        return of_points.get(self.kind, charset.line)

    def sample(self, charset: Charset) -> Piece:
        """A sample of its line, which is shown beside its name."""
        marker = charset.area if self.kind == plotting.AREA else self.marker(charset)
        text = plotting.BRAILLE_SAMPLES[self.kind] if marker == plotting.BRAILLE else marker * 2
        return text, self.style


@dataclass(frozen=True)
class ChartSpec:
    """What a chart shows. ``right`` is the width of the labels on the right, 0 if there are
    none."""

    id: str
    title: str
    curves: Sequence[Curve]
    log: bool
    unit: Callable[[float], str]
    right: int


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean between two moments: its ``value``, which is drawn as a level line, and its text."""

    start: float
    end: float
    value: float
    text: str


@dataclass
class TimeWindow:
    """The span of time that charts show: at first the whole time, later the last part of it. The
    present is near its right edge. The window moves by several columns at a time, because each move
    redraws all columns."""

    start: float = 0.0
    length: float = SHORTEST_S
    sample_s: float = 1.0
    """The length of a sample."""

    def follow(self, t: float, columns: int, column_s: float) -> bool:
        """Move the window so that ``t`` is near its right edge. Once it is full, each of the
        ``columns`` has ``column_s`` seconds. Returns True if it moved."""
        longest, end = columns * column_s, self.start + self.length
        lead = LEAD * self.length
        settled = abs(self.length - min(longest, max(SHORTEST_S, end))) < TINY_S
        if longest <= 0 or (settled and end - 2 * lead <= t <= end):
            return False
        end = t + LEAD * min(longest, max(SHORTEST_S, t))
        if end >= longest:
            # a multiple of the column's length, so that each sample stays in the same column
            end = column_s * -(-end // column_s)
        self.length = min(longest, max(SHORTEST_S, end))
        self.start = end - self.length
        return True

    def extend_to(self, t: float) -> None:
        """Move the window back so that ``t`` is visible."""
        if t <= self.start:
            self.start = max(0.0, t - self.length / 4)

    def column(self, t: float, column_s: float) -> int:
        """The column in which the sample that ends at ``t`` is drawn."""
        return int((t - min(column_s, self.sample_s) / 2 - self.start) / column_s)


CurveLabel = plotting.PlotLabel
"""A curve's name, which is written behind its newest point."""


class Chart:
    """A chart, made of several ``Lines`` side by side. It is not a widget itself."""

    def __init__(self, spec: ChartSpec, charset: Charset) -> None:
        self.spec = spec
        self._charset = charset
        self.title = Lines(f"{spec.id}-title")
        self.axis = Lines(f"{spec.id}-axis")
        self.labels = Lines(f"{spec.id}-labels")
        self.time = Lines(f"{spec.id}-time")
        self.steps = Lines(f"{spec.id}-steps")
        self.sides = (Lines(f"{spec.id}-left"), Lines(f"{spec.id}-right"))
        self.framed = self.focused = False
        self._border_key: object = None
        self.number = ""
        """The key of the panel, which is shown in the box's title."""
        self.tiles: list[Lines] = []
        self._box = NO_BOX
        self._columns = self._rows = 0
        self._flag_rows = 1
        self._scale: plotting.Scale | None = None
        self._tile_keys: dict[int, object] = {}
        self._painted_look: object = None
        self._window_start: float | None = None
        self._had_data = False
        self._curve_cache = _CurveCache()

    def widgets(self) -> Iterator[Lines]:
        """All the ``Lines`` that a canvas must show."""
        yield from (
            self.title, self.axis, self.labels, self.steps, self.time, *self.sides, *self.tiles
        )  # fmt: skip

    @property
    def shown(self) -> bool:
        """Whether it is visible; False in a tab that is not open."""
        return self._box.width > 0 and self._rows > 0

    @property
    def columns(self) -> int:
        """The width of the plot in columns."""
        return self._columns

    @property
    def dots(self) -> int:
        """How many samples fit into the plot's width."""
        return self._columns * self._charset.dots

    def column_s(self, window: TimeWindow) -> float:
        """How many seconds each column covers."""
        return window.length / max(1, self._columns)

    def begin_of(self, column: int, window: TimeWindow) -> float:
        """The time at which a column begins."""
        return window.start + column * self.column_s(window)

    def place(
        self, box: Box, framed: bool = False, with_steps: bool = False, blank: int = 0
    ) -> list[Lines]:
        """Use this box, with a border if ``framed``; returns new tiles for the canvas.
        ``with_steps``: a row below the plot is for ``show_steps``, if there is room. ``blank`` are
        the least columns right of the plot."""
        self._box, self.framed = box, framed
        edge = 1 if framed else 0
        space = box.width - AXIS_WIDTH - max(blank, self.spec.right) - 2 * edge
        hidden = space <= 0 or box.height < 5
        self._columns = 0 if hidden else space
        self._flag_rows = FLAG_ROWS if box.height >= FLAGS_FROM else 1
        has_steps = with_steps and box.height >= STEPS_FROM and not hidden
        self._rows = 0 if hidden else box.height - 2 - self._flag_rows - has_steps
        x, y = box.x + edge + AXIS_WIDTH, box.y + 1 + self._flag_rows
        columns, rows = self._columns, self._rows
        self.title.place(NO_BOX if hidden else Box(box.x, box.y, box.width, y - box.y))
        self.axis.place(NO_BOX if hidden else Box(box.x + edge, y, AXIS_WIDTH, rows))
        for side, at in zip(self.sides, (box.x, box.x + box.width - 1), strict=True):
            side.place(Box(at, y, 1, rows + has_steps) if framed and not hidden else NO_BOX)
        self.steps.place(
            Box(box.x + edge, y + rows, AXIS_WIDTH + columns, 1) if has_steps else NO_BOX
        )
        self.labels.place(NO_BOX if hidden else Box(x + columns, y, self.spec.right, rows))
        self.time.place(NO_BOX if hidden else Box(box.x, y + rows + has_steps, box.width, 1))
        missing = -(-columns // plotting.TILE_COLUMNS) - len(self.tiles)
        new = [Lines() for _ in range(missing)]
        self.tiles += new
        for index, tile in enumerate(self.tiles):
            first = index * plotting.TILE_COLUMNS
            width = max(0, min(plotting.TILE_COLUMNS, columns - first))
            tile.place(Box(x + first, y, width, rows) if width and not hidden else NO_BOX)
        self._tile_keys.clear()
        self._scale = self._painted_look = self._border_key = None
        self._window_start = None
        return new

    def column_at(self, x: int, y: int) -> int | None:
        """The column of the plot at a cell of the screen; ``None`` if the cell is not in the
        plot."""
        plot = self.axis.box
        column = x - plot.x - AXIS_WIDTH
        inside = 0 <= column < self._columns and plot.y <= y < plot.y + plot.height
        return column if inside else None

    def values_at(
        self, history: History, window: TimeWindow, t: float, column_s: float
    ) -> list[str]:
        """Each curve's value at time ``t`` over ``column_s`` seconds, formatted as in the title; ""
        if there is none."""
        begin = window.start + window.column(t, column_s) * column_s
        means = (
            history.window(curve.name, begin, column_s, 1, curve.merge)[0]
            for curve in self.spec.curves
        )
        format_value = (lambda value: latency(value, "")) if self.spec.log else number
        return [format_value(value) if value is not None else "" for value in means]

    def rename(self, labels: Sequence[str]) -> None:
        """Set the labels of the curves."""
        if labels != [curve.label for curve in self.spec.curves]:
            pairs = zip(self.spec.curves, labels, strict=True)
            self.spec = replace(
                self.spec, curves=tuple(replace(curve, label=label) for curve, label in pairs)
            )

    def forget(self) -> None:
        """Forget cached values, because the history was replaced."""
        self._curve_cache = _CurveCache()
        self._scale = None
        self._window_start = None

    def show_steps(
        self, name: str, steps: Sequence[OptionStep], window: TimeWindow, now: float
    ) -> None:
        """Show the values of the option ``name`` below the plot."""
        if self.steps.shown:
            column_s = self.column_s(window)
            self.steps.show([option_row(
                name, steps, window.start, column_s, self._columns, now, AXIS_WIDTH, self._charset
            )])  # fmt: skip

    def _rescale(self, values_shown: Sequence[float], moved: bool) -> plotting.Scale:
        """The scale for these values. If it has changed, paints the axis."""
        make = plotting.log_scale if self.spec.log else plotting.linear_scale
        # an empty chart's scale may shrink, because it was not made for values
        scale = make(values_shown, self._scale, moved or not self._had_data)
        self._had_data = bool(values_shown)
        if scale != self._scale or moved:
            self._scale = scale
            self.axis.show(self._axis_rows(scale))
        return scale

    def paint(
        self,
        history: History,
        window: TimeWindow,
        values: Sequence[str],
        note: Sequence[Piece],
        cursor: float | None = None,
        means: Sequence[Mean] = (),
        limits: Sequence[float] = (),
    ) -> None:
        """Paint the history within ``window``; ``values`` are the newest ones, for the title.
        ``cursor`` is the selected time, if that is not the newest. ``means`` are drawn as level
        lines, and as texts behind the labels of their marks. ``limits`` are drawn as level lines
        over the whole time, if they are close to the values."""
        if not self.shown:
            return
        moved = self._window_start != window.start
        self._window_start = window.start
        series = [
            self._curve_cache.get(history, curve, window, self.dots) for curve in self.spec.curves
        ]
        data, first_changed = [values for values, _ in series], min(first for _, first in series)
        all_values = [value for values in data for value in values if value is not None]
        nearby_limits = [
            limit for limit in limits if all_values and limit <= LIMIT_NEAR * max(all_values)
        ]
        scale = self._rescale(all_values + nearby_limits, moved)
        self._show_borders(window)
        column_s = self.column_s(window)
        marks = history.flagged_columns(window.start, column_s, self._columns)
        levels = [self._level(mean, window, column_s, scale) for mean in means]
        levels += [(0, self._columns, scale.row(limit, self._rows)) for limit in nearby_limits]
        mean_texts = {int((mean.start - window.start) / column_s): mean.text for mean in means}
        self.title.show(
            [self._title_row(values, note), *self._with_sides(self._flag_lines(marks, mean_texts))]
        )
        at = None if cursor is None else window.column(cursor, column_s)
        looks = (scale, [column for column, _ in marks], at, levels)
        # if nothing but the data has changed, all columns except the newest stay
        as_before, self._painted_look = looks == self._painted_look, looks
        ends = self._curve_labels(data, scale)
        self._draw_tiles(data, *looks, max(0, first_changed - 1) if as_before else 0, ends)
        self.labels.show(self._label_rows(ends))

    def _show_borders(self, window: TimeWindow) -> None:
        key = (window.start, window.length, self._box, self.focused)
        if key == self._border_key:
            return
        self._border_key = key
        if not self.framed:
            self.time.show([time_labels(window, self._columns, self._box.width, self._charset)])
            return
        charset, style = self._charset, frame.border_style(self.focused)
        for side in self.sides:
            side.show([((charset.text(frame.side_char(charset)), style),)] * side.box.height)
        first, last = frame.corners(charset)
        time_row = time_labels(window, self._columns, self._box.width - 2, self._charset)
        row: list[Piece] = [(first, style)]
        for text, looks in time_row:
            # the border's line continues between the labels
            row.append((text, looks) if text.strip() else (charset.rule * len(text), style))
        self.time.show([(*row, (last, style))])

    def _with_sides(self, rows: Sequence[Row]) -> list[Row]:
        if not self.framed:
            return list(rows)
        side = (
            self._charset.text(frame.side_char(self._charset)),
            frame.border_style(self.focused),
        )
        return [(side, *row, side) for row in rows]

    def _draw_tiles(
        self,
        data: Sequence[Sequence[float | None]],
        scale: plotting.Scale,
        marks: Sequence[int],
        cursor: int | None,
        levels: Sequence[plotting.Level],
        first_changed: int,
        ends: Sequence[CurveLabel] = (),
    ) -> None:
        """Draw the tiles with changes again; the dots before ``first_changed`` are as before."""
        dots = self._charset.dots
        begin = first_changed // (plotting.TILE_COLUMNS * dots)
        for index, tile in enumerate(self.tiles[begin:], begin):
            if not tile.shown:
                break
            first, columns = index * plotting.TILE_COLUMNS, tile.box.width
            low, high = max(0, first * dots - 1), (first + columns) * dots + 1
            lines = tuple(mark for mark in marks if first <= mark < first + columns)
            cursor_here = (
                cursor if cursor is not None and first <= cursor < first + columns else None
            )
            flat = tuple(
                level for level in levels if level[0] < first + columns and level[1] > first
            )
            ends_here = tuple(
                e for e in ends if e[1] < first + columns and e[1] + len(e[2]) > first
            )
            key = (
                scale,
                lines,
                cursor_here,
                flat,
                ends_here,
                tuple(tuple(values[low:high]) for values in data),
            )
            if self._tile_keys.get(index) == key:
                continue
            self._tile_keys[index] = key
            section = plotting.Section(first, columns, self._rows, scale, self._charset)
            tile.show(
                plotting.draw_tile(
                    self._series(data), section, lines, MARK, cursor_here, flat, ends_here
                )
            )

    def _series(self, data: Sequence[Sequence[float | None]]) -> list[plotting.Series]:
        return [
            plotting.Series(values, curve.kind, curve.marker(self._charset), curve.style)
            for values, curve in zip(data, self.spec.curves, strict=True)
        ]

    def _title_row(self, values: Sequence[str], note: Sequence[Piece]) -> Row:
        pieces: list[Piece] = [(capital(self.spec.title), BOLD)]
        if self.framed:
            return self._border_row(values, note)
        if note and not any(values):
            return rule(self._box.width, self._charset, *pieces, right=note)
        # begin with the curve that is drawn last, over the others
        for curve, value in reversed([*zip(self.spec.curves, values, strict=True)]):
            if not value and any(values):
                continue  # this figure is not measured now
            more: list[Piece] = [
                (f"  {curve.label} ", DIM), curve.sample(self._charset), (f" {value:<6}", None)
            ]  # fmt: skip
            # a curve without room here has its name at the end of its line
            if self.spec.right and sum(cell_len(t) for t, _ in pieces + more) > self._box.width - 4:
                break
            pieces += more
        return rule(self._box.width, self._charset, *pieces, right=note)

    def _border_row(self, values: Sequence[str], note: Sequence[Piece]) -> Row:
        """The upper border, with a sample, the name and the newest value of each curve."""
        value_pieces: list[Piece] = []
        for curve, value in reversed([*zip(self.spec.curves, values, strict=True)]):
            if value:
                value_pieces.append(("  " if value_pieces else "", None))
                # no sample, because the name is also at the line's end, in the same colour
                if self.spec.right:
                    value_pieces.append((f"{curve.label} ", curve.style))
                else:
                    value_pieces += [curve.sample(self._charset), (f" {curve.label} ", DIM)]
                value_pieces.append((f"{value:>6}", BOLD))
        if note:  # where there is no room for both, the values stay
            value_pieces += [("  ", None), *note] if value_pieces else note
        title = capital(self.spec.title)
        return frame.top(
            self._box.width,
            self._charset,
            self.number,
            frame.title_pieces(title),
            value_pieces,
            self.focused,
        )

    def _axis_rows(self, scale: plotting.Scale) -> list[Row]:
        labelled = plotting.ticks(scale, self._rows)
        rows: list[Row] = []
        for row in range(self._rows):
            text = self.spec.unit(labelled[row]) if row in labelled else ""
            line = Line(AXIS_WIDTH, self._charset)
            rows.append(line.add(text.rjust(AXIS_WIDTH - 1), DIM).add(" ").build())
        return rows

    def _level(
        self, mean: Mean, window: TimeWindow, column_s: float, scale: plotting.Scale
    ) -> plotting.Level:
        first = max(0, int((mean.start - window.start) / column_s) + 1)
        last = min(self._columns, window.column(mean.end, column_s) + 1)
        return first, last, scale.row(mean.value, self._rows)

    def _flag_lines(
        self, marks: Sequence[tuple[int, str | None]], means: Mapping[int, str] | None = None
    ) -> list[Row]:
        worded = [(column, text) for column, text in marks if text is not None]
        return mark_label_rows(
            worded, AXIS_WIDTH, self._columns, self._box.width - (2 if self.framed else 0),
            self._flag_rows, self._charset, means or {},
        )  # fmt: skip

    def _curve_labels(
        self, data: Sequence[Sequence[float | None]], scale: plotting.Scale
    ) -> list[CurveLabel]:
        """The curves' names after their newest points, each in its own row; names that would
        overlap are moved apart, in the order of their curves."""
        if not self.spec.right:
            return []
        newest_points: list[tuple[float, int, Curve]] = []
        for values, curve in zip(data, self.spec.curves, strict=True):
            at = next((n for n in range(len(values) - 1, -1, -1) if values[n] is not None), None)
            newest = values[at] if at is not None else None
            if at is not None and newest is not None:
                newest_points.append(
                    (newest, min(at // self._charset.dots + 1, self._columns), curve)
                )
        newest_points.sort(key=lambda end: -end[0])
        rows = rows_apart([scale.row(value, self._rows) for value, _, _ in newest_points])
        return [
            (row, column, f" {curve.label}", curve.style)
            for row, (_, column, curve) in zip(rows, newest_points, strict=True)
            if row < self._rows
        ]

    def _label_rows(self, ends: Sequence[CurveLabel]) -> list[Row]:
        width = self.spec.right
        lines = [Line(width, self._charset) for _ in range(self._rows)]
        for row, column, text, style in ends:
            lines[row].add(text[max(0, self._columns - column) :], style)
        return [line.build() for line in lines]


def time_labels(window: TimeWindow, columns: int, width: int, charset: Charset) -> Row:
    """The time axis below a plot of ``columns`` columns, with its labels."""
    column_s = window.length / max(1, columns)
    # a share of the axis, so that charts of different widths have the same labels
    least = max(LABEL_SHARE * window.length, LABEL_COLUMNS * column_s)
    step = next((s for s in TIME_STEPS if s >= least), TIME_STEPS[-1])
    line = Line(width, charset)
    first = max(0.0, -(-window.start // step) * step)
    # not t += step: adding a step to a very large time may not change it
    for n in range(width):
        t = first + n * step
        column = AXIS_WIDTH + round((t - window.start) / column_s)
        label = clock(t)
        # labels may extend below the names of curves, right of the plot
        if t > window.start + window.length or column + len(label) > width:
            break
        if column >= line.used:
            line.fill_to(column).add(label, DIM)
    return line.build()


def rows_apart(preferred: Sequence[int]) -> list[int]:
    """Rows for labels, the topmost first. Labels that share a row are moved up, or down where there
    is no row above."""
    rows = list(preferred)
    for index in range(len(rows) - 2, -1, -1):
        rows[index] = min(rows[index], rows[index + 1] - 1)
    for index, row in enumerate(rows):
        rows[index] = max(row, rows[index - 1] + 1 if index else 0)
    return rows


@dataclass
class _CurveCache:
    """Cache of the curves' values within the window. While the window stays, only new values are
    read."""

    _cache: dict[str, tuple[tuple[float, float, int], list[float | None], float]] = field(
        default_factory=dict
    )

    def get(
        self, history: History, curve: Curve, window: TimeWindow, dots: int
    ) -> tuple[list[float | None], int]:
        """The values, and the index of the first one that may have changed."""
        key = (window.start, window.length, dots)
        dot_s = window.length / max(1, dots)
        cached = self._cache.get(curve.name)
        end, first = history.end or 0.0, 0
        if cached is None or cached[0] != key:
            values = history.window(curve.name, window.start, dot_s, dots, curve.merge)
        else:
            values = cached[1]
            first = max(0, int((cached[2] - window.start) / dot_s) - 2)
            count = min(dots, int((end - window.start) / dot_s) + 2) - first
            start = window.start + first * dot_s
            values[first : first + max(count, 0)] = history.window(
                curve.name, start, dot_s, max(count, 0), curve.merge
            )
        self._cache[curve.name] = (key, values, end)
        return values, first
