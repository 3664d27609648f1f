"""A screen with a title, scrollable rows and a line of keys."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from textual import events
from textual.binding import Binding

from iopstui.ui.draw.canvas import CanvasScreen
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.lines import Lines
from iopstui.ui.draw.rows import Line, Row, pad
from iopstui.ui.draw.style import DIM, Charset

WHEEL_ROWS = 3
"""Rows that one step of the wheel scrolls."""


class PageScreen(CanvasScreen):
    """Draws itself whenever ``paint`` is called; unchanged rows are not sent again."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("down", "scroll(1)", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("home", "scroll(-1000000)", show=False),
        Binding("end", "scroll(1000000)", show=False),
    ]

    def __init__(self, charset: Charset) -> None:
        super().__init__()
        self._charset = charset
        self._top = 0
        self._rows = 0
        self.panels = [Lines("page-head"), Lines("page-body"), Lines("page-foot")]
        self.canvas.add(self.panels)

    @abstractmethod
    def head(self, width: int) -> Row:
        """The title line."""

    @abstractmethod
    def body(self, width: int) -> Sequence[Row]:
        """All rows, visible or not."""

    @abstractmethod
    def foot(self, width: int) -> Line:
        """The line of keys; the range of visible rows is added to it."""

    def on_resize(self, event: events.Resize) -> None:
        """Place everything again."""
        width, height = self.app.size
        head, body, foot = self.panels
        head.place(Box(0, 0, width, 1))
        body.place(Box(0, 1, width, max(0, height - 2)))
        foot.place(Box(0, height - 1, width, 1 if height > 1 else 0))
        self.paint()

    @property
    def has_more(self) -> bool:
        """Whether there are rows below the last one seen."""
        return self._top + self.panels[1].box.height < self._rows

    def paint(self) -> None:
        """Show the newest state."""
        head, body, foot = self.panels
        width, height = body.box.width, body.box.height
        if width < 2 or height < 1:
            return
        rows = self.body(width)
        self._rows = len(rows)
        self._top = max(0, min(self._top, len(rows) - height))
        head.show([self.head(width)])
        body.show(pad(rows[self._top :], height, width))
        line = self.foot(width)
        if self._rows > height:
            last = min(self._rows, self._top + height)
            line.add_right((f"{self._top + 1}-{last} of {self._rows} ", DIM))
        foot.show([line.build()])

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls."""
        self.action_scroll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls."""
        self.action_scroll(-WHEEL_ROWS)

    def action_scroll(self, by: int) -> None:
        """Scroll by one row, or to the beginning or the end."""
        self._top = max(0, self._top + by)
        self.paint()

    def action_page(self, by: int) -> None:
        """Scroll by a screen."""
        self.action_scroll(by * max(1, self.panels[1].box.height - 1))
