"""Keys w and c: a sweep, a comparison, beside the dashboard."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from textual.binding import Binding, BindingType
from textual.screen import Screen

from iopstui.session.events import Event
from iopstui.ui.app_parts import AppPart
from iopstui.ui.messages import Controller
from iopstui.ui.pace import OwnCost
from iopstui.ui.widgets.bars import KeyHint

if TYPE_CHECKING:
    from iopstui.model.plan import Plan
    from iopstui.session.laboratory import Ready
    from iopstui.ui.screens.experiment_form import Chosen, Field

EXPERIMENT_ACTIONS = {"sweep", "compare"}
OVER_EXPERIMENT = frozenset({"mark", "log", "help", "record"})
"""Actions of the dashboard that are possible over an experiment's screen, too."""
EXPERIMENT_HINTS = (KeyHint("w", "sweep"), KeyHint("c", "compare"))
QUIET = {"m", "space", "- +", "e", "ctrl+p", "R", "f", "h", "o"}
"""Keys that don't disturb one."""
WAITS_S = 5.0
SHOW = "show the last one"


class Under(Protocol):
    """An experiment under way (session/laboratory.py, Running)."""

    @property
    def active(self) -> bool:
        """False once it is over."""
        ...

    def feed(self, event: Event) -> None:
        """An event of the session."""
        ...

    def stop(self) -> None:
        """End it in order; again: at once."""
        ...

    def wait(self, seconds: float) -> None:
        """Until it is over."""
        ...


class Laboratory(Protocol):
    """Experiments in one session (session/laboratory.py)."""

    def look(self, plan: Plan) -> Ready:
        """What would come of a plan; raises IopstuiError."""
        ...

    def begin(
        self, ready: Ready, tell: Callable[[Event], None], t: float, anew: bool = False
    ) -> Under:
        """Run it beside the screen."""
        ...

    def variants(self) -> tuple[str, str]:
        """Two settings worth comparing."""
        ...


MakeLaboratory = Callable[[Controller], Laboratory]


class ExperimentKeys(AppPart):
    """What these keys do. The rest of the application is ui/app.py."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "sweep", "sweep"),
        Binding("c", "compare", "compare"),
        Binding("x", "stop_experiment", "stop the experiment"),
    ]

    laboratory: MakeLaboratory | None = None
    experiment: Under | None = None
    begun_with: Mapping[str, tuple[Sequence[Field], Mapping[str, str]]] = MappingProxyType({})
    """Of each kind: the form's fields, and what was typed into them when one was begun last."""
    over_experiment = OVER_EXPERIMENT
    experiment_screen: Screen[None] | None = None

    @abstractmethod
    def _tell(self, event: Event) -> None:
        """From the experiment's thread: an event of it."""

    # -- keys

    def action_sweep(self) -> None:
        """w"""
        self.open_experiment("sweep")

    def action_compare(self) -> None:
        """c"""
        self.open_experiment("compare")

    def open_experiment(self, kind: str) -> None:
        """The one that runs; else the form, after a question where there is a result to show."""
        known = self.state.experiment
        if known is not None and known.active:
            self.show_experiment()
        elif known is not None:
            from iopstui.ui.screens.choice import Choice

            new = "new comparison" if kind == "compare" else "new sweep"
            values = (f"{SHOW} ({known.noun})", new)
            choice = Choice(kind, values, "", self.charset)
            self.push_screen(choice, lambda value: self._chosen_view(kind, value))
        else:
            self.new_experiment(kind)

    def _chosen_view(self, kind: str, value: str | None) -> None:
        if value is None:
            return
        if value.startswith(SHOW):
            self.show_experiment()
        else:
            self.new_experiment(kind)

    def show_experiment(self) -> None:
        """The screen of the experiment that runs or ran last."""
        from iopstui.ui.screens.experiment import ExperimentScreen

        if self.state.experiment is None or self.controller is None:
            return
        dashboard = self.dashboard
        screen = ExperimentScreen(
            self.state.experiment,
            lambda: self.state,
            lambda: dashboard.own if dashboard is not None else OwnCost(),
            self.experiment_hints,
            self.controller.target,
            self.charset,
        )
        self.experiment_screen = screen
        self.push_screen(screen)

    @property
    def experiment_shown(self) -> bool:
        """True while its screen is open, and nothing over it."""
        shown = self.experiment_screen
        return shown is not None and bool(self.screen_stack) and self.screen is shown

    def experiment_hints(self) -> Sequence[KeyHint]:
        """The keys of its screen that matter now."""
        known = self.state.experiment
        if known is None or known.active:
            return (KeyHint("x", "stop, keep what is measured"),)
        return (KeyHint("n", f"new {known.noun}"),)

    def action_new_experiment(self) -> None:
        """n on its screen"""
        known = self.state.experiment
        if known is None or known.active:
            return
        if self.laboratory is None:
            self.no_experiments()
            return
        self.pop_screen()
        self.new_experiment(known.kind)

    def no_experiments(self) -> None:
        """Why none can be begun here."""
        self._say("info", "no experiment can be run in this session")

    def new_experiment(self, kind: str) -> None:
        """Opens the form."""
        controller = self.controller
        if controller is None:
            return
        if self.laboratory is None:
            self.no_experiments()
            return
        if self.state.ended:
            self._say("info", "the session has ended, nothing can be run in it: d begins another")
            return
        if self.experiment is not None and self.experiment.active:
            self._say("info", "the last experiment is putting things back; once more, please")
            return
        from iopstui.ui.experiment_plan import DEFAULT_AXIS, options_text
        from iopstui.ui.screens.experiment_form import ExperimentForm, fields, filled

        laboratory = self.laboratory(controller)
        varied = (DEFAULT_AXIS,) if kind == "sweep" else laboratory.variants()
        options = options_text(self.overrides, " ".join(varied))
        runs = controller.running or self.state.running
        rows = fields(kind, self.job, options, varied)
        form = ExperimentForm(
            kind, filled(rows, *self.begun_with.get(kind, ((), {}))), laboratory.look,
            [job.name for job in self.jobs], self.charset,
            "the job that runs now is stopped first" if runs else "",
        )  # fmt: skip
        self.push_screen(form, lambda chosen: self._form_filled(laboratory, chosen, kind, rows))

    def _form_filled(
        self, laboratory: Laboratory, chosen: Chosen | None, kind: str, rows: Sequence[Field]
    ) -> None:
        if chosen is None or self.controller is None:
            return
        self.begun_with = {**self.begun_with, kind: (rows, chosen.typed)}
        self.forget_pending()
        self.experiment = laboratory.begin(chosen.ready, self._tell, self.state.t, chosen.anew)

    def experiment_begun(self) -> None:
        """The first event of an experiment has come: its screen opens over the dashboard."""
        if self.dashboard is not None and self.dashboard.is_current:
            self.show_experiment()

    def action_stop_experiment(self) -> None:
        """x"""
        running = self.experiment
        if running is None or not running.active:
            return
        running.stop()
        known = self.state.experiment
        if known is not None and known.active:
            self._say("info", f"stopping the {known.noun}; what was measured is kept")

    # -- what other keys must know

    @property
    def experimenting(self) -> bool:
        """True from the form's Enter until everything is as before."""
        return self.experiment is not None and self.experiment.active

    def experiment_holds(self) -> bool:
        """True, and said, while an experiment must not be disturbed."""
        if self.experimenting:
            self._say("info", "an experiment runs and must not be disturbed: x stops it")
        return self.experimenting

    def with_experiment(self, hints: Sequence[KeyHint]) -> Sequence[KeyHint]:
        """The footer's keys: those of the experiment in front while one runs."""
        known = self.state.experiment
        if known is not None and known.active:
            rest = [hint for hint in hints if hint.key in QUIET]
            return (KeyHint("w", f"show the {known.noun}"), KeyHint("x", "stop it"), *rest)
        # with a job under way its own keys come first
        keys = [hint.key for hint in hints]
        at = keys.index("j") if self.state.running else 2
        return (*hints[:at], *EXPERIMENT_HINTS, *hints[at:])

    def end_experiment(self) -> None:
        """Stop it, before the session is closed; never waits."""
        if self.experimenting and self.experiment is not None:
            self.experiment.stop()

    def experiment_ended(self) -> None:
        """Waits, after the session was closed, until its files are removed."""
        if self.experiment is not None:
            self.experiment.wait(WAITS_S)

    def experiment_commands(self) -> Iterable[tuple[str, str, Callable[[], Any]]]:
        """For the command palette."""
        if self.experimenting:
            yield "Show the experiment", "key w", self.show_experiment
            yield (
                "Stop the experiment",
                "key x: what was measured is kept",
                (self.action_stop_experiment),
            )
            return
        yield "Sweep", "key w: a run at every point of one or two axes", self.action_sweep
        yield (
            "Compare",
            "key c: two or three settings in turn, and what differs",
            (self.action_compare),
        )

    def experiment_screen_commands(self) -> Iterable[tuple[str, str, Callable[[], Any]]]:
        """The same on its own screen."""
        if self.experimenting:
            yield (
                "Stop the experiment",
                "key x: what was measured is kept",
                (self.action_stop_experiment),
            )
        elif self.laboratory is not None:
            yield "New experiment", "key n: the form again", self.action_new_experiment
        yield "Back to the dashboard", "key Esc: what runs goes on", self.pop_screen
