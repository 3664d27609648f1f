"""A small question with a few answers, over the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from iopstui.ui.core.key import Key
from iopstui.ui.core.modal import LIST_KEYS, Hint, Modal
from iopstui.ui.dialogs.type_to_filter import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.style import Charset

if TYPE_CHECKING:
    from iopstui.ui.port import Port

HINTS: tuple[Hint, ...] = (
    ("Enter", "Select", "screen.take"), ("Esc", "Cancel", "screen.leave"), FILTER_HINT,
)  # fmt: skip


class Choice(TypeToFilter, Modal["str | None"]):
    """Gives the chosen value, or ``None``."""

    BINDINGS = [*LIST_KEYS]  # noqa: RUF012 (Textual's own form)
    size_class = "narrow"
    about = "Choose a value: typing filters the list, Enter selects."

    def __init__(
        self,
        title: str,
        values: Sequence[str],
        current: str,
        charset: Charset,
        opened_by: Key | None = None,
    ) -> None:
        super().__init__(title, charset, HINTS, opened_by)
        self._values = self._visible_values = list(values)
        self._current = current

    def content(self) -> ComposeResult:
        """The values."""
        yield OptionList(*(Option(Text(value)) for value in self._values))

    def on_mount(self) -> None:
        """Put the cursor on the current value."""
        self.set_title(self.heading, f"now {self._current}" if self._current else "")
        options = self.query_one(OptionList)
        options.highlighted = (
            self._values.index(self._current) if self._current in self._values else 0
        )
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close with the chosen value."""
        self.dismiss(self._visible_values[event.option_index])

    def action_take(self) -> None:
        """Close with the value under the cursor."""
        self.query_one(OptionList).action_select()

    def apply_filter(self) -> None:
        """Show the values that have all of the words."""
        self._visible_values = [value for value in self._values if self.matches(value)]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(Text(value)) for value in self._visible_values])
        options.highlighted = 0 if self._visible_values else None


def ask_last_or_new(
    port: Port, title: str, last: str, new: str, show: Callable[[], None], begin: Callable[[], None]
) -> None:
    """Ask whether to show the last one (``last`` describes it; may be "") or to begin a ``new``
    one."""
    values = (f"Show the last one ({last})" if last else "Show the last one", new)

    def chosen(value: str | None) -> None:
        if value is not None:
            (begin if value == new else show)()

    port.push(Choice(title, values, "", port.charset), chosen)
