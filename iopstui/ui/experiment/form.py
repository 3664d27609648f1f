"""The form for a sweep or a comparison: what is varied, and the plan."""

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
from textual.content import Content
from textual.events import DescendantFocus
from textual.suggester import SuggestFromList
from textual.timer import Timer
from textual.validation import Function
from textual.widgets import Button, Input, RadioButton, RadioSet, Static

from iopstui.errors import IopstuiError
from iopstui.experiment.setup import length_text
from iopstui.model.experiment.host_sweep import usual_counts
from iopstui.model.experiment.plan import CONFIRM_FROM_POINTS, SWEEP, Plan
from iopstui.ui.core.backend import Background, Prepared
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

PREVIEW_DELAY_S = 0.4
HINTS: tuple[Hint, ...] = (
    ("Enter", "Start", "screen.start"), ("Tab", "Next field", "app.focus_next"),
    ("Esc", "Cancel", "screen.leave"),
)  # fmt: skip
SCROLL_HINT: Hint = ("PgUp PgDn", "Scroll", "")
CHECKING = "Checking the plan ..."
LABEL_WIDTH = 13
"""Columns of a label, as those of the fields."""
WARNING_LABELS = ("OVERWRITES", "Changes")
ROWS_BELOW = 2
"""Rows of the form besides its fields and the plan: a blank one and the buttons."""
FormLine = tuple[str, str, Style | str]
"""A label, text, and its style."""
ORDER, SEED = "order", "seed"
Field = tuple[str, str, str, str]
"""Name, label, value and hint."""


class Radio(RadioButton):
    """One of several choices: ``(*)`` if it is chosen, ``( )`` if not."""

    @property
    def _button(self) -> Content:
        return Content("(*)" if self.value else "( )")


def push_button(label: str, name: str) -> Button:
    """A button in brackets, one row high."""
    return Button(Content(f"[ {label} ]"), name=label, id=name, compact=True)


@dataclass(frozen=True, slots=True)
class ExperimentChoice:
    """The experiment to start, and the values of the fields; ``start_over``: discard the results of
    an interrupted run."""

    experiment: Prepared
    start_over: bool = False
    values: Mapping[str, str] = field(default_factory=dict)


def fields(
    kind: str,
    job: str,
    options: str,
    varied: Sequence[str],
    hosts: int = 0,
    seconds: float | None = None,
) -> list[Field]:
    """The form's fields; ``varied`` are the first axis or the first two variants. On ``hosts`` of a
    fleet each run takes ``seconds``, if that is known."""
    rows: list[Field] = [
        ("job", "Job", job, "shipped job or fio job file"),
        ("options", "fio options", options, "for every run, e.g. bs=8k"),
    ]
    if hosts:
        first = f"hosts={usual_counts(hosts)}" if hosts > 1 else varied[0]
        rows += [
            ("axis", "Axis 1", first, "1,2,4..64 doubles, 1..8 counts"),
            ("axis2", "Axis 2", "", "optional, e.g. iodepth=1,16"),
            ("rounds", "Repeats", "1", "2 or more: with intervals"),
        ]
        if seconds is not None:
            rows.append(("measure", "Seconds", f"{seconds:g}", "of each run (runtime)"))
        return rows
    if kind == SWEEP:
        rows += [
            ("axis", "Axis 1", varied[0], "iodepth=32,64..512 doubles"),
            ("axis2", "Axis 2", "", "optional, e.g. numjobs=1,4"),
            ("rounds", "Repeats", "1", "2 or more: with intervals"),
            (ORDER, "Order", SEQUENTIAL, "seed (optional)"),
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
        ("settle", "Settle", SETTLE, "seconds before measuring, from 0"),
        ("measure", "Measure", MEASURE, "seconds of each run, from 1"),
    ]


def restore_values(
    rows: Sequence[Field], old_fields: Sequence[Field], values: Mapping[str, str]
) -> list[Field]:
    """Restore the ``values`` typed last, so that a stopped experiment can be continued.
    ``old_fields`` are the form's initial fields then; a field whose initial value has changed since
    keeps the new one."""
    old_values = {name: value for name, _, value, _ in old_fields}
    return [
        (name, label, values.get(name, value) if value == old_values.get(name) else value, hint)
        for name, label, value, hint in rows
    ]


class ExperimentForm(Modal["ExperimentChoice | None"]):
    """Returns the experiment to start, or ``None``. It runs on ``place``. ``background`` checks a
    plan, and raises IopstuiError for an impossible one. ``stop_note`` is added to the plan."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        # done first: keys typed right after these must go to the new field
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
        place: str,
        rows: Sequence[Field],
        background: Background,
        jobs: Sequence[str],
        charset: Charset,
        stop_note: str = "",
    ) -> None:
        title = "Sweep" if kind == SWEEP else "Compare"
        super().__init__(f"{title} · {place}" if place else title, charset, HINTS)
        self._kind = kind
        self._fields = list(rows)
        self._background = background
        self._jobs = list(jobs)
        self._stop_note = stop_note
        self._plan: Plan | None = None
        self._experiment: Prepared | None = None
        self._start_when_checked = False
        self._confirmed_plan: Plan | None = None
        self._timer: Timer | None = None
        self.plan_text = ""
        """The plan or error below the fields."""

    def content(self) -> ComposeResult:
        """The fields, each with a hint; then the plan."""
        for name, label, value, hint in self._fields:
            with Horizontal(classes="form-row"):
                yield Static(self.charset.text("▸"), classes="form-mark")
                yield Static(Text(label), classes="form-label")
                if name == ORDER:
                    yield from self._order(value)
                else:
                    suggester = SuggestFromList(self._jobs) if name == "job" else None
                    yield Input(
                        value, id=f"form-{name}", suggester=suggester, classes="field",
                        validators=[Function(_validator(name))],
                    )  # fmt: skip
                kind = "form-hint -short" if name == ORDER else "form-hint"
                words = Static(Text(self.charset.text(hint), style=DIM), classes=kind)
                words.visible = name != ORDER or value != SEQUENTIAL
                yield words
        with VerticalScroll(id="form-scroll", can_focus=False):
            yield Static(id="form-words")
        with Horizontal(classes="form-buttons"):
            yield push_button("Start", "form-start")
            yield push_button("Cancel", "form-cancel")

    def _order(self, value: str) -> ComposeResult:
        order, _, seed = value.partition(" ")
        with RadioSet(id=f"form-{ORDER}", compact=True):
            yield Radio(SEQUENTIAL, value=order != RANDOM, compact=True)
            yield Radio(RANDOM, value=order == RANDOM, compact=True)
        field = Input(seed, id=f"form-{SEED}", classes="field", type="integer", max_length=9)
        field.visible = order == RANDOM
        yield field

    def on_mount(self) -> None:
        """Focus the first field."""
        self.watch(self._scroll, "show_vertical_scrollbar", self._show_keys)
        self.query_one("#form-job", Input).focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Mark the field or button with the focus: a terminal may show no colours."""
        for row in self.query(".form-row"):
            row.query_one(".form-mark").visible = event.widget in row.query("*")
        for button in self.query(Button):
            mark = self.charset.text("▸") if event.widget is button else " "
            button.label = Content(f"[{mark}{button.name} ]")

    def values(self) -> Mapping[str, str]:
        return {name: self._value(name) for name, *_ in self._fields}

    def _value(self, name: str) -> str:
        if name != ORDER:
            return self.query_one(f"#form-{name}", Input).value
        if not self.query_one(f"#form-{ORDER}", RadioSet).pressed_index:
            return SEQUENTIAL
        return f"{RANDOM} {self.query_one(f'#form-{SEED}', Input).value}".strip()

    def on_radio_set_changed(self, event: RadioSet.Changed) -> None:
        """Check the plan with the other order. Only a random one has a seed."""
        for widget in self.query(f"#form-{SEED}, .form-hint.-short"):
            widget.visible = bool(event.index)
        self._schedule_check()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "form-start":
            self.action_start()
        else:
            self.action_leave()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show mistakes at once, and check the plan with fio after a pause in typing."""
        self._schedule_check()

    def _schedule_check(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        if self._parse():
            self._timer = self.set_timer(PREVIEW_DELAY_S, self._check_now)

    def _parse(self) -> bool:
        """Parse the fields; False if they don't make a plan."""
        self._experiment, self._start_when_checked = None, False
        try:
            self._plan = parse_plan(self._kind, self.values(), self._background.hosts)
        except IopstuiError as error:
            self._plan = None
            self._show_error(error)
            return False
        self._show_plan([length_text(self._plan), CHECKING])
        return True

    def _check_now(self) -> None:
        if self._plan is not None:
            self._check_plan(self._plan)

    @work(exclusive=True)
    async def _check_plan(self, plan: Plan) -> None:
        try:
            experiment = await asyncio.to_thread(self._background.preview, plan)
        except IopstuiError as error:
            if self._waits_for(plan):
                self._start_when_checked = False
                self._show_error(error)
            return
        if not self._waits_for(plan):
            return
        self._experiment = experiment
        self._show_plan(
            [*experiment.lines, *([self._stop_note] if self._stop_note else [])], experiment
        )
        if self._start_when_checked:
            self._start()

    def _waits_for(self, plan: Plan) -> bool:
        return plan is self._plan and self.is_attached and not self.is_leaving

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_start()

    def action_start(self) -> None:
        """Start the experiment as soon as the plan is checked."""
        if self._experiment is not None:
            self._start()
        elif self._plan is not None or self._parse():
            self._start_when_checked = True
            if self._timer is not None:
                self._timer.stop()
            self._check_now()

    def _start(self, start_over: bool = False) -> None:
        experiment, plan = self._experiment, self._plan
        if experiment is None or plan is None:
            return
        if plan.points >= CONFIRM_FROM_POINTS and plan is not self._confirmed_plan:
            self._confirmed_plan, self._start_when_checked = plan, False
            self._show_plan([f"{length_text(plan)}. Enter again to confirm."], warn=True)
            return
        self.dismiss(ExperimentChoice(experiment, start_over, self.values()))

    def action_anew(self) -> None:
        """Start over: discard the results of an interrupted run."""
        self._start(start_over=True)

    # -- the plan below the fields

    def action_read_on(self, by: int) -> None:
        """Scroll the plan: not all of it fits into 24 rows."""
        scroll = self._scroll
        scroll.scroll_relative(y=by * max(1, scroll.size.height - 1), animate=False)

    @property
    def _scroll(self) -> VerticalScroll:
        return self.query_one("#form-scroll", VerticalScroll)

    def _show_lines(self, lines: Sequence[FormLine]) -> None:
        """Show (label, text, style) lines; text that needs several rows stays beside the label."""
        self.plan_text = "\n".join(f"{label} {text}".strip() for label, text, _ in lines)
        parts: list[RenderableType] = []
        for label, text, style in lines:
            if not label:
                parts.append(Text(self.clean(text), style=style))
                continue
            grid = Table.grid(expand=True)
            grid.add_column(width=LABEL_WIDTH)
            grid.add_column(ratio=1)
            name = Text(self.clean(label), style=style or DIM)
            grid.add_row(name, Text(self.clean(text), style=style))
            parts.append(grid)
        self.query_one("#form-words", Static).update(Group(*parts))
        self._scroll.scroll_home(animate=False)

    def _show_keys(self, scrolls: bool) -> None:
        """Show the keys that scroll only if there is something to scroll."""
        self.keys.show((*HINTS, SCROLL_HINT) if scrolls else HINTS)

    def _show_error(self, error: IopstuiError) -> None:
        self._show_lines(
            [("", error.message, ERROR), *([("", error.hint, "")] if error.hint else [])]
        )

    def _show_plan(
        self, lines: Sequence[str], experiment: Prepared | None = None, warn: bool = False
    ) -> None:
        plan_lines: list[FormLine] = [("", lines[0], WARNING if warn else BOLD)]
        for line in lines[1:]:
            label, colon, text = line.partition(": ")
            style = WARNING if label in WARNING_LABELS else ""
            plan_lines.append((label, text, style) if colon else ("", line, style))
        if experiment is not None and experiment.resume_note:
            plan_lines.append(("", f"Enter {experiment.resume_note}; Ctrl-N starts over", BOLD))
        if experiment is not None and experiment.loss_note:
            plan_lines.append(("", experiment.loss_note, WARNING))
        self._show_lines(plan_lines)

    def _fit(self) -> None:
        """Let the plan scroll if it does not fit: buttons and keys stay visible."""
        super()._fit()
        self._scroll.styles.max_height = max(2, self.body_height - len(self._fields) - ROWS_BELOW)


def _validator(name: str) -> Callable[[str], bool]:
    """Return a check of this field's value, shown while typing."""

    def possible(value: str) -> bool:
        try:
            check_field(name, value)
        except IopstuiError:
            return False
        return True

    return possible
