"""Ctrl-C and its like, for commands without a screen."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from iopstui.sources.interrupts import interrupt

STOP_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    # their default is to end the program at once: changed settings would stay as they are
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGXCPU,
    signal.SIGPWR,
    signal.SIGIO,
)


def interrupt_on_stop_signals() -> None:
    """Each of them is a KeyboardInterrupt from now on, so that what was begun is undone."""

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt()

    handle_stop_signals(handle)


def handle_stop_signals(handle: Callable[[int, FrameType | None], None]) -> None:
    """``handle`` gets each of them, but for a hangup that nohup(1) has set to be ignored."""
    for number in STOP_SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def on_stop_signals(stop: Callable[[], None], kill: Callable[[], None]) -> None:
    """The first one lets fio write its last document (``stop``), the second does not wait for
    it."""
    asked: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if asked:
            kill()
        else:
            stop()
        asked.append(number)

    handle_stop_signals(handle)
