"""What clients can't do to the web server: keep others out, make it wait, or fill its memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from iopstui.features.serve import server as limits
from iopstui.features.serve.server import MAX_UNSENT, BrowserPage, Connections


class Echo(asyncio.Protocol):
    """A protocol that sends back what it receives."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Listening:
    """A listening socket with limits, and its clients."""

    def __init__(self, connections: Connections, port: int) -> None:
        self.connections, self._port = connections, port
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.writers.append(writer)
        return reader, writer


@pytest.fixture
async def listening(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Listening]:
    monkeypatch.setattr(limits, "MAX_WAITING", 4)
    connections = Connections(Echo)
    server = await asyncio.get_running_loop().create_server(connections, "127.0.0.1", 0)
    clients = Listening(connections, server.sockets[0].getsockname()[1])
    yield clients
    for writer in clients.writers:
        writer.close()
    server.close()


async def ends(reader: asyncio.StreamReader) -> bool:
    """Wait until the server cuts the connection."""
    try:
        return await asyncio.wait_for(reader.read(1), 30) == b""
    except ConnectionError:
        return True


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"x")
    return await asyncio.wait_for(reader.read(1), 30) == b"x"


async def test_the_oldest_idle_connection_makes_room_for_a_new_one(listening: Listening) -> None:
    idle = [await listening.connect() for _ in range(4)]
    assert await answers(*idle[3])
    assert await answers(*await listening.connect())
    assert await ends(idle[0][0])
    assert await answers(*idle[1])


async def test_pages_are_not_cut(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REQUEST_BYTES", 8)
    page = await listening.connect()
    assert await answers(*page)
    listening.connections.keep(next(iter(listening.connections._waiting)))
    for _ in range(9):
        assert await answers(*page)
        await answers(*await listening.connect())


async def test_a_connection_that_sends_too_much_is_cut(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_REQUEST_BYTES", 8)
    reader, writer = await listening.connect()
    for _ in range(8):
        assert await answers(reader, writer)
    writer.write(b"x")
    assert await ends(reader)


async def test_a_connection_that_is_no_page_is_cut_in_time(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_WAITING_S", 0.0)
    reader, _ = await listening.connect()
    assert await ends(reader)


@pytest.mark.parametrize("descriptors", [16, 256, 1024, 1 << 20])
def test_the_descriptor_limit_has_room_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch, descriptors: int
) -> None:
    monkeypatch.setattr(limits.resource, "getrlimit", lambda which: (descriptors, descriptors))
    waiting, viewers = limits.waiting_limit(), limits.viewer_limit()
    assert waiting >= 1 and viewers >= 1
    if descriptors >= 256:
        assert waiting + 4 * viewers + 64 <= descriptors


class StuckSocket:
    """A WebSocket whose browser does not read."""

    async def send_bytes(self, data: bytes) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        await asyncio.Event().wait()


class FakeTransport:
    aborted = 0

    def abort(self) -> None:
        self.aborted += 1


async def test_a_page_that_does_not_read_is_dropped_and_makes_nobody_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("iopstui.features.serve.server.CLOSE_TIMEOUT_S", 0.01)
    transport = FakeTransport()
    page = BrowserPage(StuckSocket(), transport)  # type: ignore[arg-type]
    page.send(b"x" * MAX_UNSENT)
    assert not transport.aborted
    page.send(b"x")
    assert transport.aborted == 1
    await page.close()
    assert transport.aborted == 2
