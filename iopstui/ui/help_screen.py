"""The screen of the help."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.binding import Binding

from iopstui.ui.core import pages
from iopstui.ui.dialogs.text import TextScreen
from iopstui.ui.draw.style import Charset
from iopstui.ui.help import help_sections


class HelpScreen(TextScreen):
    """The help: its own keys close it."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding(pages.HELP.names, "leave", "Close"),
    ]


def help_screen(charset: Charset, here: str = "", first: str = "") -> TextScreen:
    """Every key, panel, abbreviation and flag, in plain words; first what the screen is about from
    which it was asked for, then the section with the title ``first``."""
    parts: list[Text | Table] = []
    if here:
        parts += [Text("Here", style="bold"), Text(charset.text(f"  {here}")), Text()]
    for title, entries in help_sections(first):
        parts.append(Text(charset.text(title), style="bold"))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=2 + max(len(term) for term, _ in entries), style="cyan")
        table.add_column(ratio=1)
        for term, meaning in entries:
            table.add_row(Text("  " + charset.text(term)), Text(charset.text(meaning)))
        parts += [table, Text()]
    return HelpScreen("Help", Group(*parts), charset)
