"""The same screen, from a recording."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from iopstui import units as f
from iopstui.model.device import BlockDevice
from iopstui.session.events import Event, FrameReady, Notice
from iopstui.session.recording import recording_path
from iopstui.session.replay import ReplaySession
from iopstui.session.signals import stopping
from iopstui.ui.app import IopstuiApp, run_to_end
from iopstui.ui.experiment_keys import OVER_EXPERIMENT
from iopstui.ui.messages import EventsWaiting
from iopstui.ui.state import LiveState
from iopstui.ui.style import Charset
from iopstui.ui.widgets.bars import KeyHint

SEEK_S = 10.0
ELSEWHERE = Notice(0.0, "jump", "")
"""Stands in the queue where the events of another place begin."""


class ReplayFailed(Message):
    """``error`` has ended the replay."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class ReplayApp(IopstuiApp):
    """Plays ``session``: keys that measure say that they can't, the others look around in it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "seek(-1)", "10 s back"),
        Binding("right", "seek(1)", "10 s on"),
        Binding("home", "edge(False)", "to the beginning"),
        Binding("end", "edge(True)", "to the end"),
        Binding("less_than_sign", "speed(False)", "slower"),
        Binding("greater_than_sign", "speed(True)", "faster"),
        Binding("full_stop", "one", "next sample"),
    ]

    over_experiment = OVER_EXPERIMENT | {"freeze"}

    def __init__(self, session: ReplaySession, charset: Charset | None = None) -> None:
        super().__init__(
            lambda paths: session, (), None, {}, _no_devices, (), pick=False, charset=charset
        )
        self.session = session
        self._incoming: deque[Event] = deque()
        session.on_jump = lambda: self._sink(ELSEWHERE)
        session.on_failure = self._failed

    # -- events

    def _failed(self, error: Exception) -> None:
        """In the session's thread: it can't go on."""
        self.post_message(ReplayFailed(error))

    def on_replay_failed(self, message: ReplayFailed) -> None:
        """The words go to the terminal as it was before."""
        self.leave_with(message.error)

    def _sink(self, event: Event) -> None:
        self._incoming.append(event)
        if isinstance(event, FrameReady):
            self._arrived = time.monotonic()
        self._wake_up()

    def on_events_waiting(self, message: EventsWaiting) -> None:
        """Another place in the recording is a state of its own."""
        self._wake_sent = False
        while self._incoming:
            event = self._incoming.popleft()
            if event is ELSEWHERE:
                # what was not shown yet need not be shown any more
                self._queue.clear()
                self._begin_anew()
            else:
                self._queue.append(event)
        self._refresh_hints()
        super().on_events_waiting(message)

    def _begin_anew(self) -> None:
        dashboard = self.dashboard
        if dashboard is None:
            return
        self.state = dashboard.state = LiveState(self.session.target.opened)
        dashboard.window.start = 0.0
        for chart in dashboard.charts:
            chart.forget()

    def _refresh_hints(self) -> None:
        dashboard, session = self.dashboard, self.session
        if dashboard is None:
            return
        dashboard.next_job = session.job or ""
        state = "paused" if session.paused else f"×{session.speed:g}"
        space = "go on" if session.paused else "pause"
        if session.at >= session.end:
            space = "again"
        where = f"{f.clock(session.at)} / {f.clock(session.end)}"
        known = self.state.experiment
        show = (KeyHint("w", f"show the {known.noun}"),) if known is not None else ()
        dashboard.hints = (
            KeyHint(f"REPLAY {where}", state), KeyHint("space", space), *show,
            KeyHint("← →", "10 s"), KeyHint("home end", "go there"), KeyHint("< >", "speed"),
            KeyHint(".", "next"), KeyHint("- +", "time"), KeyHint("e", "messages"),
            KeyHint("ctrl+p", "all"),
        )  # fmt: skip

    def _exit_code(self) -> int:
        return 0

    # -- keys

    def action_freeze(self) -> None:
        """space"""
        at_end = self.session.at >= self.session.end
        self.session.pause(not self.session.paused and not at_end)
        self._show_place()

    def action_seek(self, way: int) -> None:
        """← →"""
        self.session.seek_by(way * SEEK_S)

    def action_edge(self, end: bool) -> None:
        """home, end"""
        self.session.seek(self.session.end if end else 0.0)

    def action_speed(self, up: bool) -> None:
        """< >"""
        self._say("info", f"×{self.session.turn_speed(up):g}: seconds of the recording in one")
        self._show_place()

    def action_one(self) -> None:
        """."""
        self.session.step()

    def _show_place(self) -> None:
        self._refresh_hints()
        if self.dashboard is not None:
            self.dashboard.paint()

    def action_run_or_stop(self) -> None:
        """r"""
        self._only_a_recording()

    def action_choose_job(self) -> None:
        """j"""
        self._only_a_recording()

    def action_knob(self, option: str, up: bool) -> None:
        """[ ] { }"""
        self._only_a_recording()

    def action_block_size(self) -> None:
        """b"""
        self._only_a_recording()

    def action_mark(self) -> None:
        """m"""
        self._only_a_recording()

    def action_choose_device(self) -> None:
        """d"""
        self._only_a_recording()

    def action_option(self) -> None:
        """:"""
        self._only_a_recording()

    def action_bind_queues(self) -> None:
        """B"""
        self._only_a_recording()

    def action_lessons(self) -> None:
        """l"""
        self._only_a_recording()

    def action_record(self) -> None:
        """R"""
        self._only_a_recording()

    def open_experiment(self, kind: str) -> None:
        """w, c"""
        if self.state.experiment is not None:
            self.show_experiment()
        else:
            self._only_a_recording()

    def experiment_hints(self) -> Sequence[KeyHint]:
        """Where it is, and pause."""
        return self.dashboard.hints[:2] if self.dashboard is not None else ()

    def experiment_begun(self) -> None:
        """It is shown when it is asked for."""

    def no_experiments(self) -> None:
        """Why none can be begun here."""
        self._only_a_recording()

    def _only_a_recording(self) -> None:
        self._say("info", "this is a recording: nothing can be run, changed or marked in it")


def _no_devices() -> Mapping[str, BlockDevice]:
    return {}


def run_replay(name: str, speed: float) -> int:
    """Plays a recording on the screen until it is left. Raises UsageError if it is none."""
    session = ReplaySession(recording_path(name), speed)
    app = ReplayApp(session)
    with stopping(app.interrupt):
        try:
            return run_to_end(app)
        finally:
            session.close()
