"""The job chooser: what the shipped jobs measure, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from iopstui.fio.library import ShippedJob, publisher_heading
from iopstui.text import printable
from iopstui.ui.core.modal import Hint, Modal
from iopstui.ui.draw.style import BOLD, DIM, KEY, WARNING, Charset

HINTS: tuple[Hint, ...] = (
    ("Enter", "Run", "screen.take"), ("↑ ↓", "Choose", ""), ("PgUp PgDn", "Scroll", ""),
    ("Esc", "Cancel", "screen.leave"),
)  # fmt: skip


class JobChooser(Modal["str | None"]):
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
        # rows of the list; None is a heading
        self._rows: list[ShippedJob | None] = []

    def content(self) -> ComposeResult:
        """Filter, list, explanation."""
        yield Input(placeholder="Type to filter: name or words", id="jobs-filter", classes="field")
        with Horizontal(classes="modal-body"):
            yield OptionList(id="jobs-list")
            with VerticalScroll(id="jobs-scroll", classes="modal-beside", can_focus=False):
                yield Static(id="jobs-text", classes="modal-text")

    def on_mount(self) -> None:
        """The filter has the keys; the arrows move in the list all the same."""
        self._filter("")
        self.query_one(OptionList).can_focus = False
        self.query_one(Input).focus()

    def _filter(self, text: str) -> None:
        terms = text.lower().split()
        self._rows = []
        options: list[Option] = []
        heading = ""
        for job in self._jobs:
            if not all(w in f"{job.name} {job.title} {job.measures}".lower() for w in terms):
                continue
            if publisher_heading(job.source) != heading:
                heading = publisher_heading(job.source)
                options.append(Option(self._heading(heading), disabled=True))
                self._rows.append(None)
            options.append(Option(self._label(job)))
            self._rows.append(job)
        chooser = self.query_one(OptionList)
        chooser.clear_options()
        chooser.add_options(options)
        names = [job.name if job else "" for job in self._rows]
        if self._rows:
            # row 0 is a heading
            chooser.highlighted = names.index(self._current) if self._current in names else 1
        self._explain()

    def _heading(self, text: str) -> Text:
        return Text(self.charset.text(printable(text)), style=DIM)

    def _label(self, job: ShippedJob) -> Text:
        label = Text(f"{printable(job.name):<22}", style=BOLD)
        return label.append("writes" if job.writes else "", style=WARNING)

    def _explain(self) -> None:
        job = self._highlighted_job()
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
        """Line breaks stay, everything else a terminal would act on goes."""
        lines = (_indent(line) + printable(line) for line in text.splitlines())
        return self.charset.text("\n".join(lines))

    def _highlighted_job(self) -> ShippedJob | None:
        index = self.query_one(OptionList).highlighted
        if index is None or not 0 <= index < len(self._rows):
            return None
        return self._rows[index]

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list to the jobs that have all words of the filter."""
        self._filter(event.value)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the explanation of the job under the cursor."""
        self._explain()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the job that was clicked."""
        self.action_take()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the job under the cursor."""
        self.action_take()

    def action_take(self) -> None:
        """Close with the job under the cursor."""
        job = self._highlighted_job()
        if job is not None:
            self.dismiss(job.name)

    def action_move(self, by: int) -> None:
        """Move the cursor in the list while the filter keeps the focus."""
        chooser = self.query_one(OptionList)
        (chooser.action_cursor_down if by > 0 else chooser.action_cursor_up)()

    def action_scroll(self, by: int) -> None:
        """Scroll the explanation."""
        scroll = self.query_one("#jobs-scroll", VerticalScroll)
        scroll.scroll_relative(y=by * max(1, scroll.size.height - 2), animate=False)


def _options(text: str) -> str:
    """A job file without its comment block."""
    lines = text.splitlines()
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines)


def _indent(line: str) -> str:
    return " " * min(8, len(line) - len(line.lstrip(" ")))
