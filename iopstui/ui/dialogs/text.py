"""Screens with text, and a filter for lists that one types.

"/" begins the filter, and then every letter belongs to it. Esc clears the filter, Backspace removes
its last letter."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from iopstui import format as f
from iopstui.session.tick.outcomes import FAIL, PASS
from iopstui.text import printable
from iopstui.ui.core.key import Key
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, Modal
from iopstui.ui.draw.rows import has_words
from iopstui.ui.draw.style import Charset
from iopstui.ui.state.live import LiveState

MAX_LETTERS = 40
FILTER_HINT = ("/", "Filter", "")
"""The filter's key, for the line of keys."""


class TypeToFilter:
    """A mixin for a screen, to be named before the screen's class. Calls ``apply_filter`` when the
    filter changes. A dialog shows the filter before its keys."""

    filter_text = ""
    letters_filter = False
    """Whether a letter that is not a key begins the filter, as "/" does: where one chooses a value
    and no key leads elsewhere."""
    typing_from_start = False
    """Whether every letter belongs to the filter from the start. Esc without text then closes the
    screen."""
    _typing = False

    def apply_filter(self) -> None:
        """Show the items that contain all words of the filter."""
        raise NotImplementedError

    @property
    def filter_hint(self) -> str:
        """The typed filter, for the line of keys; "" if there is none."""
        return f"filter: {self.filter_text}▏" if self._typing else ""

    def matches(self, *texts: str) -> bool:
        """Whether the ``texts`` together contain all words of the filter, ignoring case."""
        return has_words(self.filter_text, *texts)

    def on_key(self, event: events.Key) -> None:
        """Use a key for the filter before it is looked up among the bindings."""
        assert isinstance(self, Screen)
        # ctrl+u as in a shell
        empties = event.key == "ctrl+u" or (event.key == "escape" and not self._is_empty_search)
        if empties and self._typing:
            self._set_filter("", self.typing_from_start)
        elif event.key == "backspace" and self._typing:
            self._set_filter(
                self.filter_text[:-1], self.typing_from_start or len(self.filter_text) > 1
            )
        elif event.is_printable and event.character and self._is_text(event.key, event.character):
            # "/" also works where all letters are text from the start, because users know it from
            # other lists
            is_new = not self.filter_text if self.typing_from_start else not self._typing
            begins = is_new and event.character == "/"
            self._set_filter(
                (self.filter_text + ("" if begins else event.character))[:MAX_LETTERS], True
            )
        else:
            return
        event.stop()
        event.prevent_default()

    @property
    def _is_empty_search(self) -> bool:
        return self.typing_from_start and not self.filter_text

    def _is_text(self, key: str, character: str) -> bool:
        if self._is_empty_search and key == "question_mark":
            return False
        if self._typing or character == "/":
            # a blank at the beginning may be a key; in the filter it would have no effect
            return bool(self.filter_text) or character != " "
        assert isinstance(self, Screen)
        return (
            self.letters_filter
            and character != " "
            and key not in self._bindings.key_to_bindings
            and key not in GLOBAL_KEYS
        )

    def _set_filter(self, text: str, typing: bool) -> None:
        changed = (text, typing) != (self.filter_text, self._typing)
        self.filter_text, self._typing = text, typing
        if changed:
            self.apply_filter()
            # after the filter, because the keys may depend on what it found
            if isinstance(self, Modal):
                self.show_hints(self.filter_hint, typing and not self._is_empty_search)


GLOBAL_KEYS = frozenset({"question_mark", "S", "y"})
"""Keys that work on every screen."""


LEVEL_STYLES = {
    "error": "bold red", "warning": "bold yellow", "mark": "magenta", PASS: "bold green",
    FAIL: "bold red",
}  # fmt: skip
COPIED_WIDTH = 10_000
"""A width in columns that no line exceeds."""


class TextScreen(Modal[None]):
    """Shows a text that can be scrolled."""

    BINDINGS = [*LIST_KEYS]  # noqa: RUF012 (Textual's own form)
    size_class = "tall"

    def __init__(
        self, title: str, text: Text | Group, charset: Charset, opened_by: Key | None = None,
        at_end: bool = False,
    ) -> None:  # fmt: skip
        """``at_end``: show the last rows first."""
        super().__init__(title, charset, (("↑ ↓ PgUp PgDn", "Scroll", ""), CLOSE_HINT), opened_by)
        self._text, self._at_end = text, at_end

    def content(self) -> ComposeResult:
        with VerticalScroll(id="text-body", classes="modal-fit"):
            yield Static(self._text)

    def on_mount(self) -> None:
        """Focus the text, so that the arrows scroll at once."""
        body = self.query_one(VerticalScroll)
        body.focus()
        if self._at_end:
            self.call_after_refresh(body.scroll_end, animate=False)

    def copied_text(self) -> str:
        """The whole text, without wrapping, so that a command in it can be pasted."""
        console = Console(width=COPIED_WIDTH, file=io.StringIO(), color_system=None)
        with console.capture() as written:
            console.print(self._text)
        return "\n".join(line.rstrip() for line in written.get().splitlines())


def doctor_screen(charset: Charset) -> TextScreen:
    from iopstui.preflight.doctor import OK, examine

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=9)
    table.add_column(width=16)
    table.add_column(ratio=1)
    for check in examine():
        style = "" if check.state == OK else "bold yellow"
        result = Text(charset.text(printable(check.message)))
        if check.fix:
            result.append(charset.text(f"\n→ {printable(check.fix)}"), style="cyan")
        table.add_row(Text(f"  {check.state}", style=style), Text(printable(check.name)), result)
    return TextScreen("System check: permissions, fio, kernel features", Group(table), charset)


class LogScreen(TypeToFilter, TextScreen):
    """The session's messages. It opens at the end, with the newest ones."""

    def __init__(self, state: LiveState, charset: Charset) -> None:
        self._state = state
        text = _log_table(state, charset, lambda text: True)
        super().__init__("Messages", Group(text), charset, at_end=True)
        self._hints = (self._hints[0], FILTER_HINT, *self._hints[1:])
        self.show_hints()

    def apply_filter(self) -> None:
        self._text = Group(_log_table(self._state, self.charset, self.matches))
        self.query_one("#text-body > Static", Static).update(self._text)


def _log_table(state: LiveState, charset: Charset, matches: Callable[[str], bool]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=9, justify="right", style="dim")
    table.add_column(ratio=1)
    for entry in state.log.entries:
        prefix = f"{entry.level}: " if entry.level in ("error", "warning") else ""
        if not matches(f"{f.clock(entry.t)} {prefix}{entry.text}"):
            continue
        message = Text(
            charset.text(f"{prefix}{entry.text}"), style=LEVEL_STYLES.get(entry.level, "")
        )
        table.add_row(f.clock(entry.t), message)
    if not state.log.entries:
        table.add_row("", Text("There are no messages yet.", style="dim"))
    step = state.step
    if step is not None:
        table.add_row("", Text("\nThe last run's command:", style="bold"))
        table.add_row("", Text(charset.text(_command(step.command))))
    return table


def _command(command: tuple[str, ...]) -> str:
    import shlex

    return printable(shlex.join(command))
