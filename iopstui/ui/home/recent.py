"""The newest recordings, on the home screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import DataTable

from iopstui import format as f
from iopstui.recording.recent import RecentRecording
from iopstui.tables import DOWN, UP, Column
from iopstui.ui.core.list_table import ListTable
from iopstui.ui.draw.style import Charset

RECORDING, TARGET, BEGAN = "RECORDING", "TARGET", "BEGAN"
COLUMNS = (
    Column("path", RECORDING, left=True, sorts=UP, key=lambda recording: str(recording.path)),
    Column("target", TARGET, 16, lambda target: target or "unreadable", left=True, sorts=UP),
    Column(
        "began_ms",
        BEGAN,
        12,
        lambda ms: start_text(ms),
        left=True,
        sorts=DOWN,
        key=lambda recording: recording.began_ms or 0.0,
    ),
    Column("size", "SIZE", 9, f.size, sorts=DOWN),
)
"""The first one takes the spare width, the second a share of it."""
TARGET_SHARE, MAX_TARGET = 4, 40
MIN_NAME, GAP, EDGE, VISIBLE_ROWS, TALL_TERMINAL = 20, 1, 3, 4, 45


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
        self._matches: Callable[..., bool] = lambda *texts: True
        self._table = ListTable(COLUMNS, charset, BEGAN, id="home-recordings", cell_padding=GAP)

    def compose(self) -> ComposeResult:
        yield self._table

    def on_mount(self) -> None:
        self.border_title = "Recent recordings"

    def show(self, recordings: Sequence[RecentRecording], width: int, height: int) -> None:
        """Show these in ``width`` columns of a terminal with ``height`` rows."""
        self._recordings = recordings
        self.set_class(bool(recordings), "-some")
        self.styles.height = (
            min(VISIBLE_ROWS if height < TALL_TERMINAL else 2 * VISIBLE_ROWS, len(recordings))
            + EDGE
        )
        self._fill(_widths(width))

    def filter(self, matches: Callable[..., bool]) -> None:
        """Show those whose cells ``matches`` accepts."""
        self._matches = matches
        if self._recordings:
            self._fill()

    def _fill(self, widths: Mapping[str, int] | None = None) -> None:
        table = self._table
        table.show((each for each in table.in_order(self._recordings)
                    if self._matches(*map(str, table.texts(each)))), widths)  # fmt: skip
        order = table.order_text
        if table.order == BEGAN:
            order = order.replace("largest", "newest").replace("smallest", "oldest")
        self.border_subtitle = Text(self._charset.text(f"Sorted by {order}"))

    @property
    def rows(self) -> int:
        return int(self.styles.height.value) if self._recordings and self.styles.height else 0

    def resize(self, width: int, height: int) -> None:
        """Fill the rows again in another size."""
        self.show(self._recordings, width, height)

    def on_list_table_sorted(self, event: ListTable.Sorted) -> None:
        event.stop()
        self._fill()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        self.post_message(self.Chosen(str(self._table.selected.path)))


def _widths(width: int) -> dict[str, int]:
    widths = {column.title: column.width for column in COLUMNS}
    spare = width - sum(widths.values()) - 2 * GAP * len(COLUMNS)
    more = max(0, min((spare - MIN_NAME) // TARGET_SHARE, MAX_TARGET - widths[TARGET]))
    return {**widths, RECORDING: max(MIN_NAME, spare - more), TARGET: widths[TARGET] + more}


def start_text(wall_ms: float | None, now_s: float | None = None) -> str:
    """When a recording began: the time if it was today, else the day."""
    if wall_ms is None:
        return f.MISSING
    seconds, now = wall_ms / 1000, time.time() if now_s is None else now_s
    started, today = time.localtime(seconds), time.localtime(now)
    if started[:3] == today[:3]:
        return time.strftime("%H:%M:%S", started)
    return time.strftime("%Y-%m-%d", started)
