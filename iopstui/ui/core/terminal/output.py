"""Writing to a terminal that may be slow, or stopped, without ever waiting for it."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import termios
import threading
import time
from collections.abc import Callable

CHUNK_BYTES = 4096
MIN_WRITE_BYTES = 256
MAX_WAITING = 1 << 20
LAST_WRITE_TIMEOUT_S = 1.0
WRITABLE_POLL_S = 0.1
CANCEL = b"\x18"


class Output:
    """Writes to a terminal in its own thread, in place of Textual's WriterThread.

    ``waiting`` is the number of bytes that the terminal has not taken yet. Beyond ``MAX_WAITING``
    output is dropped and ``lost`` is set: then everything must be painted again. ``on_drained`` is
    called in the thread when nothing waits any more.
    """

    def __init__(self, fd: int, on_drained: Callable[[], None]) -> None:
        self.waiting = 0
        self.lost = False
        self._on_drained = on_drained
        self._chunks: list[bytes] = []
        self._changed = threading.Condition()
        self._closing = False
        self._discards = False
        self._fd, self._chunk_bytes = open_nonblocking(fd)
        self._encoding = getattr(sys.__stdout__, "encoding", None) or "utf-8"
        self._thread = threading.Thread(target=self._main, name="terminal", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def write(self, text: str) -> None:
        """Queue text for the terminal; never waits."""
        self.write_bytes(text.encode(self._encoding, "replace"))

    def write_bytes(self, data: bytes) -> None:
        """Queue ``data``, all of it or nothing; never waits."""
        with self._changed:
            if self.waiting + len(data) > MAX_WAITING:
                self.lost = True
                return
            self.waiting += len(data)
            self._chunks.append(data)
            self._changed.notify()

    def discard(self) -> None:
        """Drop pending output, but not later output."""
        with self._changed:
            self.waiting -= sum(map(len, self._chunks))
            # a truncated sequence must not swallow the next output
            self._chunks = [CANCEL]
            self.waiting += len(CANCEL)
            self._discards = True
            self._changed.notify()

    def stop(self) -> None:
        """Write pending output if the terminal takes it soon; else discard what the terminal
        buffers, so that at least the last bytes (leaving the alternate screen) have a chance."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(LAST_WRITE_TIMEOUT_S)
        if self._thread.is_alive():
            with contextlib.suppress(termios.error, OSError):
                termios.tcflush(self._fd, termios.TCOFLUSH)
            self._thread.join(LAST_WRITE_TIMEOUT_S)
        if not self._thread.is_alive():
            os.close(self._fd)

    def _main(self) -> None:
        while True:
            with self._changed:
                while not self._chunks and not self._closing:
                    self._changed.wait()
                data, self._chunks = b"".join(self._chunks), []
                self._discards = False
                closing = self._closing
            if data and not self._write_all(data):
                return
            with self._changed:
                empty = self.waiting == 0
            if empty and data:
                self._on_drained()
            if closing and empty:
                return

    def _write_all(self, data: bytes) -> bool:
        """Write everything; False if the terminal has gone."""
        unsent = memoryview(data)
        while unsent:
            try:
                # discarded output (stop) makes space, but the kernel wakes nobody
                while not select.select([], [self._fd], [], WRITABLE_POLL_S)[1]:
                    continue
                written = os.write(self._fd, unsent[: self._chunk_bytes])
            except BlockingIOError:
                # a stopped terminal may claim to be writable
                time.sleep(0.05)
                continue
            except OSError:
                return False
            unsent = unsent[written:]
            with self._changed:
                self.waiting -= written
                if self._discards:
                    self.waiting -= len(unsent)
                    return True
        return True


def open_nonblocking(fd: int) -> tuple[int, int]:
    """A descriptor that never blocks, and how much to write at once. O_NONBLOCK belongs to the open
    file, which we share with the shell, so the terminal is opened again if possible. A pipe that
    ``select`` reports as writable takes PIPE_BUF bytes."""
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(os.ttyname(fd), flags), CHUNK_BYTES
    is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
    return os.dup(fd), select.PIPE_BUF if is_pipe else MIN_WRITE_BYTES
