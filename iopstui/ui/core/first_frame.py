"""The first frame: painted before Textual is loaded, which takes longer than all else at a start.

It says what is opened and where everything will stand. Keys that are pressed meanwhile are kept by
the kernel, unseen, until Textual reads them; Ctrl+C leaves at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from collections.abc import Iterable
from typing import Any

from iopstui.format import cut, fit
from iopstui.text import printable
from iopstui.ui.core.output import own_descriptor
from iopstui.ui.draw import layout

ALTERNATE = "\x1b[?1049h"
BEGIN = ALTERNATE + "\x1b[?25l\x1b[2J"
END = "\x1b[0m\x1b[?1049l\x1b[?25h"
BOLD, DIM = "\x1b[1m", "\x1b[2m"
NO_KEY = b"\0"
TITLES = {"iops": "IOPS", "latency": "latency", "fio": "fio", "kernel": "kernel", "cpus": "CPUs"}
Words = tuple[int, int, str, str]
"""Row, column, how it is written, text."""


class FirstFrame:
    """The terminal between the start and Textual. ``end`` gives it back unless Textual has
    ``taken`` it."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def show(self, words: Iterable[Words]) -> None:
        """Paint this, if standard input and output are a terminal. What it does not take at once
        is left out: the next frame is a whole one."""
        text = "".join(_placed(one) for one in words)
        try:
            before = termios.tcgetattr(0)
            termios.tcsetattr(0, termios.TCSANOW, _quiet(before))
        except termios.error:
            return
        self._before = before
        _write(BEGIN + text)

    def taken(self) -> list[Any] | None:
        """The terminal is somebody else's from now on: its settings as they were at the start;
        ``None`` if nothing was painted."""
        before, self._before = self._before, None
        return before

    def end(self) -> None:
        """The terminal as it was, if nobody else has taken it."""
        before = self.taken()
        if before is not None:
            _write(END)
            with contextlib.suppress(termios.error):
                termios.tcsetattr(0, termios.TCSANOW, before)


FIRST = FirstFrame()
"""There is one terminal."""


def _quiet(attributes: list[Any]) -> list[Any]:
    """Keys are neither shown nor kept until Enter, and Ctrl+Z stops nothing half begun."""
    quiet = [*attributes[:6], list(attributes[6])]
    quiet[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    quiet[6][termios.VSUSP] = NO_KEY
    return quiet


def _write(text: str) -> None:
    """As far as the terminal takes it at once."""
    with contextlib.suppress(OSError):
        fd, _ = own_descriptor(1)
        try:
            os.write(fd, text.encode(sys.stdout.encoding or "ascii", "replace"))
        finally:
            os.close(fd)


def _placed(words: Words) -> str:
    row, column, style, text = words
    shown = fit(printable(text), sys.stdout.encoding)
    return f"\x1b[{row + 1};{column + 1}H{style}{shown}\x1b[0m"


def picker_words(title: str, keys: str) -> list[Words]:
    """The picker before it knows a device."""
    width, height = os.get_terminal_size(1)
    return [
        (0, 1, BOLD, cut(title, width - 1)),
        (1, 1, DIM, cut("reading the devices", width - 1)),
        (height - 1, 1, DIM, cut(keys, width - 1)),
    ]


def dashboard_words(target: str, cpus: int, disks: int) -> list[Words]:
    """The dashboard of ``target`` before its first sample; nothing where it has no room."""
    width, height = os.get_terminal_size(1)
    if layout.too_small(width, height):
        return []
    plan = layout.plan(width, height, disks, cpus, 0)
    found: list[Words] = [
        (0, 1, BOLD, cut(target, width - 1)),
        (plan.message.y, 1, DIM, "taking the first sample"),
        (plan.footer.y, 1, DIM, "q quit"),
    ]
    for name, title in TITLES.items():
        box = plan.box(name)
        if box.height:
            line = f"── {title} "
            found.append((box.y, box.x, DIM, line + "─" * max(0, box.width - len(line))))
    return found
