"""Replay a recording while it is still being written."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from iopstui import events
from iopstui.errors import UsageError
from iopstui.recording.reader import Record, Recording, RecordingTooShort
from iopstui.recording.replay import ReplaySession

POLL_S = 0.2
STALL_TIMEOUT_S = 10.0
STALL_INTERVALS = 3
CHUNK_BYTES = 1 << 16
INPUT_ENDED = "the input has ended; what has arrived can still be played"


def wait_for_first_sample(
    path: Path, report: Callable[[str], object], has_ended: Callable[[], bool]
) -> None:
    """Return once the recording has a sample. Raises UsageError if the file is not a recording, or
    if its input ``has_ended`` without a sample."""
    waiting = False
    while True:
        input_ended = has_ended()
        error = UsageError("The input ended before the first sample of a recording.")
        try:
            with Recording(path) as recording:
                if recording.extend_index().samples:
                    return
        except RecordingTooShort as too_short:
            error = too_short
        if input_ended:
            raise error
        if not waiting:
            waiting = True
            report("waiting for the first sample of the recording (Ctrl-C: stop)")
        time.sleep(POLL_S)


class InputCopy:
    """Copies standard input to a file, in a separate thread, because a reader must be able to seek.

    ``ended`` becomes true when the input has ended or the copy can't be written any more."""

    def __init__(self, source: int, path: Path) -> None:
        self.path = path
        self.ended = False
        self._source = source
        self._copy = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        threading.Thread(target=self._main, name="input", daemon=True).start()

    def _main(self) -> None:
        try:
            while chunk := os.read(self._source, CHUNK_BYTES):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(self._copy, view) :]
        except OSError:
            pass  # treat it as the end: nothing more can be shown
        self.ended = True
        os.close(self._copy)


class FollowSession(ReplaySession):
    """Plays a recording that is still being written, from its newest second on.

    ``has_ended`` returns true once nothing more will come. It can be paused and rewound like any
    replay; at the end it follows the recording again. A writer that stops without an end marker (it
    was killed, or its host is gone) is reported after ``STALL_TIMEOUT_S`` or three intervals,
    whichever is longer, and at once if ``has_ended()`` is true."""

    def __init__(
        self,
        path: Path,
        speed: float = 1.0,
        has_ended: Callable[[], bool] = lambda: False,
        files: tuple[BinaryIO, BinaryIO] | None = None,
    ) -> None:
        # one file to play from, one to look for new records; two threads read them
        play, newest = files or (None, None)
        self._newest_recording = Recording(path, newest)
        self._index_lock = threading.Lock()
        self._checked_at = self._grown_at = time.monotonic()
        self._stalled_at: int | None = None
        self._has_ended = has_ended
        super().__init__(path, speed, play)
        self._index = self._newest_recording.extend_index()
        self._goal = self._index.end

    @property
    def growing(self) -> bool:
        return not self._index.has_end_marker

    @property
    def end(self) -> float:
        self._look_for_more()
        return self._index.end

    def close(self) -> None:
        super().close()
        with self._index_lock:
            self._newest_recording.close()

    def _end_text(self) -> str:
        return "the recording has ended; space: play it from its beginning"

    def _records(self, start: int | None = None) -> Iterator[Record | None]:
        return self._recording.follow(start)

    def _look_for_more(self) -> None:
        """Extend the index, at most every ``POLL_S``. Any thread may call this."""
        with self._index_lock:
            now = time.monotonic()
            if self._closing or now - self._checked_at < POLL_S:
                return
            self._checked_at, before = now, self._index.samples
            if self._newest_recording.extend_index().samples > before:
                self._grown_at = now

    def _wait_for_more(self) -> float | None:
        """Wait a little for the file to grow; return the goal of a jump as soon as one is
        requested."""
        self._look_for_more()
        self._report_stall()
        with self._condition:
            if self._goal is None and not self._closing:
                self._condition.wait(POLL_S)
            return self._take_goal()

    def _report_stall(self) -> None:
        """Report once that nothing more arrives, and once that data arrives again."""
        if self._stalled_at is not None:
            if self._index.samples > self._stalled_at:
                self._stalled_at = None
                self._sink(events.Notice(self._index.end, "info", "new data again"))
            return
        silent = time.monotonic() - self._grown_at
        limit = max(STALL_TIMEOUT_S, STALL_INTERVALS * self.header.interval_s)
        if not self.growing or not (silent > limit or self._has_ended()):
            return
        self._stalled_at = self._index.samples
        message = f"no new data for {silent:.0f} s: the recording program has stopped or is cut off"
        if self._has_ended():
            message = INPUT_ENDED
        self._sink(events.Notice(self._index.end, "warning", message))
