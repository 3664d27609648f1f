"""Key w of a fleet's screen: a sweep over hosts, and the page of its curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iopstui.ui.actions import (
    ANYWHERE,
    BOTH_SCREENS,
    EXPERIMENT,
    EXPERIMENT_SCREEN,
    IDLE,
    LESSON,
    REPLAY,
    RUNNING,
    Action,
    Footer,
    Part,
)
from iopstui.ui.core.key import Key, KeyHint
from iopstui.ui.fleet.keys import ONE_HOST
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.fleet.fleet_state import FleetState
    from iopstui.fleet.scaling_curve import ScalingCurve
    from iopstui.ui.fleet.controller import FleetController
    from iopstui.ui.fleet.curve_page import CurvePage
    from iopstui.ui.fleet.sweep_form import HostSweepChoice

SWEEP_RUNNING = "a sweep over hosts is running; x stops it"
NO_JOB = "a sweep over hosts needs a job: iopstui fleet HOSTS --job JOB"
TOO_FEW_HOSTS = "a sweep over hosts needs two hosts or more"
NONE_RECORDED = "no sweep over hosts in this recording so far"


class SweepKeys(Part):
    """``on_host`` returns whether one host's screen is shown, ``watch_only`` whether the fleet has
    no job."""

    def __init__(
        self,
        port: Port,
        fleet: FleetController,
        fleet_state: FleetState,
        jobs: JobKeys,
        on_host: Callable[[], bool],
        watch_only: Callable[[], bool],
        hints: Callable[[], Sequence[KeyHint]],
    ) -> None:
        super().__init__(port)
        self.page: CurvePage | None = None
        self._fleet = fleet
        self._fleet_state = fleet_state
        self._jobs = jobs
        self._on_host = on_host
        self._watch_only = watch_only
        self._hints = hints
        self._open_on_start = False

    # -- state

    @property
    def curve(self) -> ScalingCurve | None:
        """The sweep that runs or ran last."""
        return self._fleet_state.curve

    @property
    def live(self) -> bool:
        """False in a recording."""
        return self._fleet.runs.live

    @property
    def active(self) -> bool:
        """True while a sweep runs here."""
        return self.live and self.curve is not None and self.curve.point_number is not None

    @property
    def is_possible(self) -> bool:
        """Whether a sweep can be started or shown."""
        return not self._on_host() and (self.curve is not None or not self._refusal())

    @property
    def can_renew(self) -> bool:
        """Whether n starts another one."""
        return not self.active and not self._refusal()

    def _refusal(self) -> str:
        if not self.live:
            return NONE_RECORDED
        if self._watch_only():
            return NO_JOB
        return TOO_FEW_HOSTS if len(self._fleet.runs.hosts) < 2 else ""

    @property
    def mode(self) -> str | None:
        """EXPERIMENT while a sweep runs."""
        return EXPERIMENT if self.active else None

    def refuses(self, action: Action) -> bool:
        """Refuse keys that would disturb a sweep; r stops it."""
        if not self.active:
            return False
        if action.id == "run_or_stop":
            self.stop()
            return True
        if EXPERIMENT in action.disturbs:
            self.port.show_message("info", SWEEP_RUNNING)
            return True
        return False

    def offers(self, action: Action) -> bool:
        """False for a sweep that cannot be started."""
        return action.id != "sweep_hosts" or self.is_possible

    # -- keys

    def sweep(self) -> None:
        """Show the running sweep, or start one; ask first if there is a result."""
        curve, refusal = self.curve, self._refusal()
        if self._on_host():
            self.port.show_message("info", ONE_HOST)
        elif curve is not None and (self.active or refusal):
            self.show()
        elif refusal:
            self.port.show_message("info", refusal)
        elif curve is None:
            self._form()
        else:
            from iopstui.ui.dialogs.choice import ask_last_or_new

            ask_last_or_new(
                self.port, "Sweep over hosts", "", "New sweep over hosts", self.show, self._form
            )

    def _form(self) -> None:
        from iopstui.ui.fleet.sweep_form import SweepForm

        fleet = self._fleet
        runtime_text = self._jobs.overrides.get("runtime", "").removesuffix("s")
        runtime = (
            int(runtime_text)
            if runtime_text.isascii() and runtime_text.isdecimal()
            else fleet.runtime_s
        )
        self.port.push(
            SweepForm(self._jobs.job, fleet.runs.hosts, runtime, self.port.charset, fleet.running),
            self._begin,
        )  # fmt: skip

    def _begin(self, sweep: HostSweepChoice | None) -> None:
        if sweep is None:
            return
        seconds = {} if sweep.seconds is None else {"runtime": str(sweep.seconds)}
        self.begin(sweep.counts, {**self._jobs.overrides, **seconds})

    def begin(self, counts: Sequence[int], options: dict[str, str]) -> None:
        """Run the job on each number of hosts in turn; the page opens with the first point."""
        self._jobs.forget_pending()
        self._open_on_start = True
        self._fleet.sweep(counts, self._jobs.job, options)

    def sweep_changed(self) -> None:
        """A sweep has a new point or has ended."""
        if self._open_on_start and self.active:
            self._open_on_start = False
            if self.port.is_shown(self.port.dashboard):
                self.show()

    def show(self) -> None:
        """Open the page of the sweep."""
        from iopstui.ui.fleet.curve_page import CurvePage

        if self.curve is None:
            return
        self.page = CurvePage(
            self._fleet_state,
            lambda: self.port.state,
            self._hints,
            self._fleet.title,
            self.port.charset,
        )
        self.port.push(self.page)

    def renew(self) -> None:
        """Plan another sweep in place of the one shown."""
        if self.can_renew:
            self.port.pop()
            self._form()

    def stop(self) -> None:
        """Stop the sweep; its results are kept."""
        if self.active:
            self._fleet.stop_job()
            self.port.show_message("info", "stopping the sweep over hosts; its results are kept")

    ACTIONS = (
        Action(
            "sweep_hosts", (Key("w", "w"),), sweep, title="Sweep over hosts",
            note="the job on 1, 2, 4 ... hosts, and the curve",
            help="sweep over hosts: the job on the first 1, 2, 4 ... hosts in turn, with a table, "
                 "the throughput curve and its knee. While it runs: its page",
            place=57,
            footer=(
                Footer("sweep over hosts", {IDLE: 40, RUNNING: 112},
                       when=lambda keys: keys.is_possible),
                Footer("show the sweep", {EXPERIMENT: 10}, when=lambda keys: not keys._on_host()),
                Footer("show the sweep", {REPLAY: 20}, when=lambda keys: keys.curve is not None),
            ),
            disturbs=frozenset({LESSON}),
        ),
        Action(
            "stop_sweep", (Key("x", "x"),), stop, title="Stop the sweep over hosts",
            note="its results are kept",
            help="stop the sweep over hosts; its results are kept", place=58,
            footer=(
                Footer("stop it", {EXPERIMENT: 20}),
                Footer("stop, keep what is measured", {EXPERIMENT_SCREEN: 10},
                       when=lambda keys: keys.active),
            ),
            applies=lambda keys: keys.active, scope=ANYWHERE, offered_on=BOTH_SCREENS,
        ),
        Action(
            # bound by its page
            "new_sweep", (Key("", "n"),), renew,
            title=lambda keys: "New sweep over hosts" if keys.can_renew else "",
            note="the form again",
            footer=(Footer("new sweep", {EXPERIMENT_SCREEN: 10},
                           when=lambda keys: keys.can_renew),),
            scope=ANYWHERE, offered_on=frozenset({EXPERIMENT_SCREEN}),
        ),
    )  # fmt: skip
