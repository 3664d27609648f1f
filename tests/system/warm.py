"""The program from a process that has read all its modules already: to read them takes a third of
the CPU time of a short run, and the tests start hundreds.

Each start is a fork of that process and so a process of its own, with its own session, streams,
directory, signals and environment, that ends as any Python does. What is forked has imported, and
has asked the fio there is for its version, which holds until the file changes; it has run nothing
else of the program. What is about the start itself, an inherited signal or a terminal starts the
program afresh (``program.afresh``, ``screen.Screen``).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
NAME = "iopstui"
LONGEST = 1 << 17
"""Bytes of a start's words and environment."""
NUMBER = struct.Struct("i")


class Started:
    """A program that was started: what the tests need of ``subprocess.Popen``, with text of
    standard output and error, and no standard input."""

    def __init__(self, words: Sequence[str], told: int, out: int, err: int) -> None:
        self.args = [NAME, *words]
        self.returncode: int | None = None
        self._told = os.fdopen(told, "rb", 0)
        self.stdout = open(out, encoding="utf-8", newline="")  # noqa: SIM115
        self.stderr = open(err, encoding="utf-8", newline="")  # noqa: SIM115
        self._texts: list[_Text] = []
        self.pid = self._answer()

    def _answer(self) -> int:
        said = self._told.read(NUMBER.size)
        if not said:
            raise RuntimeError("what starts the programs has ended")
        return int(NUMBER.unpack(said)[0])

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, -N for signal N. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(self._answer())
            self._told.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All it writes until it has ended and what it has left behind has closed both. Raises
        TimeoutExpired; what was read then comes with the next call."""
        until = None if timeout is None else time.monotonic() + timeout
        self._texts = self._texts or [_Text(self.stdout), _Text(self.stderr)]
        for text in self._texts:
            if not text.ended(_left(until)):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self.wait(_left(until))
        out, err = (text.whole for text in self._texts)
        return out, err

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


class _Text:
    """All that is written to a pipe, until nobody can write to it any more."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.whole = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._file:
            self.whole = self._file.read()

    def ended(self, within: float | None) -> bool:
        """Whether it is whole; waits for that at most so many seconds."""
        self._reader.join(within)
        return not self._reader.is_alive()


class Warm:
    """The process, and what it is asked for."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # the locale is what Python makes its streams of when it starts; by its name among the
            # words another iopstui knows one
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), NAME], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
        self._socket = ours
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()

    def start(self, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Started:
        """As ``subprocess.Popen`` with pipes for its output, in a session of its own."""
        asked = json.dumps(
            {"words": [*map(str, words)], "cwd": str(cwd), "env": dict(env)}
        ).encode()
        (told, tells), (out, writes), (err, complains) = os.pipe(), os.pipe(), os.pipe()
        with open(os.devnull) as nothing:
            theirs = [nothing.fileno(), writes, complains, tells]
            socket.send_fds(self._socket, [asked], theirs)
        for fd in (writes, complains, tells):
            os.close(fd)
        return Started(words, told, out, err)

    def run(self, words: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
            ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """As ``subprocess.run`` with captured text. Raises TimeoutExpired after ``timeout``
        seconds; the program is killed then."""
        one = self.start(words, cwd, env)
        try:
            out, err = one.communicate(timeout)
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()
            raise
        return subprocess.CompletedProcess(one.args, one.wait(), out, err)


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
    """Start what is asked for; in the process that is started: its exit code."""
    # nobody waits for the keepers
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, fds, _, _ = socket.recv_fds(link, LONGEST, 4)
        if not asked:
            return 0
        if os.fork() == 0:
            link.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            pid = os.fork()
            if pid == 0:
                return program(json.loads(asked), fds)
            keep(pid, fds)
        for fd in fds:
            os.close(fd)


def keep(pid: int, fds: Sequence[int]) -> None:
    """Tell which process it is, and how it ends."""
    *streams, told = fds
    for fd in streams:
        os.close(fd)
    with contextlib.suppress(BrokenPipeError):  # nobody wants to know any more
        os.write(told, NUMBER.pack(pid))
        os.write(told, NUMBER.pack(os.waitpid(pid, 0)[1]))
    os._exit(0)


def program(asked: dict[str, object], fds: Sequence[int]) -> int:
    """What ``python -m iopstui`` does."""
    os.setsid()
    *streams, told = fds
    os.close(told)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    # under nohup, or in the background, a test would inherit them ignored
    for one in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(one, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
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
