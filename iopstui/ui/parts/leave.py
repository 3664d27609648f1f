"""Key q: leave iopstui."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from iopstui.ui.actions import ALL_SCREENS, ANYWHERE, Action, Part
from iopstui.ui.core.key import Key
from iopstui.ui.port import Port


class LeaveKeys(Part):
    """``leave`` stops whatever runs, then ends the screen."""

    def __init__(self, port: Port, leave: Callable[[], Awaitable[None]]) -> None:
        super().__init__(port)
        self._leave = leave

    def quit(self) -> Awaitable[None]:
        """Stops a running job first; the terminal is left as it was."""
        return self._leave()

    ACTIONS = (
        Action(
            "quit", (Key("q", "q"), Key("ctrl+c", "ctrl+c")), quit, title="Quit",
            note="a running job is stopped first",
            help="quit; a running job is stopped, scratch files are removed", place=270,
            term="q, ctrl+c", scope=ANYWHERE, offered_on=ALL_SCREENS,
        ),
    )  # fmt: skip
