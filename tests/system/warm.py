"""Start the program as a fork of a process that has already imported all its modules.

The imports take a third of the CPU time of a short run, and the tests start hundreds of runs. Each
fork has its own session, streams, directory, signals and environment, and ends like any Python
process, except that it does not free its modules. The parent has only imported the modules and read
the version of fio. Tests of the start itself or of inherited signals start a new Python process
(``program.run_in_new_python``)."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
NAME = "iopstui"
LONGEST = 1 << 17
"""Longest request (arguments and environment), in bytes."""
NUMBER = struct.Struct("i")
SCREENS = f"{NAME}-screens"


class WarmProgram:
    """A started program, with the part of ``subprocess.Popen`` that the tests use: text of standard
    output and error, no standard input. ``outputs`` are the read ends of both streams; in a
    terminal there are none."""

    def __init__(self, args: Sequence[str], status_fd: int, *outputs: int) -> None:
        self.args = [NAME, *args]
        self.returncode: int | None = None
        self._status = os.fdopen(status_fd, "rb", 0)
        if outputs:
            out, err = outputs
            self.stdout = open(out, encoding="utf-8", newline="")  # noqa: SIM115
            self.stderr = open(err, encoding="utf-8", newline="")  # noqa: SIM115
        self._readers: list[_PipeReader] = []
        self.pid = self._read_number()

    def _read_number(self) -> int:
        answer = self._status.read(NUMBER.size)
        if not answer:
            raise RuntimeError("the process that starts programs has ended")
        return int(NUMBER.unpack(answer)[0])

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, -N for signal N. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(self._read_number())
            self._status.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return all output, once the program and its children have closed both streams. Raises
        TimeoutExpired; the next call then returns what was read before, too."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self._readers = self._readers or [_PipeReader(self.stdout), _PipeReader(self.stderr)]
        for reader in self._readers:
            if not reader.wait_for_end(_seconds_left(deadline)):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self.wait(_seconds_left(deadline))
        out, err = (reader.text for reader in self._readers)
        return out, err

    def send_signal(self, number: int) -> None:
        """Send a signal unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _seconds_left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


class _PipeReader:
    """Reads a pipe in a thread until all writers have closed it."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.text = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._file:
            self.text = self._file.read()

    def wait_for_end(self, within: float | None) -> bool:
        """Wait at most ``within`` seconds. Returns whether the pipe was read to its end."""
        self._reader.join(within)
        return not self._reader.is_alive()


class WarmStarter:
    """The process that forks the programs. All workers of a test run share one: the first worker
    starts it, and it ends with the last. ``kind``: NAME, or SCREENS, which has also imported the
    screens."""

    def __init__(self, kind: str = NAME) -> None:
        self._kind = kind
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
        address = f"\0{kind}-warm-{run}"  # an abstract address, so there is no file to remove
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            try:
                listener.bind(address)
            except OSError:
                pass  # another worker has started it
            else:
                listener.listen(64)
                self._start(listener)
        self._socket = _connected(address)
        atexit.register(self._socket.close)

    def _start(self, listener: socket.socket) -> None:
        # Python reads the locale at startup; another iopstui recognises this process by NAME
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno()), NAME, self._kind],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, pass_fds=[listener.fileno()],
            env={**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
        )  # fmt: skip

    def start(
        self, args: Sequence[str], cwd: Path, env: Mapping[str, str], script: str = ""
    ) -> WarmProgram:
        """Like ``subprocess.Popen`` with pipes for its output, in its own session. ``script`` is
        run in place of the program, if given."""
        (out, out_writer), (err, err_writer) = os.pipe(), os.pipe()
        with open(os.devnull) as nothing:
            streams = [nothing.fileno(), out_writer, err_writer]
            status_fd = self._request(args, cwd, env, streams, script)
        os.close(out_writer)
        os.close(err_writer)
        return WarmProgram(args, status_fd, out, err)

    def start_in_terminal(
        self, args: Sequence[str], cwd: Path, env: Mapping[str, str], terminal: int
    ) -> WarmProgram:
        """Start it in a session of its own with this controlling terminal."""
        return WarmProgram(args, self._request(args, cwd, env, [terminal] * 3))

    def _request(
        self, args: Sequence[str], cwd: Path, env: Mapping[str, str], streams: list[int],
        script: str = "",
    ) -> int:  # fmt: skip
        """Returns the descriptor from which the process ID and the exit status can be read."""
        request = json.dumps(
            {"args": [*map(str, args)], "cwd": str(cwd), "env": dict(env), "script": script}
        ).encode()
        status_fd, status_writer = os.pipe()
        socket.send_fds(self._socket, [request], [*streams, status_writer])
        os.close(status_writer)
        return status_fd

    def run(self, args: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
            ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Like ``subprocess.run`` with captured text. Raises TimeoutExpired after ``timeout``
        seconds; the program is killed then."""
        process = self.start(args, cwd, env)
        try:
            out, err = process.communicate(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        return subprocess.CompletedProcess(process.args, process.wait(), out, err)


def _connected(address: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for _ in range(1000):
        try:
            link.connect(address)
        except ConnectionRefusedError:  # the worker that starts the process does not listen yet
            time.sleep(0.01)
        else:
            return link
    raise RuntimeError("nobody starts the process that starts programs")


# -- the process itself


def prepare(kind: str) -> None:
    """Import all modules, those of the screen only for SCREENS, and read fio's version."""
    without = f"{NAME}.__main__" if kind == SCREENS else (f"{NAME}.ui", f"{NAME}.__main__")
    for module in pkgutil.walk_packages([str(ROOT / NAME)], f"{NAME}."):
        if not module.name.startswith(without):
            importlib.import_module(module.name)
    from iopstui.errors import IopstuiError
    from iopstui.fio.inspect import find_fio

    with contextlib.suppress(IopstuiError):  # the program reports it itself
        find_fio()


def serve(listener: socket.socket) -> int:
    """Start a program for each request of a worker and report its process ID and its exit status,
    until no worker is left; in the started process, return its exit code."""
    ended, ended_writer = os.pipe()
    for fd in (ended, ended_writer):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(ended_writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    workers = [listener.accept()[0]]
    running: dict[int, int] = {}
    while workers:
        for ready in select.select([listener, ended, *workers], [], [])[0]:
            if ready is listener:
                workers.append(listener.accept()[0])
                continue
            if ready == ended:
                os.read(ended, select.PIPE_BUF)
                report_exits(running)
                continue
            request, fds, _, _ = socket.recv_fds(ready, LONGEST, 4)
            if not request:
                workers.remove(ready)
                ready.close()
            elif pid := os.fork():
                running[pid] = fds.pop()
                with contextlib.suppress(BrokenPipeError):  # the test has ended
                    os.write(running[pid], NUMBER.pack(pid))
            else:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for link in (listener, *workers):
                    link.close()
                for fd in (ended, ended_writer, *running.values()):
                    os.close(fd)
                return run_program(json.loads(request), fds)
            for fd in fds:
                os.close(fd)
    return 0


def report_exits(running: dict[int, int]) -> None:
    """Send the exit status of each program that has ended. ``running``: the descriptors for it, by
    process ID."""
    for pid in [*running]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with contextlib.suppress(BrokenPipeError):  # the test has ended
                os.write(running[pid], NUMBER.pack(status))
            os.close(running.pop(pid))


def run_program(request: dict[str, object], fds: Sequence[int]) -> int:
    """Do what ``python -m iopstui`` does."""
    os.setsid()
    *streams, status_fd = fds
    os.close(status_fd)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # under nohup, or in the background, a test would inherit that these signals are ignored
    for signum in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signum, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])  # type: ignore[call-overload]
    os.chdir(str(request["cwd"]))
    script = str(request["script"])
    sys.argv = [script or str(ROOT / NAME / "__main__.py"), *request["args"]]  # type: ignore[misc]
    gc.enable()
    if script:
        runpy.run_path(script, run_name="__main__")
    from iopstui.cli import main

    return main()


def skip_teardown() -> None:
    """End without freeing all modules, which would copy most of the memory shared with the parent
    (70 ms of CPU time for each program). Everything that Python does before that is done."""
    if exit_code is not None:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            return  # Python reports it
        os._exit(exit_code)


exit_code: int | None = None
"""None: the program has not returned one, or Python prints why it ends."""

if __name__ == "__main__":
    atexit.register(skip_teardown)  # registered first, so it is called last
    gc.disable()
    prepare(sys.argv[3])
    gc.freeze()
    try:
        sys.exit(serve(socket.socket(fileno=int(sys.argv[1]))))
    except SystemExit as end:
        exit_code = end.code if isinstance(end.code, int) else None
        raise
    except KeyboardInterrupt:
        pass
