"""A screen of rows that stay live: it can be scrolled while the figures change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen

from iopstui.ui.layout import Box
from iopstui.ui.rows import Line, Row, pad
from iopstui.ui.style import BOLD, DIM, Charset
from iopstui.ui.widgets.lines import Lines

Build = Callable[[int], "Sequence[Row]"]
FOOT = "up/down, PgUp/PgDn scroll   Esc goes back"


class LiveRows(Screen[None]):
    """Shows ``build(width)``, and shows it anew whenever ``paint`` is called."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("escape,q,f,o", "leave", "back"),
        Binding("down", "scroll(1)"),
        Binding("up", "scroll(-1)"),
        Binding("pagedown", "page(1)"),
        Binding("pageup", "page(-1)"),
        Binding("home", "scroll(-1000000)"),
        Binding("end", "scroll(1000000)"),
    ]

    def __init__(self, title: str, build: Build, charset: Charset) -> None:
        super().__init__()
        self._head = title
        self._build = build
        self._charset = charset
        self._top = 0
        self.panels = [Lines("rows-head"), Lines("rows-body"), Lines("rows-foot")]

    def compose(self) -> ComposeResult:
        """Title, rows, keys."""
        yield from self.panels

    def on_resize(self, event: events.Resize) -> None:
        """Places everything anew."""
        width, height = self.app.size
        head, body, foot = self.panels
        head.place(Box(0, 0, width, 1))
        body.place(Box(0, 1, width, max(0, height - 2)))
        foot.place(Box(0, height - 1, width, 1 if height > 1 else 0))
        self.paint()

    def paint(self) -> None:
        """Shows the newest state; rows that are the same are not sent again."""
        head, body, foot = self.panels
        width, height = body.box.width, body.box.height
        if width < 2 or height < 1:
            return
        rows = list(self._build(width))
        self._top = max(0, min(self._top, len(rows) - height))
        head.show([Line(width, self._charset).add(f" {self._head}", BOLD).done()])
        body.show(pad(rows[self._top :], height, width))
        foot.show([self._foot(width, len(rows), height)])

    def _foot(self, width: int, total: int, height: int) -> Row:
        line = Line(width, self._charset).add(" " + FOOT, DIM)
        if total > height:
            last = min(total, self._top + height)
            line.right((f"{self._top + 1}-{last} of {total} ", DIM))
        return line.done()

    def action_scroll(self, by: int) -> None:
        """Arrows, Home, End."""
        self._top = max(0, self._top + by)
        self.paint()

    def action_page(self, by: int) -> None:
        """Page keys."""
        self.action_scroll(by * max(1, self.panels[1].box.height - 1))

    def action_leave(self) -> None:
        """Esc."""
        self.dismiss(None)
