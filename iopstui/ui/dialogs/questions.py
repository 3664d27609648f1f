"""Questions over the dashboard: a few answers, yes or no, or a line that is typed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from iopstui.errors import UsageError
from iopstui.fio.inspect import complete_option
from iopstui.format import first_of
from iopstui.text import printable
from iopstui.ui.core.key import HELP, Key
from iopstui.ui.core.modal import LIST_KEYS, Hint, Modal, Result
from iopstui.ui.core.preferences import PREFERENCES
from iopstui.ui.dialogs.text import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.style import DIM, ERROR, Charset
from iopstui.ui.draw.theme import change_theme

if TYPE_CHECKING:
    from iopstui.ui.port import Port


# A question with a few answers, over the dashboard.


CHOICE_HINTS: tuple[Hint, ...] = (
    ("Enter", "Select", "screen.take"), ("Esc", "Cancel", "screen.leave"), FILTER_HINT,
)  # fmt: skip
PATH_HINTS: tuple[Hint, ...] = (*CHOICE_HINTS[:-1], ("/ ./ ~", "Type a path", ""))
PATH_START = re.compile(r"~|\.{0,2}/")
NO_MATCH = "Nothing matches."


class Picker(Modal[Result]):
    """A dialog with one option per row. ``take`` closes it with the option under the cursor."""

    items: Sequence[Any] = ()
    """The item of each row; ``None`` for a heading."""

    def show_items(self, items: Sequence[Any], labels: Iterable[Text], cursor: int = 0) -> None:
        self.items = items
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([
            Option(label, disabled=item is None) for item, label in zip(items, labels, strict=True)
        ])  # fmt: skip
        options.highlighted = cursor if items else None
        if not items:
            options.add_option(Option(Text(NO_MATCH, style=DIM), disabled=True))

    @property
    def selected(self) -> Any:
        """The item under the cursor; ``None`` if there is none."""
        index = self.query_one(OptionList).highlighted
        return self.items[index] if index is not None and index < len(self.items) else None

    def explain(self) -> None:
        """Show a text about the item under the cursor."""

    def take(self) -> None:
        """Close with the item under the cursor."""
        self.dismiss(self.selected)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Explain the item under the cursor."""
        self.explain()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the item under the cursor."""
        self.take()

    def action_take(self) -> None:
        """Take the row, like Enter."""
        self.query_one(OptionList).action_select()

    def action_scroll(self, by: int) -> None:
        scroll = self.query_one(VerticalScroll)
        scroll.scroll_relative(y=by * max(1, scroll.size.height - 2), animate=False)


class Choice(TypeToFilter, Picker["str | None"]):
    """Returns the chosen value, or ``None``.

    ``other`` is the last value, which means "another file": no filter hides it. If the user types
    the beginning of a path (/, ./ or ~), that is returned at once, as a value."""

    BINDINGS = [*LIST_KEYS]  # noqa: RUF012 (Textual's own form)
    size_class = "narrow"
    about = "Choose a value: typing filters the list, Enter selects."
    letters_filter = True

    def __init__(
        self,
        title: str,
        values: Sequence[str],
        current: str,
        charset: Charset,
        opened_by: Key | None = None,
        other: str = "",
    ) -> None:
        super().__init__(title, charset, PATH_HINTS if other else CHOICE_HINTS, opened_by)
        self._values = [*values, other] if other else list(values)
        self._current = current
        self._other = other
        self.size_class = "small" if other else self.size_class

    def content(self) -> ComposeResult:
        yield OptionList()

    def on_mount(self) -> None:
        """Put the cursor on the current value."""
        self.set_title(self.heading, f"now {self._current}" if self._current else "")
        values = self._values
        cursor = values.index(self._current) if self._current in values else 0
        self._show_values(values, cursor)
        self.query_one(OptionList).focus()

    def apply_filter(self) -> None:
        """Show the values that contain all words of the filter."""
        # a "/" that begins the filter is not in the filter's text
        typed = self.filter_text or "/" * bool(self.filter_hint)
        if self._other and PATH_START.match(typed):
            self.dismiss(typed)
            return
        self._show_values(
            [value for value in self._values if value == self._other or self.matches(value)]
        )

    def _show_values(self, values: Sequence[str], cursor: int = 0) -> None:
        texts = map(self.charset.text, values)
        self.show_items(values, map(Text, texts), cursor)


def ask_last_or_new(
    port: Port, title: str, last: str, new: str, show: Callable[[], None], begin: Callable[[], None]
) -> None:
    """Ask whether to show the last result (``last`` describes it and may be "") or to begin a
    ``new`` one."""
    values = (f"Show the last one ({last})" if last else "Show the last one", new)

    def chosen(value: str | None) -> None:
        if value is not None:
            (begin if value == new else show)()

    port.push(Choice(title, values, "", port.charset), chosen)


# A question that is answered with yes or no, over the dashboard.


class Confirm(Modal[bool]):
    """A question; the result is True if the user agrees to ``text``. ``verb`` is the label of the
    button that agrees.

    Cancel has the focus, so that a key that was meant for something else changes nothing."""

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
        """The planned change, and the two buttons."""
        with VerticalScroll(classes="modal-fit", can_focus=False):
            lines = map(self.clean, self._text.split("\n"))
            yield Static(Text("\n".join(lines)), id="prompt-words")
        with Horizontal(classes="form-buttons"):
            yield Button(self._verb, id="confirm-yes", compact=True)
            yield Button("Cancel", id="confirm-no", variant="primary", compact=True)

    def on_mount(self) -> None:
        """Set the focus on Cancel, so that Enter cancels."""
        self.query_one("#confirm-no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "confirm-yes")

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)

    def action_leave(self) -> None:
        """Close without agreement."""
        self.dismiss(False)


# A question over the dashboard that is answered by typing.


Check = Callable[[str], object]
PROMPT_HINTS: tuple[Hint, ...] = (("Enter", "OK", "screen.take"), ("Esc", "Cancel", "screen.leave"))


class Prompt(Modal["str | None"]):
    """Returns what was typed, or ``None``. ``check`` raises UsageError for an invalid answer.
    ``value`` is offered; the first typed letter replaces it. ``typed`` are letters that were typed
    before the dialog opened."""

    about = "Type a text: Enter accepts it, Esc cancels. ? is text here; F1 opens this help."

    def __init__(
        self,
        title: str,
        description: str,
        value: str,
        check: Check,
        charset: Charset,
        hints: Sequence[Hint] = PROMPT_HINTS,
        typed: str = "",
    ) -> None:
        super().__init__(title, charset, hints)
        self._description = description
        self._value = typed or value
        self._is_offered = not typed
        self._check = check

    def content(self) -> ComposeResult:
        """A hint, the input field, and a line for the error."""
        yield Static(Text(self.clean(self._description), style=DIM), id="prompt-words")
        with Horizontal(id="prompt-field"):
            yield Static(Text("> ", style="bold"), id="prompt-sign")
            yield Input(self._value, id="prompt-input", classes="field", select_on_focus=False)
        yield Static(id="prompt-foot", classes="modal-said")

    def on_mount(self) -> None:
        """Focus the field, and select the offered text."""
        field = self.query_one(Input).focus()
        if self._is_offered:
            field.select_all()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the text if it is valid, else show the error."""
        try:
            self._check(event.value)
        except UsageError as error:
            self.show_message(error.full_text)
            return
        self.dismiss(event.value)

    async def action_take(self) -> None:
        """Close with the typed text, as Enter does."""
        await self.query_one(Input).action_submit()

    def show_message(self, message: str, quiet: bool = False) -> None:
        text = Text(self.charset.text(printable(message)), style=DIM if quiet else ERROR)
        self.query_one("#prompt-foot", Static).update(text)


# The list of themes. The screen shows the theme under the cursor.


class ThemeChoice(Choice):
    """Returns the chosen theme, or ``None``. In both cases the earlier theme is shown again
    first."""

    about = "The screen shows the theme under the cursor. Enter keeps it, Esc goes back."

    def __init__(self, names: tuple[str, ...], current: str, charset: Charset) -> None:
        super().__init__("Theme", names, current, charset)

    def explain(self) -> None:
        if self.selected is not None:
            self._try_theme(self.selected)

    def take(self) -> None:
        """Show the earlier theme again, then close with the chosen one."""
        self._try_theme(self._current)
        super().take()

    def action_leave(self) -> None:
        """Show the earlier theme again, then close."""
        self._try_theme(self._current)
        super().action_leave()

    def _try_theme(self, name: str) -> None:
        PREFERENCES.previewing = True
        try:
            change_theme(self.app, name)
        finally:
            PREFERENCES.previewing = False


# Type an option of the fio job: names are completed, earlier input can be recalled, and fio checks
# it.


OPTION_HINTS: tuple[Hint, ...] = (
    ("Enter", "OK", "screen.take"), ("Tab", "Complete", "screen.complete"),
    ("↑ ↓", "Earlier options", ""), ("Esc", "Cancel", "screen.leave"),
)  # fmt: skip
CHECKING = "checking with fio ..."
MAX_LISTED = 12


class OptionPrompt(Prompt):
    """Asks for an option of fio. ``history`` are the options typed earlier, newest last. ``names``
    returns every option with its description, ``check`` raises UsageError. These two may take a
    while, because they run fio."""

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
        super().__init__(title, description, "", check, charset, OPTION_HINTS)
        self._names = names
        self._history = history
        self._history_index = len(history)
        self._draft = ""
        self.answered = asyncio.Event()
        self.answered.set()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the text if it is valid, else show what is wrong with it. Keys typed meanwhile
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
        """Complete the name as far as it is unambiguous; else show the possible names."""
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
        """Recall earlier input, or go back to later input."""
        field = self.query_one(Input)
        if self._history_index == len(self._history):
            self._draft = field.value
        self._history_index = max(0, min(len(self._history), self._history_index + by))
        field.value = (*self._history, self._draft)[self._history_index]
        field.cursor_position = len(field.value)
