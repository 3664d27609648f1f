"""Work on files whose server may go away meanwhile.

A call that looks at such a file may never return, and cannot be interrupted. So it is made in a
thread that can be left behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Generic, TypeVar

from iopstui.linux.devices.usage.mounts import read_own_mounts
from iopstui.linux.roots import Roots
from iopstui.linux.shares.mount_check import ANSWER_TIMEOUT_S, is_network_mount, require_answer

T = TypeVar("T")


def call_with_timeout(
    places: Collection[Path],
    work: Callable[[], T],
    discard: Callable[[T], None],
    roots: Roots,
    limit_s: float = ANSWER_TIMEOUT_S,
) -> T:
    """What ``work`` returns or raises. UsageError if it takes longer than the limit and a mount on
    the way to one of the places (absolute; ``work`` may add to them) does not answer; should the
    work end later all the same, its result goes to ``discard``.

    A machine without any such mount needs no thread.
    """
    if not any(map(is_network_mount, read_own_mounts(roots))):
        return work()
    task = _Task(work, discard)
    try:
        while not task.ended(limit_s):
            for place in tuple(places):
                require_answer(place, roots, limit_s)
        return task.result()
    finally:
        task.abandon()


class _Task(Generic[T]):
    def __init__(self, work: Callable[[], T], discard: Callable[[T], None]) -> None:
        self._work, self._discard = work, discard
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._abandoned = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)
        self._thread.start()

    def ended(self, limit_s: float) -> bool:
        """Whether it ends within the limit."""
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def result(self) -> T:
        """What it has returned; raises what it has raised."""
        if self._error is not None:
            raise self._error
        return self._results.pop()

    def abandon(self) -> None:
        """Nobody waits for the result any more, if it has not been taken."""
        with self._lock:
            self._abandoned = True
            self._drop()

    def _run(self) -> None:
        try:
            result = self._work()
        except BaseException as error:
            self._error = error
            return
        with self._lock:
            self._results.append(result)
            if self._abandoned:
                self._drop()

    def _drop(self) -> None:
        while self._results:
            self._discard(self._results.pop())
