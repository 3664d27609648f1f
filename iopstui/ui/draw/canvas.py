"""A screen of rows that were built elsewhere: one widget for all of them, sent where they changed.

Textual composes a screen of widgets anew for each update: every widget is asked for its lines,
all of them are cut where any other begins, and a change is sent from its widget's left edge on.
With dozens of small regions that is dear. Regions never overlap here, so there is nothing to
compose: what changed is cut out of its rows and sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.segment import Segment
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate
from textual.app import ComposeResult
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from iopstui.ui.draw.lines import Lines


class Canvas(Widget):
    """Shows ``Lines``, each in its own region of the screen."""

    def __init__(self, lines: Iterable[Lines] = ()) -> None:
        super().__init__()
        self.lines: list[Lines] = []
        self._by_row: dict[int, list[Lines]] | None = None
        self.add(lines)

    def add(self, lines: Iterable[Lines]) -> None:
        """These too, from now on."""
        for one in lines:
            self.lines.append(one)
            one.shown_by(self._placed, self.refresh)
        self._by_row = None

    def _placed(self) -> None:
        self._by_row = None
        self.refresh()

    def _at(self, y: int) -> Sequence[Lines]:
        """What has a part of this row, from left to right."""
        if self._by_row is None:
            self._by_row = {}
            for one in sorted((one for one in self.lines if one.shown), key=lambda one: one.box.x):
                for row in range(one.box.y, one.box.y + one.box.height):
                    self._by_row.setdefault(row, []).append(one)
        return self._by_row.get(y, ())

    def render_line(self, y: int) -> Strip:
        """Row ``y`` of the screen."""
        segments: list[Segment] = []
        end = 0
        for one in self._at(y):
            box = one.box
            if box.x < end:
                continue
            if box.x > end:
                segments.append(Segment(" " * (box.x - end)))
            segments += one.strip(y - box.y)
            end = box.x + box.width
        width = self.size.width
        if end < width:
            segments.append(Segment(" " * (width - end)))
            end = width
        return Strip(segments, end)


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

    def render_partial_update(self) -> ChopsUpdate | None:
        """What changed since the last update; ``None`` if nothing did."""
        seen = self.visible_widgets.keys() - {self.root}
        if seen != {self._canvas} or not self._dirty_regions:
            return super().render_partial_update()
        whole = self.size.region
        inside = [region.intersection(whole) for region in self._dirty_regions]
        self._dirty_regions.clear()
        spans = [*self._regions_to_spans(region for region in inside if region)]
        if not spans:
            return None
        # their order is that of the rows
        top, width = spans[0][0], whole.width
        strips = self._canvas.render_lines(Region(0, top, width, spans[-1][0] + 1 - top))
        # Textual asks no more of it than to be an update
        return _Cut([(x, y, strips[y - top].crop(x, end)) for y, x, end in spans])  # type: ignore[return-value]


class _Cut(CompositorUpdate):
    """Pieces of rows, each with its place."""

    def __init__(self, pieces: Sequence[tuple[int, int, Strip]]) -> None:
        self._pieces = pieces

    def render_segments(self, console: Console) -> str:
        """What the terminal is sent: to its place, then the piece."""
        return "".join(
            f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self._pieces
        )
