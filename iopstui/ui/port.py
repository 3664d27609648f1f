"""The port: all that the parts of the screen may use of the application."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from iopstui.ui.draw.theme import change_theme, plain_name, theme_names
from iopstui.ui.state.live import LiveState

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen
    from textual.timer import Timer

    from iopstui.recording.replay import ReplaySession
    from iopstui.session.live import LiveSession
    from iopstui.ui.core.key import Controller
    from iopstui.ui.dashboard.screen import Dashboard
    from iopstui.ui.draw.style import Charset

Result = TypeVar("Result")


class Port:
    """The current measurement, and the actions of the screen. ``session`` and ``dashboard`` are
    ``None`` until a target is chosen. In a replay nothing can be measured."""

    def __init__(
        self,
        app: App[int],
        charset: Charset,
        refresh_footer: Callable[[], None],
        leave: Callable[[Exception], None],
        open_help: Callable[[], None],
        save_layout: Callable[[], None],
        replay: bool = False,
    ) -> None:
        self.charset = charset
        self.refresh_footer = refresh_footer
        self.leave_with = leave
        self.open_help = open_help
        self.save_layout = save_layout
        self.state = LiveState()
        self.session: Controller | None = None
        self.dashboard: Dashboard | None = None
        self._app = app
        self.is_replay = replay
        """Whether a recording is played."""

    @property
    def live(self) -> LiveSession | None:
        """The session, if it is a live one; ``None`` in a replay."""
        return None if self.is_replay else cast("LiveSession | None", self.session)

    @property
    def open_session(self) -> Controller:
        """The session. Only for keys that work while there is one."""
        assert self.session is not None
        return self.session

    @property
    def open_dashboard(self) -> Dashboard:
        """The dashboard. Only for keys that work while there is one."""
        assert self.dashboard is not None
        return self.dashboard

    @property
    def replay(self) -> ReplaySession | None:
        """The session that plays a recording of this program; ``None`` in a live one."""
        from iopstui.recording.replay import ReplaySession

        return self.session if isinstance(self.session, ReplaySession) else None

    @property
    def replay_path(self) -> Path | None:
        """The path of the recording that is played; ``None`` if nothing is played."""
        return cast("ReplaySession", self.session).path if self.is_replay and self.session else None

    # -- the present session

    def begin(self, session: Controller, state: LiveState, dashboard: Dashboard) -> None:
        """Make this session, its state and its dashboard the ones that all parts use."""
        self.session, self.state, self.dashboard = session, state, dashboard

    def restart_state(self, state: LiveState) -> None:
        """Use a new state, because another position of the same recording follows."""
        self.state = state
        if self.dashboard is not None:
            self.dashboard.restart_state(state)

    def close_session(self) -> None:
        """Close the session before another one is opened. Its dashboard stays until
        ``close_dashboard``."""
        session, self.session = self.session, None
        if session is not None:
            session.close()

    def close_dashboard(self) -> None:
        dashboard, self.dashboard = self.dashboard, None
        if dashboard is not None and dashboard.is_current:
            self._app.pop_screen()

    # -- actions of the screen

    def copy(self, text: str) -> None:
        """Have the terminal copy this text."""
        if text:
            self._app.copy_to_clipboard(text)

    def show_message(self, level: str, text: str) -> None:
        """Show a message of the screen's own, at once."""
        self.state.add_message(level, text)
        self.paint()

    def paint(self) -> None:
        if self.dashboard is not None:
            self.dashboard.paint()

    @property
    def shown_state(self) -> LiveState:
        """The state that panes and lists show: the newest one, or that of the frozen second."""
        return self.dashboard.shown_state if self.dashboard is not None else self.state

    @property
    def in_cell(self) -> bool:
        """Whether a cell of the heat map is chosen."""
        return self.dashboard is not None and self.dashboard.chosen_cell is not None

    @property
    def screen(self) -> Screen[Any]:
        return self._app.screen

    def is_shown(self, screen: Screen[Any] | None) -> bool:
        """Whether ``screen`` is open, with nothing over it."""
        return screen is not None and bool(self._app.screen_stack) and self.screen is screen

    def push(
        self, screen: Screen[Result], on_result: Callable[[Result | None], None] | None = None
    ) -> None:
        self._app.push_screen(screen, on_result)

    def apply_theme(self, theme: str) -> None:
        """Switch the screen to this theme."""
        change_theme(self._app, theme)

    def themes(self) -> tuple[tuple[str, ...], str]:
        """The names of the themes that can be shown here, and the name of the present one."""
        return theme_names(self._app), plain_name(self._app.theme)

    def pictures(self) -> Mapping[str, str]:
        """Pictures of the screen, by file suffix."""
        from iopstui.ui.core.clipboard import render_pictures

        return render_pictures(self._app)

    def pop(self) -> None:
        self._app.pop_screen()

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return self._app.set_timer(seconds, callback)

    def call_every(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return self._app.set_interval(seconds, callback)

    def run_in_background(self, coroutine: Coroutine[Any, Any, None], group: str) -> None:
        """Run a coroutine in the background; an earlier one of the same ``group`` is cancelled."""
        self._app.run_worker(coroutine, group=group, exclusive=True)

    def leave(self, code: int) -> None:
        self._app.exit(code)
