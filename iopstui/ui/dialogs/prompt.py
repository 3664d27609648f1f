"""A question over the dashboard that is answered by typing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from iopstui.errors import UsageError
from iopstui.text import printable
from iopstui.ui.core.modal import Hint, Modal
from iopstui.ui.draw.style import DIM, ERROR, Charset

Check = Callable[[str], object]
HINTS: tuple[Hint, ...] = (("Enter", "OK", "screen.take"), ("Esc", "Cancel", "screen.leave"))


class Prompt(Modal["str | None"]):
    """Returns what was typed, or ``None``. ``check`` raises UsageError for an invalid answer.

    ``value`` is offered, and replaced by the first letter that is typed; ``typed`` are the letters
    that were typed before it opened."""

    about = "Type a text: Enter accepts it, Esc cancels. ? is text here; F1 opens this help."

    def __init__(
        self,
        title: str,
        description: str,
        value: str,
        check: Check,
        charset: Charset,
        hints: Sequence[Hint] = HINTS,
        typed: str = "",
    ) -> None:
        super().__init__(title, charset, hints)
        self._description = description
        self._value = typed or value
        self._is_offered = not typed
        self._check = check

    def content(self) -> ComposeResult:
        """Hint on the input, the field, and its error."""
        yield Static(Text(self.clean(self._description), style=DIM), id="prompt-words")
        with Horizontal(id="prompt-field"):
            yield Static(Text("> ", style="bold"), id="prompt-sign")
            yield Input(self._value, id="prompt-input", classes="field", select_on_focus=False)
        yield Static(id="prompt-foot", classes="modal-said")

    def on_mount(self) -> None:
        """The field has the keys; an offered text is selected."""
        field = self.query_one(Input).focus()
        if self._is_offered:
            field.select_all()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the text, or show its error."""
        try:
            self._check(event.value)
        except UsageError as error:
            self.show_message(f"{error.message} {error.hint}".strip())
            return
        self.dismiss(event.value)

    async def action_take(self) -> None:
        """Close with what was typed, as Enter does."""
        await self.query_one(Input).action_submit()

    def show_message(self, message: str, quiet: bool = False) -> None:
        """Show a message below the field."""
        text = Text(self.charset.text(printable(message)), style=DIM if quiet else ERROR)
        self.query_one("#prompt-foot", Static).update(text)
