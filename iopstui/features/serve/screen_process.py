"""A screen that runs in its own process, and the browser page that shows it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from typing import Any, Protocol

READY = b"__GANGLION__\n"
"""What Textual's web driver says before its first packet."""
MAX_PACKET = 1 << 22
MAX_INPUT = 1 << 12
MAX_WAITING = 1 << 16
MIN_SIZE, MAX_SIZE = (20, 5), (300, 120)
END_TIMEOUT_S = 5.0


class Page(Protocol):
    """An open WebSocket."""

    def send(self, data: bytes) -> None:
        """Send what the terminal in the browser shows, without waiting for it."""

    def drop(self) -> None:
        """Cut the connection."""


class ScreenProcess:
    """Reads what the screen paints and writes keys. One page at a time shows it (``attach``);
    without one its output is thrown away."""

    def __init__(self, output: int, keys: int, kill: Callable[[], object]) -> None:
        self._output, self._keys = output, keys
        self._kill = kill
        self._page: Page | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """Pass on its output until it ends."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._output, "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(self._keys, "wb", 0)
        )
        self._writer = asyncio.StreamWriter(transport, protocol, None, loop)
        try:
            # an error before the screen begins goes to standard error
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
                await reader.readuntil(READY)
                while await self._forward_packet(reader):
                    pass
        finally:
            self.ended.set()
            self._writer.close()

    async def _forward_packet(self, reader: asyncio.StreamReader) -> bool:
        """Pass on one packet; False if it says that the screen has ended."""
        head = await reader.readexactly(5)
        length = int.from_bytes(head[1:], "big")
        if length > MAX_PACKET:
            return False
        payload = await reader.readexactly(length)
        if head[:1] == b"D" and (page := self._page) is not None:
            page.send(payload)
        # downloads and requests to open an address are not forwarded
        return not (head[:1] == b"M" and json.loads(payload).get("type") == "exit")

    def attach(self, page: Page, size: tuple[int, int]) -> None:
        """Show the screen on this page, which has this size, from now on, and on no other."""
        if self._page is not None:
            self._page.drop()
        self._page = page
        self._resize(size)
        self._send_meta({"type": "attach"})

    def _resize(self, size: tuple[int, int]) -> None:
        self._send_meta({"type": "resize", "width": size[0], "height": size[1]})

    def detach(self, page: Page) -> None:
        if self._page is page:
            self._page = None

    def shows(self, page: Page) -> bool:
        return self._page is page

    def handle_message(self, text: str) -> bool:
        """Take a message of the page; False if it is not a valid one."""
        try:
            kind, *rest = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            return False
        value = rest[0] if rest else None
        if kind == "stdin" and isinstance(value, str):
            # longer than any key: pasted text, which is ignored here
            if len(value) <= MAX_INPUT:
                self._send_packet(b"D", value.encode("utf-8", "replace"))
        elif kind == "resize" and (size := valid_size(value)) is not None:
            self._resize(size)
        elif kind in ("focus", "blur"):
            self._send_meta({"type": kind})
        else:
            return bool(kind == "ping")
        return True

    def _send_meta(self, data: dict[str, object]) -> None:
        self._send_packet(b"M", json.dumps(data).encode())

    def _send_packet(self, kind: bytes, payload: bytes) -> None:
        if self._writer is None or self.ended.is_set():
            return
        # a screen that does not read its keys gets no more of them
        if self._writer.transport.get_write_buffer_size() <= MAX_WAITING:
            self._writer.write(b"%s%s%s" % (kind, len(payload).to_bytes(4, "big"), payload))

    async def end(self, timeout_s: float = END_TIMEOUT_S) -> None:
        """Ask the screen to end, and kill it if it does not."""
        self._page = None
        self._send_meta({"type": "quit"})
        try:
            await asyncio.wait_for(self.ended.wait(), timeout_s)
        except asyncio.TimeoutError:
            self._kill()


def valid_size(value: Any) -> tuple[int, int] | None:
    """The columns and rows that a page asks for, within bounds; None if they are not a size."""
    try:
        size = int(value["width"]), int(value["height"])
    except (TypeError, ValueError, KeyError, OverflowError):
        return None
    width, height = (
        max(low, min(high, count))
        for count, low, high in zip(size, MIN_SIZE, MAX_SIZE, strict=True)
    )
    return width, height
