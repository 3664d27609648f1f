"""A screen of rows that were built elsewhere: one widget for all of them, sent where they changed.

Textual composes a screen of widgets anew for each update: every widget is asked for its lines,
all of them are cut where any other begins, and a change is sent from its widget's left edge on.
With dozens of small regions that is dear. Regions never overlap here, so there is nothing to
compose: what changed is cut out of its rows and sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate, LayoutUpdate
from textual.app import ComposeResult
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from iopstui.ui.draw.lines import Lines
from iopstui.ui.draw.rows import Piece

_Part = tuple[int, int, int, Lines]
"""Of one row of the screen: the columns it begins and ends at, and which row of which lines."""


class Canvas(Widget):
    """Shows ``Lines``, each in its own region of the screen."""

    def __init__(self, lines: Iterable[Lines] = ()) -> None:
        super().__init__()
        self.lines: list[Lines] = []
        self._by_row: dict[int, list[_Part]] | None = None
        self._changed: list[Region] = []
        self.add(lines)

    def add(self, lines: Iterable[Lines]) -> None:
        """These too, from now on."""
        for one in lines:
            self.lines.append(one)
            one.shown_by(self._placed, self._change)
        self._by_row = None

    def _placed(self) -> None:
        self._by_row = None
        self.refresh()

    def _change(self, *regions: Region) -> None:
        """Remembered here; Textual is only told that there is something to send at all."""
        # those that it keeps from when another screen lay over this one are sent with all of it,
        # and Textual doesn't forget them then
        if not self._changed or not self._repaint_regions:
            self.refresh(regions[0])
        self._changed += regions

    @property
    def waits(self) -> bool:
        """Whether something has changed that was not sent yet."""
        return bool(self._changed)

    def changed(self) -> list[Region]:
        """What changed since the last call."""
        changed, self._changed = self._changed, []
        return changed

    def _at(self, y: int) -> Sequence[_Part]:
        """What has a part of this row, from left to right."""
        if self._by_row is None:
            self._by_row = {}
            for one in sorted((one for one in self.lines if one.shown), key=lambda one: one.box.x):
                box = one.box
                for row in range(box.height):
                    part = (box.x, box.x + box.width, row, one)
                    self._by_row.setdefault(box.y + row, []).append(part)
        return self._by_row.get(y, ())

    def part(self, y: int, begin: int, end: int) -> list[Segment]:
        """Cells ``begin`` to ``end`` of row ``y`` of the screen, before any filter."""
        pieces: list[Piece] = []
        at = begin
        for left, right, row, one in self._at(y):
            if left >= end:
                break
            if right <= at:
                continue
            if left > at:
                pieces.append((" " * (left - at), None))
                at = left
            last = min(right, end)
            pieces += one.part(row, at - left, last - left)
            at = last
        if at < end:
            pieces.append((" " * (end - at), None))
        return [Segment(text, style) for text, style in pieces]

    def render_line(self, y: int) -> Strip:
        """Row ``y`` of the screen."""
        width = self.size.width
        return Strip(self.part(y, 0, width), width)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Textual keeps rows, and is not told which of them have changed."""
        self._styles_cache.clear()
        return super().render_lines(crop)


class CanvasScreen(Screen[None]):
    """A screen of nothing but ``Lines``. They are added to its ``canvas``."""

    def __init__(self) -> None:
        super().__init__()
        self.canvas = Canvas()
        self._compositor = _Cutter(self.canvas)

    def compose(self) -> ComposeResult:
        """One widget; a resize only moves what it shows."""
        yield self.canvas


class _Cutter(Compositor):
    """Textual's compositor, which does not compose where the canvas is all there is to see."""

    def __init__(self, canvas: Canvas) -> None:
        super().__init__()
        self._canvas = canvas

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """All of it: what changed before is in it."""
        self._canvas.changed()
        return super().render_full_update(simplify)

    def render_partial_update(self) -> ChopsUpdate | None:
        """What changed since the last update; ``None`` if nothing did."""
        canvas = self._canvas
        regions = [*canvas.changed(), *self._dirty_regions]
        seen = self.visible_widgets.keys() - {self.root}
        if seen != {canvas} or not regions:
            self._dirty_regions.update(regions)
            return super().render_partial_update()
        whole = self.size.region
        inside = [region.intersection(whole) for region in regions]
        self._dirty_regions.clear()
        spans = [*self._regions_to_spans(region for region in inside if region)]
        if not spans:
            return None
        filters, background = canvas.get_line_filters(), canvas.background_colors[1]
        pieces = []
        for y, begin, end in spans:
            segments = canvas.part(y, begin, end)
            for one in filters:
                segments = one.apply(segments, background)
            pieces.append((y, begin, segments))
        # Textual asks no more of it than to be an update
        return _Cut(pieces)  # type: ignore[return-value]


class _Cut(CompositorUpdate):
    """Pieces of rows, each with its place."""

    def __init__(self, pieces: Sequence[tuple[int, int, Sequence[Segment]]]) -> None:
        self._pieces = pieces

    def render_segments(self, console: Console) -> str:
        """What the terminal is sent: to its place, then the piece."""
        colors = console._color_system or ColorSystem.TRUECOLOR
        found = []
        for y, x, segments in self._pieces:
            found.append(f"\x1b[{y + 1};{x + 1}H")
            for text, style, _ in segments:
                found.append(Strip.render_style(style, text, colors) if style else text)
        return "".join(found)
