"""The Textual application: takes in the session's events, turns keys into commands."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, IopstuiError
from iopstui.model.device import BlockDevice
from iopstui.model.lesson import Lesson
from iopstui.session.crash import crash_sentence
from iopstui.session.events import Event, ExperimentStarted, FrameReady
from iopstui.session.signals import stopping
from iopstui.text import printable
from iopstui.ui.driver import PatientDriver, Terminal
from iopstui.ui.experiment_keys import EXPERIMENT_ACTIONS, ExperimentKeys, MakeLaboratory
from iopstui.ui.job_keys import JOB_ACTIONS, JobKeys
from iopstui.ui.kernel_keys import KERNEL_ACTIONS, KERNEL_HINTS, KernelKeys
from iopstui.ui.keys_in_order import KeysInOrder
from iopstui.ui.layout import TABS
from iopstui.ui.lesson_keys import LESSON_ACTIONS, LessonKeys, MakeLessons
from iopstui.ui.mends import mend
from iopstui.ui.messages import (
    Controller,
    Discover,
    EventsWaiting,
    MakeController,
    MakeWatch,
    ShippedJob,
)
from iopstui.ui.pace import OwnCost, Pace
from iopstui.ui.record_keys import RECORD_ACTIONS, RecordKeys
from iopstui.ui.screens.dashboard import Dashboard
from iopstui.ui.state import LiveState
from iopstui.ui.style import UTF8, Charset, charset_for
from iopstui.ui.widgets.bars import KeyHint

# Live screens stand still; Textual reads this when it is imported elsewhere too.
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")


class PlainScrollBar(ScrollBarRender):
    """A scroll bar of blanks, for terminals without eighths of a block."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


class IopstuiApp(JobKeys, ExperimentKeys, LessonKeys, KernelKeys, RecordKeys, KeysInOrder):
    """The whole screen. Leaves with an exit code (iopstui.errors).

    ``make_controller`` is given the chosen devices' paths, none for a scratch file in the
    current directory; it may raise ``IopstuiError``. Without ``targets`` the device picker opens
    unless ``pick`` is False. ``refresh_s`` is the least time between two paints of new figures.
    """

    CSS_PATH = "iopstui.tcss"
    TITLE = "iopstui"
    ENABLE_COMMAND_PALETTE = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mark", "mark"),
        Binding("space", "freeze", "freeze"),
        Binding("1", "tab(0)", "IOPS"),
        Binding("2", "tab(1)", "latency"),
        Binding("3", "tab(2)", "numbers"),
        Binding("4", "tab(3)", "CPUs"),
        Binding("plus,equals_sign", "zoom(False)", "zoom in"),
        Binding("minus", "zoom(True)", "zoom out"),
        Binding("d", "choose_device", "device"),
        Binding("e", "log", "messages"),
        Binding("question_mark,f1", "help", "help"),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", priority=True, show=False),
    ]

    def __init__(
        self,
        make_controller: MakeController,
        targets: Sequence[str],
        job: str | None,
        overrides: Mapping[str, str],
        discover: Discover,
        jobs: Sequence[ShippedJob],
        *,
        pick: bool | None = None,
        run_at_once: bool | None = None,
        charset: Charset | None = None,
        refresh_s: float = 0.0,
        watch: MakeWatch | None = None,
        laboratory: MakeLaboratory | None = None,
        lessons: MakeLessons | None = None,
        lesson: Lesson | None = None,
    ) -> None:
        # said here already, because NO_COLOR's filter is chosen before there is a theme
        super().__init__(driver_class=PatientDriver, ansi_color=True)
        self.charset = charset or charset_for()
        self.jobs = list(jobs)
        self.controller: Controller | None = None
        self.dashboard: Dashboard | None = None
        self.state = LiveState()
        self.overrides = dict(overrides)
        self._make_controller = make_controller
        self._targets = tuple(targets)
        self._pick = not targets if pick is None else pick
        self._job = job
        self._run_at_once = job is not None if run_at_once is None else run_at_once
        self._discover = discover
        self._watch = watch
        self.laboratory = laboratory
        self.lessons = lessons
        self.first_lesson = lesson
        self.played = {}
        self._queue: deque[Event] = deque()
        self._wake_sent = False
        self._marks = 0
        self._arrived = time.monotonic()
        self._pace = Pace(refresh_s)
        self._paint_timer = False
        self.terminal: Terminal | None = None
        self._leaving = False
        self.interrupted = False
        self._own_loop: asyncio.AbstractEventLoop | None = None

    # -- start and end

    def on_mount(self) -> None:
        """Opens the dashboard, or the picker where nothing was chosen yet."""
        self.theme = "ansi-dark"
        mend()
        # always set: the class outlives this application where several run in one process
        ScrollBar.renderer = ScrollBarRender if self.charset is UTF8 else PlainScrollBar
        if isinstance(self._driver, PatientDriver):
            self.terminal = self._driver
            self._driver.on_taken = self.terminal_ready
            self._driver.on_gone = self.interrupt
        self._own_loop = asyncio.get_running_loop()
        if self.interrupted or (isinstance(self._driver, PatientDriver) and self._driver.gone):
            self.interrupt()
            return
        self.set_timer(0.2, _settle)
        if self._pick:
            self._open_picker()
        else:
            self.open_targets(self._targets)

    def interrupt(self, number: int = 0) -> None:
        """A signal, or the terminal's end: leaves as ``q`` does. From any thread, at any time: the
        terminal is given back also if it comes while that is still being set up."""
        self.interrupted = True
        loop = self._own_loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # closed: it has been left
                loop.call_soon_threadsafe(self._leave_now)

    def _leave_now(self) -> None:
        if not self._leaving:
            self.run_worker(self.action_quit(), exclusive=False)

    def _open_picker(self, reason: str = "") -> None:
        from iopstui.ui.screens.picker import Picker

        picker = Picker(self._discover, self.charset, reason, self._watch)
        self.push_screen(picker, self._picked)

    def _picked(self, choice: tuple[str, ...] | None) -> None:
        """``()`` is the scratch file; ``None`` leaves."""
        if choice is None:
            if self.controller is None:
                self.exit(EXIT_OK)
            return
        if self.controller is not None:
            self._close_controller()
        self.open_targets(choice)

    def open_targets(self, targets: Sequence[str]) -> None:
        """Makes the session for all ``targets`` and shows the dashboard."""
        try:
            controller = self._make_controller(targets)
        except IopstuiError as error:
            words = f"{error.message} {error.hint}".strip()
            if self._pick:
                self._open_picker(words)
            else:
                self.leave_with(error)
            return
        self._pick = True
        self.controller, self.experiment = controller, None
        self.state = LiveState(controller.target.opened)
        self.dashboard = Dashboard(controller, self.state, self.charset)
        self.dashboard.strip = self.lesson_rows
        self.push_screen(self.dashboard)
        self._refresh_hints()
        controller.start(self._sink)
        if self._run_at_once:
            self.state.ask()
            controller.run_job(self.job, self.overrides)
        if self.first_lesson is not None:
            lesson, self.first_lesson = self.first_lesson, None
            self.begin_lesson(lesson)

    def _close_controller(self) -> None:
        controller, self.controller = self.controller, None
        if controller is not None:
            controller.close()
        self.forget_lesson()
        self._queue.clear()
        if self.dashboard is not None:
            dashboard, self.dashboard = self.dashboard, None
            if dashboard.is_current:
                self.pop_screen()

    def leave_with(self, error: Exception) -> None:
        """Ends the screen; what happened is said on the terminal as it was before."""
        if isinstance(error, IopstuiError):
            words = f"iopstui: {error.message} {error.hint}".strip()
            self.exit(error.exit_code, message=printable(words))
        else:
            self._handle_exception(error)

    def _fatal_error(self) -> None:
        """Textual would print the traceback; it goes to a file, a sentence to the user."""
        error = self._exception
        if error is not None:
            self._exit_renderables.append(Text(printable(crash_sentence(error))))
        self._close_messages_no_wait()

    @property
    def crashed(self) -> bool:
        """True if an error of our own has ended it."""
        return self._exception is not None

    async def action_quit(self) -> None:
        """Stops a running job first; the terminal is left as it was."""
        if self._leaving:
            return
        self._leaving = True
        controller = self.controller
        if controller is not None:
            if controller.running:
                self._say("info", "stopping fio, then leaving")
            self.end_experiment()
            await asyncio.to_thread(controller.close)
            await asyncio.to_thread(self.experiment_ended)
            await self.lesson_ended()
        self.exit(self._exit_code())

    def _exit_code(self) -> int:
        finished = self.state.finished
        failed = finished is not None and bool(finished.error)
        # a session that has ended by itself has failed
        return EXIT_JOB_FAILED if failed or self.state.ended else EXIT_OK

    # -- events of the session

    def _sink(self, event: Event) -> None:
        """Called in the session's thread: queue the event, wake the screen once."""
        if self.experiment is not None:
            self.experiment.feed(event)
        self._queue.append(event)
        if isinstance(event, FrameReady):
            self._arrived = time.monotonic()
        self._wake_up()

    def _tell(self, event: Event) -> None:
        """Called in the experiment's thread."""
        self._queue.append(event)
        self._wake_up()

    def _wake_up(self) -> None:
        """From any thread."""
        if not self._wake_sent:
            self._wake_sent = True
            self.post_message(EventsWaiting())

    def terminal_ready(self) -> None:
        """From any thread: the terminal has shown the paint before."""
        if self._pace.owed:
            self._wake_up()

    def on_events_waiting(self, message: EventsWaiting) -> None:
        """Takes in everything that is queued, then paints once."""
        self._wake_sent = False
        changed = begun = False
        while self._queue:
            event = self._queue.popleft()
            self.state.apply(event)
            self.lesson_event(event)
            begun = begun or isinstance(event, ExperimentStarted)
            if isinstance(event, FrameReady):
                self._pace.frame()
            else:
                changed = True
        if changed:
            self._refresh_hints()
        if begun:
            self.experiment_begun()
        self._paint_if_due()

    def _paint_if_due(self) -> None:
        """Painting may be put off, or left out; taking in what is measured never is."""
        dashboard, terminal, now = self.dashboard, self.terminal, time.monotonic()
        if dashboard is None or (terminal is not None and terminal.behind):
            self._pace.held_up()
            return
        wait = self._pace.wait(now)
        if wait > 0:
            if not self._paint_timer:
                self._paint_timer = True
                self.set_timer(wait, self._paint_later)
            return
        self._pace.painted(now)
        lag = terminal.lag_s if terminal is not None else 0.0
        frame = self.state.frame
        dashboard.own = OwnCost(
            frame.own_cpu if frame is not None else None, now - self._arrived + lag,
            self._pace.dropped,
        )  # fmt: skip
        dashboard.paint()
        if terminal is not None:
            self.call_after_refresh(terminal.painted)

    def _paint_later(self) -> None:
        self._paint_timer = False
        self._paint_if_due()

    # -- keys

    def _say(self, level: str, text: str) -> None:
        """A message of the screen's own, at once."""
        self.state.say(level, text)
        if self.dashboard is not None:
            self.dashboard.paint()

    def _refresh_hints(self) -> None:
        dashboard = self.dashboard
        if dashboard is None:
            return
        dashboard.next_job = printable(self.job)
        freeze = KeyHint("space", "go on" if dashboard.frozen_at is not None else "freeze")
        if self.state.running:
            dashboard.hints = (
                KeyHint("r", "stop"), KeyHint("[ ]", "iodepth"), KeyHint("{ }", "numjobs"),
                KeyHint("b", "block size"), *KERNEL_HINTS, KeyHint("m", "mark"), freeze,
                KeyHint("j", "job"), KeyHint("- +", "time"), KeyHint("e", "messages"),
                KeyHint("ctrl+p", "all"),
            )  # fmt: skip
        else:
            dashboard.hints = (
                KeyHint("r", "run"), KeyHint("j", "choose a job"), KeyHint("d", "device"),
                KeyHint("[ ]", "iodepth"), KeyHint("{ }", "numjobs"), KeyHint("b", "block size"),
                *KERNEL_HINTS, KeyHint("m", "mark"), freeze, KeyHint("- +", "time"),
                KeyHint("e", "messages"), KeyHint("ctrl+p", "all"),
            )  # fmt: skip
        dashboard.hints = self.with_lesson(self.with_record(self.with_experiment(dashboard.hints)))

    def action_mark(self) -> None:
        """m"""
        if self.controller is not None:
            self._marks += 1
            self.controller.mark(f"mark {self._marks}")

    def action_freeze(self) -> None:
        """space"""
        dashboard = self.dashboard
        if dashboard is None:
            return
        dashboard.freeze()
        self._refresh_hints()
        dashboard.paint()

    def action_tab(self, tab: int) -> None:
        """1 2 3 4"""
        if self.dashboard is not None and not self.dashboard.show_tab(tab):
            self._say("info", f"{TABS[tab]} is on the screen already: it is large enough for all")

    def action_next_tab(self, by: int) -> None:
        """tab"""
        if self.dashboard is not None:
            self.action_tab((self.dashboard.tab + by) % len(TABS))

    def action_zoom(self, out: bool) -> None:
        """- +"""
        if self.dashboard is not None:
            self._say("info", self.dashboard.zoom(out))

    def action_choose_device(self) -> None:
        """d"""
        if self.dashboard is None or self.experiment_holds():
            return
        if self.state.running:
            self._say("info", "a job is running: stop it first (r), then choose a device (d)")
            return
        self._open_picker()

    def action_log(self) -> None:
        """e"""
        if self.dashboard is not None:
            from iopstui.ui.screens.text import log_screen

            self.push_screen(log_screen(self.state, self.charset))

    def action_help(self) -> None:
        """?"""
        from iopstui.ui.screens.text import help_screen

        self.push_screen(help_screen(self.charset))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the dashboard do nothing while another screen is open."""
        over = self.dashboard is None or not self.dashboard.is_current
        if over and action in self.over_experiment and self.experiment_shown:
            return True
        return not (over and action in _DASHBOARD_ACTIONS)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Everything that keys do, for the command palette."""
        if self.dashboard is None:
            yield SystemCommand("Quit", "leave iopstui", self.action_quit)
            return
        if screen is self.experiment_screen:
            commands = [*self.experiment_screen_commands(), *self._common_commands()]
            yield from (SystemCommand(*command) for command in commands)
            return
        for title, text, action in self.lesson_allows(self._commands()):
            yield SystemCommand(title, text, action)

    def _commands(self) -> list[tuple[str, str, Callable[[], Any]]]:
        return [
            *self.job_commands(),
            ("Choose a device", "key d", self.action_choose_device),
            ("Mark this moment", "key m", self.action_mark),
            ("Freeze or go on", "key space", self.action_freeze),
            ("Charts: longer time", "key -", lambda: self.action_zoom(True)),
            ("Charts: shorter time", "key +", lambda: self.action_zoom(False)),
            *self.experiment_commands(),
            *self.lesson_commands(),
            *self.kernel_commands(),
            *self._common_commands(),
        ]

    def _common_commands(self) -> list[tuple[str, str, Callable[[], Any]]]:
        return [
            ("Record", "key R: keep all that is measured in a file", self.action_record),
            ("Messages", "key e: everything that was said in this session", self.action_log),
            ("Help", "key ?: every key, panel and abbreviation", self.action_help),
            ("Quit", "key q: a running job is stopped first", self.action_quit),
        ]


_DASHBOARD_ACTIONS = {
    "mark", "freeze", "tab", "next_tab", "zoom", "choose_device", "log", "help", *JOB_ACTIONS,
    *KERNEL_ACTIONS, *RECORD_ACTIONS, *EXPERIMENT_ACTIONS, *LESSON_ACTIONS,
}  # fmt: skip


def _settle() -> None:
    """What the first frame did not need. What is loaded by now is never looked at again by the
    garbage collector."""
    from iopstui.ui import charts

    charts.load()
    gc.freeze()
    gc.enable()


def run_app(
    make_controller: MakeController,
    targets: Sequence[str],
    job: str | None,
    overrides: Mapping[str, str],
    discover: Callable[[], Mapping[str, BlockDevice]],
    jobs: Sequence[ShippedJob],
    **options: Any,
) -> int:
    """Runs the screen until it is left; the exit code."""
    app = IopstuiApp(make_controller, targets, job, overrides, discover, jobs, **options)
    with stopping(app.interrupt):
        try:
            return run_to_end(app)
        finally:
            app.end_experiment()
            if app.controller is not None:
                app.controller.close()
            app.experiment_ended()
            app.end_lesson()


def run_to_end(app: IopstuiApp) -> int:
    """Shows it until it is left; the exit code. After a crash that is never 0."""
    # without mouse reports, the terminal's own selecting and copying keeps working
    code = app.run(mouse=False)
    if code is None or app.crashed:
        return EXIT_JOB_FAILED
    return EXIT_INTERRUPTED if app.interrupted else code
