"""The queue from the session's thread to the screen. It holds events, and decides when to paint."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from iopstui.events import Event, FrameReady
from iopstui.ui.core.pace import Overhead, Pace
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.ui.core.terminal.driver import NonBlockingDriver


class Feed:
    """Queues a session's events for the screen. ``wake`` is called when events are waiting, in any
    thread.

    Painting may be delayed or skipped; events never are."""

    def __init__(
        self,
        port: Port,
        refresh_s: float,
        wake: Callable[[], object],
        after_refresh: Callable[[Callable[[], None]], object],
    ) -> None:
        self.terminal: NonBlockingDriver | None = None
        self._port = port
        self._wake = wake
        self._after_refresh = after_refresh
        # a None in it means that the events after it belong to another position in a recording
        self._queue: deque[Event | None] = deque()
        self._wake_sent = False
        self._last_frame_s = time.monotonic()
        self._pace = Pace(refresh_s)
        self._paint_scheduled = False

    # -- called from any thread

    def put(self, event: Event) -> None:
        """Queue the event, and wake the screen if that has not been done yet."""
        self._queue.append(event)
        if isinstance(event, FrameReady):
            self._last_frame_s = time.monotonic()
        self._wake_up()

    def jump(self) -> None:
        """Note that the next events belong to another position of the recording."""
        self._queue.append(None)
        self._wake_up()

    def terminal_ready(self) -> None:
        """Called when the terminal has shown the previous paint."""
        if self._pace.paint_pending:
            self._wake_up()

    def _wake_up(self) -> None:
        if not self._wake_sent:
            self._wake_sent = True
            self._wake()

    # -- called from the screen's thread

    def clear(self) -> None:
        self._queue.clear()

    def take(self) -> tuple[list[Event], bool]:
        """The events that arrived, and whether the replay jumped; events before the jump are left
        out."""
        self._wake_sent = False
        events: list[Event] = []
        has_jumped = False
        while self._queue:
            event = self._queue.popleft()
            if event is None:
                events, has_jumped = [], True
            else:
                events.append(event)
        return events, has_jumped

    def note_frame(self) -> None:
        """Count a frame that the state has taken in."""
        self._pace.note_frame()

    def paint_if_due(self) -> None:
        """Paint the newest figures, now or as soon as it is due."""
        dashboard, terminal, now = self._port.dashboard, self.terminal, time.monotonic()
        if dashboard is None or (terminal is not None and terminal.is_behind):
            self._pace.note_late_frame()
            return
        wait = self._pace.wait(now)
        if wait > 0:
            if not self._paint_scheduled:
                self._paint_scheduled = True
                self._port.call_after(wait, self._paint_later)
            return
        self._pace.note_paint(now)
        lag = terminal.lag_s if terminal is not None else 0.0
        frame = self._port.state.frame
        own_cpu = frame.own_cpu if frame is not None else None
        dashboard.show_cost(Overhead(own_cpu, now - self._last_frame_s + lag, self._pace.dropped))
        dashboard.paint()
        if terminal is not None:
            self._after_refresh(terminal.note_paint)

    def paint_if_old(self, seconds: float) -> None:
        """Paint if no frame has come for ``seconds``, because the shown age of the figures
        changes."""
        if time.monotonic() - self._last_frame_s >= seconds:
            self.paint_if_due()

    def _paint_later(self) -> None:
        self._paint_scheduled = False
        self.paint_if_due()
