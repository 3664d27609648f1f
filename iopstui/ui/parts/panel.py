"""Keys that move the focus between panels, zoom one of them, and leave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from iopstui.ui.actions import ALL_SCREENS, ANYWHERE, IDLE, RUNNING, Action, Footer, Part
from iopstui.ui.core.key import Key
from iopstui.ui.port import Port


class LeaveKeys(Part):
    """The key q. ``leave`` stops whatever runs, then ends the screen."""

    def __init__(self, port: Port, leave: Callable[[], Awaitable[None]]) -> None:
        super().__init__(port)
        self._leave = leave

    def quit(self) -> Awaitable[None]:
        """Stop a running job, then end the screen and restore the terminal."""
        return self._leave()

    ACTIONS = (
        Action(
            "quit", (Key("q", "q"), Key("ctrl+c", "ctrl+c")), quit, title="Quit",
            note="a running job is stopped first",
            help="quit; a running job is stopped, scratch files are removed", place=270,
            term="q, ctrl+c", scope=ANYWHERE, offered_on=ALL_SCREENS,
        ),
    )  # fmt: skip


class PanelKeys(Part):
    """Keys of panels. On a large screen all panels are visible; on a small one, one pane fills the
    screen."""

    @property
    def can_open(self) -> bool:
        dashboard = self.port.dashboard
        return dashboard is not None and dashboard.allows_fullscreen and not dashboard.tabbed

    @property
    def can_close(self) -> bool:
        """Whether Esc has something to close: a zoomed panel, a span of time, or a frozen screen. A
        chosen cell comes before these."""
        dashboard = self.port.dashboard
        return (
            dashboard is not None and dashboard.chosen_cell is None and dashboard.has_something_open
        )

    def open(self) -> None:
        self.port.open_dashboard.show_fullscreen(self.port.open_dashboard.tab)
        self.port.refresh_footer()

    def close(self) -> None:
        """Undo the first of these that applies: a zoomed panel, a chosen span of time, a frozen
        screen."""
        dashboard = self.port.open_dashboard
        if dashboard.fullscreen:
            dashboard.show_fullscreen(None)
        elif dashboard.span is not None:
            dashboard.clear_span()
        else:
            dashboard.freeze()
        self.port.refresh_footer()
        dashboard.paint(even_if_frozen=True)

    def tab(self, tab: int) -> None:
        """Zoom a panel, or show all panels again if it is zoomed. On a small screen, show that
        pane."""
        dashboard = self.port.open_dashboard
        if tab >= len(dashboard.tabs):
            return
        if not dashboard.fullscreen and dashboard.show_tab(tab):
            return
        is_open = dashboard.fullscreen and dashboard.tab == tab
        dashboard.show_fullscreen(None if is_open else tab)

    def show_all(self) -> None:
        if self.port.open_dashboard.fullscreen:
            self.port.open_dashboard.show_fullscreen(None)

    def next_tab(self, by: int) -> None:
        dashboard = self.port.open_dashboard
        following = (dashboard.tab + by) % len(dashboard.tabs)
        if dashboard.fullscreen:
            dashboard.show_fullscreen(following)
        elif not dashboard.show_tab(following):
            dashboard.focus_by(by)

    ACTIONS = (
        Action(
            "tab", (Key("1", "1", 0), Key("2", "2", 1), Key("3", "3", 2), Key("4", "4", 3),
             Key("5", "5", 4), Key("6", "6", 5)), tab,
            help="zoom a panel; again: show all. Tab moves the focus, Enter zooms",
            place=100, term="1 2 3 4 5 6, tab",
        ),
        Action(
            "open_panel", (Key("enter", "Enter", on_dashboard=True),), open,
            title="Zoom the panel", applies=lambda keys: keys.can_open,
            help="zoom the focused panel to the whole screen", place=101,
        ),
        Action(
            "close_panel", (Key("escape", "Esc", on_dashboard=True),), close,
            applies=lambda keys: keys.can_close,
            help="show all panels again, or return to now", place=102,
            footer=(Footer("Back", {IDLE: 4, RUNNING: 4}, when=lambda keys: keys.can_close),),
        ),
        Action(
            "everything", (Key("0", "0"),), show_all, help="all panels again", place=103,
        ),
        Action(
            "next_tab",
            (Key("tab", "tab", 1, on_dashboard=True),
             Key("shift+tab", "shift+tab", -1, on_dashboard=True)), next_tab,
        ),
    )  # fmt: skip
