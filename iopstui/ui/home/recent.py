"""The recordings made last, on the home screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import DataTable

from iopstui import format as f
from iopstui.recording.recent import RecentRecording
from iopstui.text import printable
from iopstui.ui.draw.style import Charset
from iopstui.ui.home.rows import shorten

RECORDING, TARGET, BEGAN, SIZE = "RECORDING", "TARGET", "BEGAN", "SIZE"
COLUMNS = ((RECORDING, 0), (TARGET, 16), (BEGAN, 12), (SIZE, 9))
"""Title and minimum width; the first column takes the spare width, the second a share of it."""
ORDERS: dict[str, tuple[Callable[[RecentRecording], object], str, str]] = {
    RECORDING: (lambda recording: str(recording.path), "A first", "Z first"),
    TARGET: (lambda recording: recording.target, "A first", "Z first"),
    BEGAN: (lambda recording: recording.began_ms or 0.0, "oldest first", "newest first"),
    SIZE: (lambda recording: recording.size, "smallest first", "largest first"),
}
"""Sort key of each column, and the names of both orders."""
TARGET_SHARE, MAX_TARGET = 4, 40
MIN_NAME, GAP, EDGE, VISIBLE_ROWS, TALL_TERMINAL = 20, 1, 3, 4, 45
DAY_S = 86400.0


class RecentRecordings(Vertical):
    """Table of recent recordings; hidden if there is none."""

    class Chosen(Message):
        """The recording to be played."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, charset: Charset) -> None:
        super().__init__(id="home-recent", classes=f"home-box {charset.name}")
        self._charset = charset
        self._recordings: Sequence[RecentRecording] = ()
        self._order, self._descending = BEGAN, True
        self._matches: Callable[..., bool] = lambda *texts: True
        self._widths = dict(COLUMNS)

    def compose(self) -> ComposeResult:
        """The table."""
        yield DataTable(id="home-recordings", cursor_type="row", cell_padding=GAP)

    def on_mount(self) -> None:
        """The title."""
        self.border_title = "Recent recordings"

    def show(self, recordings: Sequence[RecentRecording], width: int, height: int) -> None:
        """Show these in ``width`` columns of a terminal with ``height`` rows."""
        self._recordings = recordings
        self.set_class(bool(recordings), "-some")
        self.styles.height = (
            min(VISIBLE_ROWS if height < TALL_TERMINAL else 2 * VISIBLE_ROWS, len(recordings))
            + EDGE
        )
        table = self.query_one(DataTable)
        table.clear(columns=True)
        self._widths = _widths(width)
        for title, column_width in self._widths.items():
            heading = Text(title, justify="right" if title == SIZE else "left")
            table.add_column(heading, width=column_width, key=title)
        self._fill()

    def filter(self, matches: Callable[..., bool]) -> None:
        """Show those whose cells ``matches`` accepts."""
        self._matches = matches
        if self._recordings:
            self._fill()

    def _fill(self) -> None:
        """Fill the table in the chosen order."""
        table = self.query_one(DataTable)
        value, up, down = ORDERS[self._order]
        table.clear()
        for recording in sorted(self._recordings, key=value, reverse=self._descending):  # type: ignore[arg-type]
            cells = self._cells(recording)
            if self._matches(*map(str, cells)):
                table.add_row(*cells, key=str(recording.path))
        order = f"Sorted by {self._order}, {down if self._descending else up}"
        self.border_subtitle = Text(self._charset.text(order))

    @property
    def rows(self) -> int:
        """Rows that it takes on the screen."""
        return int(self.styles.height.value) if self._recordings and self.styles.height else 0

    def resize(self, width: int, height: int) -> None:
        """Fill the rows again in another size."""
        self.show(self._recordings, width, height)

    def _cells(self, recording: RecentRecording) -> list[Text]:
        values = {
            RECORDING: str(recording.path), TARGET: recording.target or "unreadable",
            BEGAN: start_text(recording.began_ms), SIZE: f.size(recording.size),
        }  # fmt: skip
        cells = [
            Text(self._charset.text(shorten(printable(value), self._widths[title])), no_wrap=True)
            for title, value in values.items()
        ]
        cells[-1].justify = "right"
        return cells

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by this column; again: the other way round."""
        event.stop()
        title = event.column_key.value or BEGAN
        self._descending = not self._descending if title == self._order else title in (BEGAN, SIZE)
        self._order = title
        self._fill()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Play it."""
        event.stop()
        self.post_message(self.Chosen(event.row_key.value or ""))


def _widths(width: int) -> dict[str, int]:
    """The columns' widths in ``width`` cells."""
    widths = dict(COLUMNS)
    spare = width - sum(widths.values()) - 2 * GAP * len(COLUMNS)
    more = max(0, min((spare - MIN_NAME) // TARGET_SHARE, MAX_TARGET - widths[TARGET]))
    return {**widths, RECORDING: max(MIN_NAME, spare - more), TARGET: widths[TARGET] + more}


def start_text(wall_ms: float | None, now_s: float | None = None) -> str:
    """When it began: the time of today, else the day."""
    if wall_ms is None:
        return f.MISSING
    seconds, now = wall_ms / 1000, time.time() if now_s is None else now_s
    started, today = time.localtime(seconds), time.localtime(now)
    if started[:3] == today[:3]:
        return time.strftime("%H:%M:%S", started)
    return time.strftime("%Y-%m-%d", started)
