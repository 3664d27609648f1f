"""What is painted before Textual is loaded, and that the terminal is as before after it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios

import pytest

from iopstui.ui.core import first_frame
from iopstui.ui.core.first_frame import ALTERNATE, END, dashboard_words, picker_words

SCRIPT = """
import sys, termios
from iopstui.ui.core.first_frame import FIRST
FIRST.show([(0, 1, "", "caf\\x1b[31m"), (2, 1, "", "here")])
quiet = not termios.tcgetattr(0)[3] & (termios.ECHO | termios.ICANON)
if sys.argv[1] == "taken":
    assert FIRST.taken()[3] & termios.ECHO
FIRST.end()
FIRST.end()
print("quiet" if quiet else "heard")
"""


def screen_of(columns: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    size = os.terminal_size((columns, rows))
    monkeypatch.setattr(first_frame.os, "get_terminal_size", lambda fd: size)


def in_terminal(how: str) -> tuple[str, bool]:
    """What it writes there, and whether keys are shown again afterwards."""
    ours, its = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", SCRIPT, how], stdin=its, stdout=its, check=True)
        return os.read(ours, 65536).decode(), bool(termios.tcgetattr(its)[3] & termios.ECHO)
    finally:
        os.close(ours)
        os.close(its)


def test_it_gives_the_terminal_back() -> None:
    written, echo = in_terminal("ours")
    assert written.startswith(ALTERNATE) and written.count(END) == 1
    assert "\x1b[3;2Hhere" in written and "\x1b[31m" not in written
    assert "quiet" in written and echo


def test_what_was_taken_is_left_to_whoever_took_it() -> None:
    written, echo = in_terminal("taken")
    assert END not in written and not echo


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
def test_all_of_it_is_on_the_screen(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    screen_of(*size, monkeypatch)
    long = "/srv/" + "x" * 300
    for words in (dashboard_words(long, 8, 2), picker_words(long, "q quits")):
        assert long[:20] in words[0][3] and words[-1][3]
        for row, column, _, text in words:
            assert 0 <= row < size[1] and column + len(text) <= size[0]


def test_where_no_dashboard_fits_there_is_no_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    screen_of(40, 10, monkeypatch)
    assert dashboard_words("vda", 1, 1) == []
