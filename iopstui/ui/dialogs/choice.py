"""A small question with a few answers, over the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from iopstui.ui.core.key import HELP
from iopstui.ui.dialogs.typed import Typed
from iopstui.ui.draw.style import Charset

if TYPE_CHECKING:
    from iopstui.ui.port import Port

FOOT = "Enter takes it   Esc goes back"


class Choice(Typed, ModalScreen["str | None"]):
    """Gives the chosen value, or ``None``."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("escape,q,b", "leave", "back"),
        Binding("question_mark,f1", HELP, "help"),
    ]
    about = "A value is chosen: Enter takes the one under the cursor; typing narrows the list."

    def __init__(self, title: str, values: Sequence[str], now: str, charset: Charset) -> None:
        super().__init__()
        self._title = title
        self._values = self._shown = list(values)
        self._now = now
        self._charset = charset

    def compose(self) -> ComposeResult:
        """A title, the values, the keys."""
        with Vertical(id="choice", classes=self._charset.name):
            now = f" (now {self._now})" if self._now else ""
            yield Static(Text(f"{self._title}{now}", style="bold"))
            yield OptionList(*(Option(Text(value)) for value in self._values))
            yield Static(Text(FOOT, style="dim"), id="choice-foot")

    def on_mount(self) -> None:
        """The value that is set now is the one under the cursor."""
        options = self.query_one(OptionList)
        options.highlighted = self._values.index(self._now) if self._now in self._values else 0
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close with the chosen value."""
        self.dismiss(self._shown[event.option_index])

    def narrow(self) -> None:
        """Show the values that have all of the words."""
        self._shown = [value for value in self._values if self.has(value)]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(Text(value)) for value in self._shown])
        options.highlighted = 0 if self._shown else None
        foot = self._charset.text(self.filtering or FOOT)
        self.query_one("#choice-foot", Static).update(Text(foot, style="dim"))

    def action_leave(self) -> None:
        """Close without a value."""
        self.dismiss(None)


def last_or_new(
    port: Port, title: str, last: str, new: str, show: Callable[[], None], begin: Callable[[], None]
) -> None:
    """Ask whether the last one of something is shown (``last`` says which; "": nothing is to be
    said of it) or a ``new`` one begun."""
    values = (f"show the last one ({last})" if last else "show the last one", new)

    def chosen(value: str | None) -> None:
        if value is not None:
            (begin if value == new else show)()

    port.push(Choice(title, values, "", port.charset), chosen)
