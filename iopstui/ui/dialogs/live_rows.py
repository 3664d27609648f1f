"""A screen of rows that stay live: it can be scrolled while the figures change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.binding import Binding

from iopstui.ui.draw.page_screen import PageScreen
from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import BOLD, DIM, Charset
from iopstui.ui.keys import closing

Build = Callable[[int], "Sequence[Row]"]
FOOT = "up/down, PgUp/PgDn scroll   Esc goes back"


class LiveRows(PageScreen):
    """Shows ``build(width)``, and shows it anew whenever ``paint`` is called."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding(closing("queue_map", "findings", "inside", "processes", "runs"), "leave", "back")
    ]

    def __init__(self, title: str, build: Build, charset: Charset) -> None:
        super().__init__(charset)
        self._title = title
        self._build = build

    def head(self, width: int) -> Row:
        """The title line."""
        return Line(width, self._charset).add(f" {self._title}", BOLD).done()

    def body(self, width: int) -> Sequence[Row]:
        """The newest rows."""
        return self._build(width)

    def foot(self, width: int) -> Line:
        """The line of keys at the bottom."""
        return Line(width, self._charset).add(" " + FOOT, DIM)

    def action_leave(self) -> None:
        """Close the screen."""
        self.dismiss(None)
