"""The HTTP server for scrapers, and clients that delay it."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator

import pytest

from iopstui.features.exports import exports as module
from iopstui.features.exports.exports import MAX_OPEN, Listener
from iopstui.features.exports.metrics import Family


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener(0, lambda: list[Family]())
    yield listener
    listener.close()


def silent_clients(listener: Listener, count: int) -> list[socket.socket]:
    port = int(listener.url.split(":")[2].split("/")[0])
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]


def scrape(listener: Listener) -> bytes:
    with urllib.request.urlopen(listener.url, timeout=60) as answer:
        return bytes(answer.read())


def test_silent_clients_delay_no_scrape(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 3600.0)
    silent = silent_clients(listener, 5)
    assert scrape(listener) == b"# EOF\n"
    for client in silent:
        with client, pytest.raises(BlockingIOError):
            client.recv(1, socket.MSG_DONTWAIT)


def test_the_oldest_client_makes_room_for_a_new_one(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 3600.0)
    silent = silent_clients(listener, MAX_OPEN + 3)
    assert scrape(listener) == b"# EOF\n"
    # the three above the limit, and one to make room for the scrape
    for client in silent[:4]:
        client.settimeout(60)
        assert client.recv(1) == b""
    for client in silent:
        client.close()
