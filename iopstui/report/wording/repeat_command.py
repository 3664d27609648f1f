"""Describe how to repeat the run of a report."""

from __future__ import annotations

import shlex

from iopstui.model.block.target import DIRECTORY
from iopstui.recording import layout as form
from iopstui.report import experiment as report_experiment
from iopstui.report.experiment import Experiment
from iopstui.report.run import Run
from iopstui.report.story import Story
from iopstui.text import printable


def repeat(story: Story, run: Run) -> str:
    """The iopstui command that repeats the run; "" where the job is unknown."""
    asked, header = run.asked, story.header
    if asked is None or story.foreign:
        return ""
    words = ["iopstui", "run", *targets_of(story, asked), "--job", job_of(asked)]
    for name, value in asked.overrides.items():
        words += ["--set", f"{name}={value}"]
    words += ["--size", asked.size] if asked.size else []
    words += ["--bind", "queues"] if asked.bind else []
    for knob in header.knobs:
        after = f"@{knob.after_s:g}" if knob.after_s is not None else ""
        words += ["--knob", f"{knob.name}={knob.value}{after}"]
    fixed = {knob.name for knob in header.knobs}
    for name, value in asked.knobs:
        words += ["--knob", f"{name}={value}"] if name not in fixed else []
    words += ["--interval", f"{header.interval_s:g}"] if header.interval_s != 1 else []
    return printable(shlex.join(words))


def targets_of(story: Story, asked: form.JobRun) -> list[str]:
    """Every TARGET of a command that repeats it; none if the job named its files itself."""
    header = story.header
    named = header.own_files
    if named is None:
        # an older recording does not say: a file that fio opened was given, or named
        named = header.target.kind != DIRECTORY and header.target.path not in asked.files
    return [] if named else [place.path for place in header.target.places]


def job_of(asked: form.JobRun) -> str:
    """JOB likewise. A DISKSPD command's file is gone: what fio was given takes its place."""
    return "job.fio" if asked.job.endswith("/diskspd.fio") else asked.job


def repeat_experiment(story: Story, one: Experiment) -> str:
    """The command that repeats the whole experiment."""
    asked = next((run.asked for run in story.runs if run.asked and run.step in one.steps), None)
    return report_experiment.repeat(
        one,
        targets_of(story, asked) if asked else [p.path for p in story.header.target.places],
        asked.size if asked and not _varies(one, "size") else None,
        bool(asked and asked.bind) and not _varies(one, "bind"),
        [knob for knob in asked.knobs if not _varies(one, knob[0])] if asked else (),
        story.header.interval_s,
    )


def _varies(one: Experiment, name: str) -> bool:
    varied = {axis.name for axis in one.plan.axes}
    return name in varied | {s.name for v in one.plan.variants for s in v.settings}


def command(run: Run) -> str:
    """fio's own command line, exactly as it was run."""
    return printable(shlex.join(run.started.command)) if run.started else ""
