"""`run --hold`: prepare everything, then wait for a line on standard input before starting fio."""

from __future__ import annotations

import os
import threading
import time

from iopstui.cli.terminal import print_message
from iopstui.events import Event, RunReady
from iopstui.output.sinks import EventSink
from iopstui.session.live import LiveSession
from iopstui.session.start_signal import StartSignal


class StartGateSink:
    """Passes events on; once the run is ready, a thread waits for a line on standard input."""

    def __init__(self, inner: EventSink, session: LiveSession) -> None:
        self._inner = inner
        self._session = session

    def handle(self, event: Event) -> None:
        """Take one event."""
        self._inner.handle(event)
        if isinstance(event, RunReady):
            print_message("ready: press Enter (a line on standard input) to start fio")
            threading.Thread(target=self._wait_for_line, name="word", daemon=True).start()

    def close(self) -> None:
        """Close: no more events follow."""
        self._inner.close()

    def _wait_for_line(self) -> None:
        # not through Python's buffers: a thread that waits in them keeps the process from ending
        if b"\n" in _read_first_line():
            self._session.start_run(StartSignal(time.monotonic_ns()))
        else:
            print_message("standard input ended without a line: nothing started")
            self._session.stop_job()


def _read_first_line() -> bytes:
    """Standard input until its first line's end, or its own."""
    line = b""
    while b"\n" not in line:
        try:
            data = os.read(0, 4096)
        except OSError:
            break
        if not data:
            break
        line += data
    return line
