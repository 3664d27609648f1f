"""Calls that may never return, because they look at a mount whose server is gone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
WAIT_S = 1.0
"""A file system that answers does so within this, nearly always."""


class BackgroundCall(Generic[T]):
    """Asks ``call`` in a thread that may be left behind. For one thread.

    The first call that does not return costs ``WAIT_S``. Until it has returned no other is made,
    and the last answer stands (``first`` before there is any).
    """

    def __init__(self, call: Callable[[], T], first: T) -> None:
        self._call = call
        self._answer = first
        self._thread: threading.Thread | None = None

    def __call__(self) -> T:
        """The newest answer."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._ask, name="patient", daemon=True)
            with contextlib.suppress(RuntimeError):  # no more threads are allowed: next time
                self._thread.start()
                self._thread.join(WAIT_S)
        return self._answer

    def _ask(self) -> None:
        with contextlib.suppress(OSError):
            self._answer = self._call()
