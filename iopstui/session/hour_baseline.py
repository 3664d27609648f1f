"""Find in the background what is usual at this hour, if a feature knows it."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from iopstui.discovery import feature_modules
from iopstui.linux.process.limits import exhausted_limit
from iopstui.linux.roots import Roots
from iopstui.model.answer.situation import HourMedian
from iopstui.model.block.device import BlockDevice

EVERY_S = 1200.0
FIRST_AT_S = 2.0
"""A session that lasts shorter needs none."""


class HourBaseline:
    """To be used by one thread, which never blocks. ``medians`` are by disk; empty while nothing is
    known."""

    def __init__(self, roots: Roots) -> None:
        self.medians: Mapping[str, HourMedian] = {}
        self._is_read = roots.real
        self._due_at = FIRST_AT_S
        self._thread: threading.Thread | None = None

    def ask(self, t: float, wall_s: float, devices: Mapping[str, BlockDevice]) -> None:
        """Begin to read if that is due at ``t`` (the session's clock)."""
        if not self._is_read or t < self._due_at:
            return
        self._due_at = t + EVERY_S
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(
            target=self._read, args=(dict(devices), wall_s), name="hour baseline", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:  # the limit of threads is reached: try again later
            self._thread = None

    def _read(self, devices: Mapping[str, BlockDevice], wall_s: float) -> None:
        try:
            for module in feature_modules("hour_baseline"):
                self.medians = module.hour_medians(devices, wall_s)
        except Exception as error:
            # memory is short or limited: answers do without it
            if not exhausted_limit(error):
                raise
