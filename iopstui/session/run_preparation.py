"""Prepare a run: examine its job, count its possible writes, create its scratch files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iopstui import events
from iopstui.errors import JobFailed
from iopstui.fio.inspect import Fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.private import private_directory, remove
from iopstui.linux.roots import Roots
from iopstui.linux.shares.network_call import call_with_timeout
from iopstui.model.block import target as kinds
from iopstui.model.block.target import Target
from iopstui.preflight.job import prepare
from iopstui.preflight.job_request import JobRequest
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.session.fio.session_scratch import SessionScratch
from iopstui.session.fio.write_budget import WriteBudget
from iopstui.session.tick.context import Context

NOTICE_AFTER_S = 5.0


class RunPreparation:
    """``job_target`` is the target handed to jobs; ``None`` if they name their own files.
    ``keep_scratch``: scratch files stay for the next run that needs the same."""

    def __init__(
        self, context: Context, job_target: Target | None, budget: WriteBudget, keep_scratch: bool
    ) -> None:
        self._context = context
        self._job_target = job_target
        self._budget = budget
        self._privates: list[Path] = []
        directories = job_target is not None and job_target.kind == kinds.DIRECTORY
        self.scratch = SessionScratch(
            [Path(place.path) for place in job_target.places]
            if keep_scratch and job_target is not None and directories
            else ()
        )

    def prepared(self, request: JobRequest, fio: Fio) -> PreparedJob:
        """The job, ready to be started. Raises IopstuiError; then nothing is left of it."""
        try:
            with self._notice_if_slow():
                job = self.scratch.prepared(
                    request, lambda job_request: self._prepare(job_request, fio)
                )
            self._check_budget(job)
            return job
        finally:
            self._remove_privates()

    def close(self) -> None:
        """Remove the files kept for other runs."""
        self.scratch.close()
        self._remove_privates()

    def _prepare(self, request: JobRequest, fio: Fio) -> PreparedJob:
        context = self._context
        return prepare(
            request, self._job_target, fio, self._private(), context.devices, context.roots
        )

    def _private(self) -> Path:
        path = private_directory()
        self._privates.append(path)
        return path

    def _remove_privates(self) -> None:
        while self._privates:
            remove(self._privates.pop())

    def _check_budget(self, prepared: PreparedJob) -> None:
        """Say what it may write. Raises JobFailed for a run that would go beyond the budget."""
        layout = prepared.layout_bytes or 0 if prepared.layout_text is not None else 0
        why = self._budget.refusal(layout)
        if why:
            prepared.close()
            raise JobFailed(why[0].upper() + why[1:] + ".", "Give a larger --write-budget.")
        message = self._budget.forecast(prepared, layout, self._context.devices)
        if self._budget.announce:
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


def recheck_writes(prepared: PreparedJob, roots: Roots) -> None:
    """Have the write guard look again, right before fio starts. Raises IopstuiError."""
    guard = prepared.guard
    if guard is None:
        return

    def work() -> None:
        # reading all devices takes as long as loading thirty of our files
        guard.engage(read_devices(roots) if guard.is_needed else {})

    call_with_timeout([*map(Path, prepared.files)], work, lambda _: guard.close(), roots)
