"""Scratch files shared by the runs of a session, laid out only once.

Whoever turns queue depth live restarts a job that reads: its files are the same each time, and
writing a gibibyte anew for it would take longer than the run. Files that a run may have changed
are removed with it, as are those that the next run can't use exactly as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from iopstui.preflight.job_request import JobRequest
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.shared_scratch import SharedScratch
from iopstui.session.fio.fio_run import FioRun

Make = Callable[[JobRequest], PreparedJob]


class SessionScratch:
    """Scratch files shared by a session's runs. ``places`` are the target's directories; without
    any, nothing is kept. ``close`` removes the files; a separate guard does so if iopstui is
    killed, and otherwise the next start does."""

    def __init__(self, places: Sequence[Path] = ()) -> None:
        self._places = tuple(places)
        self._shared: SharedScratch | None = None
        self._sizes: Mapping[str, int] = {}
        # files that a process which hangs in the kernel works on: their guards wait for it
        self._hanging: list[SharedScratch] = []

    def prepared(self, request: JobRequest, make: Make) -> PreparedJob:
        """Prepare the request with ``make``, reusing existing files if it needs exactly the same
        ones. Raises the errors of ``make``."""
        if not self._places or request.scratch is not None:
            # those of an experiment need the room
            self.close()
            return make(request)
        if self._shared is not None:
            job = make(replace(request, scratch=self._shared.scratch))
            if job.layout_text is None and job.file_sizes == self._sizes:
                return job
            job.close()
            self.close()
        self._shared = SharedScratch(self._places)
        try:
            return make(replace(request, scratch=self._shared.scratch))
        except BaseException:
            self.close()
            raise

    def release_run(self, run: FioRun, laid_out: bool) -> None:
        """A run has ended, and its fio with it unless that hangs: keep its files, or remove them.
        ``laid_out``: they were complete."""
        shared_scratch = self._shared
        if shared_scratch is None or run.prepared.scratch is not shared_scratch.scratch:
            return
        if run.hanging:
            self._hanging.append(shared_scratch)
            self._shared = None
        elif laid_out and not run.prepared.makes_files:
            self._sizes = run.prepared.file_sizes
        else:
            self.close()

    def close(self) -> None:
        """Remove the kept files. May be called twice."""
        shared_scratch, self._shared = self._shared, None
        self._sizes = {}
        if shared_scratch is not None:
            shared_scratch.close()
