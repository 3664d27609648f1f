"""A list draws its cells itself: they look as Textual's own table would draw them."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.widgets import DataTable

from iopstui.tables import Column
from iopstui.ui.core.list_table import ListTable
from iopstui.ui.draw.style import BOLD, UTF8

TEXTS = ("", "sda", "12.5k", "名前 of a disk", "longer than the column is", "  ▁▂█ ")
WIDTH = 9


def column(title: str, left: bool, style: Style | str | None) -> Column:
    return Column(title, title, WIDTH, str, read=lambda text: text, left=left,
                  style_of=lambda text: style)  # fmt: skip


class Tables(App[None]):
    def compose(self) -> ComposeResult:
        columns = [
            column("left", True, None),
            column("right", False, BOLD),
            column("a", True, "italic"),
        ]
        yield ListTable(columns, UTF8, key=lambda text: text or "none", cell_padding=1)


def cells(lines: list[list[Segment]]) -> list[tuple[str, Style | None]]:
    [line] = lines
    return [(letter, style) for text, style, _ in line for letter in text]


async def test_cells_look_as_textual_draws_them() -> None:
    app = Tables()
    async with app.run_test():
        table = app.query_one(ListTable)
        table.show(TEXTS, dict.fromkeys(("left", "right", "a"), WIDTH))
        for row in range(-1, len(TEXTS)):
            for at in range(3):
                for cursor in (True, False):
                    asked = (row, at, Style(bgcolor="blue"), WIDTH + 2, cursor)
                    own = cells(table._render_cell(*asked))
                    table._cell_render_cache.clear()
                    assert own == cells(DataTable._render_cell(table, *asked)), asked


async def test_a_column_grows_with_a_longer_figure_and_never_shrinks() -> None:
    app = Tables()
    async with app.run_test() as pilot:
        table, figure = app.query_one(ListTable), {"text": "420µs"}
        table._by_title = {"p99": Column("", "p99", read=lambda _: figure["text"])}
        widths = []
        for figure["text"] in ("420µs", "1.24ms", "9µs"):
            table.show(["run"])
            await pilot.pause()
            widths.append(table.ordered_columns[0].content_width)
        assert widths == [5, 6, 6]
