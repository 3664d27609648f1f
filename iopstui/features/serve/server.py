"""The web server: pages for the presenter and for viewers, WebSockets, and limits of
connections.

aiohttp does not limit connections: if many send nothing, they would stay open until nobody else
could connect.

The page and its terminal come from textual-serve. Its server is not used, because it starts a shell
command for each page, has no authentication, accepts pages of other sites, sends out files, and
loads a font from another host. Nothing ever waits for a page: a page that does not read is
dropped."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import logging
import os
import resource
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from aiohttp import WSMsgType, web

from iopstui.cli.terminal import print_message
from iopstui.errors import UsageError
from iopstui.features.serve.viewer_host import ScreenProcess, ViewerHost, valid_size
from iopstui.recording.reader import Recording, RecordingTooShort

MAX_WAITING = 128
MAX_WAITING_S = 60.0
MAX_REQUEST_BYTES = 1 << 18
"""Limit for the bytes of all requests on a connection that is not a page; a browser's first page
needs some KiB."""
BACKLOG = 16
"""How many connections asyncio accepts in a row before it does anything else."""
RESERVED_DESCRIPTORS = 64
DESCRIPTORS_OF_A_VIEWER = 4


def waiting_limit() -> int:
    """How many connections that are not pages may be open."""
    return max(1, min(MAX_WAITING, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))


def viewer_limit() -> int:
    """How many viewers the limit of descriptors (ulimit -n) allows."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = descriptors - waiting_limit() - RESERVED_DESCRIPTORS
    return max(1, room // DESCRIPTORS_OF_A_VIEWER)


class Connections:
    """The connections that are not pages (yet). At the limit, a new connection closes the oldest
    one."""

    def __init__(self, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        self._make_protocol = make_protocol
        self._limit = waiting_limit()
        # sorted by age, the oldest first
        self._waiting: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self._make_protocol(), self)

    def add(self, transport: asyncio.Transport) -> None:
        while len(self._waiting) >= self._limit:
            self.abort(next(iter(self._waiting)))
        timer = asyncio.get_running_loop().call_later(MAX_WAITING_S, self.abort, transport)
        self._waiting[transport] = timer

    def keep(self, transport: asyncio.BaseTransport | None) -> None:
        """Stop limiting this connection, because it is now a page, or has ended."""
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
    """Counts the bytes that arrive, and passes them to the real protocol."""

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


# Who may open which page: roles, tokens in addresses, and checks of requests.


PRESENTER, VIEWER = "presenter", "viewer"
TOKEN_BYTES = 24


def new_token() -> str:
    """An unguessable part of an address, with 192 random bits."""
    return secrets.token_urlsafe(TOKEN_BYTES)


@dataclass(frozen=True, slots=True)
class Access:
    """The tokens of both roles. Without a ``presenter`` token, there are only viewers."""

    presenter: str = ""
    viewer: str = field(default_factory=new_token)

    def role(self, token: str, peer: str) -> str | None:
        """The role of a request with this token from the address ``peer``; ``None`` if it has no
        role.

        The presenter's page controls a measurement, with the rights of the user who started the
        server, so only this machine may open it."""
        encoded = token.encode("utf-8", "replace")
        if self.presenter and hmac.compare_digest(encoded, self.presenter.encode()):
            return PRESENTER if is_loopback(peer) else None
        return VIEWER if hmac.compare_digest(encoded, self.viewer.encode()) else None


def is_loopback(address: str) -> bool:
    """Whether an IP address belongs to this machine itself."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    ipv4 = getattr(ip, "ipv4_mapped", None)
    return bool((ipv4 or ip).is_loopback)


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a page of this server opened a WebSocket, not a page of another site."""
    origin = headers.get("Origin", "")
    return bool(origin) and urlsplit(origin).netloc.lower() == headers.get("Host", "").lower()


MAX_UNSENT = 1 << 21
"""Limit for the bytes that wait for a page: some full pictures of the screen."""
CLOSE_TIMEOUT_S = 1.0


class WebSocket(Protocol):
    """The part of aiohttp's WebSocket that a page needs."""

    async def send_bytes(self, data: bytes) -> Any:
        """Send a message; waits if the browser does not read."""

    async def close(self) -> Any:
        """Close it; waits for the browser's answer."""


class BrowserPage:
    """An open WebSocket. ``send`` only queues; a separate task waits for the browser."""

    def __init__(self, socket: WebSocket, transport: asyncio.Transport | None) -> None:
        self._socket, self._transport = socket, transport
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent = 0
        self._sending = asyncio.create_task(self._send_queued())

    def send(self, data: bytes) -> None:
        """Queue data for the terminal in the browser."""
        self._unsent += len(data)
        if self._unsent > MAX_UNSENT:
            self.drop()
        else:
            self._queue.put_nowait(data)

    async def _send_queued(self) -> None:
        # a page that is being closed may have no connection any more
        with contextlib.suppress(ConnectionError, RuntimeError):
            while True:
                data = await self._queue.get()
                await self._socket.send_bytes(data)
                self._unsent -= len(data)

    def drop(self) -> None:
        self._sending.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Close the page, and cut the connection if the browser does not answer soon."""
        self._sending.cancel()
        with contextlib.suppress(asyncio.TimeoutError, ConnectionError):
            await asyncio.wait_for(self._socket.close(), CLOSE_TIMEOUT_S)
        self.drop()


MAX_MESSAGE = 1 << 16
HEARTBEAT_S = 15.0
SHUTDOWN_S = 1.0
STATIC = {
    "textual.js": ("js/textual.js", "text/javascript"),
    "xterm.css": ("css/xterm.css", "text/css"),
    "font.ttf": ("fonts/RobotoMono-VariableFont_wght.ttf", "font/ttf"),
}
"""The files of textual-serve that pages need; nothing else is served."""
OWN_FILES = {"serve.js": "text/javascript", "serve.css": "text/css"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; font-src 'self'; "
                               "style-src 'self' 'unsafe-inline'; connect-src 'self'; "
                               "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Server": "iopstui",
}  # fmt: skip
WAITING_TEXT = "Waiting for the first second of the measurement ..."
FULL_TEXT = "As many viewers as allowed are watching. Trying again every 5 seconds."


@dataclass
class ServeState:
    """The ``recording`` that viewers watch, and the presenter's screen."""

    access: Access
    recording: Path
    host: ViewerHost
    max_viewers: int
    presenter: ScreenProcess | None = None
    viewers: set[ScreenProcess] = field(default_factory=set)
    most_viewers: int = 0
    has_sample: bool = False

    def is_ready(self) -> bool:
        """Whether the recording has a sample that can be shown to viewers."""
        if not self.has_sample:
            with contextlib.suppress(RecordingTooShort, OSError):
                if self.recording.exists():
                    with Recording(self.recording) as recording:
                        self.has_sample = recording.extend_index().samples > 0
        return self.has_sample


class Server:
    """Answers requests until it is stopped."""

    def __init__(self, state: ServeState) -> None:
        self._state = state
        self._static = _static_files()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pages: set[BrowserPage] = set()
        self._opening = 0
        self._runner: web.AppRunner | None = None
        self._connections: Connections | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen. Returns the port. Raises UsageError if the address can't be used."""
        application = web.Application(middlewares=[_with_headers])
        application.router.add_get("/{token}/", self._page)
        application.router.add_get("/{token}/ws", self._websocket)
        application.router.add_get("/{token}/{file}", self._file)
        # otherwise aiohttp writes a traceback for each invalid request (a port scan)
        logger = logging.getLogger("iopstui.serve")
        logger.disabled = True
        runner = self._runner = web.AppRunner(
            application, access_log=None, handle_signals=False, logger=logger,
            shutdown_timeout=SHUTDOWN_S,
        )  # fmt: skip
        await runner.setup()
        assert runner.server is not None
        self._connections = Connections(runner.server)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_ignore_descriptor_limit)
        try:
            self._listener = await loop.create_server(
                self._connections, host, port, backlog=BACKLOG
            )
        except OSError as error:
            await runner.cleanup()
            in_use = error.errno in (errno.EADDRINUSE, errno.EACCES)
            number = error.errno or 0
            # for an unknown host name, the number is negative (socket.gaierror)
            reason = os.strerror(number) if number > 0 else error.strerror
            raise UsageError(
                f"Cannot listen on {host}, port {port}: {reason}.",
                "Choose another port: --port 8001"
                if in_use
                else "Choose an address of this machine, or all: --host 0.0.0.0",
            ) from error
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """End all pages and viewers, and stop listening."""
        if self._listener is not None:
            self._listener.close()
        await asyncio.gather(*(page.close() for page in tuple(self._pages)))
        await asyncio.gather(*(viewer.end() for viewer in tuple(self._state.viewers)))
        if self._runner is not None:
            await self._runner.cleanup()

    # -- requests

    def _role(self, request: web.Request) -> str:
        role = self._state.access.role(request.match_info["token"], request.remote or "")
        if role is None:
            raise web.HTTPNotFound
        return role

    async def _file(self, request: web.Request) -> web.Response:
        self._role(request)
        file = self._static.get(request.match_info["file"])
        if file is None:
            raise web.HTTPNotFound
        body, kind = file
        return web.Response(body=body, content_type=kind)

    async def _page(self, request: web.Request) -> web.Response:
        state = self._state
        if self._role(request) != PRESENTER:
            if not state.is_ready():
                return _notice(WAITING_TEXT, 1)
            if not self._has_room():
                return _notice(FULL_TEXT, 5, status=503)
        return web.Response(body=self._static["serve.html"][0], content_type="text/html")

    def _has_room(self) -> bool:
        return len(self._state.viewers) + self._opening < self._state.max_viewers

    async def _websocket(self, request: web.Request) -> web.WebSocketResponse:
        role = self._role(request)
        size = _requested_size(request)
        state = self._state
        if role != PRESENTER and (not state.is_ready() or not self._has_room()):
            raise web.HTTPServiceUnavailable
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MAX_MESSAGE)
        await socket.prepare(request)
        if self._connections is not None:
            self._connections.keep(request.transport)
        page = BrowserPage(socket, request.transport)
        self._pages.add(page)
        try:
            if role == PRESENTER:
                assert state.presenter is not None
                await self._show(page, socket, state.presenter, size)
            else:
                await self._view(page, socket, size)
        finally:
            await page.close()
            self._pages.discard(page)
        return socket

    async def _view(
        self, page: BrowserPage, socket: web.WebSocketResponse, size: tuple[int, int]
    ) -> None:
        """Give this page its own viewer, until the page or the viewer ends."""
        state = self._state
        self._opening += 1
        try:
            process = await state.host.start(*size, state.recording)
        except OSError:
            # too few descriptors or processes: the page closes
            return
        finally:
            self._opening -= 1
        viewer = ScreenProcess(
            process.output, process.input, lambda: state.host.kill(process.pid)
        )  # fmt: skip
        state.viewers.add(viewer)
        state.most_viewers = max(state.most_viewers, len(state.viewers))
        task = asyncio.create_task(viewer.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await self._show(page, socket, viewer, size)
        finally:
            await asyncio.shield(self._end(viewer))

    async def _end(self, viewer: ScreenProcess) -> None:
        await viewer.end()
        self._state.viewers.discard(viewer)

    async def _show(
        self, page: BrowserPage, socket: web.WebSocketResponse, screen: ScreenProcess,
        size: tuple[int, int],
    ) -> None:  # fmt: skip
        """Pass messages between the page and the screen, until one of them ends."""
        screen.attach(page, size)
        ending = asyncio.create_task(_close_with(screen, page))
        try:
            async for message in socket:
                # stop if a newer page of the presenter has taken over
                if not screen.shows(page) or message.type != WSMsgType.TEXT:
                    break
                if not screen.handle_message(message.data):
                    break
        finally:
            ending.cancel()
            screen.detach(page)


def _requested_size(request: web.Request) -> tuple[int, int]:
    """The size of the page that requests a WebSocket. Raises HTTPBadRequest, or HTTPForbidden if it
    is a page of another site."""
    try:
        same_origin, size = is_same_origin(request.headers), valid_size(request.query)
    except ValueError as error:
        raise web.HTTPBadRequest from error
    if not same_origin:
        raise web.HTTPForbidden
    if size is None:
        raise web.HTTPBadRequest
    return size


def _ignore_descriptor_limit(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Print no traceback if descriptors are used up. asyncio tries to accept the connection again a
    second later, and reports each failure."""
    error = context.get("exception")
    if not (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)):
        loop.default_exception_handler(context)


async def _close_with(screen: ScreenProcess, page: BrowserPage) -> None:
    await screen.ended.wait()
    await page.close()


@web.middleware
async def _with_headers(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        response = await handler(request)
    except web.HTTPException as error:
        error.headers.update(HEADERS)
        raise
    except ConnectionError:
        # the browser is gone
        raise
    except OSError as error:
        # too few descriptors or processes
        raise web.HTTPServiceUnavailable(headers=HEADERS) from error
    except Exception as error:
        from iopstui.safety.crash import crash_sentence

        print_message(crash_sentence(error).removeprefix("iopstui: "))
        raise web.HTTPInternalServerError(headers=HEADERS) from error
    if not response.prepared:
        response.headers.update(HEADERS)
    return response


def _static_files() -> dict[str, tuple[bytes, str]]:
    """All files that are ever served, read once at the start."""
    package, data = files("textual_serve") / "static", files("iopstui") / "data" / "serve"
    contents = {
        name: ((package / path).read_bytes(), kind) for name, (path, kind) in STATIC.items()
    }  # fmt: skip
    contents |= {name: ((data / name).read_bytes(), kind) for name, kind in OWN_FILES.items()}
    return contents | {"serve.html": ((data / "serve.html").read_bytes(), "text/html")}


def _notice(text: str, retry_s: int, status: int = 200) -> web.Response:
    body = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>iopstui</title>'
        f'<meta http-equiv="refresh" content="{retry_s}">'
        '<meta name="viewport" content="width=device-width">'
        '<link rel="stylesheet" href="serve.css"></head>'
        f'<body><p class="notice">{text}</p></body></html>'
    )
    return web.Response(text=body, content_type="text/html", status=status)
