"""Key d: choose the target, at the start or later."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.errors import EXIT_OK, IopstuiError, UsageError
from iopstui.text import printable
from iopstui.ui.actions import EXPERIMENT, IDLE, LESSON, Action, Footer, Part
from iopstui.ui.core.backend import Backend
from iopstui.ui.core.key import Key
from iopstui.ui.core.messages import Controller
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.ui.home.screen import HomeChoice

DEMO_NAME = "demo"
MAX_RECENT = 8
OTHER_FILE = "Another file ..."


class TargetKeys(Part):
    """Makes the session for the chosen targets.

    ``on_open`` is called with it, ``on_close`` before another one replaces it. ``begin`` starts the
    action that was chosen on the home screen.
    """

    def __init__(
        self,
        port: Port,
        backend: Backend,
        on_open: Callable[[Controller], None],
        on_close: Callable[[], None],
        begin: Callable[[str], None],
        first_run: bool = False,
    ) -> None:
        super().__init__(port)
        self._backend = backend
        self._on_open = on_open
        self._on_close = on_close
        self._begin_action = begin
        self._first_run = first_run
        self._pick = True

    def begin(self, targets: Sequence[str], pick: bool) -> None:
        """Open ``targets``, or the home screen. Without a home screen, an error ends the screen."""
        self._pick = pick
        if pick:
            self._open_picker()
        else:
            self._open(targets)

    def _open_picker(self, reason: str = "") -> None:
        from iopstui.ui.home.screen import HomeScreen

        backend = self._backend
        picker = HomeScreen(
            backend.discover, self.port.charset, reason, backend.watch, backend.loads,
            self._offered_actions(), self._first_run,
            backend.recent if self.port.session is None else None,
            self.port.session is not None,
            self._open_over_home, backend.busiest,
        )  # fmt: skip
        self.port.push(picker, self._picked)

    def _open_over_home(self, name: str) -> None:
        """Open a dialog over the home screen."""
        from iopstui.ui.home import screen as home

        if name == home.CHECK:
            from iopstui.ui.dialogs.text import doctor_screen

            self.port.push(doctor_screen(self.port.charset))
        elif name == home.OPEN:
            self._choose_recording()

    def _offered_actions(self) -> frozenset[str]:
        """The offered actions; those without a device only before there is a session."""
        from iopstui.ui.home import screen as home

        offered = {home.WATCH, home.RUN, home.SCRATCH, home.SWEEP, home.COMPARE}
        if self.port.session is None:
            offered |= {home.LESSONS} if self._backend.lessons is not None else set()
            offered |= (
                {home.OPEN, home.DEMO, home.CHECK} if self._backend.play is not None else set()
            )
        return frozenset(offered)

    def _picked(self, choice: HomeChoice | None) -> None:
        """Open the choice: no paths are the scratch file; ``None`` leaves."""
        from iopstui.ui.home import screen as home

        if choice is None:
            if self.port.session is None:
                self.port.leave(EXIT_OK)
            return
        if choice.action == home.DEMO:
            self._play(DEMO_NAME)
        elif choice.action == home.OPEN:
            self._play(choice.paths[0])
        else:
            if self.port.session is not None:
                self._on_close()
            if self._open(choice.paths):
                self._begin_action(choice.action)

    def _choose_recording(self) -> None:
        """Choose a recording of this directory, the newest first."""
        from iopstui.recording.recent import recent_paths
        from iopstui.ui.dialogs.choice import Choice

        recent = recent_paths(Path.cwd(), MAX_RECENT)
        if not recent:
            self._ask_for_recording()
            return
        values = [printable(path.name) for path in recent] + [OTHER_FILE]

        def chosen(value: str | None) -> None:
            if value == OTHER_FILE:
                self._ask_for_recording()
            elif value is not None:
                self._play(str(recent[values.index(value)]))

        self.port.push(Choice("Open a recording", values, "", self.port.charset), chosen)

    def _ask_for_recording(self) -> None:
        from iopstui.ui.dialogs.prompt import Prompt

        def typed(value: str | None) -> None:
            if value is not None:
                self._play(value.strip())

        text = "Path of a recording (made with R, or run --record)."
        self.port.push(Prompt("Open a recording", text, "", playable, self.port.charset), typed)

    def _play(self, name: str) -> None:
        if self._backend.play is not None:
            self._backend.play(name)
            self.port.leave(EXIT_OK)

    def _open(self, targets: Sequence[str]) -> bool:
        """Open the targets. False, with a message, if that fails."""
        try:
            session = self._backend.make_controller(targets)
        except IopstuiError as error:
            if self._pick:
                self._open_picker(f"{error.message} {error.hint}".strip())
            else:
                self.port.leave_with(error)
            return False
        self._pick = True
        self._on_open(session)
        return True

    def choose_device(self) -> None:
        """Choose another target on the home screen."""
        if self.port.dashboard is None:
            return
        if self.port.state.running:
            text = "a job is running: stop it first (r), then choose a device (d)"
            self.port.show_message("info", text)
            return
        self._open_picker()

    ACTIONS = (
        Action(
            "choose_device", (Key("d", "d"),), choose_device, title="Choose a device",
            help="choose another device (not while a job runs); the list is live. "
                 "space selects several, Enter opens them together", place=110,
            footer=(Footer("device", {IDLE: 60}),), disturbs=frozenset({EXPERIMENT, LESSON}),
            measures=True,
        ),
    )  # fmt: skip


def playable(text: str) -> None:
    """Raise UsageError if this is no recording."""
    from iopstui.recording.reader import recording_path
    from iopstui.recording.replay import ReplaySession

    if not text.strip():
        raise UsageError("Type the path of a recording.")
    with contextlib.closing(ReplaySession(recording_path(text.strip()), 1.0)):
        pass
