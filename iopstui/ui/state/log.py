"""The log of a session, and the line of it that is on the screen."""

from __future__ import annotations

from collections import deque
from copy import copy
from dataclasses import dataclass

from iopstui.session.tick.outcomes import PASS
from iopstui.text import printable

MAX_ENTRIES = 200
ERROR_STAYS_S = 60.0
INFO_STAYS_S = 20.0


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the session's log. ``level`` is "info", "warning", "error", "mark", "PASS" or
    "FAIL". ``ending``: it is the result of a run."""

    t: float
    level: str
    text: str
    ending: bool = False


class Log:
    """The newest ``MAX_ENTRIES`` lines; ``notice`` is the one on the screen, or ``None``."""

    def __init__(self) -> None:
        self.entries: deque[LogEntry] = deque(maxlen=MAX_ENTRIES)
        self.notice: LogEntry | None = None

    def copy(self) -> Log:
        """A copy of the lines that may show another one."""
        return copy(self)

    def add(self, t: float, level: str, text: str) -> None:
        """Add a line that is only in the log."""
        self.entries.append(LogEntry(t, level, printable(text)))

    def add_line(self, t: float, level: str, text: str, ending: bool = False) -> None:
        """Add a line and show it if possible."""
        entry = LogEntry(t, level, printable(text), ending)
        self.entries.append(entry)
        self.show(entry)

    def add_over_error(self, t: float, level: str, text: str) -> None:
        """Add a line and show it even over an error, which stays in the log."""
        self.add(t, level, text)
        self.notice = self.entries[-1]

    def show(self, entry: LogEntry) -> None:
        """Show a line, but not soon after an error: fio explains an error in several lines, and the
        error itself must stay visible."""
        current = self.notice
        if (
            current is not None
            and current.level == "error"
            and entry.level in ("info", PASS)
            and entry.t - current.t < ERROR_STAYS_S / 4
        ):
            return
        self.notice = entry

    def forget_notice(self) -> None:
        """Clear the shown notice: it no longer applies."""
        self.notice = None

    def visible(self, t: float) -> LogEntry | None:
        """Message shown at ``t``: the newest one, until it is too old to matter."""
        notice = self.notice
        if notice is None:
            return None
        stays = INFO_STAYS_S if notice.level in ("info", "mark") else ERROR_STAYS_S
        return notice if t - notice.t <= stays else None
