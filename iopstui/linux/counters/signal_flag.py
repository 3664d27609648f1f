"""Control where a signal may interrupt the main thread and where it must wait.

A KeyboardInterrupt while a process or directory is being created would leave a process or directory
that nothing keeps track of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_shields = 0
_pending = False
_disabled = False


def interrupt() -> None:
    """Signal handler: raise KeyboardInterrupt now, or at the end of a shielded section."""
    global _pending
    if _disabled:
        return
    if _shields:
        _pending = True
    else:
        raise KeyboardInterrupt


def disable_interrupts() -> None:
    """Disable ``interrupt`` from now on: the interruptible work is over."""
    global _disabled
    _disabled = True


@contextmanager
def shielded() -> Iterator[None]:
    """Delay signals until the code inside has completed. Signals interrupt only the main thread."""
    global _shields, _pending
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _shields += 1
    try:
        yield
    finally:
        _shields -= 1
    if _pending and not _shields:
        _pending = False
        raise KeyboardInterrupt


class SignalFlag:
    """A flag that a signal handler may set. A ``threading.Event`` may deadlock there: a handler
    that interrupts its ``set`` and calls it, too, waits for the lock that the first call holds."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Set the flag; from any thread, at any time."""
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set
