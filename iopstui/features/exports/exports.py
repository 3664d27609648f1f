"""Export the metrics of running sessions: over HTTP, and as a file for node_exporter.

The HTTP server accepts a few connections at a time, each only for a short time. So clients that ask
often, or send nothing, hardly disturb the measurement, and do not delay other clients.

node_exporter's collector may read the file at any time, so a new file replaces the old one as a
whole (rename(2)). It reports each file's age (``node_textfile_mtime_seconds``)."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any

from iopstui.errors import UsageError
from iopstui.events import Event, FrameReady, StepFinished
from iopstui.features.exports.metrics import (
    OPENMETRICS_TYPE,
    TEXT_TYPE,
    Family,
    Metrics,
    openmetrics,
    text_format,
)
from iopstui.model.block.target import Target
from iopstui.text import printable

LOOPBACK = "127.0.0.1"
PATH = "/metrics"
REQUEST_TIMEOUT_S = 2.0
MAX_OPEN = 16
LOCAL_NAMES = ("127.0.0.1", "localhost")
"""Host names that are allowed in a request. A malicious web site may point its own name to the
loopback address, but that name is not one of these."""


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
        """The address of the metrics."""
        return f"http://{LOOPBACK}:{self._server.server_port}{PATH}"

    def close(self) -> None:
        """Stop serving, even during a request."""
        self._server.hang_up()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingMixIn, HTTPServer):
    """A server with a thread for each connection. A new connection may replace the oldest one."""

    daemon_threads = True
    block_on_close = False
    _is_closing = False

    def server_bind(self) -> None:
        # HTTPServer's own method asks the network for this machine's name
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]
        # when each open connection began, oldest first
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
        """Close a connection, and remove it from the open ones."""
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Disconnect slow clients; called twice a second. The socket's own timeout is not enough,
        because it starts anew with each byte that a client sends."""
        began = time.monotonic() - REQUEST_TIMEOUT_S
        self._disconnect(lambda since: since < began)

    def hang_up(self) -> None:
        """Disconnect all clients, and each later one at once."""
        self._is_closing = True
        self._disconnect(lambda since: True)

    def _disconnect(self, condition: Callable[[float], bool]) -> None:
        with self._changing:
            requests = [request for request, since in self._open.items() if condition(since)]
        for request in requests:
            _shut_down(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing when a client hangs up, because the screen uses the terminal."""


def _shut_down(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the client has already closed it
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
            # make one answer at a time, so that several clients disturb no more than one does
            with self.asking:
                families = tuple(self.families())
            if self._wants_text():
                self._send(200, TEXT_TYPE, text_format(families), body)
            else:
                self._send(200, OPENMETRICS_TYPE, openmetrics(families), body)

    def _wants_text(self) -> bool:
        """Whether the client accepts only the older text format."""
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
        """Log nothing, because the screen may use the terminal."""


SUFFIX = ".prom"
MODE = 0o644
FIRST_LINE = "# HELP iopstui"
"""The beginning of iopstui's own files; a file that begins differently must not be replaced."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Textfile:
    """The file at ``path``. Its directory is opened once, so that a later rename of the directory
    does not change where the file is written. Raises UsageError if the file can't be written or was
    not written by iopstui."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._name = self._path.name
        self._new = f".{self._name}.{os.getpid()}"
        file_text = printable(path)
        if not self._name.endswith(SUFFIX) or "\0" in path:
            raise UsageError(
                f"--textfile {file_text} does not end in {SUFFIX}, so node_exporter would not "
                "read it.",
                f"For example: --textfile {file_text or 'iopstui'}{SUFFIX}",
            )
        self._directory = self._opened(file_text)
        try:
            self._check(file_text)
        except BaseException:
            os.close(self._directory)
            raise

    def _opened(self, file_text: str) -> int:
        try:
            return os.open(self._path.parent, _DIRECTORY)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"--textfile {file_text}: cannot open its directory ({why}).",
                "Use the directory that node_exporter reads (its --collector.textfile.directory).",
            ) from error

    def _check(self, file_text: str) -> None:
        try:
            fd = os.open(self._name, _FILE | os.O_RDONLY, dir_fd=self._directory)
        except FileNotFoundError:
            return
        except OSError as error:
            why = "it is a link" if error.errno == errno.ELOOP else error.strerror
            raise UsageError(
                f"--textfile {file_text} exists and cannot be replaced: {why}.",
                "Choose another file.",
            ) from error
        try:
            # read only ordinary files, not a directory or a pipe
            is_ours = stat.S_ISREG(os.fstat(fd).st_mode) and _is_ours(os.read(fd, len(FIRST_LINE)))
        finally:
            os.close(fd)
        if not is_ours:
            raise UsageError(f"--textfile {file_text} exists and was not written by iopstui.",
                             "Choose another file, or remove it.")  # fmt: skip

    def write(self, text: str) -> None:
        """Replace the content with ``text``. On OSError the old content remains."""
        with contextlib.suppress(
            FileNotFoundError
        ):  # may exist if a killed process had the same number
            os.unlink(self._new, dir_fd=self._directory)
        fd = os.open(self._new, _FILE | os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE,
                     dir_fd=self._directory)  # fmt: skip
        try:
            with open(fd, "wb") as file:
                # readable by all users regardless of the umask, because the collector runs as
                # another user
                os.fchmod(fd, MODE)
                file.write(text.encode())
            os.rename(self._new, self._name, src_dir_fd=self._directory,
                      dst_dir_fd=self._directory)  # fmt: skip
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(self._new, dir_fd=self._directory)
            raise

    def remove(self) -> None:
        """Remove the file, because nothing is measured any more. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name, dir_fd=self._directory)

    def close(self) -> None:
        """Close the descriptor of the directory."""
        os.close(self._directory)


def _is_ours(begin: bytes) -> bool:
    return begin in (b"", FIRST_LINE.encode())


CLOSE_WITHIN_S = 2.0
"""How long to wait for a directory that hangs (NFS)."""

Reporter = Callable[[str], None]
Sink = Callable[[Event], None]


@contextmanager
def exporting(
    textfile: str | None, port: int | None, host: str, report: Reporter, keep: bool = False
) -> Iterator[Exports]:
    """Export while the context lasts. Raises UsageError for a file or a port that cannot be used.
    ``keep``: the file stays, with the final figures, because a run may be over before the file is
    read."""
    exports = Exports(textfile, port, host, keep)
    try:
        if exports.url:
            report(f"metrics at {exports.url}")
        yield exports
    finally:
        exports.close()


class Exports:
    """Exports sessions. ``sink_of`` returns a sink for a session's events. A background thread
    writes the file, so that a slow disk does not delay samples."""

    def __init__(self, textfile: str | None, port: int | None, host: str, keep: bool) -> None:
        self._metrics = Metrics(host)
        self._lock = threading.Lock()
        self._report: Reporter | None = None
        self._failed = False
        self._keep = keep
        self._is_closing = False
        self._wakeup = threading.Event()
        self._file = Textfile(textfile) if textfile is not None else None
        self._listener = None
        if port is not None:
            # imported only if needed, because http.server loads slowly
            self._listener = Listener(port, self.families)
        self._thread = threading.Thread(target=self._write_file, name="textfile", daemon=True)
        if self._file is not None:
            self._write_first(self._file, textfile or "")
            self._thread.start()

    def _write_first(self, file: Textfile, name: str) -> None:
        """Write the file once before measuring, to check that it can be written."""
        try:
            file.write(text_format(self.families()))
        except OSError as error:
            raise UsageError(
                f"Cannot write --textfile {printable(name)}: {error.strerror}.",
                "Choose a directory you can write to.",
            ) from error

    @property
    def url(self) -> str:
        """Address of the metrics; "" if they are not served."""
        return self._listener.url if self._listener is not None else ""

    def sink_of(self, target: Target, report: Reporter) -> Sink:
        """A sink for the events of a session with this target. ``report`` is called with messages
        about failures."""
        with self._lock:
            self._metrics.watches(target)
            self._report = report
        return self.handle

    def handle(self, event: Event) -> None:
        """Process an event, in any thread; never waits for a disk."""
        with self._lock:
            self._metrics.handle(event)
        if isinstance(event, FrameReady | StepFinished):
            self._wakeup.set()

    def families(self) -> list[Family]:
        """Everything known now, as metric families."""
        with self._lock:
            return list(self._metrics.families())

    def close(self) -> None:
        """End the export. Idempotent."""
        with self._lock:
            self._metrics.end()
            self._is_closing = True
        self._wakeup.set()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._file is not None and self._thread.is_alive():
            self._thread.join(CLOSE_WITHIN_S)

    def _write_file(self) -> None:
        assert self._file is not None
        while True:
            self._wakeup.wait()
            self._wakeup.clear()
            file_over = self._is_closing
            self._try(file_over)
            if file_over:
                self._file.close()
                return

    def _try(self, is_last: bool) -> None:
        assert self._file is not None
        try:
            if is_last and not self._keep:
                self._file.remove()
            else:
                self._file.write(text_format(self.families()))
            self._failed = False
        except OSError as error:
            # report it only once, because the next second will fail the same way
            if not self._failed and self._report is not None:
                self._report(f"cannot write --textfile ({error.strerror}); measuring continues")
            self._failed = True
