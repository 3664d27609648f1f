"""Describe how to repeat the run of a report."""

from __future__ import annotations

import shlex

from iopstui.features.reports import experiment as report_experiment
from iopstui.features.reports.experiment import Experiment
from iopstui.features.reports.folding.run import Run
from iopstui.features.reports.report_data import ReportData
from iopstui.model.block.target import DIRECTORY
from iopstui.model.block.tunable import TunableRequest
from iopstui.model.experiment.run_request import RunRequest
from iopstui.recording import layout as form
from iopstui.text import printable


def repeat(data: ReportData, run: Run) -> str:
    """The iopstui command that repeats the run; "" where the job is unknown."""
    job_run, header = run.job_run, data.header
    if job_run is None or data.foreign:
        return ""
    fixed = {knob.name for knob in header.knobs}
    own = [TunableRequest(*knob) for knob in job_run.knobs if knob[0] not in fixed]
    request = RunRequest(
        overrides=job_run.overrides, size=job_run.size, bind=job_run.bind,
        knobs=(*header.knobs, *own), interval_s=header.interval_s,
    )  # fmt: skip
    args = [*targets_of(data, job_run), "--job", job_of(job_run), *request.words()]
    return printable(shlex.join(["iopstui", "run", *args]))


def targets_of(data: ReportData, job_run: form.JobRun) -> list[str]:
    """Every TARGET of a command that repeats it; none if the job named its files itself."""
    header = data.header
    files = header.own_files
    if files is None:
        # an older recording does not say: a file that fio opened was given, or named
        files = header.target.kind != DIRECTORY and header.target.path not in job_run.files
    return [] if files else [place.path for place in header.target.places]


def job_of(job_run: form.JobRun) -> str:
    """JOB likewise. A DISKSPD command's file is gone: what fio was given takes its place."""
    return "job.fio" if job_run.job.endswith("/diskspd.fio") else job_run.job


def repeat_experiment(data: ReportData, experiment: Experiment) -> str:
    """The command that repeats the whole experiment."""
    job_run = next(
        (run.job_run for run in data.runs if run.job_run and run.step in experiment.steps), None
    )
    return report_experiment.repeat(
        experiment,
        targets_of(data, job_run) if job_run else [p.path for p in data.header.target.places],
        job_run.size if job_run and not _varies(experiment, "size") else None,
        bool(job_run and job_run.bind) and not _varies(experiment, "bind"),
        [knob for knob in job_run.knobs if not _varies(experiment, knob[0])] if job_run else (),
        data.header.interval_s,
    )


def _varies(experiment: Experiment, name: str) -> bool:
    varied = {axis.name for axis in experiment.plan.axes}
    return name in varied | {s.name for v in experiment.plan.variants for s in v.settings}


def command(run: Run) -> str:
    """fio's own command line, exactly as it was run."""
    return printable(shlex.join(run.started.command)) if run.started else ""
