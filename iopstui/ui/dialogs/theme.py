"""The list of themes: the one under the cursor is shown at once."""

from __future__ import annotations

from iopstui.ui.core.key import Key
from iopstui.ui.core.preferences import PREFERENCES
from iopstui.ui.dialogs.questions import Choice
from iopstui.ui.draw.style import Charset
from iopstui.ui.draw.theme import change_theme


class ThemeChoice(Choice):
    """Returns the chosen theme, or ``None``. In both cases the screen then looks as before."""

    about = "The screen shows the theme under the cursor. Enter keeps it, Esc goes back."

    def __init__(
        self, names: tuple[str, ...], current: str, charset: Charset, opened_by: Key | None = None
    ) -> None:
        super().__init__("Theme", names, current, charset, opened_by)

    def explain(self) -> None:
        if self.selected is not None:
            self._try_theme(self.selected)

    def take(self) -> None:
        """Show the theme from before."""
        self._try_theme(self._current)
        super().take()

    def action_leave(self) -> None:
        """Show the theme from before."""
        self._try_theme(self._current)
        super().action_leave()

    def _try_theme(self, name: str) -> None:
        PREFERENCES.previewing = True
        try:
            change_theme(self.app, name)
        finally:
            PREFERENCES.previewing = False
