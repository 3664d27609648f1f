"""A dialog of rows that stay live: it can be scrolled while the figures change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding

from iopstui.ui.core.key import Key
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, SCROLL_KEYS, Hint, Modal
from iopstui.ui.dialogs.type_to_filter import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.canvas import Canvas
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.lines import Lines
from iopstui.ui.draw.rows import Row, pad, rows_text
from iopstui.ui.draw.style import Charset

RowBuilder = Callable[[int], "Sequence[Row]"]
SORT_HINT: Hint = ("< >", "Sort", "screen.sort(1)")
HINTS: tuple[Hint, ...] = (("↑ ↓ PgUp PgDn", "Scroll", ""), FILTER_HINT, CLOSE_HINT)
WHEEL_ROWS, MIN_ROWS = 3, 3


class LiveRows(TypeToFilter, Modal[None]):
    """Shows ``build(width)``; ``paint`` builds the rows again."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("pagedown", "page(1)", show=False),
        *SCROLL_KEYS,
        Binding("less_than_sign", "sort(-1)", show=False),
        Binding("greater_than_sign", "sort(1)", show=False),
    ]
    size_class = "broad"

    def __init__(
        self, title: str, build: RowBuilder, charset: Charset, opened_by: Key | None = None,
        orders: Callable[[], Sequence[str]] = tuple,
    ) -> None:  # fmt: skip
        hints = (HINTS[0], SORT_HINT, *HINTS[1:]) if orders() else HINTS
        self.about = "A live list: up and down scroll, typing filters, Esc closes it."
        if orders():
            self.about += " < and > sort by another column, and so does a click on its title."
        super().__init__(title, charset, hints, opened_by)
        self._orders = orders
        self.order = ""
        """The title of the column that the rows are sorted by; "": as they come."""
        self._build = build
        self._top = self._row_count = self._body_height = 0
        self.body = Lines("page-body")
        self.canvas = Canvas([self.body])

    def content(self) -> ComposeResult:
        """Return one widget for all rows."""
        yield self.canvas

    def on_mount(self) -> None:
        self.call_after_refresh(self.paint)

    def on_screen_resume(self) -> None:
        """Back from another dialog."""
        self.paint()

    def on_resize(self, event: events.Resize) -> None:
        self._body_height = 0
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        width, height = self.canvas.size
        if width < 2 or height < 1:
            return
        self.body.place(Box(0, 0, width, height))
        rows = self.rows(width)
        self._row_count = len(rows)
        self._grow()
        self._top = max(0, min(self._top, len(rows) - height))
        self.body.show(pad(rows[self._top :], height, width))
        last = min(self._row_count, self._top + height)
        note = f"{self._top + 1}-{last} of {self._row_count}" if self._row_count > height else ""
        if note != self.note:
            self.set_title(self.heading, note)

    def _grow(self) -> None:
        """Grow to the height of its rows; never shrink, so that nothing jumps."""
        height = min(self.body_height, max(MIN_ROWS, self._row_count))
        if height > self._body_height or height > self.body_height:
            self._body_height = height
            self.canvas.styles.height = height
            self.call_after_refresh(self.paint)

    def rows(self, width: int) -> Sequence[Row]:
        """The newest rows that contain all words of the filter."""
        rows = self._build(width)
        if not self.filter_text.strip():
            return rows
        return [row for row in rows if self.matches("".join(text for text, _ in row))]

    def copied_text(self) -> str:
        return rows_text(self.rows(self.canvas.size.width))

    def apply_filter(self) -> None:
        self.action_scroll(-1_000_000)

    def action_sort(self, by: int) -> None:
        """Sort by the next or the previous column; after the last one keep the order of the
        rows."""
        orders = ("", *self._orders())
        index = orders.index(self.order) if self.order in orders else 0
        self.order = orders[(index + by) % len(orders)]
        self.paint()

    def on_click(self, event: events.Click) -> None:
        """Sort by the column whose title was clicked."""
        box = self.canvas.region
        x, y = event.screen_x - box.x, event.screen_y - box.y
        rows = self.rows(box.width)
        if not box.contains(event.screen_x, event.screen_y) or self._top + y >= len(rows):
            return
        text = "".join(piece for piece, _ in rows[self._top + y])
        titles = [title for title in self._orders() if title in text]
        # a row of figures contains no title, except by chance
        if len(titles) == len(self._orders()) and titles:
            positions = {title: text.index(title) for title in titles}
            self.order = next(
                (
                    title
                    for title in titles
                    if positions[title] <= x < positions[title] + len(title)
                ),
                self.order,
            )
            self.paint()

    def action_scroll(self, by: int) -> None:
        self._top = max(0, self._top + by)
        self.paint()

    def action_page(self, by: int) -> None:
        self.action_scroll(by * max(1, self.body.box.height - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.action_scroll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.action_scroll(-WHEEL_ROWS)
