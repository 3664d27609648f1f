"""The program from a process that has read all its modules already: to read them takes a third of
the CPU time of a short run, and the tests start hundreds.

Each start is a fork of that process and so a process of its own, with its own streams, directory
and environment, that ends as any Python does. What is forked has imported, and has asked the fio
there is for its version, which holds until the file changes; it has run nothing else of the
program. What is about the start itself, signals or a terminal starts the program afresh
(``program.start``, ``screen.Screen``).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "iopstui"
LONGEST = 1 << 17
"""Bytes of a start's words and environment."""


class Warm:
    """The process, and what it is asked for."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # the locale is what Python makes its streams of when it starts
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
        self._socket = ours
        self._one = threading.Lock()
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        self._process.communicate()

    def run(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
            ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """As ``subprocess.run`` with captured text, and no standard input. Raises
        TimeoutExpired after ``timeout`` seconds; the program is killed then."""
        asked = json.dumps({"words": words, "cwd": str(cwd), "env": dict(env)}).encode()
        with self._one, open(os.devnull) as nothing:
            outputs = [os.pipe(), os.pipe()]
            socket.send_fds(self._socket, [asked],
                            [nothing.fileno(), *(written for _, written in outputs)])  # fmt: skip
            for _, written in outputs:
                os.close(written)
            texts = [_Text(read) for read, _ in outputs]
            pid = int(self._socket.recv(64))
            self._socket.settimeout(timeout)
            try:
                status = int(self._socket.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._socket.settimeout(None)
                self._socket.recv(64)
                raise subprocess.TimeoutExpired([NAME, *words], timeout) from None
            self._socket.settimeout(None)
            out, err = (text.whole() for text in texts)
        return subprocess.CompletedProcess(
            [NAME, *words], os.waitstatus_to_exitcode(status), out, err
        )


class _Text:
    """All that is written to a pipe, until nobody can write to it any more."""

    def __init__(self, fd: int) -> None:
        self._file = open(fd, "rb")  # noqa: SIM115
        self._data = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._file:
            self._data = self._file.read()

    def whole(self) -> str:
        self._reader.join()
        return self._data.decode()


# -- the process itself


def prepare() -> None:
    """All modules but the screen's, which no run without a terminal loads, and fio's version."""
    for module in pkgutil.walk_packages([str(ROOT / NAME)], f"{NAME}."):
        if not module.name.startswith((f"{NAME}.ui", f"{NAME}.__main__")):
            importlib.import_module(module.name)
    from iopstui.errors import IopstuiError
    from iopstui.fio.inspect import find_fio

    with contextlib.suppress(IopstuiError):  # the program will say it itself
        find_fio()


def serve(link: socket.socket) -> int:
    """Start what is asked for, one after the other; in the process that is started: its exit
    code."""
    while True:
        asked, fds, _, _ = socket.recv_fds(link, LONGEST, 3)
        if not asked:
            return 0
        pid = os.fork()
        if pid == 0:
            link.close()
            return program(json.loads(asked), fds)
        for fd in fds:
            os.close(fd)
        link.send(str(pid).encode())
        link.send(str(os.waitpid(pid, 0)[1]).encode())


def program(asked: dict[str, object], fds: Sequence[int]) -> int:
    """What ``python -m iopstui`` does."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(asked["env"])  # type: ignore[call-overload]
    os.chdir(str(asked["cwd"]))
    sys.argv = [str(ROOT / NAME / "__main__.py"), *asked["words"]]  # type: ignore[misc]
    gc.enable()
    from iopstui.cli import main

    return main()


if __name__ == "__main__":
    gc.disable()
    prepare()
    gc.freeze()
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(serve(socket.socket(fileno=int(sys.argv[1]))))
