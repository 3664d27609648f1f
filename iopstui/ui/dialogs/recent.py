"""The recordings made last, on the home screen."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import DataTable

from iopstui import format as f
from iopstui.recording.recent import RecentRecording
from iopstui.text import printable
from iopstui.ui.draw.style import Charset

COLUMNS = (("RECORDING", 0), ("TARGET", 16), ("BEGAN", 12), ("SIZE", 9))
"""Title and width; the first has what is left over."""
MIN_NAME, GAP, EDGE, SHOWN, HIGH = 20, 1, 3, 4, 45
DAY_S = 86400.0


class RecentRecordings(Vertical):
    """A table of them; nothing is seen without any."""

    class Chosen(Message):
        """This one is to be played."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, charset: Charset) -> None:
        super().__init__(id="home-recent", classes=f"home-box {charset.name}")
        self._charset = charset
        self._found: Sequence[RecentRecording] = ()

    def compose(self) -> ComposeResult:
        """The table."""
        yield DataTable(id="home-recordings", cursor_type="row", cell_padding=GAP)

    def on_mount(self) -> None:
        """The title."""
        self.border_title = "Recent recordings"

    def show(self, found: Sequence[RecentRecording], width: int, height: int) -> None:
        """Show these in ``width`` columns of a terminal with ``height`` rows."""
        self._found = found
        self.set_class(bool(found), "-some")
        self.styles.height = min(SHOWN if height < HIGH else 2 * SHOWN, len(found)) + EDGE
        table = self.query_one(DataTable)
        table.clear(columns=True)
        others = sum(one for _, one in COLUMNS) + 2 * GAP * len(COLUMNS)
        for title, wide in COLUMNS:
            heading = Text(title, justify="right" if title == "SIZE" else "left")
            table.add_column(heading, width=wide or max(MIN_NAME, width - others))
        for one in found:
            table.add_row(*self._cells(one), key=str(one.path))

    def resize(self, width: int, height: int) -> None:
        """The same in another size."""
        self.show(self._found, width, height)

    def _cells(self, one: RecentRecording) -> list[Text]:
        words = (str(one.path), one.target or "unreadable", began(one.began_ms), f.size(one.size))
        cells = [Text(self._charset.text(printable(word)), no_wrap=True) for word in words]
        # of a long path its end says more
        cells[0].overflow = "ellipsis"
        cells[3].justify = "right"
        return cells

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Play it."""
        event.stop()
        self.post_message(self.Chosen(event.row_key.value or ""))


def began(wall_ms: float | None, now_s: float | None = None) -> str:
    """When it began: the time of today, else the day."""
    if wall_ms is None:
        return f.MISSING
    seconds, now = wall_ms / 1000, time.time() if now_s is None else now_s
    begun, today = time.localtime(seconds), time.localtime(now)
    if begun[:3] == today[:3]:
        return time.strftime("%H:%M:%S", begun)
    return time.strftime("%Y-%m-%d", begun)
