"""Check a lesson's runs with fio before the first one starts."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui.errors import Missing, UsageError
from iopstui.features.lessons.model.pages import RunPage
from iopstui.features.lessons.play.player import LessonRun
from iopstui.fio.inspect import find_fio
from iopstui.linux.process.private import private_directory, remove
from iopstui.preflight.inspection import inspect_text


def check_runs(lesson: LessonRun, runs: tuple[RunPage, ...]) -> Iterator[str]:
    """Have fio read the job of each of these runs. UsageError for an option that it does not
    accept, or a job that is missing; a line if there is no fio to ask."""
    texts = [(run, lesson.job_text(run)) for run in runs]
    try:
        fio = find_fio()
    except Missing as error:
        yield f"the options of its runs were not checked: {error.message}"
        return
    private = private_directory()
    try:
        for run, text in texts:
            try:
                inspect_text(fio, private, text, f"[{run.header}]", private)
            except UsageError as error:
                raise UsageError(f"{lesson.lesson.path}: {error.message}", error.hint) from error
    finally:
        remove(private)
