"""Record parts of a session: the time around each trigger."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.recording.writer import Recorder, next_free_path
from iopstui.session.live import LiveSession

CLOSE_TIMEOUT_S = 6.0


class TriggeredRecordings:
    """FILE, FILE-2 ...: each from what the session keeps of the time before a firing to ``after_s``
    after the last one that falls into it. Files are opened and closed in a thread of its own, which
    a slow disk may hold up. Raises UsageError if FILE exists or can't be made; nothing is left
    before something fires.
    """

    def __init__(self, path: Path, after_s: float) -> None:
        Recorder(path).discard()
        self._path = path
        self._after_s = after_s
        self._ends_at: float | None = None
        self._jobs: queue.SimpleQueue[Callable[[LiveSession], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def begin(self, session: LiveSession) -> None:
        """Parts of this session, which is about to start."""
        self._thread = threading.Thread(
            target=self._main, args=(session,), name="recorded parts", daemon=True
        )
        self._thread.start()

    def fired(self, t: float) -> None:
        """Something fired at second ``t``: that part of the session is recorded."""
        if self._ends_at is None:
            self._jobs.put(self._open)
        self._ends_at = t + self._after_s

    def frame(self, t: float) -> None:
        """The session has come to second ``t``."""
        if self._ends_at is not None and t >= self._ends_at:
            self._ends_at = None
            self._jobs.put(lambda session: session.end_recording())

    def close(self) -> None:
        """The session ends, which closes the last part. A disk that hangs is not waited for."""
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(CLOSE_TIMEOUT_S)

    def _main(self, session: LiveSession) -> None:
        while (work := self._jobs.get()) is not None:
            try:
                work(session)
            except Exception as error:  # a bug here must not look like a recording that goes on
                session.notice("error", f"the recording has stopped: internal error {error!r}")

    def _open(self, session: LiveSession) -> None:
        path = next_free_path(self._path) if os.path.lexists(self._path) else self._path
        try:
            session.begin_recording(path)
        except UsageError as error:
            session.notice("error", error.message)
