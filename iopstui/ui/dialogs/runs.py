"""The list of runs: each has a row, and two of them can be overlaid on the charts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable

from iopstui.format import cut
from iopstui.model.metrics.run_history import FAILED, RUNS, RunRow
from iopstui.session.run_rows import RTT, RUN_COLUMNS, against_base
from iopstui.tables import Column
from iopstui.ui.core import pages
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
SORTED_BY = {
    TITLES.get(column.id, column.title): column.id
    for column in (*RUN_COLUMNS, RTT, Column("to_base", ""))
    if column.id not in ("what", "seconds", "ended")
}
"""What a click on a title sorts by."""
WIDE_TERMINAL = 118
CHANGE_WIDTH = 26


class RunsList(TypeToFilter, Modal[None]):
    """Changes ``overlay``; ``state`` returns the state shown now."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("space", "choose", show=False),
    ]
    size_class = "broad"
    about = (
        "The runs of this session. Enter selects two to overlay on the charts, aligned at their "
        "starts; Enter again deselects; g on the dashboard ends the overlay. Click a title to sort."
    )

    def __init__(self, state: Callable[[], LiveState], overlay: Overlay, charset: Charset) -> None:
        super().__init__("Runs", charset, HINTS, pages.RUNS)
        self._state = state
        self._overlay = overlay
        self._columns: list[Column] = []
        self._sort, self._descending = "#", True
        self._rows: list[tuple[int, list[Text]]] = []

    def content(self) -> ComposeResult:
        """The table."""
        yield DataTable(cursor_type="row", classes="modal-fit")

    def on_mount(self) -> None:
        """The table has the keys."""
        self._set_titles()
        self._table().focus()

    def on_resize(self, event: events.Resize) -> None:
        """Show the columns that fit."""
        super().on_resize(event)
        self._set_titles()

    def _set_titles(self) -> None:
        columns = self._columns_now()
        if columns == self._columns:
            return
        step = self._step_under_cursor()
        self._columns, self._rows = columns, []
        table = self._table()
        table.clear(columns=True)
        for column in columns:
            title = Text(column.title, justify="left" if column.left else "right")
            table.add_column(title, key=column.title)
        self.paint(step)

    def _columns_now(self) -> list[Column]:
        """On NFS there is no device's queue, but the time of an answer."""
        frame, wide = self._state().frame, self.app.size.width >= WIDE_TERMINAL
        on_nfs = frame is not None and frame.share is not None and frame.share.smb is None
        columns = [RTT if on_nfs and c.id == "aqu_sz" else c for c in RUN_COLUMNS]
        columns.insert(4, Column("to_base", "base"))
        named = [replace(c, title=TITLES.get(c.id, c.title)) for c in columns]
        return [Column("", "", left=True), *(c for c in named if wide or c.id not in WIDE_ALONE)]

    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def paint(self, cursor: int | None = None) -> None:
        """Show the newest rows; only what has changed is drawn. ``cursor`` is the run to be under
        it (default: the one that is)."""
        if not self._columns:
            return
        rows = [
            (row.step, self._cells(row))
            for row in self._sorted()
            if self.matches(f"{row.step} {row.what}")
        ]
        table, old_rows = self._table(), self._rows
        self._rows = rows
        if [step for step, _ in rows] == [step for step, _ in old_rows]:
            for (step, cells), (_, old_cells) in zip(rows, old_rows, strict=True):
                for column, cell, old_cell in zip(self._columns, cells, old_cells, strict=True):
                    if cell != old_cell:
                        table.update_cell(str(step), column.title, cell)
        else:
            selected = self._step_under_cursor() if cursor is None else cursor
            table.clear()
            for step, cells in rows:
                table.add_row(*cells, key=str(step))
            steps = [step for step, _ in rows]
            table.move_cursor(row=steps.index(selected) if selected in steps else 0)
        overlaid = self._overlay.steps
        note = f"overlaid: {' and '.join(map(str, overlaid))}" if overlaid else ""
        if self._sort != "#" or not self._descending:
            order = "largest first" if self._descending else "smallest first"
            note = f"{note}  sorted by {self._sort}, {order}".strip()
        if not self._state().runs.rows:
            note = "no run yet: r on the dashboard runs a job"
        if note != self.note:
            self.set_title(self.heading, note)

    def _sorted(self) -> list[RunRow]:
        """The runs, the newest first or by the clicked title; runs without a value last."""
        column, sign = SORTED_BY[self._sort], -1 if self._descending else 1

        def place(row: RunRow) -> tuple[bool, float]:
            figure = getattr(row, column)
            return figure is None, sign * (figure or 0.0)

        return sorted(self._state().runs.rows[::-1], key=place)

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by this column; again: the other way round."""
        title = event.column_key.value or ""
        if title in SORTED_BY:
            self._descending = not self._descending if title == self._sort else True
            self._sort = title
            self.paint()

    def _cells(self, row: RunRow) -> list[Text]:
        base = self._state().runs.base
        own = {
            "": "●" if row.step in self._overlay.steps else " ",
            "what": cut(row.what, CHANGE_WIDTH),
            "to_base": against_base(base).text(row),
            "ended": "running" if row.ended == RUNS else row.ended,
        }
        row_style = "bold" if row.step == base else "italic" if row.ended == FAILED else ""
        return [
            Text(self.clean(own[c.id] if c.id in own else c.text(row)), style=row_style,
                 justify="left" if c.left else "right")
            for c in self._columns
        ]  # fmt: skip

    def apply_filter(self) -> None:
        """Show the runs that have all of the words."""
        self.keys.show(HINTS, self.filter_hint)
        self.paint()

    def _step_under_cursor(self) -> int | None:
        table = self._table()
        if not table.row_count:
            return None
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return int(key) if key else None

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Add the run under the cursor to the overlay, or remove it."""
        self.action_choose()

    def action_choose(self) -> None:
        """Add the run under the cursor to the overlay, or remove it."""
        step = self._step_under_cursor()
        if step is not None:
            self._overlay.choose(step)
            self.paint()
