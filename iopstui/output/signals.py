"""Ctrl-C and its like, for commands without a screen."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

from iopstui.session.signals import handle_stop_signals


class StopSignals:
    """From now on the first one lets fio write its last document (``stop``), the second does not
    wait for it (``kill``)."""

    def __init__(self, stop: Callable[[], None], kill: Callable[[], None]) -> None:
        self.asked = 0
        self._stop = stop
        self._kill = kill
        handle_stop_signals(self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
        if self.asked == 1:
            self._stop()
        else:
            self._kill()
