"""A region of a screen: prepared rows, repainted where they changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from textual.geometry import Region

from iopstui.ui.draw.layout import NO_BOX, Box
from iopstui.ui.draw.rows import Piece, Row, cells, part


class Refresh(Protocol):
    """Repaint these regions of the screen."""

    def __call__(self, *regions: Region) -> object:
        """Schedule the repaint; returns at once."""


class Lines:
    """Shows rows on a ``Canvas``. A repainted region is sent to the terminal even if nothing in it
    changed, so rows are compared here and only differences are refreshed."""

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
        """Report moves and changes to these callbacks from now on."""
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
        """Show ``rows`` from the top; returns how many changed."""
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
        """Text without styles (tests)."""
        return "\n".join("".join(text for text, _ in row) for row in self._rows)

    def part(self, y: int, begin: int, end: int) -> list[Piece]:
        """Cells ``begin`` to ``end`` of its row ``y``."""
        return part(self._rows[y] if y < len(self._rows) else (), begin, end)


def _equal_cells(row: Row, before: Row) -> int:
    """Number of equal cells at the start, which need not be sent again."""
    equal = 0
    # compared as pairs: identical styles need no comparison of values
    for piece, old in zip(row, before, strict=False):
        if piece != old:
            break
        equal += cells(piece[0])
    return equal
