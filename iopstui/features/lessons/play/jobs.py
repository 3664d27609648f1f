"""Build the runs of a lesson: job files, options, tunables and shared files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.features.lessons.model.pages import RunPage
from iopstui.features.lessons.play.lesson_state import LessonState
from iopstui.fio.job_text import read_job
from iopstui.fio.library import find_job
from iopstui.linux.process.private import private_directory, remove, write
from iopstui.model.block import target as kinds
from iopstui.model.block.target import Target
from iopstui.model.block.tunable import (
    RESET_BY_SCHEDULER,
    TunableRequest,
    restore_rank,
    with_side_effects,
)
from iopstui.model.experiment.point import run_length_s
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.model.fio.sizes import size_bytes
from iopstui.preflight.shared_scratch import LentScratch, SharedScratch

# small enough to be laid out in seconds, large enough that random 4k blocks hardly repeat
SCRATCH_BYTES = 256 << 20


class LessonJobs:
    """Jobs on ``target``; ``size`` and ``destroy_data`` are those of the command line."""

    def __init__(
        self, state: LessonState, target: Target, size: str | None, destroy_data: Sequence[str]
    ) -> None:
        self._state = state
        self._target = target
        self._size = size
        self._destroy_data = tuple(destroy_data)
        self._scratch: SharedScratch | None = None
        self._private: Path | None = None

    def request(self, run: RunPage, interval_s: float) -> RunRequest:
        """Request for a session that samples every ``interval_s``. Raises UsageError."""
        length_ms = round(1000 * run_length_s(run.settle, run.seconds, interval_s))
        overrides = dict(self.fill_values(run.options))
        overrides |= {"runtime": f"{length_ms}ms", "time_based": "1"}
        knobs = tuple(TunableRequest(*knob) for knob in self._run_knobs(run))
        return RunRequest(
            self._job_file(run), overrides, self._size, self._destroy_data, run.bind, knobs
        )

    def job_text(self, run: RunPage) -> str:
        """The text of a run's job file, with its options. Raises UsageError if there is no such
        job."""
        text = run.fio + "\n" if run.fio is not None else read_job(self._job_path(run))
        return jobfile.with_overrides(text, dict(self.fill_values(run.options)))

    def fill_values(self, pairs: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
        """The names and values of options or tunables. Raises UsageError for a value that is not
        known here."""
        for name, template in pairs:
            value = template.fill(self._state.lookup, lambda _: "0")
            if value is None:
                unknown = ", ".join(
                    n for n in sorted(template.names) if self._state.lookup(n) is None
                )
                raise UsageError(f"Cannot set {name}: {unknown} is unknown here.")
            yield name, value

    def original_knobs(self) -> tuple[tuple[str, str], ...]:
        """The values that the tunables of this lesson had when it began, in the order in which they
        must be restored. ``LiveSession.set_tunable`` needs them if the session goes on."""
        names = with_side_effects(name for run in self._state.lesson.runs for name, _ in run.knobs)
        knobs = self._state.target_facts.knobs
        return tuple(
            (name, knobs[name]) for name in sorted(names, key=restore_rank) if name in knobs
        )

    def close(self) -> None:
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
        if self._private is not None:
            remove(self._private)
            self._private = None

    def _job_path(self, run: RunPage) -> Path:
        if "/" in run.job and not run.job.startswith("/"):
            return find_job(str(Path(self._state.lesson.path).parent / run.job))
        return find_job(run.job)

    def _job_file(self, run: RunPage) -> str:
        """The path of a job; a job inside the lesson file is written to a file first."""
        if run.fio is None:
            return str(self._job_path(run)) if "/" in run.job else run.job
        if self._private is None:
            self._private = private_directory()
        return str(write(self._private, f"{run.name}.fio", f"{run.fio}\n".encode()))

    def lent(self) -> LentScratch | None:
        """The scratch directory that all runs share, so that its files are laid out once."""
        if self._target.kind != kinds.DIRECTORY:
            return None
        if self._scratch is None:
            self._scratch = SharedScratch([Path(place.path) for place in self._target.places])
        most = size_bytes(self._state.lesson.size or "") or SCRATCH_BYTES
        return LentScratch(self._scratch.scratch, most)

    def _run_knobs(self, run: RunPage) -> Iterator[tuple[str, str]]:
        """The tunables for a run: those it sets, and for those that only other runs set, the
        original values."""
        run_values = dict(self.fill_values(run.knobs))
        values = {**dict(self.original_knobs()), **run_values}
        if "scheduler" in run_values:
            # the kernel resets some tunables when the scheduler changes; that is part of the change
            for name in RESET_BY_SCHEDULER:
                if name not in run_values:
                    values.pop(name, None)
        for name in sorted(values, key=restore_rank):
            yield name, values[name]
