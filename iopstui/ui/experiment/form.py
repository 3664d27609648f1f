"""The form that begins a sweep or a comparison: what is varied, and what it will do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.suggester import SuggestFromList
from textual.timer import Timer
from textual.validation import Function
from textual.widgets import Button, Input, RadioSet, Static

from iopstui.errors import IopstuiError
from iopstui.experiment.background import PreparedExperiment
from iopstui.experiment.setup import length_text
from iopstui.model.experiment.plan import CONFIRM_FROM_POINTS, Plan
from iopstui.ui.core.buttons import Radio, push_button
from iopstui.ui.core.modal import Hint, Modal
from iopstui.ui.draw.style import BOLD, DIM, ERROR, WARNING, Charset
from iopstui.ui.experiment.plan import (
    MEASURE,
    RANDOM,
    REPEATS,
    SEQUENTIAL,
    SETTLE,
    check_field,
    parse_plan,
)
from iopstui.ui.state.experiment import SWEEP

PREVIEW_DELAY_S = 0.4
HINTS: tuple[Hint, ...] = (
    ("Enter", "Start", "screen.start"), ("Tab", "Next field", "app.focus_next"),
    ("Esc", "Cancel", "screen.leave"),
)  # fmt: skip
SCROLL: Hint = ("PgUp PgDn", "Scroll", "")
CHECKING = "Checking the plan ..."
LABEL = 13
"""Columns of a label, as those of the fields."""
WARNING_LABELS = ("OVERWRITES", "Changes")
ROWS_BELOW = 2
"""Rows of the form beside its fields and what is said: a blank one and the buttons."""
Line = tuple[str, str, Style | str]
"""A label, words, and their style."""
ORDER, SEED = "order", "seed"
Field = tuple[str, str, str, str]
"""Name, label, value, and what may be typed."""


@dataclass(frozen=True, slots=True)
class ExperimentChoice:
    """Experiment to start, and the fields it was typed into; ``anew``: without the results of an
    interrupted run."""

    ready: PreparedExperiment
    anew: bool = False
    typed: Mapping[str, str] = field(default_factory=dict)


def fields(kind: str, job: str, options: str, varied: Sequence[str]) -> list[Field]:
    """The form's fields; ``varied`` are the first axis or the first two variants."""
    rows: list[Field] = [
        ("job", "Job", job, "shipped job or fio job file"),
        ("options", "fio options", options, "for every run, e.g. bs=8k"),
    ]
    if kind == SWEEP:
        rows += [
            ("axis", "Axis 1", varied[0], "1,2,4..64 doubles, 1..8 counts"),
            ("axis2", "Axis 2", "", "optional, e.g. numjobs=1,4"),
            ("rounds", "Repeats", "1", "2 or more: with intervals"),
            (ORDER, "Order", SEQUENTIAL, "seed, e.g. 42"),
        ]
    else:
        rows += [
            ("a", "Variant A", varied[0], "NAME=VALUE[,NAME=VALUE]..."),
            ("b", "Variant B", varied[1], "as-is: the job unchanged"),
            ("c", "Variant C", "", "optional"),
            ("repeats", "Repeats", REPEATS, "2 or more, or ±2%: until known"),
        ]
    return [
        *rows,
        ("settle", "Settle", SETTLE, "seconds before each measurement"),
        ("measure", "Measure", MEASURE, "seconds of each run"),
    ]


def filled(rows: Sequence[Field], before: Sequence[Field], typed: Mapping[str, str]) -> list[Field]:
    """The fields as they were filled in last, so that what was stopped can go on as it was;
    ``before`` are those that the form had then. What the dashboard has changed since is new."""
    was = {name: value for name, _, value, _ in before}
    return [
        (name, label, typed.get(name, value) if value == was.get(name) else value, hint)
        for name, label, value, hint in rows
    ]


class ExperimentForm(Modal["ExperimentChoice | None"]):
    """Gives the experiment to begin, or ``None``. ``look`` examines a plan, which takes a while,
    and raises IopstuiError for what can't be."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        # first of all: what is typed right behind them must go to the new field already
        Binding("tab,down", "app.focus_next", show=False, priority=True),
        Binding("shift+tab,up", "app.focus_previous", show=False, priority=True),
        Binding("ctrl+n", "anew", "start over", show=False),
        Binding("pagedown", "read_on(1)", show=False, priority=True),
        Binding("pageup", "read_on(-1)", show=False, priority=True),
    ]

    about = (
        "Plan a sweep or a comparison: mistakes are shown as you type, and the plan below the "
        "fields. Enter starts it."
    )

    def __init__(
        self,
        kind: str,
        rows: Sequence[Field],
        look: Callable[[Plan], PreparedExperiment],
        jobs: Sequence[str],
        charset: Charset,
        stops: str = "",
    ) -> None:
        super().__init__("Sweep" if kind == SWEEP else "Compare", charset, HINTS)
        self._kind = kind
        self._rows = list(rows)
        self._look = look
        self._jobs = list(jobs)
        self._stops = stops
        self._plan: Plan | None = None
        self._ready: PreparedExperiment | None = None
        self._begin = False
        self._meant: Plan | None = None
        self._timer: Timer | None = None
        self.said = ""
        """What stands below the fields, as text."""

    def content(self) -> ComposeResult:
        """The fields, each with what may be typed; then what will come of it."""
        for name, label, value, hint in self._rows:
            with Horizontal(classes="form-row"):
                yield Static(Text(label), classes="form-label")
                if name == ORDER:
                    yield from self._order(value)
                else:
                    suggester = SuggestFromList(self._jobs) if name == "job" else None
                    yield Input(
                        value, id=f"form-{name}", suggester=suggester, select_on_focus=False,
                        classes="field", validators=[Function(_checker(name))],
                    )  # fmt: skip
                yield Static(Text(self.charset.text(hint), style=DIM), classes="form-hint")
        with VerticalScroll(id="form-scroll", can_focus=False):
            yield Static(id="form-words")
        with Horizontal(classes="form-buttons"):
            yield push_button("Start", "form-start", primary=True)
            yield push_button("Cancel", "form-cancel")

    def _order(self, value: str) -> ComposeResult:
        order, _, seed = value.partition(" ")
        with RadioSet(id=f"form-{ORDER}", compact=True):
            yield Radio(SEQUENTIAL, value=order != RANDOM, compact=True)
            yield Radio(RANDOM, value=order == RANDOM, compact=True)
        yield Input(
            seed, id=f"form-{SEED}", select_on_focus=False, classes="field", type="integer",
            max_length=9,
        )  # fmt: skip

    def on_mount(self) -> None:
        """Focus the first field."""
        self.watch(self._scroll, "show_vertical_scrollbar", self._foot)
        self.query_one("#form-job", Input).focus()

    def typed(self) -> Mapping[str, str]:
        """Contents of the fields."""
        return {name: self._value(name) for name, *_ in self._rows}

    def _value(self, name: str) -> str:
        if name != ORDER:
            return self.query_one(f"#form-{name}", Input).value
        if not self.query_one(f"#form-{ORDER}", RadioSet).pressed_index:
            return SEQUENTIAL
        return f"{RANDOM} {self.query_one(f'#form-{SEED}', Input).value}".strip()

    def on_radio_set_changed(self, event: RadioSet.Changed) -> None:
        """Another order is another plan."""
        self._changed()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Start, or cancel."""
        if event.button.id == "form-start":
            self.action_start()
        else:
            self.action_leave()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show mistakes at once, and ask fio about the plan after a pause in typing."""
        self._changed()

    def _changed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        if self._read():
            self._timer = self.set_timer(PREVIEW_DELAY_S, self._examine)

    def _read(self) -> bool:
        """Parse the fields; False if they don't make a plan."""
        self._ready, self._begin = None, False
        try:
            self._plan = parse_plan(self._kind, self.typed())
        except IopstuiError as error:
            self._plan = None
            self._show_error(error)
            return False
        self._plan_lines([length_text(self._plan), CHECKING])
        return True

    def _examine(self) -> None:
        if self._plan is not None:
            self._examined(self._plan)

    @work(exclusive=True)
    async def _examined(self, plan: Plan) -> None:
        try:
            ready = await asyncio.to_thread(self._look, plan)
        except IopstuiError as error:
            if plan is self._plan and self.is_attached:
                self._begin = False
                self._show_error(error)
            return
        # typed over, or closed meanwhile
        if plan is not self._plan or not self.is_attached:
            return
        self._ready = ready
        self._plan_lines([*ready.lines, *([self._stops] if self._stops else [])], ready)
        if self._begin:
            self._start()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Begin the experiment."""
        self.action_start()

    def action_start(self) -> None:
        """Begin the experiment as soon as the plan is known to be possible."""
        if self._ready is not None:
            self._start()
        elif self._plan is not None or self._read():
            self._begin = True
            if self._timer is not None:
                self._timer.stop()
            self._examine()

    def _start(self, anew: bool = False) -> None:
        ready, plan = self._ready, self._plan
        if ready is None or plan is None:
            return
        if plan.points >= CONFIRM_FROM_POINTS and plan is not self._meant:
            self._meant, self._begin = plan, False
            self._plan_lines([f"{length_text(plan)}. Enter again to confirm."], warn=True)
            return
        self.dismiss(ExperimentChoice(ready, anew, self.typed()))

    def action_anew(self) -> None:
        """Begin from scratch: drop what an interrupted run has measured."""
        self._start(anew=True)

    # -- what is said below the fields

    def action_read_on(self, by: int) -> None:
        """Scroll what is said: not all of it fits into 24 rows."""
        scroll = self._scroll
        scroll.scroll_relative(y=by * max(1, scroll.size.height - 1), animate=False)

    @property
    def _scroll(self) -> VerticalScroll:
        return self.query_one("#form-scroll", VerticalScroll)

    def _show_lines(self, lines: Sequence[Line]) -> None:
        """Show (label, text, style) lines; text that needs several rows stays beside the label."""
        self.said = "\n".join(f"{label} {text}".strip() for label, text, _ in lines)
        parts: list[RenderableType] = []
        for label, text, style in lines:
            if not label:
                parts.append(Text(self.clean(text), style=style))
                continue
            grid = Table.grid(expand=True)
            grid.add_column(width=LABEL)
            grid.add_column(ratio=1)
            name = Text(self.clean(label), style=style or DIM)
            grid.add_row(name, Text(self.clean(text), style=style))
            parts.append(grid)
        self.query_one("#form-words", Static).update(Group(*parts))
        self._scroll.scroll_home(animate=False)

    def _foot(self, scrolls: bool) -> None:
        """The keys that scroll are named where there is something to scroll."""
        self.keys.show((*HINTS, SCROLL) if scrolls else HINTS)

    def _show_error(self, error: IopstuiError) -> None:
        self._show_lines(
            [("", error.message, ERROR), *([("", error.hint, "")] if error.hint else [])]
        )

    def _plan_lines(
        self, lines: Sequence[str], ready: PreparedExperiment | None = None, warn: bool = False
    ) -> None:
        """The first line is the plan in short."""
        plan_lines: list[Line] = [("", lines[0], WARNING if warn else BOLD)]
        for line in lines[1:]:
            label, colon, text = line.partition(": ")
            style = WARNING if label in WARNING_LABELS else ""
            plan_lines.append((label, text, style) if colon else ("", line, style))
        if ready is not None and ready.resume_note:
            plan_lines.append(("", f"Enter {ready.resume_note}; Ctrl-N starts over", BOLD))
        if ready is not None and ready.loss_note:
            plan_lines.append(("", ready.loss_note, WARNING))
        self._show_lines(plan_lines)

    def _fit(self) -> None:
        """Let the messages scroll if there is no room: buttons and keys stay visible."""
        super()._fit()
        self._scroll.styles.max_height = max(2, self.body_height - len(self._rows) - ROWS_BELOW)


def _checker(name: str) -> Callable[[str], bool]:
    """Whether a value can stand in this field: shown while it is typed."""

    def possible(value: str) -> bool:
        try:
            check_field(name, value)
        except IopstuiError:
            return False
        return True

    return possible
