"""A list of the screen: rows in columns, sorted by a click on a title."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.coordinate import Coordinate
from textual.message import Message
from textual.widgets import DataTable

from iopstui.format import MISSING, shorten
from iopstui.tables import DOWN, Column, in_order, sortable
from iopstui.text import printable
from iopstui.ui.draw.style import Charset


class ListTable(DataTable[Text]):
    """A table of items that the user can sort; its owner then gets ``Sorted`` and calls ``show``
    again. ``order`` is the title of a column ("": the order of the items). ``key`` returns an
    item's name, by which the cursor stays on its row."""

    class Sorted(Message):
        """The order was changed."""

    def __init__(
        self, columns: Iterable[Column], charset: Charset, order: str = "",
        key: Callable[[Any], str] | None = None, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(cursor_type="row", **more)
        self._by_title = {column.title: column for column in columns}
        self._charset, self._key, self._first_order = charset, key, order
        self._texts: list[list[Text]] = []
        self.order, self.reverse = order, False
        self.widths: Mapping[str, int | None] = {}
        """Widths of the shown columns, by title; ``None``: as wide as the column's texts."""
        self.items: list[Any] = []
        """The items of the visible rows."""

    def in_order(self, items: Sequence[Any]) -> Sequence[Any]:
        return in_order(items, self._by_title.values(), self.order, self.reverse)

    def show(self, items: Iterable[Any], widths: Mapping[str, int | None] | None = None) -> None:
        """Show these items in columns of these ``widths`` (``None``: as before; at first all
        columns). If the rows are the same, only changed cells are drawn."""
        cursor, selected, before = self.cursor_row, self.selected, (self.items, self._texts)
        same_columns = self._fit(widths or self.widths or dict.fromkeys(self._by_title))
        self.items = [*items]
        self._texts = [[*self.texts(item)] for item in self.items]
        if self._key is None:
            self._fill([None] * len(self.items))
            return
        keys = [*map(self._key, self.items)]
        if same_columns and keys == [*map(self._key, before[0])]:
            for row, (now, old) in enumerate(zip(self._texts, before[1], strict=True)):
                for column, (text, old_text) in enumerate(zip(now, old, strict=True)):
                    if (text, text.style) != (old_text, old_text.style):
                        self._change(Coordinate(row, column), text)
            return
        self._fill(keys)
        if selected is not None and keys:
            key = self._key(selected)
            self.move_cursor(row=keys.index(key) if key in keys else min(cursor, len(keys) - 1))

    def fitting(self, items: Sequence[Any]) -> Mapping[str, int | None]:
        """Widths for ``show``: columns from the left, as many as fit with their complete texts.
        Empty columns are left out."""
        room = self.size.width - self.styles.scrollbar_size_vertical
        widths: dict[str, int | None] = {}
        for title, column in self._by_title.items():
            texts = [self._charset.text(printable(column.text(item))) for item in items]
            if {*texts} == {self._charset.text(MISSING)}:
                continue
            room -= max(map(cell_len, (title, *texts))) + 2 * self.cell_padding
            if room < 0 and widths:
                break
            widths[title] = None
        return widths

    def _change(self, at: Coordinate, text: Text) -> None:
        """Change a cell. If its text is wider than its column, the column grows; it never shrinks,
        so that nothing jumps while figures change. Otherwise only this cell is drawn, where
        Textual's own way draws the whole table."""
        row, column = self.coordinate_to_cell_key(at)
        if text.cell_len > self.columns[column].content_width:
            self.update_cell_at(at, text, update_width=True)
            return
        self._data[row][column] = text
        self._update_count += 1
        self.refresh_coordinate(at)

    def _fill(self, keys: Sequence[str | None]) -> None:
        self.clear()
        for key, texts in zip(keys, self._texts, strict=True):
            self.add_row(*texts, key=key)

    def _fit(self, widths: Mapping[str, int | None]) -> bool:
        """Set up the columns; True if they are the same as before."""
        if widths == self.widths:
            return True
        self.widths = widths
        self.clear(columns=True)
        for title, width in widths.items():
            head = Text(title, justify="left" if self._by_title[title].left else "right")
            self.add_column(head, key=title, width=width)
        return False

    def texts(self, item: Any) -> Iterable[Text]:
        for title, width in self.widths.items():
            column = self._by_title[title]
            text = printable(column.text(item))
            text = self._charset.text(text if width is None else shorten(text, width))
            style = column.style if column.style_of is None else column.style_of(item)
            yield Text(text, style or "", justify="left" if column.left else "right", no_wrap=True)

    def row_text(self, titled: bool = False) -> str:
        """The row under the cursor, all columns with whole texts, for the clipboard; ``titled``:
        "NAME sda, SIZE 3.64 TiB"."""
        texts = {
            title: printable(column.text(self.selected)).strip()
            for title, column in self._by_title.items()
        }
        if titled:
            return ", ".join(f"{title} {text}" for title, text in texts.items() if text)
        return "  ".join(filter(None, texts.values()))

    def _render_cell(self, row_index: int, column_index: int, base_style: Style, width: int,
                     cursor: bool = False, hover: bool = False) -> list[list[Segment]]:  # fmt: skip
        """The line of a cell. When one cell changes, Textual draws all cells of its row again, each
        through rich's layout, which is not needed for a line in one style."""
        row = self._texts[row_index] if row_index >= 0 else self._get_row_renderables(-1).cells
        text = row[column_index]
        assert isinstance(text, Text)
        looks, above = self._get_styles_to_render_cell(
            row_index == -1, False, False, hover, cursor, self.show_cursor, self._show_hover_cursor,
            self.cursor_foreground_priority == "css", self.cursor_background_priority == "css",
        )  # fmt: skip
        plain, own, padding = text.plain, text.style if text else "", self.cell_padding
        return _cell_line(
            row_index, column_index, plain, own, text.justify == "right", base_style, looks, above,
            max(0, width - 2 * padding), padding,
        )  # fmt: skip

    @property
    def selected(self) -> Any:
        """The item under the cursor; ``None`` if there is none."""
        return self.items[self.cursor_row] if 0 <= self.cursor_row < len(self.items) else None

    def sort_by(self, title: str, reverse: bool = False) -> None:
        """Sort by this column in its usual order, or in ``reverse``."""
        self.order, self.reverse = title, reverse
        self.post_message(self.Sorted())

    def sort_next(self, by: int) -> None:
        """Sort by the next or the previous column; after the last one, restore the initial
        order."""
        shown = sortable(self._by_title[title] for title in self.widths)
        titles = shown if self._first_order else ("", *shown)
        at = titles.index(self.order) if self.order in titles else 0
        self.sort_by(titles[(at + by) % len(titles)])

    @property
    def order_text(self) -> str:
        falls = self._by_title[self.order].sorts == DOWN
        usual, other = ("largest", "smallest") if falls else ("A", "Z")
        return f"{self.order}, {other if self.reverse else usual} first"

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the clicked column; the second time in reverse."""
        event.stop()
        title = event.column_key.value or ""
        if self._by_title[title].sorts:
            self.sort_by(title, title == self.order and not self.reverse)


@lru_cache(512)
def _cell_line(
    row: int, column: int, plain: str, own: str | Style, right: bool, base: Style, looks: Style,
    above: Style, inside: int, padding: int,
) -> list[list[Segment]]:  # fmt: skip
    """A cell of ``inside`` columns and blanks on both sides. Most are the same as a second ago."""
    looks = base + Style.from_meta({"row": row, "column": column}) + looks
    if right:
        plain = " " * (inside - cell_len(plain)) + plain
    blanks = Segment(" " * padding, looks + above)
    own = Style.parse(own) if isinstance(own, str) else own
    return [[blanks, Segment(set_cell_size(plain, inside), looks + own + above), blanks]]
