"""Run the program in its own terminal, as a user does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from program import environment
from warm import SCREENS, WarmStarter

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()].|[=>78cDEHM])")
ENTER_SCREEN, LEAVE_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
SHOW_CURSOR = "\x1b[?25h"
END_MARK = "\x00ours\x00"
"""A marker that no program writes. Once it has been read back, all earlier output has been read,
too."""
WITHIN_S = 60.0
"""Longest wait, reached only on failure."""


class Screen:
    """A program in a terminal; ``output`` is everything it has written."""

    def __init__(
        self, workdir: Path, *args: str, size: tuple[int, int] = (120, 36), **more: str
    ) -> None:
        self.master, slave = os.openpty()
        self._slave = slave
        self.resize(*size)
        self.before = termios.tcgetattr(slave)
        self.output = ""
        self._text, self._read_to = "", 0
        env = environment(workdir.parent, TERM="xterm-256color", **more)
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            if name not in more:
                env.pop(name, None)
        self.process = _warm().start_in_terminal(args, workdir, env, slave)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def read(self) -> None:
        """Append the output so far."""
        while select.select([self.master], [], [], 0.02)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.output += data.decode("utf-8", "replace")

    def read_all(self) -> None:
        """Read all output of a stopped or ended program, which a busy kernel delivers late."""
        self.read()
        os.write(self._slave, END_MARK.encode())
        deadline = time.monotonic() + WITHIN_S
        while END_MARK not in self.output and time.monotonic() < deadline:
            self.read()
        self.output = self.output.replace(END_MARK, "")

    @property
    def text(self) -> str:
        """The output without escape sequences; complete parts are stripped only once."""
        last = max(self.output.rfind("\x1b"), self._read_to)
        self._text += ANSI.sub(" ", self.output[self._read_to : last])
        self._read_to = last
        return self._text + ANSI.sub(" ", self.output[last:])

    def wait_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            self.read()
            if condition():
                return
            assert self.process.poll() is None, self.text[-2000:]
        raise AssertionError(self.text[-2000:])

    def wait_for_text(self, text: str) -> None:
        """Wait until the program has written the text."""
        self.wait_until(lambda: text in self.text)

    def end(self) -> int:
        """Wait for the program to end and return its exit code."""
        deadline = time.monotonic() + WITHIN_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read_all()
        assert self.process.returncode is not None, f"it goes on: {self.text[-1000:]}"
        return self.process.returncode

    @property
    def is_restored(self) -> bool:
        """Whether modes, screen and cursor of the terminal are as before."""
        screen = (
            self.output.rfind(LEAVE_SCREEN) > self.output.rfind(ENTER_SCREEN)
            or ENTER_SCREEN not in self.output
        )
        cursor = "\x1b[?25l" not in self.output or self.output.rfind(
            SHOW_CURSOR
        ) > self.output.rfind("\x1b[?25l")
        return screen and cursor and termios.tcgetattr(self._slave) == self.before

    def close(self) -> None:
        """Close the terminal and kill the program if it still runs."""
        for fd in (self.master, self._slave):
            with contextlib.suppress(OSError):
                os.close(fd)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


@lru_cache(maxsize=1)
def _warm() -> WarmStarter:
    return WarmStarter(SCREENS)


@contextlib.contextmanager
def screen(workdir: Path, *args: str, **more: object) -> Iterator[Screen]:
    terminal = Screen(workdir, *args, **more)  # type: ignore[arg-type]
    try:
        yield terminal
    finally:
        terminal.close()
