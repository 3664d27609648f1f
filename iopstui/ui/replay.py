"""The screen of a replay."""

from __future__ import annotations

from collections.abc import Callable

from textual.message import Message

from iopstui.errors import EXIT_OK
from iopstui.model.volumes.promised import PromisedFigures
from iopstui.recording.reader import recording_path
from iopstui.recording.replay import ReplaySession, open_replay
from iopstui.ui.actions import Actions
from iopstui.ui.app import IopstuiApp, run_to_end
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.core.key import Controller, StripClicked
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw.style import Charset
from iopstui.ui.keys import REPLAY_BINDINGS, LiveDashboard
from iopstui.ui.parts.replay import HELP, RECORDED, REPLACED_ACTIONS, ReplayKeys
from iopstui.ui.state.live import LiveState


class ReplayFailed(Message):
    """The replay has ended because of ``error``."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class RecordingApp(IopstuiApp):
    """The base of the applications that play recordings, of one host or of many."""

    _keys: ReplayKeys

    def on_strip_clicked(self, message: StripClicked) -> None:
        """Go to the second at the clicked position of the bar."""
        self._keys.go_to(message.column, message.width)

    def _failed(self, error: Exception) -> None:
        """Report an error that ends the replay; called in the replay's thread."""
        self.post_message(ReplayFailed(error))

    def on_replay_failed(self, message: ReplayFailed) -> None:
        """End the screen; the error is printed after the terminal is restored."""
        self.leave_with(message.error)

    def exit_code(self) -> int:
        """The exit code of a replay: 0 even if the recorded run failed."""
        return EXIT_OK


class ReplayApp(RecordingApp):
    """Plays ``session``. Keys that measure are refused with a message."""

    BINDINGS = REPLAY_BINDINGS

    help_first = HELP

    def __init__(
        self,
        session: ReplaySession,
        charset: Charset | None = None,
        theme: str = "",
        volume: PromisedFigures | None = None,
        on_home: Callable[[], None] | None = None,
    ) -> None:
        self.session = session
        super().__init__(
            Backend(lambda paths: session, dict, (), volume=volume, on_home=on_home),
            FirstView(pick=False),
            Appearance(charset, theme),
            replay=True,
            no_experiments=RECORDED,
        )
        self._keys = ReplayKeys(self.port, session)
        parts = [*self.actions.parts, self._keys]
        self.actions = Actions(parts, REPLACED_ACTIONS)
        session.on_jump = self.feed.jump
        session.on_failure = self._failed

    def make_dashboard(self, session: Controller, state: LiveState) -> Dashboard:
        """Make the dashboard, with a bar of the whole recording."""
        dashboard = LiveDashboard(session, state, self.charset, self._keys.strip)
        dashboard.is_replay = True
        dashboard.has_jobs = self.session.has_jobs
        return dashboard

    def restart_state(self) -> None:
        if self.dashboard is not None:
            self.port.restart_state(LiveState(self.session.target.opened))

    def next_job(self) -> str:
        return self.session.job or ""


def run_replay(
    name: str, speed: float, theme: str = "", volume: PromisedFigures | None = None,
    on_home: Callable[[], None] | None = None,
) -> int:  # fmt: skip
    """Play a recording on the screen until the user quits. Raises UsageError if it is not a
    recording."""
    return show_session(open_replay(recording_path(name), speed), theme, volume, on_home)


def show_session(
    session: ReplaySession, theme: str = "", volume: PromisedFigures | None = None,
    on_home: Callable[[], None] | None = None,
) -> int:  # fmt: skip
    """Play ``session`` on the screen until the user quits, then close it. Returns the exit code.
    ``volume`` are the promised figures: their limits are drawn, and credits are counted from the
    first shown second on. ``on_home`` is called if the user quits with Esc, to go to the home
    screen."""
    app = ReplayApp(session, theme=theme, volume=volume, on_home=on_home)
    return run_to_end(app, session.close)
