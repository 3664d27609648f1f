"""A screen of rows that stay live: it can be scrolled while the figures change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.binding import Binding

from iopstui.ui.core import pages
from iopstui.ui.core.key import closing
from iopstui.ui.dialogs.typed import FILTER, Typed
from iopstui.ui.draw.page_screen import PageScreen
from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import BOLD, DIM, Charset

Build = Callable[[int], "Sequence[Row]"]
FOOT = f"up/down, PgUp/PgDn scroll   {FILTER}   Esc goes back"

CLOSING = closing(pages.QUEUE_MAP, pages.FINDINGS, pages.INSIDE, pages.PROCESSES, pages.RUNS)


class LiveRows(Typed, PageScreen):
    """Shows ``build(width)``, and shows it anew whenever ``paint`` is called."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding(CLOSING, "leave", "back"),
    ]

    about = "A list that stays live: up and down scroll, typing narrows it, Esc goes back."

    def __init__(self, title: str, build: Build, charset: Charset) -> None:
        super().__init__(charset)
        self._title = title
        self._build = build

    def head(self, width: int) -> Row:
        """The title line."""
        return Line(width, self._charset).add(f" {self._title}", BOLD).done()

    def body(self, width: int) -> Sequence[Row]:
        """The newest rows."""
        rows = self._build(width)
        if not self.words.strip():
            return rows
        return [row for row in rows if self.has("".join(text for text, _ in row))]

    def narrow(self) -> None:
        """Show the rows that have all of the words."""
        self.action_scroll(-1_000_000)

    def foot(self, width: int) -> Line:
        """The line of keys at the bottom."""
        return Line(width, self._charset).add(" " + (self.filtering or FOOT), DIM)

    def action_leave(self) -> None:
        """Close the screen."""
        self.dismiss(None)
