"""An experiment that has passed preflight: its name and a description of its actions."""

from __future__ import annotations

import math
import os
import random
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.experiment.baseline import parse_expectations, plan_sections
from iopstui.experiment.preview import Preview, preview_plan, representative_points
from iopstui.experiment.progress import ProgressFile, default_path
from iopstui.experiment.runner import OVERHEAD_S, point_job_text, point_request
from iopstui.fio.inspect import Fio, SectionFiles, find_fio
from iopstui.fio.job_text import read_job
from iopstui.fio.library import find_job
from iopstui.fio.write_bound import max_written_bytes
from iopstui.format import counted, duration, size
from iopstui.linux.devices.identity import target_identity
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.comparison import planned_sensitivity
from iopstui.model.experiment.expectation import Expectation
from iopstui.model.experiment.plan import (
    Plan,
    PlannedPoint,
    check_name,
    expand_plan,
    with_unvaried_tunables,
)
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.preflight.targets import choose_common_targets, target_named_by_job
from iopstui.recording.writer import check_creatable, next_free_path
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.session.fio.write_budget import max_writes_text, short_budget_text
from iopstui.session.live import LiveSession
from iopstui.session.tick.context import NOBODY
from iopstui.text import printable

LISTED_VALUES = 3
MAX_LISTED_STEPS = 40
MAX_BOUNDED_STEPS = 1000
SEED_COUNT = 1_000_000


@dataclass(frozen=True, slots=True)
class ExperimentSetup:
    """Targets, files and limits of an experiment, as known before it starts."""

    plan: Plan
    target: Target
    job_target: Target | None
    devices: Mapping[str, BlockDevice]
    conditions: RunRequest
    preview: Preview
    spread: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """What must be unchanged when an interrupted run is resumed: fio, the kernel, the target (name:
    value)."""
    requested_seed: int | None = None
    write_budget: int | None = None
    write_rate: float | None = None
    """Bytes per second that an earlier job of this kind wrote (``None``: not known)."""

    def key(self, *more: object) -> str:
        """A name for the experiment, the same on the command line and the screen; ``more`` are
        further things on which its figures depend. A random seed is not part of it: a resumed
        experiment keeps its seed."""
        texts = [read_job(find_job(job)) for job in self.plan.every_job]
        plan = replace(self.plan, seed=self.requested_seed)
        run = self.conditions
        knobs = [(knob.name, knob.value) for knob in run.knobs]
        conditions = [run.size, run.destroy_data, run.bind, knobs, run.no_fence]
        return plan.key(texts, self.target.path, conditions, *more)

    def progress(self, path: Path | None, interval_s: float, *more: object) -> ProgressFile:
        """The progress file, with the results of an interrupted run if there is one. Raises OSError
        if it cannot be written, UsageError if ``path`` belongs to another experiment."""
        key = self.key(interval_s, *more)
        return ProgressFile(
            path or default_path(self.plan.kind, key), key, self.environment, self.plan.seed
        )

    def resumed(self, progress: ProgressFile | None) -> ExperimentSetup:
        """The same setup, with the plan's points in the order in which the interrupted run
        began."""
        if progress is None or not progress.points:
            return self
        rates = [point.write_bw for point in progress.points.values() if point.write_bw]
        rate = sum(rates) / len(rates) if rates else self.write_rate
        return replace(self, plan=replace(self.plan, seed=progress.seed), write_rate=rate)


def preview_setup(
    plan: Plan,
    target: Target,
    job_target: Target | None,
    devices: Mapping[str, BlockDevice],
    conditions: RunRequest,
    fio: Fio,
    roots: Roots,
) -> ExperimentSetup:
    """Check everything before anything runs. Raises UsageError, Refused or Missing. A tunable that
    only some variants change keeps its present value in the others."""
    _check_conflicts(plan, conditions)
    if job_target is None:
        _check_device(plan, target, devices, roots)
    preview = preview_plan(plan, target, job_target, conditions, devices, fio, roots)
    requested_seed = plan.seed
    if (plan.variants or plan.shuffle) and plan.seed is None:
        plan = replace(plan, seed=random.SystemRandom().randrange(SEED_COUNT))
    if plan.variants:
        plan = replace(plan, variants=with_unvaried_tunables(plan.variants, preview.knobs))
    kernel = os.uname()
    environment = {
        "fio": fio.banner,
        "the kernel": f"{kernel.release} {kernel.version}",
        "the target": target_identity(target, devices, roots, job_target is None),
    }
    return ExperimentSetup(
        plan,
        target,
        job_target,
        devices,
        conditions,
        preview,
        environment=environment,
        requested_seed=requested_seed,
    )


def _check_conflicts(plan: Plan, conditions: RunRequest) -> None:
    """Raise UsageError for a setting that is both fixed for all runs and varied between them."""
    for name in plan.options:
        check_name(name, f"Option {name}")
    varied = {axis.name for axis in plan.axes}
    varied |= {setting.name for variant in plan.variants for setting in variant.settings}
    for name in sorted(varied & {knob.name for knob in conditions.knobs}):
        raise UsageError(f"{name} is both varied and fixed with --knob.")
    if conditions.bind and {"bind", "cpus_allowed"} & varied:
        raise UsageError("The CPUs of the jobs are both varied and fixed with --bind.")


def _check_device(
    plan: Plan, target: Target, devices: Mapping[str, BlockDevice], roots: Roots
) -> None:
    """Raise UsageError for a job whose own files are on devices that the session does not
    measure."""
    for job in plan.every_job:
        job_target = target_named_by_job(job, devices, roots)
        if job_target is not None and set(job_target.devices_below) != set(target.devices_below):
            raise UsageError(
                f"The job {job} uses {', '.join(job_target.devices_below) or job_target.path}, but "
                f"the measured device is {', '.join(target.devices_below) or target.path}.",
                "Name a common TARGET on the command line.",
            )


def length_text(plan: Plan) -> str:
    """The number of points and their time: "21 points, about 4 min 5 s"; without a time if
    unknown."""
    seconds = plan.seconds + plan.points * OVERHEAD_S
    points = counted(plan.points, "run" if plan.variants or plan.repeats > 1 else "point")
    if not plan.seconds:
        return points
    if seconds < 3600:
        return f"{points}, about {duration(seconds)}"
    return f"{points}, about {seconds / 3600:.1f} hours"


def plan_length_text(plan: Plan) -> str:
    """``length_text`` with the length of each run."""
    run_text = f"each {plan.settle:g} s to settle and {plan.measure:g} s measured"
    return f"{length_text(plan)}, {run_text}"


def dry_run_lines(setup: ExperimentSetup, state: ProgressFile | None) -> Iterator[str]:
    """The plan, its length, and what it will change and write."""
    plan = setup.plan
    yield plan_length_text(plan)
    yield from job_lines(setup)
    points = state.points if state else {}
    for step in expand_plan(plan):
        if step.index >= MAX_LISTED_STEPS:
            yield f"  ... {plan.points - step.index} more"
            break
        note = "  (done before)" if step.index in points else ""
        yield f"  {step.index + 1:>3}  {printable(step.label)}{note}"
    yield f"the first alone: {_point_command(setup, next(expand_plan(plan)))}"
    yield from effect_lines(setup)
    if state is not None:
        yield f"progress: {printable(str(state.path))}, until the last point is done"


def _point_command(setup: ExperimentSetup, step: PlannedPoint) -> str:
    conditions = setup.conditions
    words = point_request(setup.plan, conditions, step, conditions.interval_s).words()
    return printable(shlex.join(["iopstui", "run", *conditions.targets, "--job", step.job, *words]))


def job_lines(setup: ExperimentSetup) -> Iterator[str]:
    for job, title in setup.preview.titles.items():
        yield f"job {printable(job)}: {printable(title)}"
    if setup.plan.seed is not None:
        label = "order within each repeat" if setup.plan.variants else "order of the points"
        yield f"{label}: random; --seed {setup.plan.seed} repeats it"
    if setup.plan.variants:
        yield planned_sensitivity(setup.plan, setup.spread)


def form_lines(setup: ExperimentSetup) -> Iterator[str]:
    """Lines on the plan for a form: its length and first writes, then a labelled line for each of
    its actions. They mention no command-line options."""
    plan, preview, job_target = setup.plan, setup.preview, setup.job_target
    first = (length_text(plan), short_budget_text(*_write_bounds(setup)), _first_values(plan))
    yield " · ".join(filter(None, first))
    for job, title in preview.titles.items():
        yield f"Job: {printable(job)}, {printable(title)}"
    is_disk = job_target is not None and job_target.kind == kinds.DEVICE
    place = printable(setup.target.path)
    if job_target is not None and job_target.kind == kinds.DIRECTORY:
        yield (
            f"Files: {size(preview.scratch_bytes)} of scratch files in {place}, removed at the end"
        )
    elif preview.writes:
        yield f"OVERWRITES: {place if job_target is not None else 'the files of the job'}"
    else:
        elsewhere = "; a directory: s on home" if is_disk else ""
        yield f"Reads: {place} (writes nothing){elsewhere}"
    for name, value in preview.knobs.items():
        yield f"Changes: {name} (now {printable(value)}), restored at the end"
    for knob in setup.conditions.knobs:
        yield f"Changes: {knob.name} to {printable(knob.value)}, restored at the end"
    if plan.variants:
        yield f"Repeats: {planned_sensitivity(plan, setup.spread)}"
        yield "Order: random within each repeat"
    elif plan.seed is not None:
        yield f"Order: random, seed {plan.seed}"


def _first_values(plan: Plan) -> str:
    """The values of a sweep's only axis: "iodepth 32, 64, 128 ... 1024"; "" for several axes."""
    if len(plan.axes) != 1:
        return ""
    axis = plan.axes[0]
    values = [*axis.values] if len(axis.values) <= LISTED_VALUES + 1 else [
        *axis.values[:LISTED_VALUES - 1], f"{axis.values[LISTED_VALUES - 1]} ... {axis.values[-1]}"
    ]  # fmt: skip
    return printable(f"{axis.name} {', '.join(values)}")


def effect_lines(setup: ExperimentSetup) -> Iterator[str]:
    """Lines on what the experiment will change and write."""
    job_target, preview = setup.job_target, setup.preview
    place = printable(setup.target.path)
    if job_target is not None and job_target.kind == kinds.DIRECTORY:
        yield (
            f"writes: scratch files, {size(preview.scratch_bytes)} in {place}, created once per "
            "job, removed at the end"
        )
    elif preview.writes:
        overwritten = place if job_target is not None else "the job's files"
        yield f"writes: OVERWRITES {overwritten}"
    else:
        yield f"writes: nothing; {place} is read only"
    yield writes_text(setup)
    for name, value in preview.knobs.items():
        yield f"changes: {name}, now {printable(value)}; restored at the end"
    for knob in setup.conditions.knobs:
        yield f"changes: {knob.name} to {printable(knob.value)}; restored at the end"


def writes_text(setup: ExperimentSetup) -> str:
    """The most that it may write, in words."""
    return max_writes_text(*_write_bounds(setup))


def _write_bounds(
    setup: ExperimentSetup,
) -> tuple[int, bool, float | None, int | None, int | None, float | None]:
    """The arguments of ``max_writes_text``."""
    job_target, preview = setup.job_target, setup.preview
    uses_scratch = job_target is not None and job_target.kind == kinds.DIRECTORY
    # each job has its own files, whether jobs run one after another or in turn
    scratch = preview.scratch_bytes * len(setup.plan.every_job) if uses_scratch else 0
    # a run may last one interval longer than its measured time
    seconds = setup.plan.seconds + setup.plan.points
    bound = (
        _bytes_at_rate(setup.plan)
        if preview.writes and setup.plan.points <= MAX_BOUNDED_STEPS
        else None
    )
    return (scratch, preview.writes, seconds, setup.write_budget, bound, setup.write_rate)


def _bytes_at_rate(plan: Plan) -> int | None:
    """The bytes that all runs together may write, limited by the jobs' rate=; ``None`` if one has
    no rate."""
    total = 0
    timed = {"runtime": str(math.ceil(plan.settle + plan.measure + 1)), "time_based": "1"}
    for step in expand_plan(plan):
        text = jobfile.with_overrides(point_job_text(plan, step), timed)
        unknown = [SectionFiles(section.name) for section in jobfile.effective_sections(text)]
        run_bytes = max_written_bytes(text, unknown, lambda path: None)
        if run_bytes is None:
            return None
        total += run_bytes
    return total


def resume_text(state: ProgressFile, plan: Plan, now: float) -> str:
    """Describe the rest of an interrupted run; ``now`` in seconds since the epoch."""
    ago = _age_text(now - state.started_at)
    progress = (
        f"{len(state.points)} of {counted(plan.points, 'run' if plan.variants else 'point')} done"
    )
    return f"continues an interrupted run begun {ago}: {progress}"


def _age_text(seconds: float) -> str:
    if seconds < 3600:
        return f"{duration(seconds)} ago"
    if seconds < 172_800:
        return f"{counted(round(seconds / 3600), 'hour')} ago"
    return f"{seconds / 86400:.0f} days ago"


# Turn the options of a sweep or a comparison into an experiment that is ready to run.
#
# ``notify`` prints a message for the user, because some steps take seconds.


Notify = Callable[[str], None]

_NOUNS = {"sweep": "sweep", "compare": "comparison"}
MIN_ANNOUNCED_CHECKS = 20
"""With this number of checks by fio or more, they take seconds and are announced."""


def set_up(run: RunRequest, plan: Plan, notify: Notify) -> ExperimentSetup:
    """Check everything before anything runs. Raises UsageError, Refused or Missing."""
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
    """The expectations, each of which applies to every point. Raises UsageError for one that a
    point can't measure."""
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
    interrupted run; ``None`` if it cannot be written. Raises UsageError for a --state file of
    another experiment, or if the environment has changed so that the run cannot continue."""
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
    """Raise UsageError for a --record file that ``experiment_session`` would refuse; for a dry
    run."""
    if run.record and not _was_recorded(run.record, progress):
        check_creatable(Path(run.record))


def _was_recorded(record: str, progress: ProgressFile | None) -> bool:
    """Whether ``progress`` resumes an interrupted experiment that was recorded to this file."""
    return progress is not None and bool(progress.points) and os.path.exists(record)


def experiment_session(
    setup: ExperimentSetup, run: RunRequest, progress: ProgressFile | None, notify: Notify
) -> LiveSession:
    """The session that runs it, not started. Raises UsageError for a --record file that can't be
    created. A resumed experiment may have been recorded to that file before; then the next free
    name is used."""
    if run.record and _was_recorded(run.record, progress):
        free = next_free_path(Path(run.record))
        notify(f"recording to {free}: {run.record} ends with the interruption")
        run = replace(run, record=str(free))
    return LiveSession(setup.target, setup.devices, setup.job_target, run, NOBODY)
