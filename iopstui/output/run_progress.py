"""The progress of a command that runs several jobs, one after another."""

from __future__ import annotations

from typing import TextIO

from iopstui.events import Event, LayoutProgress, Notice
from iopstui.format import clock, replace_unprintable
from iopstui.output.status_line import ProgressShare, StatusLine
from iopstui.text import printable


class RunProgress:
    """Prints progress on ``err``: one line per run, warnings, and the progress of a layout."""

    def __init__(self, err: TextIO, out: TextIO) -> None:
        self._err = err
        self._share = ProgressShare()
        self._line = StatusLine(err, out)

    def handle(self, event: Event) -> None:
        """Describe the event."""
        if isinstance(event, LayoutProgress) and self._line.alive:
            self._line.draw(f"[{clock(event.t)}] {self._share.text(event)}")
        elif isinstance(event, Notice) and event.level != "info":
            self.write_note(f"{event.level}: {event.text}")

    def write_note(self, message: str) -> None:
        """A line of its own."""
        self._line.clear()
        self._err.write(replace_unprintable(f"{printable(message)}\n", self._err.encoding))
        self._err.flush()
