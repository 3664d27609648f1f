"""The screen of many hosts: a live fleet or a recording."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK
from iopstui.features.fleet.controller import FleetController, FleetExperiments
from iopstui.features.fleet.fleet_events import FleetRuns
from iopstui.features.fleet.host_sweep import job_seconds
from iopstui.features.fleet.replay import FleetReplay
from iopstui.features.fleet.screen.dashboard import FleetDashboard, HostsSource
from iopstui.features.fleet.screen.keys import HELP, NOT_IN_FLEET, FleetKeys, FleetReportKeys
from iopstui.fio.library import ShippedJob
from iopstui.model.experiment.plan import Plan
from iopstui.text import printable, wrapped
from iopstui.ui.actions import Actions, Part, bindings, bindings_of_screen
from iopstui.ui.app import IopstuiApp, run_to_end
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.core.key import Controller
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw.rows import Row
from iopstui.ui.experiment.screen import full_text
from iopstui.ui.keys import REPLAY_ONLY
from iopstui.ui.parts.experiment import ExperimentKeys
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.parts.kernel import KernelKeys
from iopstui.ui.parts.panel import LeaveKeys, PanelKeys
from iopstui.ui.parts.record import PictureKeys
from iopstui.ui.parts.replay import REPLACED_ACTIONS, ReplayKeys
from iopstui.ui.parts.view import ViewKeys
from iopstui.ui.replay import RecordingApp
from iopstui.ui.start import print_after_screen
from iopstui.ui.state.live import LiveState

FLEET_PARTS: tuple[type[Part], ...] = (
    JobKeys, ViewKeys, ExperimentKeys, KernelKeys, PanelKeys, PictureKeys, LeaveKeys,
)  # fmt: skip
FLEET_ACTIONS = (
    *FleetKeys.ACTIONS,
    *FleetReportKeys.ACTIONS,
    *(action for part in FLEET_PARTS for action in part.ACTIONS if action.id not in NOT_IN_FLEET),
)

FLEET_BINDINGS = bindings(FLEET_ACTIONS)
FLEET_REPLAY_BINDINGS = bindings((*FLEET_ACTIONS, *REPLAY_ONLY))
FLEET_SCREEN_BINDINGS = bindings_of_screen((*FLEET_ACTIONS, *REPLAY_ONLY))
NO_JOB_TO_SWEEP = "a sweep needs a job: iopstui fleet HOSTS --job JOB"
NONE_RECORDED = "no sweep in this recording so far"
SHOW_AGE_AFTER_S = 2.0
"""If no new second comes for this long, the screen updates the shown age of its data."""


class FleetScreen(FleetDashboard):
    """The dashboard with the bindings of its keys."""

    BINDINGS = FLEET_SCREEN_BINDINGS


class FleetApp(IopstuiApp):
    """Shows ``fleet``. The key r runs ``job`` on all hosts (``None``: they are only watched). It
    begins with the sweep of ``plan``, if there is one. ``recording`` is written or played."""

    BINDINGS = FLEET_BINDINGS
    help_first = HELP

    def __init__(
        self,
        fleet: FleetController,
        jobs: Sequence[ShippedJob] = (),
        job: str | None = None,
        theme: str = "",
        replay: bool = False,
        plan: Plan | None = None,
        recording: Path | None = None,
    ) -> None:
        self.fleet = fleet
        self._recording = recording
        self._plan = plan
        self._watch_only = job is None and not replay
        super().__init__(
            Backend(
                lambda paths: fleet,
                dict,
                jobs,
                background=None if replay or job is None else self._experiments,
            ),
            FirstView(
                job=job, pick=False, run_at_once=job is not None and not replay and plan is None
            ),
            Appearance(theme=theme),
            replay=replay,
            no_experiments=NONE_RECORDED if replay else NO_JOB_TO_SWEEP,
        )
        self.experiments.place = fleet.title

    def _make_parts(self, backend: Backend, first: FirstView, no_experiments: str) -> None:
        super()._make_parts(backend, first, no_experiments)
        port = self.port
        self.feature_parts = []
        self.source = HostsSource(port, self.fleet)
        self._hosts_keys = FleetKeys(port, self.source, self._watch_only)
        self.actions = Actions(
            [
                self.jobs, self.view, self.experiments,
                KernelKeys(port, self.jobs, self.experiments), PanelKeys(port), PictureKeys(port),
                LeaveKeys(port, self.action_quit), self._hosts_keys,
                FleetReportKeys(port, self._recording), *self.extra_parts(),
            ],
            self.missing_actions(),
        )  # fmt: skip

    def _experiments(self, session: Controller) -> FleetExperiments:
        return FleetExperiments(self.fleet, job_seconds(self.jobs.job, self.jobs.overrides))

    def extra_parts(self) -> list[Part]:
        """Further parts, which only a replay has."""
        return []

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """Rows above the message, which only a replay has."""
        return ()

    def missing_actions(self) -> frozenset[str]:
        """The actions that this screen doesn't have."""
        return NOT_IN_FLEET

    @property
    def state(self) -> LiveState:
        """The state of all hosts together, even while a single host is shown."""
        return self.source.all

    # -- start and end

    def make_dashboard(self, session: Controller, state: LiveState) -> Dashboard:
        self.source.all = state
        return FleetScreen(self.source, state, self.charset, self.strip)

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
        """Stop all hosts, then quit. The second time, don't wait for them."""
        runs = self.fleet.runs
        if self._leaving and runs.live:
            runs.kill()
            return
        if self.fleet.running:
            self.port.show_message("info", "stopping all hosts, then quitting; again: quit now")
        await super().action_quit()

    def exit_code(self) -> int:
        """The exit code of the last run. A run that was stopped by a key or by quitting has not
        failed."""
        last = self.fleet.last
        code = EXIT_OK if last is None else last.code
        return EXIT_OK if code == EXIT_INTERRUPTED else code

    def next_job(self) -> str:
        return "" if self._watch_only or self._hosts_keys.on_host else self.jobs.job

    def refresh_footer(self) -> None:
        """Refresh the footer, without the keys that have no effect now. While a filter of the hosts
        is typed, every letter belongs to it."""
        dashboard = self.dashboard
        if isinstance(dashboard, FleetDashboard):
            idle = {
                " ".join(key.label for key in action.keys)
                for action, _ in self.actions.by_id.values()
                if self._hosts_keys.footer_hides(action)
            }
            hints = self.actions.footer(self.actions.mode)
            dashboard.show_keys(
                dashboard.filter_hints or [hint for hint in hints if hint.key not in idle],
                printable(self.next_job()),
            )

    # -- events

    def after_events(self) -> bool:
        self.source.take_events()
        return True

    def restart_state(self) -> None:
        if self.dashboard is not None:
            self.source.restart()


class FleetReplayApp(RecordingApp, FleetApp):
    """A recording of a fleet."""

    BINDINGS = FLEET_REPLAY_BINDINGS

    def __init__(
        self,
        fleet: FleetController,
        replay: FleetReplay,
        theme: str = "",
        recording: Path | None = None,
    ) -> None:
        self.replay = replay
        job = replay.job or None
        super().__init__(fleet, (), job, theme, replay=True, recording=recording)
        fleet.on_jump = self.feed.jump
        replay.on_failure = self._failed

    def extra_parts(self) -> list[Part]:
        self._keys = ReplayKeys(self.port, self.replay)
        return [self._keys]

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        return self._keys.strip(width, height, tabbed)

    def missing_actions(self) -> frozenset[str]:
        return NOT_IN_FLEET | REPLACED_ACTIONS

    def next_job(self) -> str:
        return "" if self._hosts_keys.on_host else self.fleet.job or ""


def run_fleet_screen(
    runs: FleetRuns,
    title: str,
    job: str | None,
    jobs: Sequence[ShippedJob],
    theme: str,
    on_close: Callable[[], None] = lambda: None,
    plan: Plan | None = None,
    recording: Path | None = None,
) -> int:
    """Show a fleet until the user leaves, then print the result of its last run; return the exit
    code. A ``plan`` is a sweep to begin with; its result is printed, too. ``recording`` is written
    meanwhile."""
    fleet = FleetController(runs, title, job)
    app = FleetApp(fleet, jobs, job, theme=theme, plan=plan, recording=recording)

    def close() -> None:
        app.close_all()
        fleet.close()
        on_close()
        sweep, last = app.state.experiment, fleet.last
        if sweep is not None and sweep.points:
            width = shutil.get_terminal_size().columns
            print_after_screen(full_text(sweep, title, app.charset, width=width))
        if last is not None and last.exit_lines:
            lines = "\n".join(last.exit_lines).split("\n")
            print_after_screen("\n".join(wrapped(line, 0, 2) for line in lines))

    return run_to_end(app, close)


def run_fleet_replay(replay: FleetReplay, title: str, theme: str, path: Path) -> int:
    """Play ``path``, a fleet's recording, until the user leaves."""
    fleet = FleetController(replay, title, replay.job or None)
    app = FleetReplayApp(fleet, replay, theme=theme, recording=path)
    return run_to_end(app, fleet.close)
