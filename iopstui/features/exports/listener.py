"""A small HTTP server on the loopback address for Prometheus and compatible scrapers.

It serves a few connections at a time, each for a short time only. So clients that ask often, or say
nothing, hardly disturb what is measured, and delay no other client."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any

from iopstui.errors import UsageError
from iopstui.features.exports.exposition import (
    OPENMETRICS_TYPE,
    TEXT_TYPE,
    Family,
    openmetrics,
    text_format,
)

LOOPBACK = "127.0.0.1"
PATH = "/metrics"
REQUEST_TIMEOUT_S = 2.0
MAX_OPEN = 16
LOCAL_NAMES = ("127.0.0.1", "localhost")
"""Host names allowed in a request. Anybody's web site may point its own name to the loopback
address; such a name is not among these."""


class Listener:
    """Serves ``families()`` at ``http://127.0.0.1:PORT/metrics``; ``port`` 0 means any free port.
    Raises UsageError if the port is not available."""

    def __init__(self, port: int, families: Callable[[], Iterable[Family]]) -> None:
        handler = type("Handler", (_Handler,), {"families": staticmethod(families)})
        try:
            self._server = _Server((LOOPBACK, port), handler)
        except OSError as error:
            raise UsageError(
                f"Cannot listen on port {port} of {LOOPBACK} ({error.strerror}).",
                "For any free port: --openmetrics-listen 0",
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="openmetrics", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the listener."""
        return f"http://{LOOPBACK}:{self._server.server_port}{PATH}"

    def close(self) -> None:
        """Stop serving, also during a request."""
        self._server.hang_up()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingMixIn, HTTPServer):
    """A thread for each connection; the oldest one makes room for a new one."""

    daemon_threads = True
    block_on_close = False
    _is_closing = False

    def server_bind(self) -> None:
        # not HTTPServer's method: that asks the network for this machine's name
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]
        # when each open connection began, the oldest first
        self._open: dict[socket.socket, float] = {}
        self._changing = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread. If none can be started (ulimit -u), disconnect the client."""
        with self._changing:
            self._open[request] = time.monotonic()
            surplus = [*self._open][:-MAX_OPEN]
            for oldest in surplus:
                del self._open[oldest]
                _shut_down(oldest)
        if self._is_closing:
            _shut_down(request)
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection, and close it."""
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Disconnect slow clients (called twice a second). The socket's own timeout would start
        anew with each byte that a client sends."""
        began = time.monotonic() - REQUEST_TIMEOUT_S
        self._disconnect(lambda since: since < began)

    def hang_up(self) -> None:
        """Disconnect all clients, and every later one at once."""
        self._is_closing = True
        self._disconnect(lambda since: True)

    def _disconnect(self, condition: Callable[[float], bool]) -> None:
        with self._changing:
            requests = [request for request, since in self._open.items() if condition(since)]
        for request in requests:
            _shut_down(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing on the screen when a client hangs up."""


def _shut_down(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is over already
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    families: Callable[[], Iterable[Family]]
    asking = threading.Lock()

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, body: bool) -> None:
        host = self.headers.get("Host", LOOPBACK).rpartition(":")
        if (host[0] or host[2]) not in LOCAL_NAMES:
            self._send(403, TEXT_TYPE, "served only on this machine\n", body)
        elif self.path.partition("?")[0] != PATH:
            self._send(404, TEXT_TYPE, f"the metrics are at {PATH}\n", body)
        else:
            # one at a time, so that several clients disturb no more than one
            with self.asking:
                families = tuple(self.families())
            if self._wants_text():
                self._send(200, TEXT_TYPE, text_format(families), body)
            else:
                self._send(200, OPENMETRICS_TYPE, openmetrics(families), body)

    def _wants_text(self) -> bool:
        """Return whether the client accepts only the older text format."""
        accepted = self.headers.get("Accept", "")
        return "text/plain" in accepted and "application/openmetrics-text" not in accepted

    def _send(self, code: int, kind: str, text: str, body: bool) -> None:
        data = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def version_string(self) -> str:
        return "iopstui"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal is not ours to write to."""
