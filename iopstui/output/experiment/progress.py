"""Print the progress of a sweep or a comparison on standard error."""

from __future__ import annotations

from typing import TextIO

from iopstui.events import (
    Event,
    ExperimentStarted,
    FrameReady,
    LayoutProgress,
    Notice,
    PointFailed,
    PointFinished,
    PointStarted,
)
from iopstui.format import clock, number, print_line
from iopstui.output.narration import Narrator
from iopstui.output.status_line import share_progress_text
from iopstui.text import printable


class ProgressReporter:
    """Prints the progress of an experiment on ``stream``: as one updated line on a terminal,
    otherwise one line per point. Each notice is printed once."""

    def __init__(self, stream: TextIO, seconds: float, out: TextIO | None = None) -> None:
        self._stream = stream
        self._narrator = Narrator(stream, out)
        self._seconds = seconds
        self._line = self._narrator.line
        self._total_s = 0.0
        self._printed: set[str] = set()
        self._point: PointStarted | None = None
        self._elapsed = 0.0
        self._unit = "point"

    def handle(self, event: Event) -> None:
        """Show this event."""
        match event:
            case ExperimentStarted():
                self._unit = event.plan.unit
            case PointStarted():
                self._point, self._elapsed = event, 0.0
                self._total_s = max(self._total_s, event.left_s)
                if not self._line.alive:
                    left = f"{clock(event.left_s)} left"
                    print_line(f"[{clock(event.t)}] {self._point_text()}, {left}", self._stream)
            case FrameReady():
                self._frame(event)
            case PointFinished():
                self.clear()
            case PointFailed():
                self.clear()
                text = self._point_text()
                print_line(
                    f"[{clock(event.t)}] {text} failed: {printable(event.error)}", self._stream
                )
            case LayoutProgress():
                self._narrator.handle(event)
            case Notice() if event.text not in self._printed:
                self._printed.add(event.text)
                self.clear()
                self._narrator.handle(event)

    def write_note(self, t: float, text: str) -> None:
        """Say a sentence of its own at the session's time ``t``."""
        self.handle(Notice(t, "info", text))

    def clear(self) -> None:
        """Clear the progress line to make room for another line."""
        self._line.clear()

    def _point_text(self) -> str:
        point = self._point
        assert point is not None
        return f"{self._unit} {point.index + 1} of {point.total}: {printable(point.label)}"

    def _frame(self, event: FrameReady) -> None:
        fio = event.frame.fio
        point = self._point
        if point is None or fio is None:
            return
        self._elapsed += fio.seconds or 0.0
        left = max(0.0, point.left_s - self._elapsed)
        share = 1 - left / self._total_s if self._total_s else 1.0
        now = f"{self._elapsed:.0f} of {self._seconds:g} s, {number(fio.total.iops)} IOPS"
        self._line.draw(f"{share_progress_text(share, left)}: {self._point_text()}, {now}")
