"""Scratch files shared by the runs of a session, laid out only once.

Each change of an option on the screen restarts the job with the same files; to write a gibibyte
again for a job that only reads would take longer than the run. Files that a run may have changed
are removed with it, as are files that the next run can't use exactly as they are. A run that
replaces another one without a pause uses the same files, or its own, created while the other job
runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iopstui.errors import IopstuiError
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.shared_scratch import LentScratch, SharedScratch
from iopstui.session.fio.fio_run import FioRun

Make = Callable[[LentScratch | None], PreparedJob]


class StopFirst(Exception):
    """The active run has to end before the next one can be prepared."""


class SessionScratch:
    """Scratch files shared by a session's runs. ``places`` are the target's directories; without
    any, nothing is kept. ``close`` removes the files; a separate guard does so if iopstui is
    killed, and otherwise the next start does."""

    def __init__(self, places: Sequence[Path] = ()) -> None:
        self._places = tuple(places)
        self._shared: SharedScratch | None = None
        self._sizes: Mapping[str, int] = {}
        # whether a run that writes has used the files
        self._changed = False
        # made for a run that is prepared while the active one works
        self._beside: SharedScratch | None = None
        # files of processes that hang in the kernel; their guards wait for these
        self._hanging: list[SharedScratch] = []

    def prepared(self, lent: LentScratch | None, make: Make) -> PreparedJob:
        """Prepare a run with ``make``, reusing existing files if it needs exactly the same ones, or
        with ``lent`` ones. Raises the errors of ``make``."""
        if not self._places or lent is not None:
            # those of an experiment need the room
            self.close()
            return make(lent)
        if self._shared is not None:
            job = make(LentScratch(self._shared.scratch))
            if job.layout_text is None and job.file_sizes == self._sizes:
                return job
            job.close()
            self.close()
        self._shared = SharedScratch(self._places)
        try:
            return make(LentScratch(self._shared.scratch))
        except BaseException:
            self.close()
            raise

    def prepared_beside(self, make: Make, active: PreparedJob) -> PreparedJob:
        """Prepare a run while the job ``active`` runs: with its files if they have the right sizes
        and are fully allocated, else with new ones. Raises the errors of ``make``, and StopFirst if
        there is no room for both."""
        if not self._places:
            return make(None)
        if self._shared is None or active.scratch is not self._shared.scratch:
            raise StopFirst
        job = make(LentScratch(self._shared.scratch))
        if job.layout_text is None and job.file_sizes == active.file_sizes:
            return job
        job.close()
        self._beside = SharedScratch(self._places)
        try:
            return make(LentScratch(self._beside.scratch))
        except IopstuiError as error:
            self._drop_beside()
            raise StopFirst from error
        except BaseException:
            self._drop_beside()
            raise

    def take_beside(self) -> SharedScratch | None:
        """The files of the run prepared beside the active one, if it has its own. The caller
        removes them."""
        beside, self._beside = self._beside, None
        return beside

    def _drop_beside(self) -> None:
        beside = self.take_beside()
        if beside is not None:
            beside.close()

    def release_run(
        self, run: FioRun, laid_out: bool, following: PreparedJob | None = None
    ) -> None:
        """A run has ended (and its fio, unless that hangs): keep its files, or remove them.
        ``laid_out``: they were complete. ``following`` replaces it and was prepared beside it."""
        shared_scratch = self._shared
        if shared_scratch is not None and run.prepared.scratch is shared_scratch.scratch:
            self._changed |= run.prepared.makes_files
            if run.hanging:
                self._hanging.append(shared_scratch)
                self._shared = None
            elif following is not None and following.scratch is shared_scratch.scratch:
                return
            elif laid_out and not self._changed and following is None:
                self._sizes = run.prepared.file_sizes
            else:
                self._close_shared()
        if following is not None:
            self._shared, self._beside = self._beside, None
            self._sizes, self._changed = {}, False

    def close(self) -> None:
        """Remove the kept files. May be called twice."""
        self._drop_beside()
        self._close_shared()

    def _close_shared(self) -> None:
        shared_scratch, self._shared = self._shared, None
        self._sizes, self._changed = {}, False
        if shared_scratch is not None:
            shared_scratch.close()
