"""The Textual application: puts the parts of the screen together and hands them keys and events."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import Callable, Iterable, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import SystemCommand
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, IopstuiError
from iopstui.events import (
    AnswerGiven,
    Event,
    ExperimentFinished,
    ExperimentStarted,
    FindingEnded,
    FindingReported,
    FrameReady,
    StepFinished,
)
from iopstui.model.block.target import Target
from iopstui.model.findings.finding import headline_of
from iopstui.model.metrics.run_figures import MarkInterval
from iopstui.model.metrics.run_history import RunRow
from iopstui.safety.signals import handling_stop_signals
from iopstui.text import printable
from iopstui.ui.actions import DASHBOARD, EXPERIMENT_SCREEN, HOME, LESSON, REPLAY, Actions
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.core.key import Controller, EventsWaiting, KeyClicked, KeyHint, ViewChanged
from iopstui.ui.core.preferences import BROWSER_DRIVER, PREFERENCES
from iopstui.ui.core.terminal.driver import NonBlockingDriver
from iopstui.ui.core.terminal.terminal_input import KeysInOrder
from iopstui.ui.core.terminal.textual_patches import apply_patches, clear_geometry_caches
from iopstui.ui.draw.rows import Row
from iopstui.ui.draw.style import UTF8, charset_for
from iopstui.ui.draw.theme import (
    apply_roles,
    plain_name,
    prepare_theme,
    use_terminfo,
    variables_for,
)
from iopstui.ui.feed import Feed
from iopstui.ui.keys import FEATURE_PARTS, LIVE_BINDINGS
from iopstui.ui.parts.experiment import NO_EXPERIMENTS_HERE, ExperimentKeys
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.parts.kernel import KernelKeys
from iopstui.ui.parts.panel import LeaveKeys, PanelKeys
from iopstui.ui.parts.ramp import RampKeys
from iopstui.ui.parts.record import BrowserKeys, PictureKeys, RecordKeys
from iopstui.ui.parts.target import TargetKeys
from iopstui.ui.parts.view import ViewKeys
from iopstui.ui.port import Port
from iopstui.ui.state.live import LiveState

if TYPE_CHECKING:
    from textual.await_complete import AwaitComplete
    from textual.driver import Driver

    from iopstui.ui.dashboard.screen import Dashboard
    from iopstui.ui.state.volume import VolumeState

# no animations on live screens; Textual reads this when it is imported
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")


SessionRuns = tuple[Target, list[RunRow], list[MarkInterval], str]
"""The results of a session: its target, its runs, the intervals between its marks, and the text of
its experiment."""


GATHER_S = 0.01
"""How long to wait for more events: an answer comes right after its frame, but the session's thread
must get the processor to send it. Without waiting, most frames are painted twice."""
ARROW_SIGNS = {"left": "←", "right": "→", "up": "↑", "down": "↓"}
"""How the footer shows arrow keys."""
KEY_NAMES = {"esc": "escape", "pgup": "pageup", "pgdn": "pagedown"}
"""Textual's names of the keys that the footer abbreviates."""


class PlainScrollBar(ScrollBarRender):
    """A scroll bar made of blanks, for terminals that lack the characters for eighths of a
    block."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


class IopstuiApp(KeysInOrder):
    """The whole screen. It ends with an exit code (iopstui.errors). ``replay``: it plays a
    recording; ``no_experiments`` says why no experiments can be run."""

    CSS_PATH = Path(__file__).with_name("iopstui.tcss")
    TITLE = "iopstui"
    help_first = ""
    """The title of the help section about the keys of this application."""
    ENABLE_COMMAND_PALETTE = True
    BINDINGS = LIVE_BINDINGS
    _needs_collection = False

    def __init__(
        self,
        backend: Backend,
        first: FirstView | None = None,
        appearance: Appearance | None = None,
        *,
        replay: bool = False,
        no_experiments: str = NO_EXPERIMENTS_HERE,
    ) -> None:
        first, appearance = first or FirstView(), appearance or Appearance()
        # Textual's NO_COLOR filter must be chosen here, before there is a theme
        no_color = True if "NO_COLOR" in os.environ else None
        self._in_browser = bool(os.environ.get("TEXTUAL_DRIVER"))
        # the rules of the findings that the terminal was notified of
        self._notified: set[str] = set()
        super().__init__(driver_class=_driver_class(), ansi_color=no_color)
        use_terminfo(self)
        prepare_theme(self, appearance.theme)
        self._first_view, self._promised_figures = first, backend.volume
        self._sessions: list[tuple[Target, LiveState]] = []
        self._is_replay = replay
        self._leaving = self.interrupted = False
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self.charset = appearance.charset or charset_for()
        self.port = Port(
            self,
            self.charset,
            self.refresh_footer,
            self.leave_with,
            self.open_help,
            self.save_layout,
            replay,
        )
        self.feed = Feed(self.port, appearance.refresh_s, self._wake, self.call_after_refresh)
        self._make_parts(backend, first, no_experiments)

    def _make_parts(self, backend: Backend, first: FirstView, no_experiments: str) -> None:
        port = self.port
        picture = PictureKeys(port)
        self.jobs = JobKeys(port, backend.jobs, first.job, first.overrides)
        self.targets = TargetKeys(
            port, backend, self._open_dashboard, self._close, self._begin_action, first.first_run
        )
        self.view = ViewKeys(port)
        self.experiments = ExperimentKeys(
            port, self.jobs, backend.background, self.feed.put, self.experiment_hints,
            no_experiments,
        )  # fmt: skip
        self.feature_parts = [
            part(port, self.jobs, self.experiments, backend.conditions, first.begin)
            for part in FEATURE_PARTS
        ]
        self.ramp = RampKeys(port, self.jobs, first.ramp)
        self.actions = Actions([
            self.jobs, self.ramp, self.targets, self.view, self.experiments,
            *self.feature_parts, KernelKeys(port, self.jobs, self.experiments),
            RecordKeys(port, picture.picture), PanelKeys(port), picture,
            LeaveKeys(port, self.action_quit), *([BrowserKeys(port)] if self._in_browser else []),
        ])  # fmt: skip

    @property
    def state(self) -> LiveState:
        return self.port.state

    @property
    def controller(self) -> Controller | None:
        return self.port.session

    @property
    def dashboard(self) -> Dashboard | None:
        """The dashboard; ``None`` until a target is chosen."""
        return self.port.dashboard

    # -- themes

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours of the roles (ui/draw/theme.py), for themes that do not define them."""
        return variables_for(self.current_theme)

    def watch_theme(self, name: str) -> None:
        """Apply the theme that was chosen, and save it for the next start."""
        if not self._running:
            return
        apply_roles(self)
        if not PREFERENCES.previewing:
            self.save_preference("theme", plain_name(name))

    def save_preference(self, key: str, value: str | bool) -> None:
        """Save a choice in the configuration file, and show a message."""
        try:
            PREFERENCES.remember(key, value)
        except OSError as error:
            reason = error.strerror or error
            self.port.show_message(
                "warning", f"{key}: {value}. Not saved in the configuration: {reason}."
            )
        else:
            self.port.show_message("info", f"{key}: {value} (saved in the configuration)")

    def _saved_layout(self, key: str) -> str:
        return str(getattr(PREFERENCES, key.replace("-", "_")))

    def _keep_layout(self) -> tuple[str, str] | None:
        """Keep the dashboard's layout for the next dashboard of this process. Returns its key and
        text."""
        dashboard = self.dashboard
        if dashboard is None or not dashboard.saves_layout or self.actions.mode == LESSON:
            return None
        layout, key = str(dashboard.saved_layout), dashboard.layout_key
        setattr(PREFERENCES, key.replace("-", "_"), layout)
        return key, layout

    def save_layout(self) -> None:
        """Save the dashboard's layout in the configuration, for the next start."""
        kept = self._keep_layout()
        if kept is not None:
            self.save_preference(*kept)

    # -- start and end

    def on_mount(self) -> None:
        """Open the dashboard, or the home screen if no target was given."""
        apply_patches()
        # set each time: the class attribute outlives this application, and a process may run
        # several
        ScrollBar.renderer = ScrollBarRender if self.charset is UTF8 else PlainScrollBar
        driver = self._driver
        if isinstance(driver, NonBlockingDriver):
            self.feed.terminal = driver
            driver.on_drained = self.feed.terminal_ready
            driver.on_hangup = self.interrupt
        elif self._in_browser:
            self._end_with_server()
        self._event_loop = asyncio.get_running_loop()
        if self.interrupted or (isinstance(driver, NonBlockingDriver) and driver.hung_up):
            self.interrupt()
            return
        self.set_timer(0.2, _freeze_loaded_objects)
        self.targets.begin(self._first_view.targets, self._first_view.opens_picker)

    def _end_with_server(self) -> None:
        """Quit when the web server is gone (Textual's own driver would keep running)."""
        from iopstui.ui.core.terminal.browser_driver import BrowserDriver

        if isinstance(self._driver, BrowserDriver):
            self._driver.on_hangup = self.interrupt

    def _volume(self, paths: Sequence[str]) -> VolumeState | None:
        if self._promised_figures is None:
            return None
        from iopstui.ui.state.volume import VolumeState

        return VolumeState(self._promised_figures, len(paths))

    def _open_dashboard(self, session: Controller) -> None:
        state = LiveState(session.target.opened, volume=self._volume(session.target.opened))
        dashboard = self.make_dashboard(session, state)
        dashboard.has_controls = not self._is_replay
        # no way home in a browser: all viewers see the same target
        dashboard.has_home = self.targets.leads_home and not self._in_browser
        if dashboard.saves_layout:
            dashboard.restore_layout(self._saved_layout(dashboard.layout_key))
        is_first = not self._sessions
        self._sessions.append((session.target, state))
        self.experiments.forget()
        self.port.begin(session, state, dashboard)
        self.push_screen(dashboard)
        self.refresh_footer()
        session.start(self._sink)
        self.experiments.say_kept()
        if is_first and self.ramp.asked is not None:
            self.ramp.start_or_stop()
        if self._first_view.starts_job and is_first and not self.ramp.active:
            self.jobs.run_first()
        for part in self.feature_parts:
            part.begin_first()

    def pop_screen(self) -> AwaitComplete:
        """Close the top screen, as Textual does, and collect the garbage soon."""
        self._needs_collection = True
        return super().pop_screen()

    def collect_garbage(self) -> None:
        """Free the memory of closed screens now: figures were just painted, so no sample is due.
        Screens have reference cycles, and without this some megabytes would accumulate."""
        if self._needs_collection:
            self._needs_collection = False
            self.call_after_refresh(_collect_garbage)

    def open_help(self) -> None:
        """Show the help: every key, panel and abbreviation, beginning with the current screen."""
        from iopstui.ui.help import help_screen

        about = getattr(self.screen, "about", "")
        first = getattr(self.screen, "help_first", self.help_first)
        self.push_screen(help_screen(self.charset, about, first, self.port.is_replay))

    def make_dashboard(self, session: Controller, state: LiveState) -> Dashboard:
        from iopstui.ui.keys import LiveDashboard

        return LiveDashboard(session, state, self.charset, self._strip)

    def _strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        strips = (part.strip(width, height, tabbed) for part in self.feature_parts)
        return next(filter(None, strips), ())

    def _begin_action(self, action: str) -> None:
        """Start the action chosen on the home screen, now that its target is open."""
        start = {
            "run": self.jobs.choose_job, "sweep": self.experiments.sweep,
            "compare": self.experiments.compare,
            **{part.HOME_ACTION[2]: part.choose for part in self.feature_parts if part.HOME_ACTION},
        }.get(action)  # fmt: skip
        if start is not None:
            start()

    def _close(self) -> None:
        """Close the session before another one is opened."""
        self._keep_layout()
        if self.port.session is not None:
            self.experiments.keep(self.port.session.target)
        self.port.close_session()
        self._apply_last_events()
        for part in self.feature_parts:
            part.forget()
        self.feed.clear()
        self.port.close_dashboard()

    def interrupt(self, number: int = 0) -> None:
        """Quit as with the key q, after a signal or when the terminal is gone. Any thread may call
        this at any time; the terminal is restored even while it is still being set up."""
        self.interrupted = True
        loop = self._event_loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed if the screen has ended
                loop.call_soon_threadsafe(self._leave_now)

    def _leave_now(self) -> None:
        if not self._leaving:
            self.run_worker(self.action_quit(), exclusive=False)

    def leave_with(self, error: Exception) -> None:
        """End the screen. The error is printed after the terminal is restored."""
        if isinstance(error, IopstuiError):
            message = f"iopstui: {error.full_text}"
            self.exit(error.exit_code, message=Text(printable(message)))
        else:
            self._handle_exception(error)

    def _fatal_error(self) -> None:
        """Write the traceback to a file, instead of printing it as Textual does, and show a
        sentence."""
        error = self._exception
        if error is not None:
            from iopstui.safety.crash import crash_sentence

            self._exit_renderables.append(Text(printable(crash_sentence(error))))
        self._close_messages_no_wait()

    @property
    def has_crashed(self) -> bool:
        """Whether a bug in iopstui has ended the screen."""
        return self._exception is not None

    async def action_quit(self) -> None:
        """Stop a running job and quit; the terminal is restored."""
        if self._leaving:
            return
        self._leaving = True
        session, failure = self.controller, self._failure_text()
        if session is not None:
            if session.running:
                self.port.show_message("info", "stopping fio, then quitting")
            self.experiments.end()
            await asyncio.to_thread(session.close)
            await asyncio.to_thread(self.experiments.wait)
            for part in self.feature_parts:
                await part.close()
        code = self.exit_code()
        self.exit(code, message=Text(printable(failure)) if failure and code else None)

    def close_all(self) -> None:
        """Close all sessions, even after a crash: nothing is left running or on disk."""
        self.experiments.end()
        if self.controller is not None:
            self.controller.close()
        self.experiments.wait()
        for part in self.feature_parts:
            part.end()

    def _apply_last_events(self) -> None:
        """Apply the last events of a closed session, because they say how its last run ended."""
        for event in self.feed.take()[0]:
            self.state.apply(event)

    @property
    def session_runs(self) -> list[SessionRuns]:
        """The results of each session, in order; call this after ``close_all``."""
        self._apply_last_events()
        sessions = (
            (
                target,
                state.runs.rows,
                state.mark_intervals.all if state.mark_intervals.marked else [],
                state.experiment_text(target.name),
            )
            for target, state in self._sessions
        )
        return [session for session in sessions if any(session[1:])]

    def exit_code(self) -> int:
        return EXIT_JOB_FAILED if self._failure_text() else EXIT_OK

    def _failure_text(self) -> str:
        """The error to print after the screen has closed; "" if nothing failed."""
        finished = self.state.finished
        if finished is not None and finished.error:
            reason = f"{finished.error} {finished.hint}".strip()
            return f"iopstui: run {finished.step} failed: {reason}"
        if not self.state.ended:
            return ""
        # a session ends by itself only if it failed
        entries = reversed(self.state.log.entries)
        message = next((entry.text for entry in entries if entry.level == "error"), "")
        return f"iopstui: {message}"

    # -- events of the session

    def _sink(self, event: Event) -> None:
        """Queue an event; called in the session's thread."""
        self.experiments.feed(event)
        self.feed.put(event)

    def _wake(self) -> None:
        """Make the screen handle waiting events; called from any thread."""
        self.post_message(EventsWaiting())

    async def on_events_waiting(self, message: EventsWaiting) -> None:
        """Apply all waiting events, then paint once."""
        await asyncio.sleep(GATHER_S)
        events, has_jumped = self.feed.take()
        if has_jumped:
            self.restart_state()
        changed = experiment_started = False
        for event in events:
            self.state.apply(event)
            for part in self.feature_parts:
                part.event(event)
            self.ramp.event(event)
            if PREFERENCES.notify and not self._is_replay:
                self._notify_terminal(event)
            match event:
                case FrameReady():
                    self.feed.note_frame()
                    continue
                case AnswerGiven():
                    continue  # a new one each second; no key depends on it
                case ExperimentStarted():
                    experiment_started = True
            changed = True
        changed |= self.after_events()
        # in a replay the footer shows the position
        if changed or self.actions.mode == REPLAY:
            self.refresh_footer()
        if experiment_started:
            self.experiments.show_screen()
        if self.screen_stack:  # else it has ended meanwhile
            self.feed.paint_if_due()
        self.collect_garbage()

    def after_events(self) -> bool:
        """Called after all waiting events have been applied. Returns True if the footer's keys may
        have changed."""
        return False

    def _notify_terminal(self, event: Event) -> None:
        """Have the terminal notify the user of a run's or an experiment's end, and of new
        findings."""
        text = ""
        match event:
            case StepFinished(interrupted=False) if not self.experiments.active:
                text = f"run {event.step} ended" + (f": {event.error}" if event.error else "")
                self._notified.clear()
            case ExperimentFinished(interrupted=False):
                text = f"{event.done} of {event.total} points are measured"
            case FindingReported() if event.finding.rule not in self._notified:
                self._notified.add(event.finding.rule)
                text = headline_of(event.finding)
            case FindingEnded():
                self._notified.discard(event.rule)
        if text and self._driver is not None:
            self._driver.write(f"\x1b]9;iopstui: {printable(text)}\a")

    def restart_state(self) -> None:
        """Begin with a fresh state, because the replay jumped to another position."""

    # -- keys

    @property
    def experiment_screen(self) -> Screen[Any] | None:
        """The screen of the last experiment that was shown."""
        return self.experiments.screen

    def experiment_hints(self) -> list[KeyHint]:
        return self.actions.footer(EXPERIMENT_SCREEN)

    def next_job(self) -> str:
        """The job that the key r would run, and the options that differ from its file."""
        return self.jobs.next_run

    def refresh_footer(self) -> None:
        if self.dashboard is not None:
            hints = self.actions.footer(self.actions.mode)
            self.dashboard.show_keys(hints, printable(self.next_job()))

    async def action_do(self, action: str, number: int) -> None:
        """Do ``action``, because one of its keys was pressed."""
        result = self.actions.perform(action, number)
        if isawaitable(result):
            await result

    def action_page(self, action: str) -> None:
        """From a page over the dashboard to that of another key."""
        below = self.screen_stack[-2:-1]
        if below == [self.dashboard] and self.actions.is_possible(action, True, False):
            self.screen.dismiss(None)
            self.actions.perform(action)

    def on_key_clicked(self, message: KeyClicked) -> None:
        """Do the same as if the clicked key of the footer had been pressed."""
        names = {
            label: key.names.split(",")[0]
            for action, _ in self.actions.by_id.values()
            for key in action.keys
            if key.names
            for label in {key.label, ARROW_SIGNS.get(key.label, key.label)}
        }
        # "Enter" means the key "enter", but a capital letter is a key of its own
        key_name = message.label if len(message.label) == 1 else message.label.lower()
        name = names.get(message.label, names.get(key_name, KEY_NAMES.get(key_name, key_name)))
        character = message.label if len(message.label) == 1 else None
        self.post_message(events.Key(name, character))

    def on_view_changed(self, message: ViewChanged) -> None:
        self.refresh_footer()
        self.port.paint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Ignore the dashboard's keys while another screen is open."""
        if action != "do":
            return True
        on_dashboard = self.port.is_shown(self.dashboard)
        on_experiment = self.port.is_shown(self.experiment_screen)
        return self.actions.is_possible(str(parameters[0]), on_dashboard, on_experiment)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """List the actions of all keys for the command palette."""
        commands = getattr(screen, "commands", None)
        if commands is not None:
            yield from (SystemCommand(*command) for command in commands())
        scope = EXPERIMENT_SCREEN if screen is self.experiment_screen else DASHBOARD
        if commands is not None or self.dashboard is None:
            scope = HOME
        yield from (SystemCommand(*command) for command in self.actions.palette(scope))


def _driver_class() -> type[Driver] | None:
    """iopstui's own driver class; ``None`` to use the one that TEXTUAL_DRIVER names (web
    server)."""
    driver_name = os.environ.get("TEXTUAL_DRIVER")
    if driver_name == BROWSER_DRIVER:
        from iopstui.ui.core.terminal.browser_driver import BrowserDriver

        return BrowserDriver
    return None if driver_name else NonBlockingDriver


def _collect_garbage() -> None:
    clear_geometry_caches()
    gc.collect()


def _freeze_loaded_objects() -> None:
    """Exclude the objects loaded so far from garbage collection."""
    gc.freeze()
    gc.enable()


def run_app(
    backend: Backend,
    first: FirstView,
    appearance: Appearance,
    on_close: Callable[[list[SessionRuns]], None],
) -> int:
    """Run the screen until the user quits. Returns the exit code. ``on_close`` gets each session's
    runs after everything is closed."""
    app = IopstuiApp(backend, first, appearance)

    def close() -> None:
        app.close_all()
        on_close(app.session_runs)

    return run_to_end(app, close)


def run_to_end(app: IopstuiApp, close: Callable[[], None]) -> int:
    """Run the application until the user quits, then call ``close``. Returns the exit code, which
    is never 0 after a crash."""
    with handling_stop_signals(app.interrupt):
        try:
            code = app.run(mouse=PREFERENCES.mouse)
            if code is None or app.has_crashed:
                return EXIT_JOB_FAILED
            return EXIT_INTERRUPTED if app.interrupted else code
        finally:
            close()
