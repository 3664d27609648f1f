"""Prepare a run: examine its job, count its possible writes, create its scratch files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iopstui import events
from iopstui.errors import JobFailed
from iopstui.events import RUN
from iopstui.fio.inspect import Fio
from iopstui.fio.layout import OFFLOAD_STALLED, SILENT_LAYOUT, STALLED, StallDetector
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.private import private_directory, remove
from iopstui.linux.roots import Roots
from iopstui.linux.shares import call_with_timeout
from iopstui.model.block import target as kinds
from iopstui.model.block.target import Target
from iopstui.preflight.job import prepare
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.shared_scratch import LentScratch
from iopstui.safety.active_run import ActiveRun
from iopstui.session.fio.fio_run import FioRun
from iopstui.session.fio.session_scratch import SessionScratch, StopFirst
from iopstui.session.fio.write_budget import WriteBudget
from iopstui.session.run_order import RunOrder
from iopstui.session.tick.context import Context

NOTICE_AFTER_S = 5.0
# options that check data, keep state between runs, lock or remove files, or delay the first I/O
_ALONE = (
    "verify", "do_verify", "unlink", "create_on_open", "exitall", "exit_what", "lockfile",
    "file_lock", "startdelay", "write_", "read_iolog", "replay", "wait_for", "fill_device",
)  # fmt: skip
# engines whose I/O is not counted for the process, or bypasses the block layer; huge pages may be
# scarce
_UNSURE = frozenset({
    "cpuio", "filecreate", "filestat", "mmap", "null", "splice", "io_uring_cmd",
    "mmaphuge", "shmhuge", "cudamalloc",
})  # fmt: skip


class RunPreparation:
    """``job_target`` is the target handed to jobs; ``None`` if they name their own files.
    ``keep_scratch``: scratch files are kept for a next run that needs the same ones."""

    def __init__(
        self, context: Context, job_target: Target | None, budget: WriteBudget, keep_scratch: bool
    ) -> None:
        self._context = context
        self._job_target = job_target
        self.budget = budget
        self._privates: list[Path] = []
        directories = job_target is not None and job_target.kind == kinds.DIRECTORY
        self.scratch = SessionScratch(
            [Path(place.path) for place in job_target.places]
            if keep_scratch and job_target is not None and directories
            else ()
        )

    def prepared(self, order: RunOrder, fio: Fio) -> PreparedJob:
        """The job, ready to be started. Raises IopstuiError; then nothing of it is left behind."""
        try:
            with self._notice_if_slow():
                job = self.scratch.prepared(
                    order.lent, lambda lent: self._prepare(order, fio, lent)
                )
            self.check_budget(job)
            self.announce_writes(job)
            return job
        finally:
            self._remove_privates()

    def prepared_beside(
        self, order: RunOrder, fio: Fio, running: PreparedJob, active: ActiveRun
    ) -> PreparedJob:
        """The job that is to replace the running one. Called in a separate thread; the budget is
        not checked yet. Raises IopstuiError or StopFirst; then its files may be left
        (``SessionScratch.take_beside``)."""
        try:
            with self._notice_if_slow():
                job = self.scratch.prepared_beside(
                    lambda lent: self._prepare(order, fio, lent, active), running
                )
            if not can_take_over(job):
                job.close()
                raise StopFirst
            return job
        finally:
            self._remove_privates()

    def close(self) -> None:
        """Remove the files kept for other runs."""
        self.scratch.close()
        self._remove_privates()

    def _prepare(
        self, order: RunOrder, fio: Fio, lent: LentScratch | None, active: ActiveRun | None = None
    ) -> PreparedJob:
        context = self._context
        return prepare(
            order.request,
            self._job_target,
            fio,
            self._private(),
            context.devices,
            context.roots,
            active,
            lent,
        )

    def _private(self) -> Path:
        path = private_directory()
        self._privates.append(path)
        return path

    def _remove_privates(self) -> None:
        while self._privates:
            remove(self._privates.pop())

    def can_hand_over(self, order: RunOrder, running: PreparedJob) -> bool:
        """Whether the ordered run may begin while ``running`` still works. Preparing it may show
        more obstacles."""
        request = order.request
        alone = order.announce or request.trace or request.io_log or request.knobs
        zoned = any(
            disk.queue is not None and disk.queue.zoned not in (None, "none")
            for disk in self._context.disks()
        )
        return (
            self._job_target is not None
            and not (alone or zoned)
            and order.lent is None
            and can_take_over(running)
        )

    def check_budget(self, prepared: PreparedJob, running: int = 0) -> None:
        """Raises JobFailed if the run would exceed the budget, together with a current run that has
        written ``running`` bytes so far."""
        why = self.budget.refusal(_layout_bytes(prepared), running)
        if why:
            prepared.close()
            raise JobFailed(why[0].upper() + why[1:] + ".", "Give a larger --write-budget.")

    def announce_writes(self, prepared: PreparedJob) -> None:
        """Report how much the run may write; it is ended if it exceeds that."""
        message = self.budget.forecast(prepared, _layout_bytes(prepared), self._context.devices)
        if self.budget.announce:
            self._context.notice("info", message)

    @contextmanager
    def _notice_if_slow(self) -> Iterator[None]:
        """Report preflight that takes long: a job may have hundreds of thousands of files."""
        context = self._context
        message = "checking the job and its files"
        timer = threading.Timer(
            NOTICE_AFTER_S,
            lambda: context.emit_unrecorded(events.Notice(context.now(), "info", message)),
        )
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _layout_bytes(prepared: PreparedJob) -> int:
    return prepared.layout_bytes or 0 if prepared.layout_text is not None else 0


def can_take_over(prepared: PreparedJob) -> bool:
    """Whether a job may work beside another one of the same session for a moment: nothing it does
    depends on being alone. Otherwise the other one is stopped first."""
    logs = prepared.logs
    return (
        prepared.staging is None
        and not prepared.trace
        and (logs is None or not logs.options)
        and not any(
            name.startswith(_ALONE) or (name in ("ioengine", "mem", "iomem") and value in _UNSURE)
            or (name == "zonemode" and value != "none")
            for name, value in prepared.facts.options
        )
    )  # fmt: skip


def new_run(
    context: Context, fio: Fio, job: PreparedJob, interval_s: float, hold: bool,
    deadline_s: float | None,
) -> FioRun:  # fmt: skip
    """A run of the job, not started. What it may write is checked again right before its start."""
    return FioRun(
        fio, job, private_directory, interval_s, lambda: recheck_writes(job, context.roots),
        context.target.devices_below, hold, deadline_s,
    )  # fmt: skip


def recheck_writes(prepared: PreparedJob, roots: Roots) -> None:
    """Have the write guard look again, right before fio starts. Raises IopstuiError."""
    guard = prepared.guard
    if guard is None:
        return

    def work() -> None:
        # reading all devices takes as long as importing thirty of our modules
        guard.engage(read_devices(roots) if guard.is_needed else {})

    call_with_timeout([*map(Path, prepared.files)], work, lambda _: guard.close(), roots)


# Timeouts for a silent run: during layout, and until fio's first document.


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
