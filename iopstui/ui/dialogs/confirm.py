"""A question that is answered with yes or no, over the dashboard."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Button, Static

from iopstui.ui.core.key import HELP
from iopstui.ui.core.modal import Hint, Modal
from iopstui.ui.draw.style import Charset


class Confirm(Modal[bool]):
    """True if the user agrees to ``text``; ``verb`` is the label of the button that agrees.

    Cancel has the focus, so that a key typed for something else changes nothing.
    """

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("y", "answer(True)", show=False),
        Binding("n,q", "answer(False)", show=False),
        Binding("question_mark", HELP, show=False),
    ]
    about = "Confirm a change: y or the button applies it, Enter, Esc or n cancels."

    def __init__(self, title: str, text: str, verb: str, charset: Charset) -> None:
        hints: tuple[Hint, ...] = (
            ("y", verb, "screen.answer(True)"),
            ("Enter Esc", "Cancel", "screen.answer(False)"),
        )  # fmt: skip
        super().__init__(title, charset, hints)
        self._text, self._verb = text, verb

    def content(self) -> ComposeResult:
        """The planned change, and the answers."""
        yield Static(Text(self.clean(self._text)), id="prompt-words")
        with Horizontal(classes="form-buttons"):
            yield Button(self._verb, id="confirm-yes", compact=True)
            yield Button("Cancel", id="confirm-no", variant="primary", compact=True)

    def on_mount(self) -> None:
        """Enter cancels."""
        self.query_one("#confirm-no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the answer of a button."""
        self.dismiss(event.button.id == "confirm-yes")

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)

    def action_leave(self) -> None:
        """Close without agreement."""
        self.dismiss(False)
