"""A question that is answered with yes or no, over the dashboard."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
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
        Binding("down", "scroll(1)", show=False),
        Binding("up", "scroll(-1)", show=False),
    ]
    about = (
        "Confirm a change: y or the button applies it, Enter, Esc or n cancels. Up and down scroll "
        "a long text."
    )

    def __init__(self, title: str, text: str, verb: str, charset: Charset) -> None:
        hints: tuple[Hint, ...] = (
            ("y", verb, "screen.answer(True)"),
            ("Enter Esc", "Cancel", "screen.answer(False)"),
        )  # fmt: skip
        super().__init__(title, charset, hints)
        self._text, self._verb = text, verb

    def content(self) -> ComposeResult:
        """The planned change, and the answers."""
        with VerticalScroll(classes="modal-fit", can_focus=False):
            lines = map(self.clean, self._text.split("\n"))
            yield Static(Text("\n".join(lines)), id="prompt-words")
        with Horizontal(classes="form-buttons"):
            yield Button(self._verb, id="confirm-yes", compact=True)
            yield Button("Cancel", id="confirm-no", variant="primary", compact=True)

    def on_mount(self) -> None:
        """Enter cancels."""
        self.query_one("#confirm-no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the answer of a button."""
        self.dismiss(event.button.id == "confirm-yes")

    def action_scroll(self, by: int) -> None:
        """Scroll the text."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)

    def action_leave(self) -> None:
        """Close without agreement."""
        self.dismiss(False)
