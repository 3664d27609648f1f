"""Typing an option of the fio job: names are completed, earlier input can be recalled, and fio
checks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from textual.binding import Binding
from textual.widgets import Input

from iopstui.errors import UsageError
from iopstui.fio.options import complete_option
from iopstui.format import first_of
from iopstui.ui.core.modal import Hint
from iopstui.ui.dialogs.questions import Check, Prompt
from iopstui.ui.draw.style import Charset

HINTS: tuple[Hint, ...] = (
    ("Enter", "OK", "screen.take"), ("Tab", "Complete", "screen.complete"),
    ("↑ ↓", "Earlier options", ""), ("Esc", "Cancel", "screen.leave"),
)  # fmt: skip
CHECKING = "checking with fio ..."
MAX_LISTED = 12


class OptionPrompt(Prompt):
    """``history`` are the options typed earlier, the newest last; ``names`` returns every option
    with its description; ``check`` raises UsageError. Both may take a while: they run fio."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("tab", "complete", priority=True),
        Binding("up", "earlier(-1)", priority=True),
        Binding("down", "earlier(1)", priority=True),
    ]

    about = (
        "Set a fio option as NAME=VALUE: Tab completes the name, up and down recall earlier "
        "options, Enter lets fio check it and applies it. An empty value resets it. ? is text "
        "here; F1 opens this help."
    )

    def __init__(
        self,
        title: str,
        description: str,
        check: Check,
        names: Callable[[], Mapping[str, str]],
        history: list[str],
        charset: Charset,
    ) -> None:
        super().__init__(title, description, "", check, charset, HINTS)
        self._names = names
        self._history = history
        self._history_index = len(history)
        self._draft = ""
        self.answered = asyncio.Event()
        self.answered.set()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the text, or show what is wrong with it. Keys that are typed meanwhile
        wait."""
        event.prevent_default()
        text = event.value.strip()
        self.show_message(CHECKING, quiet=True)
        self.answered.clear()
        try:
            await asyncio.to_thread(self._check, text)
        except UsageError as error:
            self.show_message(error.full_text)
            return
        finally:
            self.answered.set()
        if text in self._history:
            self._history.remove(text)
        self._history.append(text)
        self.dismiss(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Remove the message about the previous text."""
        self.show_message("")

    async def action_complete(self) -> None:
        """Complete the name as far as it is certain; else show the possible names."""
        field = self.query_one(Input)
        names = await asyncio.to_thread(self._names)
        text, candidates = complete_option(field.value, names)
        changed = text != field.value
        with field.prevent(Input.Changed):
            field.value = text
        field.cursor_position = len(text)
        if len(candidates) == 1:
            self.show_message(f"{candidates[0]}: {names[candidates[0]]}", quiet=True)
        elif candidates:
            self.show_message(first_of(candidates, MAX_LISTED), quiet=True)
        elif not changed and "=" not in text:
            self.show_message(f"no fio option begins with {text}")

    def action_earlier(self, by: int) -> None:
        """Recall earlier input, or the input after it."""
        field = self.query_one(Input)
        if self._history_index == len(self._history):
            self._draft = field.value
        self._history_index = max(0, min(len(self._history), self._history_index + by))
        field.value = (*self._history, self._draft)[self._history_index]
        field.cursor_position = len(field.value)
