"""How far a sweep or a comparison is, for people: it goes to stderr."""

from __future__ import annotations

from typing import TextIO

from iopstui.events import (
    Event,
    FrameReady,
    Notice,
    PointFinished,
    PointStarted,
    Progress,
)
from iopstui.format import clock, fit, number, put
from iopstui.output.narration import Narrator
from iopstui.text import printable


class Teller:
    """Says on ``stream`` how far an experiment is: on a terminal in one line that is drawn over,
    elsewhere a line a point. Notices are said once."""

    def __init__(self, stream: TextIO, seconds: float) -> None:
        self._stream = stream
        self._narrator = Narrator(stream)
        self._seconds = seconds
        self._alive = stream.isatty()
        self._drawn = 0
        self._said: set[str] = set()
        self._point: PointStarted | None = None
        self._elapsed = 0.0

    def handle(self, event: Event) -> None:
        """Show what this event says."""
        match event:
            case PointStarted():
                self._point, self._elapsed = event, 0.0
                if not self._alive:
                    self._line(f"[{clock(event.t)}] {self._where()}")
            case FrameReady():
                self._frame(event)
            case PointFinished():
                self.clear()
            case Progress():
                self.clear()
                self._narrator.handle(event)
            case Notice() if event.text not in self._said:
                self._said.add(event.text)
                self.clear()
                self._narrator.handle(event)

    def clear(self) -> None:
        """Clear the progress line to make room for another line."""
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
            self._drawn = 0

    def _where(self) -> str:
        point = self._point
        assert point is not None
        left = f"{clock(point.left_s)} left"
        return f"point {point.index + 1} of {point.total}: {printable(point.label)}, {left}"

    def _frame(self, event: FrameReady) -> None:
        fio = event.frame.fio
        if not self._alive or self._point is None or fio is None:
            return
        self._elapsed += fio.seconds or 0.0
        now = f"{self._elapsed:.0f} of {self._seconds:g} s, {number(fio.total.iops)} IOPS"
        text = fit(f"{self._where()}  {now}", self._stream.encoding)[:79]
        self._stream.write("\r" + text.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(text)

    def _line(self, text: str) -> None:
        put(text, self._stream)
