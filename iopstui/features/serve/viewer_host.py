"""Screens that run in processes of their own: the presenter's, and those of all viewers.

All viewers' screens are forked from one process without any rights. `iopstui serve` forks that
process before anything else. It imports the screen once, gives up root, has the kernel forbid it to
write files and to execute programs (Landlock), and uses one CPU at the lowest priority. Then it
forks a process for each viewer, which takes some milliseconds and little memory. The server sends
it the pipes and the open recording (``ViewerHost``), so that it need not open files."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import pwd
import resource
import select
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import iopstui
from iopstui.errors import Missing
from iopstui.fio import fence_exec
from iopstui.safety.signals import handle_stop_signals
from iopstui.ui.core.preferences import BROWSER_DRIVER

READY = b"__GANGLION__\n"
"""What Textual's web driver writes before its first packet."""
MAX_PACKET = 1 << 22
MAX_INPUT = 1 << 12
MAX_WAITING = 1 << 16
MIN_SIZE, MAX_SIZE = (20, 5), (300, 120)
END_TIMEOUT_S = 5.0


class Page(Protocol):
    """An open WebSocket."""

    def send(self, data: bytes) -> None:
        """Send data to the terminal in the browser, without waiting for it."""

    def drop(self) -> None:
        """Cut the connection."""


class ScreenProcess:
    """Reads what the screen paints, and writes keys. One page at a time shows the screen
    (``attach``); without a page, its output is discarded."""

    def __init__(self, output: int, keys: int, kill: Callable[[], object]) -> None:
        self._output, self._keys = output, keys
        self._kill = kill
        self._page: Page | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """Pass the screen's output on until it ends."""
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
            # there is no READY if the screen fails before; its error goes to standard error
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
                await reader.readuntil(READY)
                while await self._forward_packet(reader):
                    pass
        finally:
            self.ended.set()
            self._writer.close()

    async def _forward_packet(self, reader: asyncio.StreamReader) -> bool:
        """Pass one packet on. Returns False if it says that the screen has ended."""
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
        """From now on show the screen on this page, which has this size, and on no other."""
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
        """Handle a message of the page. Returns False if it is invalid."""
        try:
            kind, *rest = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            return False
        value = rest[0] if rest else None
        if kind == "stdin" and isinstance(value, str):
            # a longer text is no key but pasted, and is ignored
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
        # if the screen does not read its keys, further ones are dropped
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
    """The columns and rows that a page requests, within limits; ``None`` if they are not a size."""
    try:
        size = int(value["width"]), int(value["height"])
    except (TypeError, ValueError, KeyError, OverflowError):
        return None
    width, height = (
        max(low, min(high, count))
        for count, low, high in zip(size, MIN_SIZE, MAX_SIZE, strict=True)
    )
    return width, height


MAX_REQUEST_BYTES = 4096
REAP_S = 1.0
ENVIRONMENT = {
    "TEXTUAL_DRIVER": BROWSER_DRIVER, "TEXTUAL_COLOR_SYSTEM": "truecolor", "COLORTERM": "truecolor",
    "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PATH": "", "HOME": "/nonexistent",
}  # fmt: skip


def screen_environment(width: int, height: int) -> dict[str, str]:
    return {**ENVIRONMENT, "COLUMNS": str(width), "ROWS": str(height)}


@dataclass(frozen=True, slots=True)
class ViewerProcess:
    """A viewer's process, with the pipes for its output and its keys."""

    pid: int
    output: int
    input: int


class ViewerHost:
    """The server's side of the process that forks viewers. In a viewer, ``show`` plays a recording
    from two open files."""

    def __init__(self, show: Callable[[Sequence[int]], object], cpu: int | None = None) -> None:
        rights = Rights()
        self._socket, child_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if self._pid == 0:
            self._socket.close()
            try:
                _HostProcess(child_socket, show).main(rights, cpu)
            finally:
                os._exit(1)
        child_socket.close()
        self._socket.setblocking(False)
        # one request at a time, because an answer does not say to which request it belongs
        self._turn = asyncio.Lock()

    async def start(self, width: int, height: int, recording: Path) -> ViewerProcess:
        """Fork a viewer that plays ``recording``. Raises OSError if that is not possible."""
        request = {"width": width, "height": height, "recording": recording.name}
        async with self._turn:
            with contextlib.ExitStack() as child_fds, contextlib.ExitStack() as own_fds:
                keys, input_ = os.pipe()
                child_fds.callback(os.close, keys)
                own_fds.callback(os.close, input_)
                output, screen_out = os.pipe()
                child_fds.callback(os.close, screen_out)
                own_fds.callback(os.close, output)
                files = []
                for _ in range(2):
                    files.append(os.open(recording, os.O_RDONLY | os.O_CLOEXEC))
                    child_fds.callback(os.close, files[-1])
                message = json.dumps(request).encode()
                socket.send_fds(self._socket, [message], [keys, screen_out, *files])
                answer = await asyncio.get_running_loop().sock_recv(self._socket, MAX_REQUEST_BYTES)
                if not answer:
                    raise BrokenPipeError("the viewers' process has ended")
                pid = json.loads(answer)["pid"]
                if pid is None:
                    raise BlockingIOError("no process can be started")
                own_fds.pop_all()
        return ViewerProcess(int(pid), output, input_)

    def kill(self, pid: int) -> None:
        """End a viewer that does not end by itself."""
        with contextlib.suppress(OSError):
            self._socket.send(json.dumps({"kill": pid}).encode())

    def close(self) -> None:
        """End the process. Its viewers end with it (``die_with_parent``)."""
        self._socket.close()
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


class _HostProcess:
    """The process that forks viewers."""

    def __init__(self, server: socket.socket, show: Callable[[Sequence[int]], object]) -> None:
        self._server = server
        self._show = show
        self._viewers: set[int] = set()

    def main(self, rights: Rights, cpu: int | None) -> None:
        """Serve until the server closes the connection."""
        os.setsid()
        handle_stop_signals(signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.environ.clear()
        os.environ.update(screen_environment(80, 24))
        self._load()
        rights.drop()
        limit_cost(cpu)
        while True:
            readable = select.select([self._server], [], [], REAP_S)[0]
            self._reap()
            if readable and not self._serve():
                os._exit(0)

    def _load(self) -> None:
        """Import what viewers need, once for all viewers."""
        import iopstui.ui.core.terminal.browser_driver
        import iopstui.ui.dashboard.screen
        import iopstui.ui.help
        import iopstui.ui.keys
        import iopstui.ui.replay  # noqa: F401

        gc.collect()
        gc.freeze()

    def _serve(self) -> bool:
        """Handle a request of the server. Returns False if the server is gone."""
        data, fds, _, _ = socket.recv_fds(self._server, MAX_REQUEST_BYTES, 4)
        if not data:
            return False
        request = json.loads(data)
        if "kill" in request:
            # kill only its own children: the number may meanwhile belong to another process
            if request["kill"] in self._viewers:
                os.kill(request["kill"], signal.SIGKILL)
            return True
        pid: int | None = None
        # OSError: there are too many processes (ulimit -u, a cgroup's pids.max)
        with contextlib.suppress(OSError):
            pid = os.fork()
            if pid == 0:
                try:
                    self._server.close()
                    self._view(request, fds)
                finally:
                    os._exit(0)
            self._viewers.add(pid)
        for fd in fds:
            os.close(fd)
        self._server.send(json.dumps({"pid": pid}).encode())
        return True

    def _view(self, request: dict[str, Any], fds: Sequence[int]) -> None:
        die_with_parent()
        os.environ.update(screen_environment(request["width"], request["height"]))
        keys, screen_out, *recording = fds
        os.dup2(keys, 0)
        os.dup2(screen_out, 1)
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        os.close(keys)
        os.close(screen_out)
        self._show(recording)

    def _reap(self) -> None:
        while self._viewers:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._viewers.discard(pid)


# The rights of the processes in which viewers' screens run, and limits for what they cost.


NOBODY = "nobody"
LOWEST_PRIORITY = 19
MAX_MEMORY = 1 << 30
SYSTEM_FILES = ("/etc/localtime", "/usr/share/zoneinfo", "/etc/terminfo", "/usr/share/terminfo")

# constants from linux/prctl.h and linux/capability.h
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS = 1, 8
CAP_DAC_READ_SEARCH = 2
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class Rights:
    """The rights that this process will keep, decided before it gives any up. Root becomes
    ``nobody``. If ``nobody`` cannot read Python or iopstui (for example in root's home), the
    process keeps the right to read all files, within the directories that Landlock allows. If the
    kernel then has no Landlock, raises Missing."""

    def __init__(self) -> None:
        self._landlock = fence_exec.landlock_abi() > 0
        self._user = _nobody_user() if os.geteuid() == 0 else None
        self._directories = sorted(_python_directories())
        hidden = [
            directory for directory in self._directories if not _others_can_read(Path(directory))
        ]
        self._reads_all = self._user is not None and bool(hidden)
        if self._reads_all and not self._landlock:
            raise Missing(
                f"Viewers must not run as root, but other users cannot read {hidden[0]}, and this "
                "kernel has no Landlock to restrict them otherwise.",
                "Install iopstui for all users (in /opt, say), or start it as another user.",
            )

    def drop(self) -> None:
        """Stop being root, and give up writing files and executing programs."""
        if self._user is not None:
            self._become(self._user)
        for rlimit, limit in (
            (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MAX_MEMORY),
        ):  # fmt: skip
            resource.setrlimit(rlimit, (limit, limit))
        kind = fence_exec.LANDLOCK if self._landlock else fence_exec.NONE
        fence_exec.enter({"kind": kind, "open": self._directories, "system": SYSTEM_FILES})

    def _become(self, user: pwd.struct_passwd) -> None:
        if self._reads_all:
            _check_result(_libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
        if self._reads_all:
            mask = 1 << CAP_DAC_READ_SEARCH
            header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
            _check_result(_libc.capset(header, struct.pack("=6I", mask, mask, 0, 0, 0, 0)))


def limit_cost(cpu: int | None) -> None:
    """Run at the lowest priority on one CPU, which all viewers share, so that together they never
    use more."""
    os.nice(LOWEST_PRIORITY)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu if cpu in allowed else max(allowed)})


def die_with_parent() -> None:
    """Make the kernel end this process when its parent ends."""
    _check_result(_libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))


def _nobody_user() -> pwd.struct_passwd:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(NOBODY)
    raise Missing(
        "Viewers must not run as root, but there is no user nobody.",
        "Start `iopstui serve` as another user.",
    )


def _python_directories() -> set[str]:
    """The directories from which modules and their data are loaded."""
    package = str(Path(iopstui.__file__).resolve().parent)
    # without the current directory, which `python -m` adds and which has the user's own files
    added = {path for path in sys.path if os.path.isabs(path) and path != os.getcwd()}
    paths = {package, sys.prefix, sys.base_prefix, *added}
    return {path for path in paths if os.path.isdir(path) and path != "/"}


def _others_can_read(directory: Path) -> bool:
    path = directory.resolve()
    needed = stat.S_IROTH | stat.S_IXOTH
    if path.stat().st_mode & needed != needed:
        return False
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)


def _check_result(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
