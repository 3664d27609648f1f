"""Copy text through the terminal (OSC 52), which also works over ssh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.screen import Screen
from textual.widgets import DataTable, OptionList

from iopstui import format as f
from iopstui.ui.core.list_table import ListTable

MAX_CHARACTERS = 50_000
"""Terminals drop what is longer: most take about 75 kB of base64."""


def text_of(screen: Screen[Any]) -> str:
    """What there is to copy on a screen: its own ``copied_text``, else the row under the cursor;
    "" if there is none."""
    own: Callable[[], str] | None = getattr(screen, "copied_text", None)
    return own() if own is not None else row_text(screen)


def row_text(screen: Screen[Any]) -> str:
    """The row under the cursor of a list; "" without a list."""
    tables = sorted(screen.query(DataTable), key=lambda table: table is not screen.focused)
    for table in tables:
        if table.row_count:
            if isinstance(table, ListTable):
                return table.row_text()
            cells = map(str, table.get_row_at(table.cursor_row))
            return "  ".join(cell.strip() for cell in cells if cell.strip())
    for options in screen.query(OptionList):
        if options.highlighted is not None:
            return str(options.get_option_at_index(options.highlighted).prompt)
    return ""


def copied_message(text: str) -> str:
    """What was copied, and what it takes."""
    count = f.counted(len(text), "character")
    return f"{count} copied, if this terminal allows it (OSC 52; tmux: set -g set-clipboard on)"
