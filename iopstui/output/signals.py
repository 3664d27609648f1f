"""Ctrl-C and its like, for commands without a screen."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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

    for number in STOP_SIGNALS:
        signal.signal(number, handle)
