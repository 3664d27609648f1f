"""A question over the dashboard that is answered by typing."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from iopstui.errors import UsageError
from iopstui.text import printable
from iopstui.ui.core.key import HELP
from iopstui.ui.draw.style import Charset

Check = Callable[[str], object]
KEYS = "Enter takes it   Esc goes back"
ROOMY = (40, 12)
"""Columns and rows from which on there is room for all of it; below, for title, field and keys."""


class Prompt(ModalScreen["str | None"]):
    """Returns what was typed, or ``None``. ``check`` raises UsageError for an invalid answer."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("escape", "leave", "back"),
        Binding("f1", HELP, "help"),
    ]
    about = "Something is typed: Enter takes it, Esc gives it up. A ? is text here, F1 opens this."

    def __init__(
        self,
        title: str,
        words: str,
        value: str,
        check: Check,
        charset: Charset,
        keys: str = KEYS,
    ) -> None:
        super().__init__()
        self._title = title
        self._words = words
        self._value = value
        self._check = check
        self._charset = charset
        self._keys = keys

    def compose(self) -> ComposeResult:
        """A title, what may be typed, the field, what is wrong with it."""
        text = self._charset.text
        with Vertical(id="prompt", classes=self._charset.name):
            yield Static(Text(text(printable(self._title)), style="bold"))
            yield Static(Text(text(printable(self._words)), style="dim"), id="prompt-words")
            with Horizontal(id="prompt-field"):
                yield Static(Text("> ", style="bold"), id="prompt-sign")
                yield Input(self._value, id="prompt-input", select_on_focus=False)
            yield Static(Text(self._keys, style="dim"), id="prompt-foot")

    def on_mount(self) -> None:
        """The field has the keys."""
        self.query_one(Input).focus()

    def on_resize(self, event: events.Resize) -> None:
        """In a small terminal the field comes before the words about it."""
        width, height = self.app.size
        self.set_class(width < ROOMY[0] or height < ROOMY[1], "tight")

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with what was typed, or show what is wrong with it."""
        try:
            self._check(event.value)
        except UsageError as error:
            self.say(f"{error.message} {error.hint}".strip())
            return
        self.dismiss(event.value)

    def say(self, words: str, style: str = "bold red") -> None:
        """Below the field."""
        text = Text(self._charset.text(printable(words)), style=style)
        self.query_one("#prompt-foot", Static).update(text)

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
