"""Read in a thread that can be left behind what may hang, or takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar


class BackgroundReader:
    """Reads in a thread of its own, one reading at a time: a disk, drive or server that hangs stops
    nothing else. To be used by one thread."""

    name: ClassVar[str]
    """Of the thread."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def _is_reading(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _begin(self, read: Callable[..., None], *arguments: object) -> bool:
        """Begin a reading; False while one is under way, and where no more threads are allowed."""
        if self._closed or self._is_reading:
            return False
        thread = threading.Thread(target=read, args=arguments, name=self.name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the limit of threads is reached: try again later
            return False
        self._thread = thread
        return True

    def _wait(self, seconds: float | None = None) -> bool:
        """Wait for a current reading (``None``: until it ends); False if it goes on."""
        if self._thread is not None:
            self._thread.join(seconds)
        return not self._is_reading

    def close(self) -> None:
        """Begin no further reading. Does not wait for a current one."""
        self._closed = True
