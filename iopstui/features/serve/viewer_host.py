"""The process that all viewers' screens are forked from, without rights of its own.

`iopstui serve` forks it before anything else. It imports the screen once, gives up root, lets the
kernel forbid writing files and executing programs (Landlock), and takes one CPU at the lowest
priority. Then it forks a process for each viewer, in some milliseconds and with little memory. The
server sends it the pipes and the open recording (``ViewerHost``), so it needs to open no file.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iopstui.features.serve.rights import Rights, die_with_parent, limit_cost
from iopstui.safety.signals import handle_stop_signals
from iopstui.ui.core.preferences import BROWSER_DRIVER

MAX_REQUEST_BYTES = 4096
REAP_S = 1.0
ENVIRONMENT = {
    "TEXTUAL_DRIVER": BROWSER_DRIVER, "TEXTUAL_COLOR_SYSTEM": "truecolor", "COLORTERM": "truecolor",
    "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PATH": "", "HOME": "/nonexistent",
}  # fmt: skip


def screen_environment(width: int, height: int) -> dict[str, str]:
    """The variables of a screen in a browser."""
    return {**ENVIRONMENT, "COLUMNS": str(width), "ROWS": str(height)}


@dataclass(frozen=True, slots=True)
class ViewerProcess:
    """A viewer's process: where to read what it paints, where to write keys."""

    pid: int
    output: int
    input: int


class ViewerHost:
    """The server's end of it. ``show`` plays a recording from two open files, in a viewer."""

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
        # one request at a time: an answer does not say whose it is
        self._turn = asyncio.Lock()

    async def start(self, width: int, height: int, recording: Path) -> ViewerProcess:
        """Fork a viewer that plays ``recording``. OSError if that is not possible."""
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
        """End it; its viewers end with it (``die_with_parent``)."""
        self._socket.close()
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


class _HostProcess:
    """The process itself."""

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
        """Import what viewers need, once for all of them."""
        import iopstui.ui.core.terminal.browser_driver
        import iopstui.ui.dashboard.screen
        import iopstui.ui.help
        import iopstui.ui.live_dashboard
        import iopstui.ui.replay  # noqa: F401

        gc.collect()
        gc.freeze()

    def _serve(self) -> bool:
        """Do what the server asks for; False if it has gone."""
        data, fds, _, _ = socket.recv_fds(self._server, MAX_REQUEST_BYTES, 4)
        if not data:
            return False
        request = json.loads(data)
        if "kill" in request:
            # only its own children: a number may belong to another process by now
            if request["kill"] in self._viewers:
                os.kill(request["kill"], signal.SIGKILL)
            return True
        pid: int | None = None
        # OSError: no more processes (ulimit -u, a cgroup's pids.max)
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
