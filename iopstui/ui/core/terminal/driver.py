"""Textual's driver for a terminal that may be slow or stopped. It never waits for the terminal.

Once 30 pieces of output are queued, Textual's own writer blocks the whole screen, including keys,
signals and the exit. Here output is queued until the terminal accepts it (``Output``), and the
screen checks ``is_behind`` before it paints again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import stat
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from textual.drivers.linux_driver import LinuxDriver
from textual.events import MouseEvent
from textual.geometry import Size
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput

from iopstui.ui.core.terminal.terminal_input import TerminalInput, limit_size

INPUT_POLL_S = 0.1
SYNC_TIMEOUT_S = 10.0
SYNC_QUERY = "\x1b[?2026$p"
"""DECRQM of synchronized output. A terminal that knows it answers after it has processed everything
written before."""


class NonBlockingDriver(LinuxDriver):
    """Textual's driver with an ``Output`` that never makes the screen wait.

    ``on_drained`` is called, in another thread, when the terminal can show a new paint;
    ``on_hangup`` when the terminal is closed (``hung_up`` stays set)."""

    on_drained: Callable[[], None] = staticmethod(lambda: None)
    on_hangup: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # set before super().__init__, which installs signal handlers that use it
        self._loop = asyncio.get_running_loop()
        # whether a SIGTSTP has arrived, and no SIGCONT after it
        self._stop_requested = False
        super().__init__(*arguments, **options)
        # limit the size for Textual's first layout, because the terminal, COLUMNS or LINES may give
        # any
        first = limit_size(Size(*self._get_terminal_size()))
        self._size = self._size or (first.width, first.height)
        self.lag_s = 0.0
        """How long the terminal took to show the last paint; 0 if it does not answer."""
        self._answers_sync_query = False
        self._query_s: float | None = None
        self._output: Output | None = None
        # wakes the thread that reads keys, to end it
        self._wake_fd = -1
        self.hung_up = False

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has not shown the last paint yet."""
        output = self._output
        return self._is_waiting_for_answer() or (output is not None and output.waiting > 0)

    def _is_waiting_for_answer(self) -> bool:
        query_s = self._query_s
        return query_s is not None and time.monotonic() - query_s < SYNC_TIMEOUT_S

    def note_paint(self) -> None:
        """Call this after a paint: it asks the terminal to answer when it has shown the paint."""
        if self._answers_sync_query and not self._is_waiting_for_answer():
            self._query_s = time.monotonic()
            self.write(SYNC_QUERY)

    def write(self, data: str) -> None:
        if self._output is None:
            self._output = Output(sys.__stdout__.fileno(), self._on_output_drained)  # type: ignore[union-attr]
            self._output.start()
        self._output.write(data)

    def stop_application_mode(self) -> None:
        """Restore the terminal; queued paints are dropped."""
        if self._output is not None:
            self._output.discard()
        super().stop_application_mode()

    def start_application_mode(self) -> None:
        """Set up the terminal, and start to read its keys."""
        self._close_wake_fd()
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def disable_input(self) -> None:
        """End the thread that reads keys."""
        if self._wake_fd >= 0:
            os.eventfd_write(self._wake_fd, 1)
        super().disable_input()

    def _close_wake_fd(self) -> None:
        leave, self._wake_fd = self._wake_fd, -1
        if leave >= 0:
            os.close(leave)

    def run_input_thread(self) -> None:
        """Read the terminal until the screen or the terminal ends."""
        arriving = TerminalInput()
        while not self.exit_event.is_set():
            # no polling: waking ten times a second would cost a tenth of the whole screen's CPU
            # time
            patience = INPUT_POLL_S if arriving.has_pending else None
            if self.fileno in select.select([self.fileno, self._wake_fd], [], [], patience)[0]:
                data = self._read()
                if not data:
                    self.hung_up = True
                    self.on_hangup()
                    return
                self._deliver(arriving.feed_bytes(data))
            self._deliver(arriving.tick())
        # read late answers of the terminal now, so that the shell does not get them as input
        while select.select([self.fileno], [], [], INPUT_POLL_S)[0] and self._read():
            pass

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, CHUNK_BYTES)
        except OSError:
            return b""

    def _deliver(self, messages: Iterable[Message]) -> None:
        for message in messages:
            # with --no-mouse, reports come because another program has enabled them
            if self._mouse or not isinstance(message, MouseEvent):
                self.process_message(message)

    def close(self) -> None:
        """Write the queued output and end the output thread."""
        super().close()
        self._close_wake_fd()
        output, self._output = self._output, None
        if output is not None:
            output.stop()

    def _sigtstp_application(self, *arguments: Any) -> None:
        """Suspend from the event loop. Textual suspends in the signal handler, which may interrupt
        a write that then can never end."""
        self._stop_requested = True
        self._call_in_loop(self._suspend)

    def _sigcont_application(self, *arguments: Any) -> None:
        # as in the kernel, SIGCONT cancels a pending stop
        self._stop_requested = False
        self._call_in_loop(self._continue)

    def _call_in_loop(self, do: Callable[[], None]) -> None:
        # the loop is closed if the screen has just ended
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(do)

    def _suspend(self) -> None:
        """Restore the terminal and stop the process with SIGSTOP; a SIGCONT continues after it."""
        if not self._stop_requested:
            return
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        # a SIGCONT may have come while the terminal was being restored
        if self._stop_requested:
            self._stop_requested = False
            os.kill(os.getpid(), signal.SIGSTOP)
        self._continue()

    def _continue(self) -> None:
        """Resume only after a suspend. SIGCONT also follows the SIGHUP of a closed terminal, and
        other processes may send it: Textual would then start a second thread that reads keys and
        never ends. If the process is in the background, it is stopped again until the next
        SIGCONT."""
        if self._must_signal_resume:
            self.resume_application_mode()
        else:
            self._app.call_later(self._app.refresh)

    def _on_output_drained(self) -> None:
        output = self._output
        if output is not None and output.lost:
            output.lost = False
            self._app.call_later(self._app.refresh)
        self.on_drained()

    def process_message(self, message: Message) -> None:
        """Handle the terminal's answers (in the thread that reads keys)."""
        if isinstance(message, TerminalSupportsSynchronizedOutput):
            query_s, self._query_s = self._query_s, None
            if query_s is not None:
                self.lag_s = time.monotonic() - query_s
                self.on_drained()
                return
            self._answers_sync_query = True
        super().process_message(message)


# Writing to a terminal that may be slow or stopped, without waiting for it.


CHUNK_BYTES = 4096
MIN_WRITE_BYTES = 256
MAX_WAITING = 1 << 20
LAST_WRITE_TIMEOUT_S = 1.0
WRITABLE_POLL_S = 0.1
CANCEL = b"\x18"


class Output:
    """Writes to a terminal in its own thread, in place of Textual's WriterThread.

    ``waiting`` is the number of bytes that the terminal has not accepted yet. Beyond
    ``MAX_WAITING`` output is dropped and ``lost`` is set; then everything must be painted again.
    ``on_drained`` is called in that thread when all output is written."""

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
        self._thread.start()

    def write(self, text: str) -> None:
        """Queue text for the terminal; never waits."""
        self.write_bytes(text.encode(self._encoding, "replace"))

    def write_bytes(self, data: bytes) -> None:
        """Queue ``data``, either completely or not at all; never waits."""
        with self._changed:
            if self.waiting + len(data) > MAX_WAITING:
                self.lost = True
                return
            self.waiting += len(data)
            self._chunks.append(data)
            self._changed.notify()

    def discard(self) -> None:
        """Drop the queued output, but not what is written later."""
        with self._changed:
            self.waiting -= sum(map(len, self._chunks))
            # CANCEL ends a sequence that was cut off, which would otherwise swallow the next output
            self._chunks = [CANCEL]
            self.waiting += len(CANCEL)
            self._discards = True
            self._changed.notify()

    def stop(self) -> None:
        """Write the queued output if the terminal accepts it soon; else discard the kernel's buffer
        for the terminal, so that at least the last bytes (which leave the alternate screen)
        arrive."""
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
        """Write everything. Returns False if the terminal is gone."""
        unsent = memoryview(data)
        while unsent:
            try:
                # poll: if ``stop`` discards the buffer, the kernel does not wake select
                while not select.select([], [self._fd], [], WRITABLE_POLL_S)[1]:
                    continue
                written = os.write(self._fd, unsent[: self._chunk_bytes])
            except BlockingIOError:
                # select may report a stopped terminal as writable
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
    """A descriptor that never blocks, and how many bytes to write at once. O_NONBLOCK belongs to
    the open file, which is shared with the shell, so the terminal is opened again if possible. A
    pipe that ``select`` reports as writable accepts PIPE_BUF bytes."""
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(os.ttyname(fd), flags), CHUNK_BYTES
    is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
    return os.dup(fd), select.PIPE_BUF if is_pipe else MIN_WRITE_BYTES
