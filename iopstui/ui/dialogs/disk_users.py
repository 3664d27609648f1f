"""The disk's users: processes, or with Tab cgroups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.binding import Binding

from iopstui.ui.core.key import Key
from iopstui.ui.core.modal import Hint
from iopstui.ui.dialogs.live_rows import LiveRows, RowBuilder
from iopstui.ui.draw.style import Charset

TITLES = ("Processes", "Cgroups")
SWITCH_HINTS: tuple[Hint, ...] = (
    ("Tab", "By cgroup", "screen.switch"), ("Tab", "By process", "screen.switch"),
)  # fmt: skip


class DiskUsers(LiveRows):
    """``builders`` and ``orders`` are of the processes and of the cgroups."""

    BINDINGS = [Binding("tab", "switch", show=False)]  # noqa: RUF012 (Textual's own form)

    def __init__(
        self, builders: Sequence[RowBuilder], orders: Sequence[Callable[[], Sequence[str]]],
        charset: Charset, opened_by: Key,
    ) -> None:  # fmt: skip
        self.view_index = 0
        super().__init__(
            TITLES[0], lambda width: builders[self.view_index](width), charset, opened_by,
            lambda: orders[self.view_index](),
        )  # fmt: skip
        self.about += " Tab shows cgroups (units, containers, pods), and processes again."
        self._base_hints = self._usual_hints
        self._usual_hints = (SWITCH_HINTS[0], *self._base_hints)

    def on_mount(self) -> None:
        """Show the newest state."""
        super().on_mount()
        self.keys.show(self._usual_hints, self.filter_hint)

    def action_switch(self) -> None:
        """Show the cgroups in place of the processes, or the other way round."""
        self.view_index = 1 - self.view_index
        self._usual_hints = (SWITCH_HINTS[self.view_index], *self._base_hints)
        self.order = ""
        self.keys.show(self._usual_hints, self.filter_hint)
        self.set_title(TITLES[self.view_index], self.note)
        self.action_scroll(-1_000_000)
