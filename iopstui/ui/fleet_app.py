"""The screen of many hosts: a fleet that runs, or a recording of one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK
from iopstui.events import AnswerGiven, ExperimentStarted, FindingReported, FrameReady
from iopstui.fio.library import ShippedJob
from iopstui.fleet.answer import fleet_answer, is_due
from iopstui.fleet.findings import fleet_evidence, list_findings
from iopstui.fleet.fleet_state import FleetState
from iopstui.fleet.host_sweep import job_seconds
from iopstui.fleet.merging.merger import MergedInterval
from iopstui.fleet.replay import FleetReplay
from iopstui.fleet.session import FleetSession
from iopstui.model.experiment.plan import Plan
from iopstui.safety.signals import handling_stop_signals
from iopstui.ui.actions import Actions, Part
from iopstui.ui.app import IopstuiApp, run_to_end
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.core.messages import Controller, EventsWaiting
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw.rows import Row
from iopstui.ui.draw.style import Charset
from iopstui.ui.experiment.screen import full_text
from iopstui.ui.fleet.background import FleetExperiments
from iopstui.ui.fleet.controller import FleetController
from iopstui.ui.fleet.dashboard import FleetDashboard
from iopstui.ui.fleet.host import HostDashboard, HostView
from iopstui.ui.fleet.keys import ABOUT_JOBS, NOT_IN_FLEET, FleetKeys
from iopstui.ui.fleet.report_keys import FleetReportKeys
from iopstui.ui.fleet_keys import (
    FLEET_BINDINGS,
    FLEET_REPLAY_BINDINGS,
    FLEET_SCREEN_BINDINGS,
    HELP,
    HOST_SCREEN_BINDINGS,
)
from iopstui.ui.parts.kernel import KernelKeys
from iopstui.ui.parts.leave import LeaveKeys
from iopstui.ui.parts.panel import PanelKeys
from iopstui.ui.parts.picture import PictureKeys
from iopstui.ui.parts.replay import REPLACED_ACTIONS, ReplayKeys
from iopstui.ui.replay import RecordingApp
from iopstui.ui.start import print_after_screen
from iopstui.ui.state.live import LiveState

NO_JOB_TO_SWEEP = "a sweep needs a job: iopstui fleet HOSTS --job JOB"
NONE_RECORDED = "no sweep in this recording so far"
SHOW_AGE_AFTER_S = 2.0
"""After this time without a new second the screen updates the age of its data."""


class FleetScreen(FleetDashboard):
    """Dashboard of all hosts, with its keys."""

    BINDINGS = FLEET_SCREEN_BINDINGS


class HostScreen(HostDashboard):
    """Dashboard of one host, with its keys."""

    BINDINGS = HOST_SCREEN_BINDINGS


class FleetApp(IopstuiApp):
    """Shows ``fleet``; ``job`` is what r runs on all hosts, ``None``: they are watched. It begins
    with the sweep of a ``plan``, if there is one. ``recording`` is written or played."""

    BINDINGS = FLEET_BINDINGS
    help_first = HELP

    def __init__(
        self,
        fleet: FleetController,
        jobs: Sequence[ShippedJob] = (),
        job: str | None = None,
        charset: Charset | None = None,
        theme: str = "",
        replay: bool = False,
        plan: Plan | None = None,
        recording: Path | None = None,
    ) -> None:
        self.fleet = fleet
        self._recording = recording
        self._plan = plan
        self.fleet_state = FleetState()
        self.fleet_screen: FleetDashboard | None = None
        self.merged_state = LiveState()
        self.host_view: HostView | None = None
        self._watch_only = job is None and not replay
        super().__init__(
            Backend(
                lambda paths: fleet,
                dict,
                jobs,
                background=None if replay or job is None else self._experiments,
            ),
            FirstView(
                job=job,
                pick=False,
                run_at_once=job is not None and not replay and plan is None,
            ),
            Appearance(charset, theme),
            replay=replay,
            no_experiments=NONE_RECORDED if replay else NO_JOB_TO_SWEEP,
        )
        self.experiments.place = fleet.title
        self.actions = Actions([*self._parts(), *self.extra_parts()], self.missing_actions())

    def _parts(self) -> list[Part]:
        port = self.port
        keys = FleetKeys(
            port,
            lambda: self.fleet_screen,
            self.open_host,
            self.close_host,
            lambda: self._watch_only,
            lambda: self.fleet.runs,
        )
        return [
            self.jobs, self.view, self.experiments, KernelKeys(port, self.jobs, self.experiments),
            PanelKeys(port), PictureKeys(port), LeaveKeys(port, self.action_quit), keys,
            FleetReportKeys(port, self._recording),
        ]  # fmt: skip

    def _experiments(self, session: Controller) -> FleetExperiments:
        """Sweeps of this fleet."""
        return FleetExperiments(self.fleet, job_seconds(self.jobs.job, self.jobs.overrides))

    def extra_parts(self) -> list[Part]:
        """Parts for a replay."""
        return []

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """Rows below the charts: those of a replay."""
        return ()

    def missing_actions(self) -> frozenset[str]:
        """Actions that this screen doesn't have."""
        return NOT_IN_FLEET

    @property
    def main_dashboard(self) -> Dashboard | None:
        """All hosts, whichever is shown."""
        return self.fleet_screen

    @property
    def state(self) -> LiveState:
        """State of all hosts, whichever is shown."""
        return self.merged_state

    @property
    def controller(self) -> Controller | None:
        """The fleet, whichever host is shown."""
        return self.fleet if self.port.session is not None else None

    # -- start and end

    def make_dashboard(self, session: Controller, state: LiveState) -> Dashboard:
        """Make the dashboard of all hosts."""
        self.merged_state = state
        self.fleet_screen = FleetScreen(
            self.fleet, state, self.fleet_state, self.charset, self.strip
        )
        return self.fleet_screen

    def _open_dashboard(self, session: Controller) -> None:
        super()._open_dashboard(session)
        if self.fleet.runs.live:
            self.set_interval(SHOW_AGE_AFTER_S, lambda: self.feed.paint_if_old(SHOW_AGE_AFTER_S))
        if self._watch_only:
            self.fleet.run_job("", {})
        if self._plan is not None:
            background = self._experiments(session)
            self.experiments.begin(background, background.preview(self._plan))

    async def action_quit(self) -> None:
        """Stops all hosts first; again: doesn't wait for them."""
        runs = self.fleet.runs
        if self._leaving and isinstance(runs, FleetSession):
            runs.kill()
            return
        if self.fleet.running:
            self.port.show_message("info", "stopping all hosts, then quitting; again: quit now")
        await super().action_quit()

    def exit_code(self) -> int:
        """Exit code of the last run; one that was stopped, by a key or by leaving, has not
        failed."""
        last = self.fleet.last
        code = EXIT_OK if last is None else last.code
        return EXIT_OK if code == EXIT_INTERRUPTED else code

    def next_job(self) -> str:
        """Name of the job that r would run."""
        return self.jobs.job if not self._watch_only else ""

    def refresh_footer(self) -> None:
        """Refresh the footer without the keys that do nothing: on one host's screen those for all
        hosts, without a job those of jobs."""
        super().refresh_footer()
        if self.dashboard is None:
            return
        idle = {
            " ".join(key.label for key in action.keys)
            for action, _ in self.actions.by_id.values()
            if (self.host_view is not None and action.measures)
            or (self._watch_only and action.id in ABOUT_JOBS)
        }
        hints = [hint for hint in self.dashboard.hints if hint.key not in idle]
        self.dashboard.show_keys(hints, "" if self.host_view is not None else self.next_job())

    # -- events

    def on_events_waiting(self, message: EventsWaiting) -> None:
        """Takes in all that has come, then paints once."""
        events, has_jumped = self.feed.take()
        if has_jumped:
            self.restart_state()
        experiment_started = False
        for event in events:
            self.merged_state.apply(event)
            if isinstance(event, FrameReady):
                self.feed.note_frame()
            experiment_started |= isinstance(event, ExperimentStarted)
        self._apply_events()
        self.refresh_footer()
        if experiment_started:
            self.experiments.show_screen()
        self.feed.paint_if_due()
        self.collect_garbage()

    def _apply_events(self) -> None:
        events, host = self.fleet.events, self.host_view
        while events:
            event = events.popleft()
            self.fleet_state.apply(event)
            if host is not None and host.apply(event):
                self._follow_host_state(host)
            if isinstance(event, MergedInterval):
                self._report_findings(event)

    def _report_findings(self, second: MergedInterval) -> None:
        if not is_due(self.fleet_state, second):
            return
        state, evidence = self.merged_state, fleet_evidence(self.fleet_state, second.interval_s)
        findings = list_findings(evidence)
        for finding in findings:
            state.apply(FindingReported(state.t, finding))
        answer = fleet_answer(self.fleet_state, evidence, findings)
        if answer is not None:
            state.apply(AnswerGiven(state.t, answer))

    def _follow_host_state(self, host: HostView) -> None:
        """Follow its state, which is replaced when its session begins again."""
        if self.port.state is not host.state:
            self.port.restart_state(host.state)

    def restart_state(self) -> None:
        """Start with a fresh state: another position of the recording follows."""
        self.close_host()
        if self.fleet_screen is not None:
            self.merged_state = LiveState(self.fleet.target.opened)
            self.port.restart_state(self.merged_state)

    # -- one host

    def open_host(self, name: str) -> None:
        """Show one host, and have it send all it measures."""
        host_state = self.fleet_state.hosts.get(name)
        if host_state is None or self.host_view is not None:
            return
        if host_state.session is None:
            self.port.show_message("info", f"no data from {name} yet")
            return
        second = self.fleet_state.second
        interval = second.interval_s if second is not None else 1.0
        frame = self.fleet.runs.frames.get(name)
        view = self.host_view = HostView(host_state, frame, self.fleet_state.number, interval)
        dashboard = HostScreen(view, self.charset, self.strip)
        self.port.begin(view.controller, view.state, dashboard)
        self.push_screen(dashboard)
        self.fleet.runs.detail(name, True)
        self.refresh_footer()

    def close_host(self) -> None:
        """Back to all of them."""
        host, fleet_screen, dashboard = self.host_view, self.fleet_screen, self.port.dashboard
        if host is None or fleet_screen is None:
            return
        self.host_view = None
        self.fleet.runs.detail(host.name, False)
        self.port.begin(self.fleet, self.merged_state, fleet_screen)
        if dashboard is not None and dashboard.is_current:
            self.pop_screen()
        self.refresh_footer()


class FleetReplayApp(RecordingApp, FleetApp):
    """A recording of a fleet."""

    BINDINGS = FLEET_REPLAY_BINDINGS

    def __init__(
        self,
        fleet: FleetController,
        replay: FleetReplay,
        charset: Charset | None = None,
        theme: str = "",
        recording: Path | None = None,
    ) -> None:
        self.replay = replay
        job = replay.job or None
        super().__init__(fleet, (), job, charset, theme, replay=True, recording=recording)
        fleet.on_jump = self.feed.jump
        replay.on_failure = self._failed

    def extra_parts(self) -> list[Part]:
        """Parts that move in the recording."""
        self._keys = ReplayKeys(self.port, self.replay)
        return [self._keys]

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """The whole recording as a bar."""
        return self._keys.strip(width, height, tabbed)

    def missing_actions(self) -> frozenset[str]:
        """Actions that other parts replace here, too."""
        return NOT_IN_FLEET | REPLACED_ACTIONS

    def next_job(self) -> str:
        """The job that was recorded."""
        return self.fleet.job or ""


def run_fleet_screen(
    session: FleetSession,
    title: str,
    job: str | None,
    jobs: Sequence[ShippedJob],
    theme: str,
    on_close: Callable[[], None] = lambda: None,
    plan: Plan | None = None,
    recording: Path | None = None,
) -> int:
    """Shows a fleet until it is left; the exit code. What its last run came to is printed then.
    It begins with the sweep of a ``plan``, whose result is printed, too. ``recording`` is written
    meanwhile."""
    fleet = FleetController(session, title, job)
    app = FleetApp(fleet, jobs, job, theme=theme, plan=plan, recording=recording)
    with handling_stop_signals(app.interrupt):
        try:
            return run_to_end(app)
        finally:
            app.close_all()
            fleet.close()
            on_close()
            sweep, last = app.merged_state.experiment, fleet.last
            if sweep is not None and sweep.points:
                width = shutil.get_terminal_size().columns
                print_after_screen(full_text(sweep, title, app.charset, width=width))
            if last is not None and last.exit_lines:
                print_after_screen("\n".join(last.exit_lines))


def run_fleet_replay(replay: FleetReplay, title: str, theme: str, path: Path) -> int:
    """Plays ``path``, a recording of a fleet, until it is left."""
    fleet = FleetController(replay, title, replay.job or None)
    app = FleetReplayApp(fleet, replay, theme=theme, recording=path)
    with handling_stop_signals(app.interrupt):
        try:
            return run_to_end(app)
        finally:
            fleet.close()
