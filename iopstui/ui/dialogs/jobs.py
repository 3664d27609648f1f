"""The job chooser: what the shipped jobs measure, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input, OptionList, Static

from iopstui.fio.library import ShippedJob, publisher_heading
from iopstui.text import printable
from iopstui.ui.core.modal import Hint
from iopstui.ui.dialogs.questions import Picker
from iopstui.ui.draw.style import BOLD, DIM, KEY, WARNING, Charset

HINTS: tuple[Hint, ...] = (
    ("Enter", "Run", "screen.take"), ("↑ ↓", "Choose", ""), ("PgUp PgDn", "Scroll", ""),
    ("Esc", "Cancel", "screen.leave"),
)  # fmt: skip


class JobChooser(Picker["str | None"]):
    """Gives the chosen job's name, or ``None``."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("down", "move(1)", priority=True),
        Binding("up", "move(-1)", priority=True),
        Binding("pagedown", "scroll(1)", priority=True),
        Binding("pageup", "scroll(-1)", priority=True),
    ]

    size_class = "wide"
    about = (
        "Choose a job: typing filters the list, PgUp and PgDn scroll the description, Enter runs "
        "the job. ? is text here; F1 opens this help."
    )

    def __init__(self, jobs: Sequence[ShippedJob], current: str, charset: Charset) -> None:
        super().__init__("Run a job", charset, HINTS)
        self._jobs = list(jobs)
        self._current = current

    def content(self) -> ComposeResult:
        """Filter, list, explanation."""
        yield Input(placeholder="Type to filter: name or words", id="jobs-filter", classes="field")
        with Horizontal(classes="modal-body"):
            yield OptionList(id="jobs-list")
            with VerticalScroll(id="jobs-scroll", classes="modal-beside", can_focus=False):
                yield Static(id="jobs-text", classes="modal-text")

    def on_mount(self) -> None:
        """The filter has the focus; the arrows move in the list nevertheless."""
        self._filter("")
        self.query_one(OptionList).can_focus = False
        self.query_one(Input).focus()

    def _filter(self, text: str) -> None:
        terms = text.lower().split()
        rows: list[ShippedJob | None] = []
        labels: list[Text] = []
        heading = ""
        for job in self._jobs:
            if not all(w in f"{job.name} {job.title} {job.measures}".lower() for w in terms):
                continue
            if publisher_heading(job.source) != heading:
                heading = publisher_heading(job.source)
                labels.append(Text(self.charset.text(printable(heading)), style=DIM))
                rows.append(None)
            labels.append(self._label(job))
            rows.append(job)
        names = [job.name if job else "" for job in rows]
        # row 0 is a heading
        self.show_items(rows, labels, names.index(self._current) if self._current in names else 1)
        self.explain()

    def _label(self, job: ShippedJob) -> Text:
        label = Text(f"{printable(job.name):<22}", style=BOLD)
        return label.append("writes" if job.writes else "", style=WARNING)

    def explain(self) -> None:
        job: ShippedJob | None = self.selected
        if job is None:
            text = Text("No job has all of these words.", style=DIM)
        else:
            text = self._explanation(job)
        self.query_one("#jobs-text", Static).update(text)
        self.query_one("#jobs-scroll", VerticalScroll).scroll_home(animate=False)

    def _explanation(self, job: ShippedJob) -> Text:
        text = Text().append(self._clean(job.title) + "\n\n", style=BOLD)
        for label, value in (
            ("Measures", job.measures),
            ("Look at", job.look_at),
            ("Teaches", job.teaches),
            ("Source", job.source),
            ("Writes", "yes, to the target" if job.writes else "no, it only reads"),
        ):
            if value:
                style = WARNING if job.writes and label == "Writes" else ""
                text.append(f"{label}: ", style=KEY)
                text.append(self._clean(value) + "\n\n", style=style)
        text.append(self._clean(_options(job.text)), style=DIM)
        return text

    def _clean(self, text: str) -> str:
        """The text without characters that a terminal would act on, except line breaks."""
        lines = (_indent(line) + printable(line) for line in text.splitlines())
        return self.charset.text("\n".join(lines))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list to the jobs that have all words of the filter."""
        self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the job under the cursor."""
        self.action_take()

    def take(self) -> None:
        if self.selected is not None:
            self.dismiss(self.selected.name)

    def action_move(self, by: int) -> None:
        """Move the cursor in the list while the filter keeps the focus."""
        chooser = self.query_one(OptionList)
        (chooser.action_cursor_down if by > 0 else chooser.action_cursor_up)()


def _options(text: str) -> str:
    """A job file without its comment block."""
    lines = text.splitlines()
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines)


def _indent(line: str) -> str:
    return " " * min(8, len(line) - len(line.lstrip(" ")))
