"""Keys of the kernel's half of the screen: findings, queues, settings, options, heat map."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from iopstui.ui.messages import Controller
from iopstui.ui.screens.dashboard import Dashboard
from iopstui.ui.state import LiveState
from iopstui.ui.style import Charset
from iopstui.ui.widgets.bars import KeyHint

Command = tuple[str, str, Callable[[], Any]]


class KernelKeys(App[int]):
    """What these keys do. The rest of the application is ui/app.py."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "findings", "findings"),
    ]

    charset: Charset
    state: LiveState
    controller: Controller | None
    dashboard: Dashboard | None
    overrides: dict[str, str]

    @abstractmethod
    def _say(self, level: str, text: str) -> None:
        """A message of the screen's own."""

    def kernel_commands(self) -> list[Command]:
        """For the command palette."""
        return [
            ("Findings", "key f: what the evidence shows, with its numbers", self.action_findings),
        ]

    def action_findings(self) -> None:
        """f"""
        from iopstui.ui.screens.live_rows import LiveRows
        from iopstui.ui.widgets.finding_line import listed

        state, charset = self.state, self.charset
        title = "findings, the newest first"
        self.push_screen(LiveRows(title, lambda width: listed(state, width, charset), charset))


KERNEL_ACTIONS = {"findings"}
KERNEL_HINTS = (KeyHint("f", "findings"),)
