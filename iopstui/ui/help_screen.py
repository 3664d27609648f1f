"""The help, on top of the current screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from iopstui.ui.core import pages
from iopstui.ui.dialogs.text import TextScreen
from iopstui.ui.dialogs.type_to_filter import TypeToFilter
from iopstui.ui.draw.style import BOLD, KEY, Charset
from iopstui.ui.help import Section, help_sections
from iopstui.ui.known_keys import MOVED, keys_moved

NO_MATCH = "No entry of the help has all of these words."


class HelpScreen(TypeToFilter, TextScreen):
    """Sections of (term, meaning). What is typed searches them at once, so that no word is taken
    for keys."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding(pages.HELP.names, "leave", "Close"),
    ]
    typing_from_start = _typing = True

    def __init__(self, about: str, sections: Sequence[Section], charset: Charset) -> None:
        self._about, self._sections = about, sections
        super().__init__("Help", _help_text(about, sections, charset), charset)
        self.show_hints(self.filter_hint)

    @property
    def filter_hint(self) -> str:
        """The typed words, for the line of keys."""
        return f"Search: {self.filter_text}▏"

    def apply_filter(self) -> None:
        """Show the entries that match the filter, and all entries of a matching title."""
        sections = []
        for title, entries in self._sections:
            matching = tuple(entry for entry in entries if self.matches(title, *entry))
            if matching:
                sections.append((title, matching))
        about = "" if self.filter_text.strip() else self._about
        text = _help_text(about, sections, self.charset) if sections else Text(NO_MATCH, style=BOLD)
        self.query_one("#text-body > Static", Static).update(text)
        self.query_one(VerticalScroll).scroll_home(animate=False)


def _help_text(about: str, sections: Sequence[Section], charset: Charset) -> Group:
    parts: list[Text | Table] = []
    if about:
        parts += [Text("Here", style=BOLD), Text(charset.text(f"  {about}")), Text()]
    for title, entries in sections:
        parts.append(Text(charset.text(title), style=BOLD))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=2 + max(len(term) for term, _ in entries))
        table.add_column(ratio=1)
        for term, meaning in entries:
            table.add_row(Text("  " + charset.text(term), style=KEY), Text(charset.text(meaning)))
        parts += [table, Text()]
    return Group(*parts)


def help_screen(
    charset: Charset, about: str = "", first: str = "", in_replay: bool = False
) -> HelpScreen:
    """The help: first ``about``, the help of the current screen, then the section with the title
    ``first``, then all others."""
    sections = help_sections(first, in_replay)
    return HelpScreen(about, (MOVED, *sections) if keys_moved() else sections, charset)
