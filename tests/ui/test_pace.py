from __future__ import annotations

import os
import select
import threading
import time
import tty
from collections.abc import Iterator

import pytest

from iopstui.ui.core.pace import Overhead, Pace
from iopstui.ui.core.terminal.driver import Output


def test_each_frame_is_painted_without_the_refresh_option() -> None:
    pace = Pace()
    for now in (0.0, 0.25, 0.5):
        pace.note_frame()
        assert pace.wait(now) == 0
        pace.note_paint(now)
    assert pace.dropped == 0


def test_refresh_delays_painting_and_counts_no_dropped_frames() -> None:
    pace = Pace(2.0)
    pace.note_frame()
    assert pace.wait(10.0) == 0
    pace.note_paint(10.0)
    pace.note_frame()
    assert 0.5 < pace.wait(11.0) < 1.0
    pace.note_frame()
    assert pace.wait(11.95) == 0
    pace.note_paint(12.0)
    assert pace.dropped == 0


def test_frames_that_a_slow_terminal_never_showed_are_counted() -> None:
    pace = Pace()
    pace.note_frame()
    pace.note_paint(0.0)
    for _ in range(5):
        pace.note_frame()
        pace.note_late_frame()
    assert pace.paint_pending
    pace.note_paint(5.0)  # the newest of the five
    assert pace.dropped == 4
    assert not pace.paint_pending


@pytest.mark.parametrize(
    ("cost", "width", "text"),
    [
        (Overhead(), 160, ""),
        (Overhead(1.84, 0.03), 160, " iopstui  1.8 % CPU "),
        (Overhead(1.84, 4.2), 160, " iopstui  1.8 % CPU, data 4 s old "),
        (Overhead(0.4, 0.03), 80, " iopstui  0.4 % CPU "),
        (Overhead(0.4, 9.0, 7), 80, " iopstui  0.4 % CPU, slow terminal: 7 redraws skipped "),
    ],
)
def test_the_text_of_the_own_cost(cost: Overhead, width: int, text: str) -> None:
    assert cost.text(width) == text


class StoppedTerminal:
    """A pseudo-terminal that nobody reads until ``read`` is called."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        self.ready = threading.Event()
        self.output = Output(self.slave, self.ready.set)
        self.output.start()

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += os.read(self.master, 65536)
        return data


@pytest.fixture
def terminal() -> Iterator[StoppedTerminal]:
    stopped = StoppedTerminal()
    yield stopped
    os.close(stopped.master)
    os.close(stopped.slave)


def test_writing_to_a_stopped_terminal_does_not_wait(terminal: StoppedTerminal) -> None:
    line = "x" * 99
    for _ in range(1000):
        terminal.output.write(line)
    assert terminal.output.waiting > 0
    assert terminal.read(99_000) == b"x" * 99_000
    assert terminal.ready.wait(60)
    assert terminal.output.waiting == 0
    terminal.output.stop()


def test_memory_is_bounded_and_lost_output_is_reported(terminal: StoppedTerminal) -> None:
    for _ in range(300):
        terminal.output.write("x" * 10_000)
    assert terminal.output.lost
    assert terminal.output.waiting <= 1 << 20
    terminal.output.stop()


def test_leaving_a_stopped_terminal_does_not_hang(terminal: StoppedTerminal) -> None:
    terminal.output.write("x" * 500_000)
    stopping = threading.Thread(target=terminal.output.stop, daemon=True)
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive()


def test_a_closed_terminal_ends_the_writing() -> None:
    terminal = StoppedTerminal()
    os.close(terminal.master)
    terminal.output.write("x" * 500_000)
    terminal.output.stop()
    assert terminal.output.waiting > 0
    os.close(terminal.slave)


def test_the_last_output_does_not_wait_for_a_picture(terminal: StoppedTerminal) -> None:
    terminal.output.write("x" * 900_000)
    terminal.output.discard()
    terminal.output.write("last words")
    assert terminal.output.waiting < 900_000
    data = b""
    while not data.endswith(b"\x18last words"):
        data += os.read(terminal.master, 65536)
    assert len(data) < 200_000
    assert terminal.ready.wait(60)
    assert terminal.output.waiting == 0
    terminal.output.stop()


def test_a_stopped_terminal_shows_the_last_output_when_it_is_left(
    terminal: StoppedTerminal,
) -> None:
    """The process and its writer thread end then."""
    tty.setraw(terminal.slave)  # in raw mode the kernel reports a full buffer
    terminal.output.write("x" * 500_000)
    while select.select([], [terminal.slave], [], 0)[1]:
        time.sleep(0.01)
    terminal.output.discard()
    terminal.output.write("last words")
    terminal.output.stop()
    assert not terminal.output._thread.is_alive()
    assert terminal.output.waiting == 0


def test_dropping_an_empty_backlog_loses_nothing(terminal: StoppedTerminal) -> None:
    terminal.output.discard()
    terminal.output.write("words")
    assert terminal.read(6) == b"\x18words"
    terminal.output.write("more")
    assert terminal.read(4) == b"more"
    terminal.output.stop()
