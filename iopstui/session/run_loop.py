"""The runs of a session, one after another: the only loop over their events."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator
from pathlib import Path

from iopstui.errors import error_for_exit_code, session_ended_error
from iopstui.events import Event, FrameReady, SessionEnded, StepFinished
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.preflight.staging import LentScratch, SharedScratch
from iopstui.session.live import LiveSession

POLL_S = 0.1
Sink = Callable[[Event], object]


def _ignore(event: Event) -> None:
    """Ignore the events of a run."""


class RunLoop:
    """Follows each run of a session to its end, in the caller's thread. ``sink`` gets every event
    of the session, in order. If the session is ``borrowed`` from a screen, the screen passes its
    events on with ``feed``, and the sink gets none. ``t`` is the session's time of the newest
    event."""

    def __init__(
        self, session: LiveSession, sink: Sink, borrowed: bool = False, t: float = 0.0
    ) -> None:
        self.session = session
        self.borrowed = borrowed
        self.interrupted = False
        self.t = t
        self._sink = sink
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def feed(self, event: Event) -> None:
        """Take an event of the borrowed session, in order; from any thread."""
        self._events.put(event)

    def stop(self) -> None:
        """Stop after the running fio has written its last document; from any thread."""
        self.interrupted = True
        self.session.stop_job()

    def kill(self) -> None:
        self.interrupted = True
        self.session.kill_job()

    def start(self) -> None:
        """Start the session, unless it is borrowed."""
        if not self.borrowed:
            self.session.start(self._events.put)

    @contextlib.contextmanager
    def open(
        self, target: Target | None, max_bytes: int | None = None
    ) -> Iterator[LentScratch | None]:
        """Start the session, and lend its runs a scratch directory if the ``target`` of its jobs is
        a directory. Afterwards the session is closed, and no scratch file is left."""
        shared = None
        self.start()
        try:
            self.end_job()
            if target is not None and target.kind == DIRECTORY:
                shared = SharedScratch([Path(place.path) for place in target.places])
            yield LentScratch(shared.scratch, max_bytes) if shared else None
        finally:
            try:
                self.close()
            finally:
                if shared is not None:
                    shared.close()

    def end_job(self) -> None:
        """Stop the job of a borrowed session, and wait for its end. Otherwise a stop that is still
        under way would cancel the first run's request, and the end of that run would never be
        reported."""
        if not self.borrowed:
            return
        self.session.stop_job()
        while self.session.running and not self.interrupted:
            with contextlib.suppress(queue.Empty):
                self.t = max(self.t, self._events.get(timeout=POLL_S).t)

    def run(self, begin: Callable[[], object], take: Sink = _ignore) -> StepFinished | None:
        """Follow the run that ``begin`` requests from the session; ``take`` gets its events.
        Returns its end; ``None``: the session ended before it."""
        before = self.session.runs
        begin()
        if self.interrupted:  # the interrupt may have come before there was a job to stop
            self.session.stop_job()
        while True:
            event = self._events.get()
            self.t = max(self.t, event.t)
            if not self.borrowed:
                self._sink(event)
            match event:
                case StepFinished() if event.step > before:
                    return event
                case SessionEnded():
                    return None
                case FrameReady() if event.frame.step <= before:
                    continue
                case _:
                    take(event)

    def complete(self, finished: StepFinished | None) -> bool:
        """Whether a run was completed; False if it was interrupted. Raises the error of a failed
        run, or of a session that ended."""
        if finished is None and not self.interrupted:
            raise session_ended_error(self.session.exit_code)
        if finished is not None and finished.error:
            raise error_for_exit_code(finished.exit_code, finished.error, finished.hint)
        self.interrupted |= finished is not None and finished.interrupted
        return not self.interrupted

    def close(self) -> None:
        """Close the session, unless it is borrowed, and pass on its last messages: which tunables
        were restored, or could not be."""
        if not self.borrowed:
            self.session.close()
            for event in self.rest():
                self._sink(event)

    def rest(self) -> Iterator[Event]:
        """The events that have not been taken yet."""
        while not self._events.empty():
            yield self._events.get()
