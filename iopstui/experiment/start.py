"""Turn the options of a sweep or a comparison into an experiment that is ready to run.

``notify`` prints a message for the user, because some steps take seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.experiment.expectations import parse_expectations, plan_sections
from iopstui.experiment.preview import representative_points
from iopstui.experiment.progress import ProgressFile
from iopstui.experiment.setup import ExperimentSetup, preview_setup, resume_text
from iopstui.fio.inspect import find_fio
from iopstui.format import counted
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.roots import Roots
from iopstui.model.experiment.expectation import Expectation
from iopstui.model.experiment.plan import Plan
from iopstui.model.experiment.run_request import RunRequest
from iopstui.preflight.targets import choose_common_targets
from iopstui.recording.writer import check_creatable, next_free_path
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.session.live import LiveSession
from iopstui.session.viewer import NOBODY

Notify = Callable[[str], None]

_NOUNS = {"sweep": "sweep", "compare": "comparison"}
MIN_ANNOUNCED_CHECKS = 20
"""From this number on, the checks with fio take seconds."""


def set_up(run: RunRequest, plan: Plan, notify: Notify) -> ExperimentSetup:
    """Check everything before anything runs. UsageError, Refused or Missing."""
    fio = find_fio()
    clean_up_and_report(notify, Roots())
    devices = read_devices(Roots())
    target, job_target = choose_common_targets(run.targets, plan.every_job, devices, Roots())
    _refuse_delayed_knobs(run)
    checked = sum(1 for _ in representative_points(plan))
    if checked >= MIN_ANNOUNCED_CHECKS:
        notify(f"checking {checked} of {counted(plan.points, 'point')} with fio; nothing runs yet")
    return preview_setup(plan, target, job_target, devices, run, fio, Roots())


def _refuse_delayed_knobs(run: RunRequest) -> None:
    if any(knob.after_s is not None for knob in run.knobs):
        raise UsageError(
            "A tunable that changes during a run (--knob NAME=VALUE@SECONDS) cannot be used in "
            "an experiment.",
            "Remove @SECONDS, or make it an axis or a variant.",
        )


def expectations_at_every_point(run: RunRequest, setup: ExperimentSetup) -> tuple[Expectation, ...]:
    """Expectations of each point. UsageError for one that a point can't measure."""
    if not run.expect:
        return ()
    varied = {axis.name for axis in setup.plan.axes}
    expectations = parse_expectations(
        run.expect, run.tolerance, setup.target, plan_sections(setup.plan), varied
    )  # fmt: skip
    for expectation in expectations:
        if expectation.of_job or expectation.part is not None:
            subject = "one job" if expectation.of_job else "a baseline"
            raise UsageError(
                f"--expect {expectation.text!r} is about {subject}, but the points of a sweep are "
                "checked by the totals of all jobs in the measured seconds.",
                "To check a single run: iopstui run --expect",
            )
    return expectations


def load_progress(
    setup: ExperimentSetup,
    run: RunRequest,
    expectations: Sequence[Expectation],
    notify: Notify,
    path: Path | None,
    fresh: bool,
    dry_run: bool,
) -> ProgressFile | None:
    """The progress file at ``path`` (``None``: in the state directory), with the results of an
    interrupted run; ``None`` if it cannot be written. UsageError for a --state file of another
    experiment, or if the environment has changed so that the run cannot continue."""
    texts = [expectation.text for expectation in expectations]
    more = [texts, ["latency"] * run.probe, run.own_cpus]
    try:
        progress = setup.progress(path, run.interval_s, *more)
    except OSError as error:
        notify(f"progress is not saved: {error}")
        return None
    if progress.changed and not fresh:
        noun = _NOUNS[setup.plan.kind]
        raise UsageError(
            f"An interrupted run of this {noun} cannot continue: {progress.changed}.",
            f"--fresh starts over; earlier results: {progress.path}.",
        )
    if fresh and not dry_run:
        progress.remove()
    if progress.points:
        notify(f"{resume_text(progress, setup.plan, time.time())} (--fresh starts over)")
    return progress


def check_record(run: RunRequest, progress: ProgressFile | None) -> None:
    """UsageError for a --record that ``experiment_session`` would refuse; for a dry run."""
    if run.record and not _was_recorded(run.record, progress):
        check_creatable(Path(run.record))


def _was_recorded(record: str, progress: ProgressFile | None) -> bool:
    """Whether it goes on after an interruption, and was recorded to this file before that."""
    return progress is not None and bool(progress.points) and os.path.exists(record)


def experiment_session(
    setup: ExperimentSetup, run: RunRequest, progress: ProgressFile | None, notify: Notify
) -> LiveSession:
    """The session that runs it; not started. UsageError for a --record that can't be. One that
    goes on after an interruption has been recorded to that file before."""
    if run.record and _was_recorded(run.record, progress):
        free = next_free_path(Path(run.record))
        notify(f"recording to {free}: {run.record} ends with the interruption")
        run = replace(run, record=str(free))
    return LiveSession(setup.target, setup.devices, setup.job_target, run, NOBODY)
