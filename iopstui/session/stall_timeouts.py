"""Timeouts for a silent run: during layout, and until fio's first document."""

from __future__ import annotations

from iopstui import events
from iopstui.events import RUN
from iopstui.fio.layout import OFFLOAD_STALLED, SILENT_LAYOUT, STALLED, StallDetector
from iopstui.session.fio.fio_run import FioRun
from iopstui.session.tick.context import Context


class StallTimeouts:
    """Watches one run for stalls."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stall = StallDetector()
        self._next_check = 0.0
        self._silence_reported = False

    def begin_phase(self) -> None:
        """Forget the observations of the previous phase."""
        self._stall = StallDetector()

    def check_layout(self, run: FioRun, step: int) -> None:
        """Report the progress of laying out files; end a run that makes none."""
        now = self._context.now()
        # examining thousands of files takes a while
        if now < self._next_check:
            return
        work = run.work()
        self._next_check = now + 20 * (self._context.now() - now)
        self._context.emit(
            events.LayoutProgress(
                now, step, "creating the scratch file", work.file_bytes, run.prepared.layout_bytes
            )
        )
        if self._stall.feed(now, work):
            run.failure = STALLED
            run.stop(hard=True)

    def check_first_document(self, run: FioRun) -> None:
        """End a run that cannot succeed; warn about one that still may."""
        if run.last_status is not None or self._silence_reported or run.phase != RUN:
            return
        if not self._stall.feed(self._context.now(), run.work()):
            return
        self._silence_reported = True
        if "io_submit_mode=offload" in run.prepared.text.replace(" ", ""):
            run.failure = OFFLOAD_STALLED
            run.stop(hard=True)
        else:
            self._context.warn(SILENT_LAYOUT)
