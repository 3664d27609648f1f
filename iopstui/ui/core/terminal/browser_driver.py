"""Textual's web driver, for a screen that a web server shows in a browser.

The server of `iopstui serve` sets TEXTUAL_DRIVER to ``BROWSER_DRIVER``. Unlike Textual's own, this
driver ends the screen when the server has gone, does not wake up while it waits, leaves signals to
the program, never waits for a server that does not read, and can repaint everything for a page
opened later."""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import select
import sys
from collections.abc import Callable, Iterable
from typing import Any

from textual import events
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver
from textual.geometry import Size
from textual.message import Message

from iopstui.ui.core.terminal.driver import INPUT_POLL_S, Output
from iopstui.ui.core.terminal.terminal_input import TerminalInput

CHUNK_BYTES = 4096
READY = b"__GANGLION__\n"
"""Textual's signal to the web server that packets follow."""
TERMINAL_MODES = "\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h\x1b[?2004h"
"""Sequences for the alternate screen, no cursor, mouse reports and bracketed paste."""


class BrowserDriver(WebDriver):
    """Writes packets to standard output and reads them from standard input.

    ``on_hangup`` is called, in another thread, when the server has closed standard input."""

    on_hangup: Callable[[], None] = staticmethod(lambda: None)
    _wake_fd = -1
    """A write to this descriptor wakes the thread that reads packets, so that it ends."""

    # -- output

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._output = Output(self.fileno, self._on_output_drained)
        self._output.start()

    def write(self, data: str) -> None:
        self._packet(b"D", data.encode("utf-8", "replace"))

    def write_meta(self, data: dict[str, object]) -> None:
        """Write a message for the server."""
        self._packet(b"M", json.dumps(data).encode())

    def _packet(self, kind: bytes, payload: bytes) -> None:
        self._output.write_bytes(b"%s%s%s" % (kind, len(payload).to_bytes(4, "big"), payload))

    def _on_output_drained(self) -> None:
        if self._output.lost:
            self._output.lost = False
            self._app.call_later(self._app.refresh)

    # -- start and end

    def start_application_mode(self) -> None:
        """Start the screen and the thread that reads keys."""
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC)
        self._output.write_bytes(READY)
        self.write(TERMINAL_MODES)
        asyncio.run_coroutine_threadsafe(self._begin(), asyncio.get_running_loop())
        self._key_thread.start()

    async def _begin(self) -> None:
        # the newest size: a page may have changed it since the start
        size = Size(*(self._size or (80, 24)))
        await self._app._post_message(events.Resize(size, size))

    def disable_input(self) -> None:
        """End the thread that reads keys."""
        self.exit_event.set()
        if self._wake_fd >= 0:
            os.eventfd_write(self._wake_fd, 1)
            self._key_thread.join()
            os.close(self._wake_fd)
            self._wake_fd = -1

    def stop_application_mode(self) -> None:
        """Tell the server that the screen has ended."""
        self.disable_input()
        self.write_meta({"type": "exit"})

    def close(self) -> None:
        """Write the queued output, if the server reads it soon."""
        super().close()
        self._output.stop()

    # -- input

    def run_input_thread(self) -> None:
        """Read packets until the screen or the server ends."""
        arriving, packets = TerminalInput(), ByteStream()
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        source = sys.__stdin__.fileno()  # type: ignore[union-attr]
        while not self.exit_event.is_set():
            patience = INPUT_POLL_S if arriving.has_pending else None
            if source in select.select([source, self._wake_fd], [], [], patience)[0]:
                data = os.read(source, CHUNK_BYTES)
                if not data:
                    self.on_hangup()
                    return
                for kind, payload in packets.feed(data):
                    if kind == "D":
                        self._deliver(arriving.feed(decode(payload)))
                    else:
                        self._on_meta(kind, payload)
            self._deliver(arriving.tick())

    def _deliver(self, messages: Iterable[Message]) -> None:
        for message in messages:
            # ignore sizes that come as keys: the server limits only those that a page requests
            if not isinstance(message, events.Resize):
                self.process_message(message)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Handle a message of the server. Requests for files are ignored."""
        if packet_type == "attach":
            self.write(TERMINAL_MODES)
            self._app.call_later(self._app.refresh)
        elif packet_type == "quit":
            self.on_hangup()
        elif packet_type in ("resize", "focus", "blur"):
            super().on_meta(packet_type, payload)
