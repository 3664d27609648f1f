"""Reads what surrounds the figures beside the session, which a disk that hangs must not stop."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import Conditions

if TYPE_CHECKING:
    from iopstui.linux.machine.conditions import ConditionsFiles


class ConditionsReader:
    """To be asked now and then. For one thread, which never waits."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._files: ConditionsFiles | None = None
        self._thread: threading.Thread | None = None
        self._results: deque[Conditions] = deque(maxlen=1)
        self._closed = False

    def ask(
        self,
        t: float,
        devices: Mapping[str, BlockDevice],
        names: Sequence[str],
        cpus: Sequence[int] = (),
    ) -> None:
        """Begin a reading of these devices (names of ``devices``) and CPUs (none given: all that
        are online); one that is under way goes on. ``t`` is the session's clock."""
        if self._closed or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(
            target=self._work,
            args=(t, dict(devices), tuple(names), tuple(cpus)),
            name="conditions",
            daemon=True,
        )
        with contextlib.suppress(RuntimeError):  # no more threads are allowed: perhaps next time
            self._thread.start()

    def take(self) -> Conditions | None:
        """The newest that was read, once; ``None`` if there is nothing new."""
        return self._results.pop() if self._results and not self._closed else None

    def close(self) -> None:
        """Forget what was read. A reading that is under way is not waited for: nothing is left open
        behind it."""
        self._closed = True

    def _work(
        self,
        t: float,
        devices: Mapping[str, BlockDevice],
        names: Sequence[str],
        cpus: Sequence[int],
    ) -> None:
        with contextlib.suppress(OSError):  # no more files may be open: perhaps next time
            if self._files is None:
                # loaded by the first reading, which nobody waits for
                from iopstui.linux.machine.conditions import ConditionsFiles

                self._files = ConditionsFiles(self._roots)
            self._results.append(self._files.read(devices, names, t, cpus))
