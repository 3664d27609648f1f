"""From the arguments of sweep and compare to an experiment that is ready to run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.model import target as kinds
from iopstui.model.device import BlockDevice
from iopstui.model.plan import Plan, check_name, expand
from iopstui.model.target import Target
from iopstui.output.experiment import length_text, say
from iopstui.session.job_text import read_job
from iopstui.session.leftovers import clean_up
from iopstui.session.live import LiveSession
from iopstui.session.place import OwnPlace
from iopstui.session.progress_file import ProgressFile, default_path
from iopstui.session.recorder import Recorder
from iopstui.session.rehearsal import Rehearsed, rehearse
from iopstui.session.runner import Conditions
from iopstui.sources.fio_inspect import find_fio
from iopstui.sources.jobs import find_job
from iopstui.sources.roots import Roots
from iopstui.sources.sysfs import read_devices
from iopstui.text import printable
from iopstui.units import clock, size

Choose = Callable[[str | None, str | None, Mapping[str, BlockDevice]], tuple[Target, Target | None]]


@dataclass(frozen=True, slots=True)
class Setup:
    """What an experiment works on, as far as it can be known beforehand."""

    plan: Plan
    target: Target
    job_target: Target | None
    devices: Mapping[str, BlockDevice]
    conditions: Conditions
    rehearsed: Rehearsed

    def session(self, arguments: argparse.Namespace) -> LiveSession:
        """The session that runs it; not started. UsageError for a --record that can't be."""
        return LiveSession(
            self.target,
            self.devices,
            job_target=self.job_target,
            interval_s=arguments.interval,
            size=self.conditions.size,
            destroy_data=self.conditions.destroy_data,
            place=OwnPlace(arguments.cpu, arguments.nice),
            idle_frames=False,
            recorder=Recorder(Path(arguments.record)) if arguments.record else None,
        )

    def key(self, expectations: Sequence[str]) -> str:
        """Names the experiment, however it is shown."""
        texts = [read_job(find_job(job)) for job in self.plan.jobs]
        return self.plan.key(texts, self.target.path, self.conditions, list(expectations))


def set_up(arguments: argparse.Namespace, plan: Plan, choose: Choose) -> Setup:
    """Look at everything before anything runs. UsageError, Refused or Missing."""
    fio = find_fio()
    done, failed = clean_up(Roots())
    say([f"left by a crash: {line}" for line in (*done, *failed)])
    devices = read_devices(Roots())
    target, job_target = _one_target(arguments.target, plan.jobs, devices, choose)
    if any(knob.after_s is not None for knob in arguments.knob):
        raise UsageError(
            "A knob turned in mid-run (NAME=VALUE@SECONDS) makes the runs of an experiment uneven.",
            "Give it without @, or make it an axis or a variant.",
        )
    knobs = tuple((knob.name, knob.value) for knob in arguments.knob)
    _check_conflicts(plan, {name for name, _ in knobs}, arguments.bind is not None)
    conditions = Conditions(
        arguments.size, tuple(arguments.destroy_data), arguments.bind == "queues", knobs
    )
    rehearsed = rehearse(plan, target, job_target, conditions, devices, fio, Roots())
    return Setup(plan, target, job_target, devices, conditions, rehearsed)


def _check_conflicts(plan: Plan, knobs: set[str], bind: bool) -> None:
    """UsageError for what is fixed for all runs and varied between them at once."""
    for name in plan.options:
        check_name(name, f"--set {name}")
    varied = {axis.name for axis in plan.axes}
    varied |= {one.name for variant in plan.variants for one in variant.settings}
    for name in sorted(varied & knobs):
        raise UsageError(f"{name} is varied and fixed with --knob at once.")
    if bind and {"bind", "cpus_allowed"} & varied:
        raise UsageError("The CPUs of the jobs are varied and fixed with --bind at once.")


def _one_target(
    text: str | None, jobs: Sequence[str], devices: Mapping[str, BlockDevice], choose: Choose
) -> tuple[Target, Target | None]:
    chosen = [choose(text, job, devices) for job in jobs]
    if any(one != chosen[0] for one in chosen):
        raise UsageError("The jobs name different files to work on, so they need a common target.",
                         "Name it: iopstui sweep TARGET ...")  # fmt: skip
    return chosen[0]


def progress_of(
    setup: Setup, what: str, arguments: argparse.Namespace, expectations: Sequence[str] = ()
) -> ProgressFile | None:
    """The file that keeps what was measured, with what an interrupted run has left in it;
    ``None`` where none can be kept. UsageError for a --state that is of something else."""
    key = setup.key(expectations)
    try:
        path = Path(arguments.state) if arguments.state else default_path(what, key)
    except OSError as error:
        say([f"the progress is not kept: {error}"])
        return None
    found = ProgressFile(path, key)
    if arguments.fresh and not arguments.dry_run:
        found.remove()
    if found.points:
        ago = _ago(time.time() - found.made)
        say([f"goes on with an interrupted run begun {ago}: {len(found.points)} of "
             f"{setup.plan.points} points are done (--fresh begins anew)"])  # fmt: skip
    return found


def _ago(seconds: float) -> str:
    if seconds < 3600:
        return f"{clock(max(0.0, seconds))} minutes ago"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f} hours ago"
    return f"{seconds / 86400:.0f} days ago"


def dry_run(setup: Setup, state: ProgressFile | None) -> Iterator[str]:
    """The plan, its length, and what it will change and write."""
    plan = setup.plan
    yield f"{length_text(plan)}, each {plan.settle:g} s to settle and {plan.measure:g} s measured"
    for job, title in setup.rehearsed.titles.items():
        yield f"job {printable(job)}: {printable(title)}"
    steps = expand(plan)
    done = state.points if state else {}
    for step in steps:
        if step.index >= 40:
            yield f"  ... {plan.points - step.index} more"
            break
        kept = "  (done before)" if step.index in done else ""
        yield f"  {step.index + 1:>3}  {printable(step.label)}{kept}"
    yield from _effects(setup)
    if state is not None:
        yield f"progress is kept in {printable(str(state.path))} until the last point is done"


def _effects(setup: Setup) -> Iterator[str]:
    where, found = setup.job_target, setup.rehearsed
    place = printable(setup.target.path)
    if where is not None and where.kind == kinds.DIRECTORY:
        yield (
            f"writes: scratch files of {size(found.scratch_bytes)} in {place}, laid out once for "
            "each job and removed at the end"
        )
    elif found.writes:
        what = place if where is not None else "the files that the job names"
        yield f"writes: OVERWRITES {what}"
    else:
        yield f"writes: nothing; {place} is only read"
    for name, value in found.knobs.items():
        yield f"changes: {name}, now {printable(value)}; put back at the end"
    for name, value in setup.conditions.knobs:
        yield f"changes: {name} to {printable(value)}; put back at the end"
