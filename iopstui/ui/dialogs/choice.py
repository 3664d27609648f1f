"""A small question with a few answers, over the dashboard."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from iopstui.ui.draw.style import Charset


class Choice(ModalScreen["str | None"]):
    """Gives the chosen value, or ``None``."""

    BINDINGS = [Binding("escape,q,b", "leave", "back")]  # noqa: RUF012 (Textual's own form)

    def __init__(self, title: str, values: Sequence[str], now: str, charset: Charset) -> None:
        super().__init__()
        self._title = title
        self._values = list(values)
        self._now = now
        self._charset = charset

    def compose(self) -> ComposeResult:
        """A title, the values, the keys."""
        with Vertical(id="choice", classes=self._charset.name):
            now = f" (now {self._now})" if self._now else ""
            yield Static(Text(f"{self._title}{now}", style="bold"))
            yield OptionList(*(Option(Text(value)) for value in self._values))
            yield Static(Text("Enter takes it   Esc goes back", style="dim"))

    def on_mount(self) -> None:
        """The value that is set now is the one under the cursor."""
        options = self.query_one(OptionList)
        options.highlighted = self._values.index(self._now) if self._now in self._values else 0
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close with the chosen value."""
        self.dismiss(self._values[event.option_index])

    def action_leave(self) -> None:
        """Close without a value."""
        self.dismiss(None)
