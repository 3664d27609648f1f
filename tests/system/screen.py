"""The program in a terminal of its own, as a user has it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from program import command, environment

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()].|[=>78cDEHM])")
ENTERS, LEAVES = "\x1b[?1049h", "\x1b[?1049l"
SHOWS_CURSOR = "\x1b[?25h"
OURS = "\x00ours\x00"
"""No program writes it: what has come before it is all that one has written."""
WITHIN_S = 60.0
"""Longer than anything takes on a busy machine: only a failure waits for it."""


class Screen:
    """``seen`` is all that was written to the terminal."""

    def __init__(
        self, here: Path, *words: str, size: tuple[int, int] = (120, 36), **more: str
    ) -> None:
        self.master, slave = os.openpty()
        self._slave = slave
        self.resize(*size)
        self.before = termios.tcgetattr(slave)
        self.seen = ""
        self._words, self._read_to = "", 0
        env = environment(here.parent, TERM="xterm-256color", **more)
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            if name not in more:
                env.pop(name, None)
        self.process = subprocess.Popen(
            command(*words), cwd=here, env=env, stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=_own_terminal,
        )  # fmt: skip

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def read(self) -> None:
        """What has been written by now."""
        while select.select([self.master], [], [], 0.02)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.seen += data.decode("utf-8", "replace")

    def read_all(self) -> None:
        """What a program has written that now is stopped or has ended. A busy kernel takes its
        time to hand it over, in order."""
        self.read()
        os.write(self._slave, OURS.encode())
        deadline = time.monotonic() + WITHIN_S
        while OURS not in self.seen and time.monotonic() < deadline:
            self.read()
        self.seen = self.seen.replace(OURS, "")

    @property
    def words(self) -> str:
        """Without escape sequences. What the last one has ended needs no second look."""
        last = max(self.seen.rfind("\x1b"), self._read_to)
        self._words += ANSI.sub(" ", self.seen[self._read_to : last])
        self._read_to = last
        return self._words + ANSI.sub(" ", self.seen[last:])

    def until(self, done: Callable[[], object]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            self.read()
            if done():
                return
            assert self.process.poll() is None, self.words[-2000:]
        raise AssertionError(self.words[-2000:])

    def shows(self, text: str) -> None:
        """Waits until this has been written."""
        self.until(lambda: text in self.words)

    def end(self) -> int:
        """Waits for the end of the program; its exit code."""
        deadline = time.monotonic() + WITHIN_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read_all()
        assert self.process.returncode is not None, f"it goes on: {self.words[-1000:]}"
        return self.process.returncode

    @property
    def given_back(self) -> bool:
        """The terminal is as it was: modes, screen, cursor."""
        screen = self.seen.rfind(LEAVES) > self.seen.rfind(ENTERS) or ENTERS not in self.seen
        cursor = "\x1b[?25l" not in self.seen or self.seen.rfind(SHOWS_CURSOR) > self.seen.rfind(
            "\x1b[?25l"
        )
        return screen and cursor and termios.tcgetattr(self._slave) == self.before

    def close(self) -> None:
        """Hangs up, and ends what still runs."""
        for fd in (self.master, self._slave):
            with contextlib.suppress(OSError):
                os.close(fd)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # under nohup, or in the background, a test would inherit them ignored
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def screen(here: Path, *words: str, **more: object) -> Iterator[Screen]:
    one = Screen(here, *words, **more)  # type: ignore[arg-type]
    try:
        yield one
    finally:
        one.close()
