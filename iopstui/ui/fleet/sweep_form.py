"""The form for a sweep over hosts: the number of hosts and the length of each point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, Static

from iopstui.errors import IopstuiError, UsageError
from iopstui.fleet.scaling_curve import default_host_counts, parse_host_counts
from iopstui.format import counted, duration
from iopstui.model.experiment.scaling import MIN_POINTS
from iopstui.text import printable
from iopstui.ui.core.buttons import push_button
from iopstui.ui.core.modal import Hint, Modal
from iopstui.ui.draw.style import DIM, ERROR, WARNING, Charset

HINTS: tuple[Hint, ...] = (
    ("Enter", "Start", "screen.start"), ("Tab", "Next field", "app.focus_next"),
    ("Esc", "Cancel", "screen.leave"),
)  # fmt: skip
MAX_SECONDS = 7 * 86400
FEW_POINTS = f"From {MIN_POINTS} points on, the scaling law is fitted and a knee searched."


@dataclass(frozen=True, slots=True)
class HostSweepChoice:
    """Sweep to run: the number of hosts of each point; ``seconds`` is the length of each run
    (``None``: the job's)."""

    counts: tuple[int, ...]
    seconds: int | None = None


class SweepForm(Modal["HostSweepChoice | None"]):
    """Returns the sweep to start, or ``None``. ``hosts`` are all names in the order in which points
    use them, ``runtime`` is the job's in seconds, if known. ``stops_run``: it stops a run."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("tab,down", "app.focus_next", show=False, priority=True),
        Binding("shift+tab,up", "app.focus_previous", show=False, priority=True),
    ]
    about = "Number of hosts at each point: Enter starts the sweep, Esc cancels."

    def __init__(
        self, job: str, hosts: Sequence[str], runtime: int | None, charset: Charset, stops_run: bool
    ) -> None:
        super().__init__(f"Sweep over hosts: {printable(job)}", charset, HINTS)
        self._hosts = hosts
        self._runtime = runtime
        self._stops_run = stops_run

    def content(self) -> ComposeResult:
        """The fields, each with a hint; then the plan."""
        total = len(self._hosts)
        yield from self._field(
            "hosts", default_host_counts(total), "1,2,4..64 doubles, 1..8 counts"
        )
        if self._runtime is not None:
            yield from self._field("seconds", str(self._runtime), "of each point (runtime)")
        with VerticalScroll(id="form-scroll", can_focus=False):
            yield Static(id="form-words")
        with Horizontal(classes="form-buttons"):
            yield push_button("Start", "form-start", primary=True)
            yield push_button("Cancel", "form-cancel")

    def _field(self, name: str, value: str, hint: str) -> ComposeResult:
        with Horizontal(classes="form-row"):
            yield Static(Text(name.capitalize()), classes="form-label")
            yield Input(value, id=f"form-{name}", classes="field")
            yield Static(Text(hint, style=DIM), classes="form-hint")

    def on_mount(self) -> None:
        """Focus the number of hosts."""
        self.query_one("#form-hosts", Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the plan, or the error."""
        self._parse()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Start the sweep."""
        self.action_start()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Start, or cancel."""
        if event.button.id == "form-start":
            self.action_start()
        else:
            self.action_leave()

    def action_start(self) -> None:
        """Start the sweep of the fields."""
        sweep = self._parse()
        if sweep is not None:
            self.dismiss(sweep)

    def _parse(self) -> HostSweepChoice | None:
        """Values of the fields; ``None`` for invalid ones, whose error is shown."""
        try:
            counts_text = self.query_one("#form-hosts", Input).value.strip().removeprefix("hosts=")
            counts = parse_host_counts(f"hosts={counts_text}", len(self._hosts))
            seconds = self._seconds()
        except IopstuiError as error:
            text = Text(self._clean(error.message), style=ERROR)
            text.append(self._clean(f"\n{error.hint}"), style="")
            self.query_one("#form-words", Static).update(text)
            return None
        self.query_one("#form-words", Static).update(self._plan_text(counts, seconds))
        return HostSweepChoice(tuple(counts), seconds)

    def _seconds(self) -> int | None:
        if self._runtime is None:
            return None
        seconds_text = (
            self.query_one("#form-seconds", Input).value.strip().removesuffix("s").strip()
        )
        digits = (
            seconds_text.isascii()
            and seconds_text.isdecimal()
            and len(seconds_text) <= len(str(MAX_SECONDS))
        )
        if not digits or not 1 <= int(seconds_text) <= MAX_SECONDS:
            raise UsageError(
                f"seconds: {seconds_text!r} is not a whole number from 1 to {MAX_SECONDS}.",
                "Such as: 60",
            )
        return int(seconds_text)

    def _plan_text(self, counts: Sequence[int], seconds: int | None) -> Text:
        points = counted(len(counts), "point")
        plan = f"{points}, one after another, each with all checks of a run."
        if seconds is not None:
            run_time = duration(len(counts) * seconds)
            plan += f" {run_time} of run time, plus a few seconds per start."
        largest = max(counts)
        names = self._hosts[:largest]
        first_hosts = ", ".join(names[:4]) + (f" ... {names[-1]}" if largest > 4 else "")
        text = Text(self._clean(f"{plan}\nHosts in this order: {first_hosts}\n"))
        if len(set(counts)) < MIN_POINTS:
            text.append(f"{FEW_POINTS}\n", style=WARNING)
        if self._stops_run:
            text.append("The current run is stopped first.\n", style=WARNING)
        return text

    def _clean(self, text: str) -> str:
        return "\n".join(self.charset.text(printable(line)) for line in text.split("\n"))
