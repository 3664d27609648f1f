"""The one widget of the dashboard: rows that were built elsewhere, repainted where they changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.rows import Row


class Lines(Widget):
    """Shows rows. Textual sends a refreshed region again even if nothing in it changed, so
    rows are compared here and only what differs is refreshed.
    """

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[Row] = []
        self._strips: list[Strip] = []
        self._box: Box | None = None

    @property
    def shown(self) -> bool:
        """False while it has no place on the screen: then it must not be painted."""
        return self._box is not None and self._box.width > 0 and self._box.height > 0

    @property
    def box(self) -> Box:
        """Its place."""
        return self._box or Box(0, 0, 0, 0)

    def place(self, box: Box) -> None:
        """Moves it; only a resize or another tab does."""
        if box == self._box:
            return
        self._box = box
        self.display = self.shown
        if self.shown:
            styles = self.styles
            styles.offset = (box.x, box.y)
            styles.width, styles.height = box.width, box.height
        self._rows, self._strips = [], []

    def show(self, rows: Sequence[Row]) -> int:
        """Shows ``rows`` from the top; how many of them changed."""
        width = self.box.width
        dirty: list[Region] = []
        if len(rows) != len(self._rows):
            self._rows = list(rows)
            self._strips = [_strip(row) for row in rows]
            self.refresh()
            return len(rows)
        for y, (row, before) in enumerate(zip(rows, self._rows, strict=True)):
            if row == before:
                continue
            end = width - _same_end(row, before)
            self._rows[y] = row
            self._strips[y] = _strip(row)
            last = dirty[-1] if dirty else None
            if last is not None and last.bottom == y and last.width == end:
                dirty[-1] = Region(0, last.y, end, last.height + 1)
            else:
                dirty.append(Region(0, y, end, 1))
        if dirty:
            self.refresh(*dirty)
        return sum(region.height for region in dirty)

    def text(self) -> str:
        """What it shows, without styles (tests)."""
        return "\n".join("".join(text for text, _ in row) for row in self._rows)

    def render_line(self, y: int) -> Strip:
        """The cached strip of row ``y``."""
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width)


def _strip(row: Row) -> Strip:
    return Strip([Segment(text, style) for text, style in row])


def _same_end(row: Row, before: Row) -> int:
    """How many cells at the right end need not be sent again."""
    same = 0
    for (text, style), (old, old_style) in zip(reversed(row), reversed(before), strict=False):
        if text != old or style != old_style:
            break
        same += Segment(text).cell_length
    return same
