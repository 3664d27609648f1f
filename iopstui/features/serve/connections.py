"""Limits for connections that have not shown a token yet: how many, how long, how much they send.

aiohttp has no such limits: connections that send nothing would stay open until nobody else could
connect."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import resource
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

MAX_WAITING = 128
MAX_WAITING_S = 60.0
MAX_REQUEST_BYTES = 1 << 18
"""The most bytes of all requests on a connection that is not a page; a browser's first page takes
some KiB."""
BACKLOG = 16
"""How many connections asyncio accepts in a row before it does anything else."""
RESERVED_DESCRIPTORS = 64
DESCRIPTORS_OF_A_VIEWER = 4


def waiting_limit() -> int:
    """How many connections that are not a page may be open."""
    return max(1, min(MAX_WAITING, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))


def viewer_limit() -> int:
    """How many viewers the descriptor limit (ulimit -n) has room for."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = descriptors - waiting_limit() - RESERVED_DESCRIPTORS
    return max(1, room // DESCRIPTORS_OF_A_VIEWER)


class Connections:
    """The connections that are not a page (yet). At the limit, a new one closes the oldest."""

    def __init__(self, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        self._make_protocol = make_protocol
        self._limit = waiting_limit()
        # the oldest first
        self._waiting: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self._make_protocol(), self)

    def add(self, transport: asyncio.Transport) -> None:
        while len(self._waiting) >= self._limit:
            self.abort(next(iter(self._waiting)))
        timer = asyncio.get_running_loop().call_later(MAX_WAITING_S, self.abort, transport)
        self._waiting[transport] = timer

    def keep(self, transport: asyncio.BaseTransport | None) -> None:
        """Stop limiting this connection: it is a page now, or it has ended."""
        timer = self._waiting.pop(transport, None) if transport is not None else None
        if timer is not None:
            timer.cancel()

    def is_waiting(self, transport: asyncio.BaseTransport) -> bool:
        return transport in self._waiting

    def abort(self, transport: asyncio.BaseTransport) -> None:
        self.keep(transport)
        if isinstance(transport, asyncio.Transport):
            transport.abort()


class _Connection(asyncio.Protocol):
    """Counts what arrives, and passes it on to the real protocol."""

    def __init__(self, protocol: asyncio.Protocol, connections: Connections) -> None:
        self._protocol, self._connections = protocol, connections
        self._transport: asyncio.BaseTransport | None = None
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        assert isinstance(transport, asyncio.Transport)
        self._connections.add(transport)
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._received += len(data)
        if self._received > MAX_REQUEST_BYTES and self._connections.is_waiting(self._transport):
            self._connections.abort(self._transport)
        else:
            self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.keep(self._transport)
        self._protocol.connection_lost(error)


# Who may open which page: roles, tokens in addresses, and what requests must look like.


PRESENTER, VIEWER = "presenter", "viewer"
TOKEN_BYTES = 24


def new_token() -> str:
    """An unguessable part of an address (192 random bits)."""
    return secrets.token_urlsafe(TOKEN_BYTES)


@dataclass(frozen=True, slots=True)
class Access:
    """The tokens of both roles. Without a ``presenter`` token there are only viewers."""

    presenter: str = ""
    viewer: str = field(default_factory=new_token)

    def role(self, token: str, peer: str) -> str | None:
        """The role of a request with this token from the address ``peer``; None: neither.

        The presenter's page controls a measurement, with the rights of the user who started the
        server, so only this machine may open it."""
        encoded = token.encode("utf-8", "replace")
        if self.presenter and hmac.compare_digest(encoded, self.presenter.encode()):
            return PRESENTER if is_loopback(peer) else None
        return VIEWER if hmac.compare_digest(encoded, self.viewer.encode()) else None


def is_loopback(address: str) -> bool:
    """Whether an IP address is this machine's own."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    ipv4 = getattr(ip, "ipv4_mapped", None)
    return bool((ipv4 or ip).is_loopback)


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a WebSocket was opened by a page of this server, not by another site's page."""
    origin = headers.get("Origin", "")
    return bool(origin) and urlsplit(origin).netloc.lower() == headers.get("Host", "").lower()
