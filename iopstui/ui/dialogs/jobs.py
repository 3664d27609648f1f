"""Lists to choose from: the shipped jobs, and the runs of this session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import DataTable, Input, OptionList, Static

from iopstui.fio.library import ShippedJob, publisher_heading
from iopstui.format import cut
from iopstui.model.metrics.run_history import FAILED, RUNS, RunRow
from iopstui.session.run_rows import DISTURBED, RTT, RUN_COLUMNS, against_base
from iopstui.tables import DOWN, Column
from iopstui.text import printable
from iopstui.ui.core import key
from iopstui.ui.core.list_table import ListTable
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, Hint, Modal
from iopstui.ui.dashboard.overlay import Overlay
from iopstui.ui.dialogs.questions import Picker
from iopstui.ui.dialogs.text import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.style import BOLD, DIM, KEY, WARNING, Charset
from iopstui.ui.state.live import LiveState

HINTS: tuple[Hint, ...] = (
    ("Enter", "Run", "screen.take"), ("↑ ↓", "Choose", ""), ("PgUp PgDn", "Scroll", ""),
    ("Esc", "Cancel", "screen.leave"),
)  # fmt: skip


class JobChooser(Picker["str | None"]):
    """Returns the name of the chosen job, or ``None``."""

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

    def __init__(
        self, jobs: Sequence[ShippedJob], current: str, charset: Charset, place: str = "",
        changed: str = "",
    ) -> None:  # fmt: skip
        """``place``: where the job will run. ``changed`` are the changed options with which
        ``current`` will run."""
        super().__init__(f"Run a job · {place}" if place else "Run a job", charset, HINTS)
        self._jobs = list(jobs)
        self._current, self._changed = current, changed

    def content(self) -> ComposeResult:
        """Filter, list, explanation."""
        yield Input(placeholder="Type to filter: name or words", id="jobs-filter", classes="field")
        with Horizontal(classes="modal-body"):
            yield OptionList(id="jobs-list")
            with VerticalScroll(id="jobs-scroll", classes="modal-beside", can_focus=False):
                yield Static(id="jobs-text", classes="modal-text")

    def on_mount(self) -> None:
        """The filter has the focus, but the arrows move in the list."""
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
        # default: row 1, because row 0 is a heading
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
            ("Changed by you", self._changed if job.name == self._current else ""),
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
        """The text without characters that a terminal would interpret, except line breaks."""
        lines = (_indent(line) + printable(line) for line in text.splitlines())
        return self.charset.text("\n".join(lines))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list to the jobs that have all words of the filter."""
        self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
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


RUNS_HINTS: tuple[Hint, ...] = (
    ("Enter", "Select two runs to overlay", "screen.choose"), FILTER_HINT, CLOSE_HINT,
)  # fmt: skip
TITLES = {"step": "#", "what": "CHANGE", "to_before": "BEFORE", "to_base": "BASE",
          "util": "UTIL %", "ended": "ENDED"}  # fmt: skip
WIDE_TERMINAL, WIDEST_TERMINAL = 118, 140
WIDE_ALONE = dict.fromkeys(
    ("mean_ns", "p50_ns", "aqu_sz", "rtt_ms", "util", "seconds", "ended"), WIDE_TERMINAL
) | {"p999_ns": WIDEST_TERMINAL}
"""Columns that only a terminal of at least this width shows."""
UNSORTED = frozenset({"what", "seconds", "ended"})
MIN_CHANGE, FRAME, PADDING = 12, 5, 2
MAX_WIDTH = 220
"""The box's maximum width in columns, as in the style sheet."""


class RunsList(TypeToFilter, Modal[None]):
    """A list of runs, in which the user changes ``overlay``. ``state`` returns the state shown
    now."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("space", "choose", show=False),
    ]
    size_class = "broad"
    copies_titles = True
    _change_width = MIN_CHANGE
    about = (
        "The runs of this session. Enter selects two to overlay on the charts, aligned at their "
        "starts; Enter again deselects; g on the dashboard ends the overlay. Click a title to sort."
        f" {DISTURBED} marks a run that was disturbed."
    )

    def __init__(
        self, state: Callable[[], LiveState], overlay: Overlay, charset: Charset, can_run: bool
    ) -> None:
        """``can_run``: whether jobs can be run here, unlike in a replay."""
        super().__init__("Runs", charset, RUNS_HINTS, key.RUNS)
        self._state, self._can_run = state, can_run
        self._overlay = overlay
        self._columns = self._all_columns()
        self._table = ListTable(
            self._columns, charset, "#", lambda row: str(row.step), classes="modal-fit"
        )

    def _all_columns(self) -> list[Column]:
        """The columns. Runs on NFS have a round-trip time in place of the device's queue."""
        base = Column("to_base", "base", key=lambda row: row.to_base,
                      read=lambda row: against_base(self._state().runs.base).text(row))  # fmt: skip
        forms: dict[str, Callable[[str], str]] = {
            "what": lambda what: cut(what, self._change_width),
            "ended": lambda outcome: "running" if outcome == RUNS else outcome,
        }
        mark = Column(
            "", "", left=True, read=lambda row: "●" if row.step in self._overlay.steps else " ",
            style_of=self._style,
        )  # fmt: skip
        return [mark, *(
            replace(column, title=TITLES.get(column.id, column.title), style_of=self._style,
                    form=forms.get(column.id, column.form),
                    sorts=0 if column.id in UNSORTED else DOWN)
            for column in (*RUN_COLUMNS[:4], base, *RUN_COLUMNS[4:-3], RTT, *RUN_COLUMNS[-3:])
        )]  # fmt: skip

    def _style(self, row: RunRow) -> str:
        if row.step == self._state().runs.base:
            return "bold"
        return "italic" if row.ended == FAILED else ""

    def content(self) -> ComposeResult:
        yield self._table

    def on_mount(self) -> None:
        """Let the table have the focus, and so the keys."""
        self.paint()
        self._table.focus()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.paint()

    def _widths(self) -> dict[str, None]:
        frame, width = self._state().frame, self.app.size.width
        on_nfs = frame is not None and frame.share is not None and frame.share.smb is None
        hidden = {"aqu_sz" if on_nfs else "rtt_ms",
                  *["to_base"] * (self._state().runs.base is None),
                  *(name for name, least in WIDE_ALONE.items() if width < least)}  # fmt: skip
        return dict.fromkeys(column.title for column in self._columns if column.id not in hidden)

    def _free_width(self) -> int:
        """The width that remains for the text of the change."""
        shown = self._widths()
        others = [column for column in self._columns if column.title in shown
                  and column.id != "what"]  # fmt: skip
        rows = self._state().runs.rows
        texts = ([column.title, *map(column.text, rows)] for column in others)
        used = sum(max(map(len, column)) + PADDING for column in texts)
        space = min(self.app.size.width, MAX_WIDTH) - FRAME - PADDING
        return max(MIN_CHANGE, space - used)

    def paint(self) -> None:
        """Show the newest rows, the newest run first."""
        table = self._table
        if not table.is_attached:
            return
        self._change_width = self._free_width()
        rows = table.in_order(self._state().runs.rows[::-1])
        table.show(
            (row for row in rows if self.matches(f"{row.step} {row.what_and_point}")),
            self._widths(),
        )
        overlaid = self._overlay.steps
        note = f"overlaid: {' and '.join(map(str, overlaid))}" if overlaid else ""
        if table.order != "#" or table.reverse:
            note = f"{note}  sorted by {table.order_text}".strip()
        if not self._state().runs.rows:
            note = "no run yet: Esc, then r runs a job" if self._can_run else "no run yet"
        if note != self.note:
            self.set_title(self.heading, note)

    def on_list_table_sorted(self) -> None:
        self.paint()

    def apply_filter(self) -> None:
        self.paint()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Add the run under the cursor to the overlay, or remove it."""
        self.action_choose()

    def action_choose(self) -> None:
        """Add the run under the cursor to the overlay, or remove it."""
        row: RunRow | None = self._table.selected
        if row is not None:
            self._overlay.choose(row.step)
            self.paint()
