"""Keys w and c: sweeps and comparisons beside the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from iopstui.events import Event
from iopstui.text import printable
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
from iopstui.ui.core.backend import Background, MakeBackground, Running
from iopstui.ui.core.key import Key, KeyHint
from iopstui.ui.core.pace import Overhead
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.model.block.target import Target
    from iopstui.ui.experiment.form import ExperimentChoice, Field
    from iopstui.ui.state.live import LiveState

START_TIMEOUT_S = 5.0
NO_EXPERIMENTS_HERE = "this session cannot run experiments"


class ExperimentKeys(Part):
    """The keys for experiments, of which one runs at a time. Without ``background`` none can be
    started, and ``none_here`` says why; a recorded one can still be shown."""

    def __init__(
        self,
        port: Port,
        jobs: JobKeys,
        background: MakeBackground | None,
        emit: Callable[[Event], None],
        hints: Callable[[], Sequence[KeyHint]],
        none_here: str = NO_EXPERIMENTS_HERE,
    ) -> None:
        super().__init__(port)
        self.background = background
        self.running_experiment: Running | None = None
        self.screen: Screen[None] | None = None
        self.place = ""
        """The name of the place where experiments run, if it is not the target's."""
        # the last experiment of an earlier session, kept until this session has its own
        self._kept: tuple[Target, LiveState] | None = None
        self._jobs = jobs
        self._emit = emit
        self._hints = hints
        self._unavailable_text = none_here
        # the form's fields and values at the last start, by the experiment's kind
        self._form_values: dict[str, tuple[Sequence[Field], Mapping[str, str]]] = {}

    # -- the state of the experiment

    @property
    def experimenting(self) -> bool:
        """Whether an experiment was started and has not yet undone all its changes."""
        return self.running_experiment is not None and self.running_experiment.active

    @property
    def active(self) -> bool:
        """Whether the newest experiment is still measuring."""
        experiment = self.port.state.experiment
        return experiment is not None and experiment.active

    @property
    def noun(self) -> str:
        """How a sentence names the current or last experiment; "" if there is none."""
        experiment = self._shown_state.experiment
        return experiment.noun if experiment is not None else ""

    @property
    def _shown_state(self) -> LiveState:
        """The state that has the newest experiment: this session's, else the kept one."""
        state = self.port.state
        return self._kept[1] if state.experiment is None and self._kept is not None else state

    @property
    def _last_text(self) -> str:
        """The last experiment in words, with its target if that was another one."""
        if self.port.state.experiment is not None or self._kept is None:
            return self.noun
        return f"{self.noun} on {printable(self._kept[0].name)}"

    @property
    def can_stop(self) -> bool:
        return self.background is not None and (self.active or not self.noun)

    @property
    def can_renew(self) -> bool:
        return self.background is not None and not self.active and bool(self.noun)

    def refuses_disturbance(self) -> bool:
        """Whether an experiment must not be disturbed; if so, shows a message."""
        if self.experimenting:
            self.port.show_message("info", "an experiment is running; x stops it")
        return self.experimenting

    @property
    def mode(self) -> str | None:
        """EXPERIMENT while an experiment is measuring."""
        return EXPERIMENT if self.active else None

    def refuses(self, action: Action) -> bool:
        """Refuse keys that would disturb an experiment; r stops it."""
        if action.id == "run_or_stop" and self.experimenting:
            self.stop()
            return True
        return EXPERIMENT in action.disturbs and self.refuses_disturbance()

    # -- keys

    def sweep(self) -> None:
        """Show the running experiment, or start a sweep."""
        self._open("sweep")

    def compare(self) -> None:
        """Show the running experiment, or start a comparison."""
        self._open("compare")

    def _open(self, kind: str) -> None:
        """Show the running experiment; else the form, but if there is a result, ask first whether
        to show that."""
        if self.active or (self.noun and self.background is None):
            self.show()
        elif self.noun:
            from iopstui.ui.dialogs.questions import ask_last_or_new

            new = "New comparison" if kind == "compare" else "New sweep"
            ask_last_or_new(
                self.port, kind, self._last_text, new, self.show, lambda: self._start_new(kind)
            )
        else:
            self._start_new(kind)

    def show(self) -> None:
        """Open the screen of the current or the last experiment."""
        from iopstui.ui.experiment.screen import ExperimentScreen

        port, state = self.port, self._shown_state
        if state.experiment is None or port.session is None:
            return
        dashboard = port.dashboard
        kept = self._kept if state is not port.state else None
        self.screen = ExperimentScreen(
            state.experiment,
            lambda: port.state if kept is None else state,
            lambda: dashboard.own_cost if dashboard is not None else Overhead(),
            self._hints,
            port.session.target if kept is None else kept[0],
            port.charset,
            kept is None,
            port.session.host,
            port.session.devices,
            self.place,
        )
        port.push(self.screen)

    def show_screen(self) -> None:
        """Open the experiment's screen over the dashboard, when its first event arrives."""
        if self.background is not None and self.port.is_shown(self.port.dashboard):
            self.show()

    def renew(self) -> None:
        """Open the form for a new experiment, in place of the last result."""
        experiment = self._shown_state.experiment
        if experiment is None or experiment.active:
            return
        if self.background is None:
            self.port.show_message("info", self._unavailable_text)
            return
        self.port.pop()
        self._start_new(experiment.plan.kind, experiment.next_fields)

    def show_dashboard(self) -> None:
        self.port.pop()

    def _start_new(self, kind: str, advised: Mapping[str, str] | None = None) -> None:
        session, state = self.port.session, self.port.state
        if session is None:
            return
        if self.background is None:
            self.port.show_message("info", self._unavailable_text)
            return
        if state.ended:
            text = "the session has ended; Esc leads home, where another one starts"
            self.port.show_message("info", text)
            return
        if self.experimenting:
            text = "the last experiment is still restoring the device; try again in a moment"
            self.port.show_message("info", text)
            return
        runs = session.running or state.running
        self._open_form(kind, self.background(session), runs, advised or {})

    def _open_form(
        self, kind: str, background: Background, runs: bool, advised: Mapping[str, str]
    ) -> None:
        from iopstui.ui.core.clipboard import name_of
        from iopstui.ui.experiment.form import ExperimentForm, fields, restore_values
        from iopstui.ui.experiment.plan import DEFAULT_AXIS, options_text

        varied = (DEFAULT_AXIS,) if kind == "sweep" else background.variants()
        options = options_text(self._jobs.overrides, " ".join(varied))
        rows = fields(kind, self._jobs.job, options, varied, background.hosts, background.seconds)
        places = () if background.hosts else self.port.open_session.target.places
        place = " and ".join(map(name_of, places))
        shown = restore_values(rows, *self._form_values.get(kind, ((), {})))
        shown = [
            (name, label, advised.get(name, value), hint) for name, label, value, hint in shown
        ]
        form = ExperimentForm(
            kind, place, shown, background, [job.name for job in self._jobs.jobs],
            self.port.charset, "First: the running job is stopped" if runs else "",
        )  # fmt: skip
        self.port.push(form, lambda chosen: self._form_filled(background, chosen, kind, rows))

    def _form_filled(
        self,
        background: Background,
        chosen: ExperimentChoice | None,
        kind: str,
        rows: Sequence[Field],
    ) -> None:
        if chosen is None or self.port.session is None:
            return
        self._form_values[kind] = (rows, chosen.values)
        self.begin(background, chosen.experiment, chosen.start_over)

    def begin(self, background: Background, ready: Any, start_over: bool = False) -> None:
        self._jobs.forget_pending()
        self.running_experiment = background.start(ready, self._emit, self.port.state.t, start_over)

    def stop(self) -> None:
        if self.running_experiment is None or not self.running_experiment.active:
            return
        self.running_experiment.stop()
        if self.active:
            self.port.show_message("info", f"stopping the {self.noun}; its results are kept")

    # -- calls from the application

    def feed(self, event: Event) -> None:
        """Pass on an event of the session, in the session's thread."""
        if self.running_experiment is not None:
            self.running_experiment.feed(event)

    def keep(self, target: Target) -> None:
        """Keep the result on ``target``, because another session replaces this one."""
        if self.port.state.experiment is not None:
            self._kept = target, self.port.state

    def forget(self) -> None:
        """Forget the running experiment, because another session starts."""
        self.running_experiment = None

    def say_kept(self) -> None:
        """Show a message on how to see the result of an earlier session."""
        if self.noun:
            self.port.show_message("info", f"w shows the last {self._last_text}; q prints it")

    def end(self) -> None:
        """Stop the experiment, before the session is closed; never waits."""
        if self.running_experiment is not None and self.running_experiment.active:
            self.running_experiment.stop()

    def wait(self) -> None:
        """After the session has been closed, wait until the experiment has removed its files."""
        if self.running_experiment is not None:
            self.running_experiment.wait(START_TIMEOUT_S)

    ACTIONS = (
        Action(
            "sweep", (Key("w", "w"),), sweep,
            title=lambda e: "Show the experiment" if e.experimenting else "Sweep",
            note=lambda e: "" if e.experimenting else "a run at every point of one or two axes",
            help="sweep: run the job at every point of one or two axes; the form shows how long "
                 "it takes and what it writes. While it runs: its screen",
            place=120,
            footer=(
                Footer("Sweep", {IDLE: 40, RUNNING: 176}),
                Footer(lambda e: f"Show the {e.noun}", {EXPERIMENT: 10, REPLAY: 20},
                       when=lambda e: bool(e.noun)),
            ),
            disturbs=frozenset({LESSON}),
        ),
        Action(
            "compare", (Key("c", "c"),), compare,
            title=lambda e: "" if e.experimenting else "Compare",
            note="two or three settings in turn",
            help="comparison: run the job with two or three settings in turn, and test whether "
                 "they differ",
            place=130, footer=(Footer("Compare", {IDLE: 50, RUNNING: 178}),),
            disturbs=frozenset({LESSON}),
        ),
        Action(
            "stop_experiment", (Key("x", "x"),), stop, title="Stop the experiment",
            note="its results are kept",
            help="stop the sweep or comparison; its results are kept. Twice: at once",
            place=140,
            footer=(
                Footer("Stop it", {EXPERIMENT: 20}),
                Footer("Stop, keep what is measured", {EXPERIMENT_SCREEN: 10},
                       when=lambda e: e.can_stop),
            ),
            applies=lambda e: e.experimenting, scope=ANYWHERE, disturbs=frozenset({LESSON}),
            offered_on=BOTH_SCREENS,
        ),
        Action(
            # the experiment's screen binds this key and the next one
            "new_experiment", (Key("", "n"),), renew,
            title=lambda e: "New experiment" if e.background and not e.experimenting else "",
            note="the form again",
            footer=(Footer(lambda e: f"New {e.noun}", {EXPERIMENT_SCREEN: 10},
                           when=lambda e: e.can_renew),),
            scope=ANYWHERE, offered_on=frozenset({EXPERIMENT_SCREEN}),
        ),
        Action(
            "leave_experiment", (Key("", "Esc"),), show_dashboard,
            title="Back to the dashboard", note="the experiment continues", scope=ANYWHERE,
            offered_on=frozenset({EXPERIMENT_SCREEN}),
        ),
    )  # fmt: skip
