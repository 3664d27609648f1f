"""The list of runs: each has a row, and two of them can be laid over each other on the charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.binding import Binding

from iopstui.ui.dashboard.overlay import Overlay
from iopstui.ui.dashboard.runs_view import listed
from iopstui.ui.dialogs.live_rows import LiveRows
from iopstui.ui.dialogs.typed import FILTER
from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import DIM, Charset
from iopstui.ui.state.live import LiveState

TITLE = "runs of this session, the newest first"
FOOT = f"Enter: one of two to lay over each other   {FILTER}   Esc goes back"
HEAD_ROWS = 1


class RunsList(LiveRows):
    """Changes ``overlay``; ``state`` is asked for what is shown now."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("enter,space", "choose", show=False),
    ]
    about = (
        "The runs of this session. Enter on two of them lays them over each other on the charts,"
        " each from its own beginning; Enter again takes one back, g on the dashboard both."
    )

    def __init__(self, state: Callable[[], LiveState], overlay: Overlay, charset: Charset) -> None:
        super().__init__(TITLE, self._listed, charset)
        self._state = state
        self._overlay = overlay
        self._at = 0

    def _told(self) -> list[int]:
        """The numbers of the runs that are seen, from above."""
        rows = self._state().runs.rows[::-1]
        return [row.step for row in rows if self.has(f"{row.step} {row.what}")]

    def _listed(self, width: int) -> Sequence[Row]:
        state, told = self._state(), self._told()
        self._at = max(0, min(self._at, len(told) - 1))
        everything = [row.step for row in state.runs.rows[::-1]]
        cursor = everything.index(told[self._at]) if told else None
        found = listed(state, width, self._charset, cursor, self._overlay.steps)
        if not everything:
            return found
        kept = [
            row for step, row in zip(everything, found[HEAD_ROWS:], strict=True) if step in told
        ]
        return [*found[:HEAD_ROWS], *kept]

    def body(self, width: int) -> Sequence[Row]:
        """The rows, narrowed by what was typed."""
        return self._listed(width)

    def foot(self, width: int) -> Line:
        """The keys, and what is laid over each other."""
        chosen = self._overlay.steps
        said = f"chosen: {' and '.join(map(str, chosen))}   " if chosen else ""
        return Line(width, self._charset).add(f" {said}{self.filtering or FOOT}", DIM)

    def action_move(self, by: int) -> None:
        """The next run, or the one before."""
        self._at += by
        self.paint()
        # the cursor stays in sight
        height = self.panels[1].box.height
        row = self._at + HEAD_ROWS
        if row < self._top or row >= self._top + height:
            self._top = max(0, row - height // 2)
            self.paint()

    def action_choose(self) -> None:
        """Lay the run under the cursor over another, or take it back."""
        told = self._told()
        if told:
            self._overlay.choose(told[self._at])
            self.paint()
