"""A screen made of rows: one widget for many regions, of which only changed cells are repainted.

For each update, Textual composes a screen of widgets again: it asks every widget for its lines,
cuts all of them where another widget starts, and sends everything from a changed widget's left edge
on. With dozens of small regions that is expensive. Regions never overlap here, so composing is
unnecessary: changed cells are cut out of their rows and sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate, LayoutUpdate
from textual.app import ComposeResult
from textual.filter import LineFilter
from textual.geometry import Region
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.rows import Piece, Row, cells, part


class Refresh(Protocol):
    """A callback that repaints these regions of the screen."""

    def __call__(self, *regions: Region) -> object:
        """Schedule the repaint; returns at once."""


class Lines:
    """Shows rows on a ``Canvas``. Rows are compared here and only differences are refreshed,
    because a refreshed region is sent to the terminal even if nothing in it changed."""

    def __init__(self, id: str | None = None) -> None:
        self.id = id
        self._rows: list[Row] = []
        self._placed = False
        self.box = NO_BOX
        """The region of the screen that the rows have."""
        self.shown = False
        """Whether the rows are on the screen; else they must not be painted."""
        self._on_move: Callable[[], None] = lambda: None
        self._refresh: Refresh = lambda *regions: None

    def attach(self, moved: Callable[[], None], refresh: Refresh) -> None:
        """Call these from now on after moves and changes."""
        self._on_move, self._refresh = moved, refresh

    def place(self, box: Box) -> None:
        """Move the widget, after a resize or a change of tab."""
        if self._placed and box == self.box:
            return
        self._placed = True
        self.box = box
        self.shown = box.width > 0 and box.height > 0
        self._rows = []
        self._on_move()

    def show(self, rows: Sequence[Row]) -> int:
        """Show ``rows`` from the top. Returns how many of them changed."""
        box = self.box
        if len(rows) != len(self._rows):
            self._rows = list(rows)
            self._refresh(Region(box.x, box.y, box.width, box.height))
            return len(rows)
        dirty: list[Region] = []
        for y, (row, before) in enumerate(zip(rows, self._rows, strict=True)):
            if row == before:
                continue
            begin, end = (
                _equal_cells(row, before),
                box.width - _equal_cells(row[::-1], before[::-1]),
            )
            self._rows[y] = row
            if y < box.height and begin < end:
                dirty.append(Region(box.x + begin, box.y + y, end - begin, 1))
        if dirty:
            self._refresh(*dirty)
        return len(dirty)

    def text(self) -> str:
        """The text without styles, for tests."""
        return "\n".join("".join(text for text, _ in row) for row in self._rows)

    def part(self, y: int, begin: int, end: int) -> list[Piece]:
        """Cells ``begin`` to ``end`` of row ``y`` of these lines."""
        return part(self._rows[y] if y < len(self._rows) else (), begin, end)


def _equal_cells(row: Row, before: Row) -> int:
    """The width of the equal pieces at the start, which need not be sent again."""
    equal = 0
    # comparing whole pieces is fast, because equal styles are usually the same object
    for piece, old in zip(row, before, strict=False):
        if piece != old:
            break
        equal += cells(piece[0])
    return equal


_Part = tuple[int, int, int, Lines]
"""A part of a screen row: its first column, the column after its last one, the row's number in its
``Lines``, and the ``Lines``."""


TextSpan = tuple[int, int, list[tuple[str, Style]]]
"""A row, a column, and styled texts that begin there."""


class Canvas(Widget):
    """Shows ``Lines``, each in its own region of the screen."""

    ALLOW_SELECT = False

    def __init__(self, lines: Iterable[Lines] = ()) -> None:
        super().__init__()
        self.lines: list[Lines] = []
        self._by_row: dict[int, list[_Part]] | None = None
        self._changed: list[Region] = []
        self._filters: list[LineFilter] = []
        self._filtered_styles: dict[Style, Style] = {}
        self._looks: Style | None = None
        self.add(lines)

    def add(self, lines: Iterable[Lines]) -> None:
        for tile in lines:
            self.lines.append(tile)
            tile.attach(self._forget_parts, self._note_changes)
        self._by_row = None

    def _forget_parts(self) -> None:
        self._by_row = None
        self.refresh()

    def _note_changes(self, *regions: Region) -> None:
        """Note changed regions. Textual is only told that something must be sent; but if the canvas
        is one of several widgets, it gets each region, because it then composes the screen."""
        if self._is_embedded:
            self.refresh(*regions)
            return
        # regions noted while another screen is on top: Textual later repaints the whole widget, and
        # keeps them forever
        covered = self.is_attached and self.app.screen is not self.screen
        if not covered and not (self._changed and self._repaint_regions):
            self.refresh(regions[0])
        self._changed += regions

    @property
    def _is_embedded(self) -> bool:
        """Whether the canvas is one of several widgets on a screen."""
        return self.parent is not None and not isinstance(self.parent, CanvasScreen)

    @property
    def base_style(self) -> Style:
        """The default colours."""
        color, background = self.styles.color, self.background_colors[1]
        current = Style(color=color.rich_color, bgcolor=background.rich_color)
        for line_filter in self.get_line_filters():
            [(_, style, _)] = line_filter.apply([Segment(" ", current)], background)
            current = style or current
        return current

    @property
    def has_changes(self) -> bool:
        """Whether there are changes that were not sent yet."""
        return bool(self._changed)

    def take_changes(self) -> list[Region]:
        """The parts that changed since the last call."""
        changed, self._changed = self._changed, []
        return changed

    def _parts_of_row(self, y: int) -> Sequence[_Part]:
        if self._by_row is None:
            self._by_row = {}
            visible_lines = [lines for lines in self.lines if lines.shown]
            for lines in sorted(visible_lines, key=lambda lines: lines.box.x):
                box = lines.box
                for row in range(box.height):
                    part = (box.x, box.x + box.width, row, lines)
                    self._by_row.setdefault(box.y + row, []).append(part)
        return self._by_row.get(y, ())

    def part(self, y: int, begin: int, end: int) -> list[Piece]:
        """Cells ``begin`` to ``end`` of row ``y`` of the screen, before Textual's filters."""
        pieces: list[Piece] = []
        at = begin
        for left, right, row, lines in self._parts_of_row(y):
            if left >= end:
                break
            if right <= at:
                continue
            if left > at:
                pieces.append((" " * (left - at), None))
                at = left
            last = min(right, end)
            pieces += lines.part(row, at - left, last - left)
            at = last
        if at < end:
            pieces.append((" " * (end - at), None))
        return pieces

    def filtered_parts(self, spans: Iterable[tuple[int, int, int]]) -> list[TextSpan]:
        """The cells of these spans (row, first column, the column after the last one), after the
        theme and other filters have changed their colours."""
        filters = self.get_line_filters()
        if self._filters != filters:
            self._filters, self._filtered_styles = list(filters), {}
        return [
            (y, begin, [*self._filtered(filters, self.part(y, begin, end))])
            for y, begin, end in spans
        ]

    def _filtered(
        self, filters: Sequence[LineFilter], pieces: Iterable[Piece]
    ) -> Iterator[tuple[str, Style]]:
        for text, style in pieces:
            if style is None:
                yield text, PLAIN
                continue
            # cached, because a filter always changes a style in the same way
            coloured = self._filtered_styles.get(style)
            if coloured is None:
                coloured = self._filtered_styles[style] = self._filtered_style(filters, style)
            if " " in text and coloured.underline:
                shown = self._filter_segment(filters, Segment(text, style))
                yield from ((part, look or PLAIN) for part, look, _ in shown)
            else:
                yield text, coloured

    def _filter_segment(self, filters: Sequence[LineFilter], segment: Segment) -> list[Segment]:
        segments = [segment]
        for line_filter in filters:
            segments = line_filter.apply(segments, self.background_colors[1])
        return segments

    def _filtered_style(self, filters: Sequence[LineFilter], style: Style) -> Style:
        return self._filter_segment(filters, Segment("x", style))[0].style or style

    def render_line(self, y: int) -> Strip:
        """Row ``y`` of the screen."""
        width = self.size.width
        segments = [Segment(text, style) for text, style in self.part(y, 0, width)]
        return Strip(segments, width).apply_style(self._looks or self.rich_style)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Empty Textual's cache of rows first: it learns of changed rows only if this widget is
        embedded."""
        if not self._is_embedded:
            self._styles_cache.clear()
        # computed once for all rows, because it takes asking all widgets above
        self._looks = self.rich_style
        return super().render_lines(crop)


class CanvasScreen(Screen[None]):
    """A screen that consists of ``Lines``, which are added to its ``canvas``."""

    def __init__(self) -> None:
        super().__init__()
        self.canvas = Canvas()
        self._compositor = _CanvasCompositor(self.canvas)

    def compose(self) -> ComposeResult:
        """The canvas is the only widget; a resize only moves what is on it."""
        yield self.canvas

    def paint_below(self) -> None:
        """Send the changed cells that dialogs over this screen do not cover. Textual would compose
        all screens again."""
        pieces = self.pieces_below()
        if pieces:
            self.app._display(self, _CanvasUpdate(pieces, self.canvas.base_style))  # type: ignore[arg-type]

    def pieces_below(self) -> list[TextSpan]:
        """The changed cells that no dialog covers, with the tint of the dialogs' screens."""
        app, canvas = self.app, self.canvas
        stack = [*app._background_screens, app.screen]
        if self not in stack:
            return []
        above = stack[stack.index(self) + 1 :]
        for screen in above:
            # a dialog's screen caches the picture of the screens below, which is outdated now
            screen._styles_cache.clear()
            screen._dirty_regions.add(screen.outer_size.region)
        boxes = [box for screen in above for box in _covered_regions(screen)]
        tints = [screen.styles.background for screen in above if screen.styles.background.a > 0]
        screen_region = self.size.region
        regions = [region.intersection(screen_region) for region in canvas.take_changes()]
        spans = self._compositor._regions_to_spans(region for region in regions if region)
        gaps = [gap for span in spans for gap in _uncovered_spans(span, boxes)]
        cut_pieces = canvas.filtered_parts(gaps)
        if not tints:
            return cut_pieces
        base = canvas.base_style
        tinted_pieces = []
        for y, begin, texts in cut_pieces:
            segments = [Segment(text, base + style) for text, style in texts]
            for tint in tints:
                segments = list(BackgroundScreen.process_segments(segments, tint))
            tinted_pieces.append((y, begin, [(text, look or PLAIN) for text, look, _ in segments]))
        return tinted_pieces


def _covered_regions(screen: Screen[Any]) -> list[Region]:
    """The regions that the widgets of a dialog cover."""
    return [
        region.intersection(clip)
        for widget, (region, clip) in screen._compositor.visible_widgets.items()
        if widget is not screen
        and (not widget.children or widget.styles.background.a > 0 or widget.styles.border)
    ]


def _uncovered_spans(
    span: tuple[int, int, int], boxes: Iterable[Region]
) -> list[tuple[int, int, int]]:
    y, begin, end = span
    free = [(begin, end)]
    for box in boxes:
        if box.y <= y < box.bottom:
            free = [
                (low, high)
                for first, last in free
                for low, high in ((first, min(last, box.x)), (max(first, box.right), last))
                if low < high
            ]
    return [(y, low, high) for low, high in free]


class _CanvasCompositor(Compositor):
    """Textual's compositor, except that it composes nothing while the canvas is the only visible
    widget."""

    def __init__(self, canvas: Canvas) -> None:
        super().__init__()
        self._canvas = canvas

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """Render the whole screen, including earlier changes."""
        self._canvas.take_changes()
        return super().render_full_update(simplify)

    def render_partial_update(self) -> ChopsUpdate | None:
        """The changes since the last update; ``None`` if there are none."""
        canvas = self._canvas
        regions = [*canvas.take_changes(), *self._dirty_regions]
        visible = self.visible_widgets.keys() - {self.root}
        if visible != {canvas} or not regions:
            self._dirty_regions.update(regions)
            return super().render_partial_update()
        screen_region = self.size.region
        inside = [region.intersection(screen_region) for region in regions]
        self._dirty_regions.clear()
        spans = [*self._regions_to_spans(region for region in inside if region)]
        if not spans:
            return None
        pieces = canvas.filtered_parts(spans)
        # Textual's type is narrower than what it needs, which is any update
        return _CanvasUpdate(pieces, canvas.base_style)  # type: ignore[return-value]


class _CanvasUpdate(CompositorUpdate):
    """Styled texts with their positions, over a ``base`` style."""

    def __init__(self, pieces: Sequence[TextSpan], base: Style) -> None:
        self._pieces = pieces
        self._base = base

    def render_segments(self, console: Console) -> str:
        """Segments for the terminal: each position, then its texts, for which only changed
        attributes are sent."""
        colors = console._color_system
        if colors is None:
            colors = ColorSystem.STANDARD
        codes: list[str] = [RESET]
        now: Style | None = None
        for y, x, segments in self._pieces:
            codes.append(f"\x1b[{y + 1};{x + 1}H")
            for text, style in segments:
                if style is not now:
                    codes.append(_style_codes(now, style, self._base, colors))
                    now = style
                codes.append(text)
        codes.append(RESET)
        return "".join(codes)


PLAIN = Style()
RESET = "\x1b[0m"
_Codes = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "7": "27", "9": "29"}


@lru_cache(1024)
def _style_codes(before: Style | None, after: Style, base: Style, colors: ColorSystem) -> str:
    """The escape sequence that changes one style to another, both over ``base``."""
    old: _Codes = ((), (), ()) if before is None else _sgr_codes(before, base, colors)
    new = _sgr_codes(after, base, colors)
    codes: list[str] = []
    removed = {code for code in old[0] if code not in new[0]}
    retained = [
        code for code in old[0] if _OFF.get(code) not in {_OFF.get(code) for code in removed}
    ]
    codes += dict.fromkeys(_OFF.get(code, "0") for code in removed)
    codes += [code for code in new[0] if code not in retained]
    for place, off in ((1, "39"), (2, "49")):
        if new[place] != old[place]:
            codes += new[place] or (off,)
    return f"\x1b[{';'.join(codes)}m" if codes else ""


def _sgr_codes(style: Style, base: Style, colors: ColorSystem) -> _Codes:
    """The attributes, colour and background as SGR parameters."""
    combined = base + style
    front = combined.color.downgrade(colors).get_ansi_codes() if combined.color else ()
    back = combined.bgcolor.downgrade(colors).get_ansi_codes(False) if combined.bgcolor else ()
    attributes = tuple(
        code for code, on in (("1", combined.bold), ("2", combined.dim), ("3", combined.italic),
                              ("4", combined.underline), ("7", combined.reverse),
                              ("9", combined.strike))
        if on
    )  # fmt: skip
    return attributes, _none_for_default(front, "39"), _none_for_default(back, "49")


def _none_for_default(codes: tuple[str, ...], default: str) -> tuple[str, ...]:
    return () if codes == (default,) else codes
