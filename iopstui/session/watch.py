"""A watch: a session without a job that folds its events as they arrive."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from time import monotonic

from iopstui.events import AnswerGiven, Event, FindingEnded, FindingReported, FrameReady, Notice
from iopstui.model.block.target import Target
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.slow.common_properties import slow_requests_text
from iopstui.model.watch.totals import WatchTotals
from iopstui.model.watch.trigger import Trigger, TriggerFired, TriggerWatch
from iopstui.session.live import LiveSession
from iopstui.session.tick.outcomes import value_text
from iopstui.session.triggered_recordings import TriggeredRecordings
from iopstui.text import printable

MAX_WAITING = 600


class Watch:
    """``handle`` is the session's sink. Triggers and totals are folded in the session's thread;
    ``events`` then waits for whoever prints, and loses frames if that takes too long, so that a
    reader that has stopped costs neither a firing nor memory. Anybody may put ``None`` there.
    """

    def __init__(
        self,
        target: Target,
        interval_s: float,
        triggers: Sequence[Trigger] = (),
        parts: TriggeredRecordings | None = None,
    ) -> None:
        self.events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self.totals = WatchTotals(target.tree, interval_s)
        self.totals.fired.update(dict.fromkeys((trigger.text for trigger in triggers), 0))
        self.sampled_at = 0.0
        """When the last frame came, by the monotonic clock."""
        self._watchers = [TriggerWatch(trigger) for trigger in triggers]
        self._parts = parts
        self._session: LiveSession | None = None
        self._lost = 0
        self.is_to_begin_again = False
        """Another watch is to follow, of the disks that are there then."""

    def begin(self, session: LiveSession) -> None:
        """Start the session, and watch."""
        self._session = session
        if self._parts is not None:
            self._parts.begin(session)
        session.start(self.handle)

    def begin_again(self) -> None:
        """End, and have another watch follow."""
        self.is_to_begin_again = True
        self.events.put(None)

    def handle(self, event: Event) -> None:
        """Take one event of the session; never blocks."""
        match event:
            case FrameReady():
                self._frame(event.frame)
            case FindingReported():
                self.totals.found(event.t, event.finding)
            case AnswerGiven():
                self.totals.answers.add(event.t, event.answer)
            case FindingEnded():
                self.totals.note_end(event.rule, event.since, event.until)
        self._forward(event)

    def close(self) -> None:
        """End the session and its recordings. Idempotent."""
        if self._parts is not None:
            self._parts.close()
        if self._session is not None:
            self._session.close()

    def _frame(self, frame: Frame) -> None:
        self.sampled_at = monotonic()
        self.totals.add(frame)
        if self._parts is not None:
            self._parts.frame(frame.t)
        for watcher in self._watchers:
            fired = watcher.feed(frame)
            if fired is not None:
                self._fired(fired, frame)

    def _fired(self, fired: TriggerFired, frame: Frame) -> None:
        self.totals.trigger(fired.trigger.text)
        if self._session is not None:
            self._session.mark(fired_text(fired))
            for text in slow_requests_text(frame):
                self._session.notice("info", printable(text))
        if self._parts is not None:
            self._parts.fired(fired.t)

    def _forward(self, event: Event) -> None:
        if isinstance(event, FrameReady):
            if self.events.qsize() >= MAX_WAITING:
                self._lost += 1
                return
            if self._lost:
                message = f"{self._lost} frames were not read in time and are skipped here"
                self.events.put(Notice(event.t, "warning", message))
                self._lost = 0
        self.events.put(event)


def fired_text(fired: TriggerFired) -> str:
    """Text of a mark."""
    trigger = fired.trigger
    return f"trigger {trigger.text}: {value_text(fired.value, trigger.unit)}"
