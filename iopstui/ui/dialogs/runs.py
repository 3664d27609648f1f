"""The list of runs: each has a row, and two of them can be overlaid on the charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable

from iopstui.format import change, cut, latency, mib, milliseconds, number, percent
from iopstui.model.metrics.run_history import FAILED, RUNS, RunRow
from iopstui.session.run_rows import measured_seconds_text
from iopstui.ui.core import pages
from iopstui.ui.core.modal import CLOSE_HINT, LIST_KEYS, Hint, Modal
from iopstui.ui.dashboard.overlay import Overlay
from iopstui.ui.dialogs.type_to_filter import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.style import Charset
from iopstui.ui.state.live import LiveState

HINTS: tuple[Hint, ...] = (
    ("Enter", "Select two runs to overlay", "screen.choose"), FILTER_HINT, CLOSE_HINT,
)  # fmt: skip
TITLES = ("", "#", "CHANGE", "IOPS", "BEFORE", "BASE", "MiB/s", "p50", "p99", "aqu-sz", "UTIL %",
          "s", "ENDED")  # fmt: skip
LEFT_ALIGNED = frozenset({"", "CHANGE", "ENDED"})
NARROW_TITLES = ("", "#", "CHANGE", "IOPS", "BEFORE", "BASE", "MiB/s", "p99")
"""Titles on a narrower terminal than ``WIDE_TERMINAL``."""
WIDE_TERMINAL = 118
MIN_CHANGE, MAX_CHANGE, OTHER_COLUMNS = 26, 68, 92
"""Width of the change, and columns of the others and the frame where all are shown."""
VALUES: dict[str, Callable[[RunRow], float | None]] = {
    "#": lambda row: row.step, "IOPS": lambda row: row.iops, "BEFORE": lambda row: row.to_before,
    "BASE": lambda row: row.to_base, "MiB/s": lambda row: row.bw, "p50": lambda row: row.p50_ns,
    "p99": lambda row: row.p99_ns, "RTT": lambda row: row.rtt_ms, "aqu-sz": lambda row: row.aqu_sz,
    "UTIL %": lambda row: row.util,
}  # fmt: skip
"""What a click on a title sorts by."""


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
        self._titles: tuple[str, ...] = ()
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
        titles = self._column_titles(
            TITLES if self.app.size.width >= WIDE_TERMINAL else NARROW_TITLES
        )
        if titles == self._titles:
            return
        step = self._step_under_cursor()
        self._titles, self._rows = titles, []
        table = self._table()
        table.clear(columns=True)
        for title in titles:
            justify = "left" if title in LEFT_ALIGNED else "right"
            table.add_column(Text(title, justify=justify), key=title)  # type: ignore[arg-type]
        self.paint(step)

    def _column_titles(self, titles: Sequence[str]) -> tuple[str, ...]:
        """On NFS there is no device's queue, but the time of an answer."""
        frame = self._state().frame
        on_nfs = frame is not None and frame.share is not None and frame.share.smb is None
        return tuple("RTT" if on_nfs and title == "aqu-sz" else title for title in titles)

    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    def paint(self, cursor: int | None = None) -> None:
        """Show the newest rows; only what has changed is drawn. ``cursor`` is the run to be under
        it (default: the one that is)."""
        if not self._titles:
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
                for title, cell, old_cell in zip(self._titles, cells, old_cells, strict=True):
                    if cell != old_cell:
                        table.update_cell(str(step), title, cell)
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
        value, sign = VALUES[self._sort], -1 if self._descending else 1

        def place(row: RunRow) -> tuple[bool, float]:
            figure = value(row)
            return figure is None, sign * (figure or 0.0)

        return sorted(self._state().runs.rows[::-1], key=place)

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by this column; again: the other way round."""
        title = event.column_key.value or ""
        if title in VALUES:
            self._descending = not self._descending if title == self._sort else True
            self._sort = title
            self.paint()

    def _change_width(self) -> int:
        width = self.app.size.width - OTHER_COLUMNS if self._titles is TITLES else MIN_CHANGE
        return max(MIN_CHANGE, min(MAX_CHANGE, width))

    def _cells(self, row: RunRow) -> list[Text]:
        base = self._state().runs.base
        outcome = "running" if row.ended == RUNS else row.ended
        to_base = "" if base is None else "base" if row.step == base else change(row.to_base)
        queued = milliseconds(row.rtt_ms, "") if "RTT" in self._titles else number(row.aqu_sz)
        values = (
            "●" if row.step in self._overlay.steps else " ", str(row.step),
            cut(row.what, self._change_width()), number(row.iops), change(row.to_before), to_base,
            mib(row.bw), latency(row.p50_ns, ""), latency(row.p99_ns, ""), queued,
            percent(row.util), measured_seconds_text(row), outcome,
        )  # fmt: skip
        names = tuple("RTT" if "RTT" in self._titles and t == "aqu-sz" else t for t in TITLES)
        row_style = "bold" if row.step == base else "italic" if row.ended == FAILED else ""
        return [
            Text(self.clean(value), style=row_style,
                 justify="left" if title in LEFT_ALIGNED else "right")
            for title, value in zip(names, values, strict=True)
            if title in self._titles
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
