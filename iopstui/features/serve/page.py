"""A page that is open in a browser. Nobody ever waits for it: one that does not read is dropped."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Protocol

MAX_UNSENT = 1 << 21
"""Bytes that may wait for a page, some large pictures."""
CLOSE_TIMEOUT_S = 1.0


class WebSocket(Protocol):
    """What a page needs of aiohttp's."""

    async def send_bytes(self, data: bytes) -> Any:
        """Send a message; waits for a browser that does not read."""
        ...

    async def close(self) -> Any:
        """Close it; waits for the browser's answer."""
        ...


class BrowserPage:
    """An open WebSocket. ``send`` queues; a task of its own waits for the browser."""

    def __init__(self, socket: WebSocket, transport: asyncio.Transport | None) -> None:
        self._socket, self._transport = socket, transport
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent = 0
        self._sending = asyncio.create_task(self._send_queued())

    def send(self, data: bytes) -> None:
        """Queue what the terminal in the browser shows."""
        self._unsent += len(data)
        if self._unsent > MAX_UNSENT:
            self.drop()
        else:
            self._queue.put_nowait(data)

    async def _send_queued(self) -> None:
        # a page that is closing has no connection any more
        with contextlib.suppress(ConnectionError, RuntimeError):
            while True:
                data = await self._queue.get()
                await self._socket.send_bytes(data)
                self._unsent -= len(data)

    def drop(self) -> None:
        """Cut the connection."""
        self._sending.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Close the page, and cut the connection if the browser does not answer soon."""
        self._sending.cancel()
        with contextlib.suppress(asyncio.TimeoutError, ConnectionError):
            await asyncio.wait_for(self._socket.close(), CLOSE_TIMEOUT_S)
        self.drop()
