"""How often the screen is painted, and iopstui's own cost. Pure: times are arguments."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.format import counted

WIDE_COLUMNS = 118


class Pace:
    """Decides when new figures are painted: at most every ``refresh_s`` seconds, and only after the
    terminal has shown the previous paint. ``dropped`` counts frames that were never painted because
    of a slow terminal (the charts still have them)."""

    def __init__(self, refresh_s: float = 0.0) -> None:
        self.refresh_s = refresh_s
        self.dropped = 0
        self._frames = 0
        self.paint_pending = False
        self._last: float | None = None

    def note_frame(self) -> None:
        self._frames += 1

    def note_late_frame(self) -> None:
        """Note that a frame was not painted, because the terminal is behind. Sets ``paint_pending``
        until the next paint."""
        self.paint_pending = True

    def wait(self, now: float) -> float:
        """Seconds until the next paint is due; 0 means now."""
        if self._last is None:
            return 0.0
        return max(0.0, self._last + self.refresh_s - now)

    def note_paint(self, now: float) -> None:
        """Note that the newest frame is painted now."""
        if self.paint_pending:
            self.dropped += max(0, self._frames - 1)
        self._frames, self.paint_pending = 0, False
        # up to 5 % early counts as due; otherwise a refresh as long as the interval would skip
        # frames
        self._last = now - 0.05 * self.refresh_s


OLD_DATA_S = 1.0
"""If figures are older than this, their age is shown."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """iopstui's own cost (percent of one CPU), the age of the figures on the screen, and the number
    of frames that the terminal was too slow for."""

    cpu: float | None = None
    age_s: float | None = None
    dropped: int = 0

    def text(self, width: int) -> str:
        """The cost as text, for a line of this width."""
        if self.cpu is None:
            return ""
        parts = [f"iopstui {self.cpu:4.1f} % CPU"]
        if self.age_s is not None and self.age_s > OLD_DATA_S and width >= WIDE_COLUMNS:
            parts.append(f"data {self.age_s:.0f} s old")
        if self.dropped:
            parts.append(f"slow terminal: {counted(self.dropped, 'redraw')} skipped")
        return " " + ", ".join(parts) + " "
