"""Esc, which leads to the home screen, and the choice of a target there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from iopstui import format as f
from iopstui.errors import EXIT_OK, IopstuiError, UsageError
from iopstui.model.block.target import DEVICE
from iopstui.text import printable
from iopstui.ui.actions import IDLE, REPLAY, RUNNING, Action, Footer, Part
from iopstui.ui.core.backend import Backend
from iopstui.ui.core.key import Controller, Key
from iopstui.ui.port import Port
from iopstui.ui.state.live import LiveState

if TYPE_CHECKING:
    from iopstui.ui.home.memory import HomeMemory
    from iopstui.ui.home.screen import HomeChoice, OpenSession

DEMO_NAME = "demo"
MOST_BESIDE_A_JOB = 100
"""Devices that home measures while a job runs elsewhere: each costs 20 µs of CPU time a second."""
OPEN_TITLE, OTHER_FILE = "Open a recording", "Another file ..."


class TargetKeys(Part):
    """Creates the session for the chosen targets.

    ``on_open`` is called with each new session, ``on_close`` before another one replaces it.
    ``begin`` starts the action that was chosen on the home screen."""

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
        self._memory: HomeMemory | None = None
        self._is_home = False

    def begin(self, targets: Sequence[str], pick: bool) -> None:
        """Open ``targets``, or the home screen. Without a home screen, an error ends the screen."""
        self._pick = pick
        if pick:
            self._open_picker()
        else:
            self._open(targets)

    def _open_picker(self, reason: str = "") -> None:
        from iopstui.ui.home.memory import LIVE_S, HomeMemory
        from iopstui.ui.home.screen import HomeScreen

        if self._memory is None:
            self._memory = HomeMemory()
            if self._backend.loads is not None:
                self.port.call_every(LIVE_S, self._measure_disks)
        self._is_home = True
        picker = HomeScreen(
            self._backend, self.port.charset, reason, self._offered_actions(), self._first_run,
            self._open_session(), self._open_over_home, self._memory,
        )  # fmt: skip
        self.port.push(picker, self._picked)

    def _measure_disks(self) -> None:
        """Measure the disks while home is not shown, so that it has present figures when somebody
        comes back. Not of very many disks beside a job, which this could disturb."""
        from iopstui.ui.home.memory import BEGAN_S

        memory, loads = self._memory, self._backend.loads
        if self._is_home or memory is None or loads is None:
            return
        if not self.is_busy or len(memory.devices or ()) <= MOST_BESIDE_A_JOB:
            memory.measure(loads, monotonic() - BEGAN_S)

    def _open_session(self) -> OpenSession | None:
        """The session that continues while the home screen is open."""
        from iopstui.ui.home.screen import OpenSession

        session, state = self.port.session, self.port.state
        if session is None:
            return None
        target = session.target
        device = target.devices_below[0] if len(target.devices_below) == 1 else ""
        paths = tuple(place.path for place in target.places)
        name = printable(target.name if target.kind == DEVICE else target.path)
        return OpenSession(
            paths, name, device, lambda: running_text(state), lambda: activity_text(state),
            lambda: None if self.port.is_replay else state.answer, lambda: self.is_busy,
            session.devices.get(device),
        )  # fmt: skip

    def _open_over_home(self, name: str) -> None:
        from iopstui.ui.home import screen as home

        if name == home.CHECK:
            from iopstui.ui.dialogs.text import doctor_screen

            self.port.push(doctor_screen(self.port.charset))
        elif name == home.OPEN:
            self._choose_recording()

    def _offered_actions(self) -> frozenset[str]:
        """The actions that the home screen offers. Recordings and features' actions are left out if
        they can't work here."""
        from iopstui.ui.home import screen as home

        offered = {home.WATCH, home.RUN, home.SCRATCH, home.SWEEP, home.COMPARE}
        if self._backend.conditions is not None:
            offered |= home.FEATURE_NAMES
        offered |= {home.OPEN, home.DEMO, home.CHECK} if self._backend.play is not None else set()
        return frozenset(offered)

    def _picked(self, choice: HomeChoice | None) -> None:
        """Open what was chosen. If that would end something that runs, ask first."""
        self._is_home = False
        if choice is None:
            return
        if choice.opened:
            self._begin_action(choice.action)
            return
        if not self.is_busy:
            self._take(choice)
            return
        from iopstui.ui.dialogs.questions import Confirm
        from iopstui.ui.home import screen as home

        text = f"{activity_text(self.port.state)}. It has to end before anything else is opened."
        self.port.push(
            Confirm(home.STOP_TITLE, text, "Stop", self.port.charset),
            lambda yes: self._take(choice) if yes else self.go_home(),
        )

    def _take(self, choice: HomeChoice) -> None:
        """Open what was chosen; without paths, use a scratch file."""
        from iopstui.ui.home import screen as home

        if choice.action == home.DEMO:
            self._play(DEMO_NAME)
        elif choice.action == home.OPEN:
            if reason := why_not_playable(choice.paths[0]):
                self._open_picker(reason)
            else:
                self._play(choice.paths[0])
        else:
            if self.port.session is not None:
                self._on_close()
            if self._open(choice.paths):
                self._begin_action(choice.action)

    def _choose_recording(self) -> None:
        """Choose a recent recording. A large home screen has the same list."""
        from iopstui.ui.dialogs.questions import Choice

        found = self._backend.recent() if self._backend.recent is not None else ()
        recent = {printable(str(recording.path)): str(recording.path) for recording in found}
        if not recent:
            self._ask_for_recording()
            return

        def chosen(value: str | None) -> None:
            if value in recent and (reason := why_not_playable(recent[value])):
                self._ask_for_recording(recent[value], reason)
            elif value in recent:
                self._play(recent[value])
            elif value is not None:
                self._ask_for_recording("" if value == OTHER_FILE else value)

        charset = self.port.charset
        self.port.push(Choice(OPEN_TITLE, [*recent], "", charset, other=OTHER_FILE), chosen)

    def _ask_for_recording(self, begun: str = "", reason: str = "") -> None:
        from iopstui.ui.dialogs.questions import Prompt

        def typed(value: str | None) -> None:
            if value is not None:
                self._play(os.path.expanduser(value.strip()))

        text = reason or "Path of a recording (made with S on a dashboard, or by run --record)."
        prompt = Prompt(OPEN_TITLE, text, "", playable, self.port.charset, typed=begun)
        self.port.push(prompt, typed)

    def _play(self, name: str) -> None:
        if self._backend.play is not None:
            self._backend.play(name)
            self.port.leave(EXIT_OK)

    def _open(self, targets: Sequence[str]) -> bool:
        """Open the targets. If that fails, shows a message and returns False."""
        try:
            session = self._backend.make_controller(targets)
        except IopstuiError as error:
            if self._pick:
                self._open_picker(error.full_text)
            else:
                self.port.leave_with(error)
            return False
        self._pick = True
        self._on_open(session)
        return True

    @property
    def is_busy(self) -> bool:
        """Whether a job, a sweep or a comparison runs."""
        experiment = self.port.state.experiment
        return self.port.state.running or (experiment is not None and experiment.active)

    @property
    def leads_home(self) -> bool:
        """Whether there is a home screen, either to open or to go back to."""
        return self._backend.on_home is not None or not self.port.is_replay

    @property
    def has_home(self) -> bool:
        """Whether Esc leads to the home screen now, because the dashboard has nothing that Esc
        would close first."""
        dashboard = self.port.dashboard
        return dashboard is not None and dashboard.has_home and not dashboard.has_something_open

    def go_home(self) -> None:
        """Show the home screen. A running job or experiment continues."""
        if self._backend.on_home is not None:
            self._backend.on_home()
            self.port.leave(EXIT_OK)
        elif self.port.dashboard is not None:
            self._open_picker()

    ACTIONS = (
        Action(
            "home", (Key("escape", "Esc", on_dashboard=True),), go_home, title="Home: all disks",
            help="one level up: from a page or a zoomed panel to the dashboard, from there to the "
                 "home screen with all disks. A running job goes on", place=110,
            footer=(
                Footer("Home", {IDLE: 45, REPLAY: 60}, when=lambda targets: targets.has_home),
                Footer("Home, job goes on", {RUNNING: 60},
                       when=lambda targets: targets.has_home),
            ),
            applies=lambda targets: targets.has_home,
        ),
    )  # fmt: skip


def running_text(state: LiveState) -> str:
    """What a session does, in a word or two."""
    experiment = state.experiment
    if experiment is not None and experiment.active:
        return experiment.noun
    if state.running and state.step:
        return printable(state.step.job or "job")
    return f"{experiment.noun} result" if experiment is not None else "watched"


def activity_text(state: LiveState) -> str:
    """What a session does now, in words."""
    experiment = state.experiment
    if experiment is not None and (experiment.active or not state.running):
        return experiment.progress()
    if not state.running:
        return "Watched, no job runs"
    fio = state.fio_now
    rate = f", {f.number(fio.total.iops)} IOPS" if fio is not None else ""
    return f"{running_text(state)} runs{rate}"


def why_not_playable(text: str) -> str:
    """Why this file is not a recording; "" if it is one. It may have changed since it was
    listed."""
    try:
        playable(text)
    except IopstuiError as error:
        return error.full_text
    return ""


def playable(text: str) -> None:
    """Raise UsageError if this is not a recording."""
    from iopstui.recording.reader import recording_path
    from iopstui.recording.replay import open_replay

    if not text.strip():
        raise UsageError("Type the path of a recording.")
    with contextlib.closing(open_replay(recording_path(os.path.expanduser(text.strip())))):
        pass
