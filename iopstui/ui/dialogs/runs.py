"""The list of runs: each has a row, and two of them can be overlaid on the charts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable

from iopstui.format import cut
from iopstui.model.metrics.run_history import FAILED, RUNS, RunRow
from iopstui.session.run_rows import RTT, RUN_COLUMNS, against_base
from iopstui.tables import DOWN, Column
from iopstui.ui.core import pages
from iopstui.ui.core.list_table import ListTable
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, Hint, Modal
from iopstui.ui.dashboard.overlay import Overlay
from iopstui.ui.dialogs.type_to_filter import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.style import Charset
from iopstui.ui.state.live import LiveState

HINTS: tuple[Hint, ...] = (
    ("Enter", "Select two runs to overlay", "screen.choose"), FILTER_HINT, CLOSE_HINT,
)  # fmt: skip
TITLES = {"step": "#", "what": "CHANGE", "to_before": "BEFORE", "to_base": "BASE",
          "util": "UTIL %", "ended": "ENDED"}  # fmt: skip
WIDE_ALONE = frozenset({"p50_ns", "aqu_sz", "rtt_ms", "util", "seconds", "ended"})
"""Columns that a terminal narrower than ``WIDE_TERMINAL`` does not show."""
UNSORTED = frozenset({"what", "seconds", "ended"})
WIDE_TERMINAL = 118
MIN_CHANGE, FRAME, PADDING = 12, 5, 2
MAX_WIDTH = 160
"""Columns of the box, at most, as the style sheet has it."""


class RunsList(TypeToFilter, Modal[None]):
    """Changes ``overlay``; ``state`` returns the state shown now."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("space", "choose", show=False),
    ]
    size_class = "broad"
    _change_width = MIN_CHANGE
    about = (
        "The runs of this session. Enter selects two to overlay on the charts, aligned at their "
        "starts; Enter again deselects; g on the dashboard ends the overlay. Click a title to sort."
    )

    def __init__(self, state: Callable[[], LiveState], overlay: Overlay, charset: Charset) -> None:
        super().__init__("Runs", charset, HINTS, pages.RUNS)
        self._state = state
        self._overlay = overlay
        self._columns = self._all_columns()
        self._table = ListTable(
            self._columns, charset, "#", lambda row: str(row.step), classes="modal-fit"
        )

    def _all_columns(self) -> list[Column]:
        """The columns. On NFS there is no device queue, but a round-trip time."""
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
        """The table has the keys."""
        self.paint()
        self._table.focus()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.paint()

    def _widths(self) -> dict[str, None]:
        frame, wide = self._state().frame, self.app.size.width >= WIDE_TERMINAL
        on_nfs = frame is not None and frame.share is not None and frame.share.smb is None
        hidden = {"aqu_sz" if on_nfs else "rtt_ms", *(() if wide else WIDE_ALONE)}
        return dict.fromkeys(column.title for column in self._columns if column.id not in hidden)

    def _free_width(self) -> int:
        """The width that the other columns leave for the text of the change."""
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
        table.show((row for row in rows if self.matches(f"{row.step} {row.what}")), self._widths())
        overlaid = self._overlay.steps
        note = f"overlaid: {' and '.join(map(str, overlaid))}" if overlaid else ""
        if table.order != "#" or table.reverse:
            note = f"{note}  sorted by {table.order_text}".strip()
        if not self._state().runs.rows:
            note = "no run yet"
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
