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
        asked = json.dumps(
            {"words": [*map(str, words)], "cwd": str(cwd), "env": dict(env)}
        ).encode()
        with self._one, open(os.devnull) as nothing:
            outputs = [os.pipe(), os.pipe()]
            socket.send_fds(self._socket, [asked],
                            [nothing.fileno(), *(written for _, written in outputs)])  # fmt: skip
            for _, written in outputs:
                os.close(written)
            texts = [_Text(read) for read, _ in outputs]
            try:
                status = self._end_of(self._answer(), timeout)
                # what it has left behind may still have them open
                out, err = (text.whole(timeout) for text in texts)
            except TimeoutError:
                raise subprocess.TimeoutExpired([NAME, *words], timeout) from None
        return subprocess.CompletedProcess(
            [NAME, *words], os.waitstatus_to_exitcode(status), out, err
        )

    def _end_of(self, pid: int, timeout: float) -> int:
        self._socket.settimeout(timeout)
        try:
            return self._answer()
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)  # nobody has waited for it yet
            self._socket.settimeout(None)
            self._answer()
            raise
        finally:
            self._socket.settimeout(None)

    def _answer(self) -> int:
        said = self._socket.recv(64)
        if not said:
            raise RuntimeError(self._process.communicate()[1].decode())
        return int(said)


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

    def whole(self, timeout: float) -> str:
        """Raises TimeoutError."""
        self._reader.join(timeout)
        if self._reader.is_alive():
            raise TimeoutError
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
