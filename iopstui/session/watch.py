"""A watch: a session without a job that folds its events as they arrive."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from iopstui.errors import UsageError
from iopstui.events import AnswerGiven, Event, FindingEnded, FindingReported, FrameReady, Notice
from iopstui.model.block.target import Target
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.slow.common_properties import slow_requests_text
from iopstui.model.watch.totals import WatchTotals
from iopstui.model.watch.trigger import Trigger, TriggerFired, TriggerWatch
from iopstui.recording.writer import Recorder, next_free_path
from iopstui.session.live import LiveSession
from iopstui.session.tick.outcomes import value_text
from iopstui.text import printable

MAX_WAITING = 600


class Watch:
    """``handle`` is the session's sink. Triggers and totals are folded in the session's thread;
    ``events`` then keeps them for the printing thread; if that is too slow, frames are dropped, so
    that a stopped reader costs neither a firing nor memory. Any thread may put ``None`` into
    ``events``."""

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
        """Time of the last frame by the monotonic clock."""
        self._watchers = [TriggerWatch(trigger) for trigger in triggers]
        self._parts = parts
        self._session: LiveSession | None = None
        self._lost = 0
        self.is_to_begin_again = False
        """Whether another watch should follow, on the disks that are present then."""

    def begin(self, session: LiveSession) -> None:
        self._session = session
        if self._parts is not None:
            self._parts.begin(session)
        session.start(self.handle)

    def begin_again(self) -> None:
        """End this watch, and have another one follow."""
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
    trigger = fired.trigger
    return f"trigger {trigger.text}: {value_text(fired.value, trigger.unit)}"


# Record parts of a session: the time around each trigger.


CLOSE_TIMEOUT_S = 6.0


class TriggeredRecordings:
    """Recordings of parts of a session, in FILE, FILE-2 ...: each begins with what the session
    keeps of the time before a firing, and ends ``after_s`` after the last firing in it. Files are
    opened and closed in a separate thread, which a slow disk may delay. Raises UsageError if FILE
    exists or can't be created; no file is left if nothing fires."""

    def __init__(self, path: Path, after_s: float) -> None:
        Recorder(path).discard()
        self._path = path
        self._after_s = after_s
        self._ends_at: float | None = None
        self._jobs: queue.SimpleQueue[Callable[[LiveSession], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def begin(self, session: LiveSession) -> None:
        """Record parts of this session, which is about to start."""
        self._thread = threading.Thread(
            target=self._main, args=(session,), name="recorded parts", daemon=True
        )
        self._thread.start()

    def fired(self, t: float) -> None:
        """Record the part of the session around second ``t``, at which something fired."""
        if self._ends_at is None:
            self._jobs.put(self._open)
        self._ends_at = t + self._after_s

    def frame(self, t: float) -> None:
        """Note that the session has reached second ``t``."""
        if self._ends_at is not None and t >= self._ends_at:
            self._ends_at = None
            self._jobs.put(lambda session: session.end_recording())

    def close(self) -> None:
        """Note the session's end, which closes the last part. Does not wait for a hung disk."""
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(CLOSE_TIMEOUT_S)

    def _main(self, session: LiveSession) -> None:
        while (work := self._jobs.get()) is not None:
            try:
                work(session)
            except Exception as error:  # a bug here must not look like a continuing recording
                session.notice("error", f"the recording has stopped: internal error {error!r}")

    def _open(self, session: LiveSession) -> None:
        path = next_free_path(self._path) if os.path.lexists(self._path) else self._path
        try:
            session.begin_recording(path)
        except UsageError as error:
            session.notice("error", error.message)
