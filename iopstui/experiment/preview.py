"""Preflight of an experiment: find wrong values and missing permissions, and count its writes.

fio's own parser checks every value once, so that the last point of a long sweep does not fail
because of a typing mistake."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopstui.errors import Refused, UsageError
from iopstui.experiment.runner import common_scratch_bytes, point_job_text
from iopstui.fio.inspect import Fio, SectionFiles
from iopstui.fio.job_text import describe_job
from iopstui.fio.library import find_job
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import BIND, KNOB, SIZE, Plan, PlannedPoint, Setting, expand_plan
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import FILE_LOGS, PREFIX_LOGS
from iopstui.preflight.inspection import JOB, inspect_text
from iopstui.preflight.job import bind_jobs, prepare, require_target
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.safety.scratch import scratch_total, usable_bytes_for_all
from iopstui.safety.tunables import queued_disks, read_tunable, why_not_changeable
from iopstui.text import printable

MAX_CHECKED_POINTS = 50
_STAGES = ("stonewall", "wait_for_previous")


@dataclass(frozen=True, slots=True)
class Preview:
    """``titles`` describe each job ("randread 4k QD 32 × 2 jobs", followed by " at the first point"
    if the sweep changes that); ``writes``: whether any of them writes, according to fio; ``knobs``
    maps each tunable that will be changed to its current value; ``scratch_bytes`` is the size of
    the scratch files of one job (0: none)."""

    titles: Mapping[str, str]
    writes: bool
    knobs: Mapping[str, str]
    scratch_bytes: int


def _scratch_bytes(
    text: str, sections: Sequence[SectionFiles], size: str | None, share: int | None, target: Target
) -> int:
    places = [Path(place.path) for place in target.places]
    return scratch_total(text, sections, size, usable_bytes_for_all(places), share, len(places))


def preview_plan(
    plan: Plan, target: Target, job_target: Target | None, conditions: RunRequest,
    devices: Mapping[str, BlockDevice], fio: Fio, roots: Roots,
) -> Preview:  # fmt: skip
    """Describe what a plan would do; writes nothing. Raises UsageError, Refused or Missing if it
    would fail later."""
    private = private_directory()
    descriptions: dict[str, list[str]] = {}
    writes, largest = False, 0
    share = common_scratch_bytes(plan, job_target)
    repeated = plan.points > len(plan.every_job)
    try:
        for step in representative_points(plan):
            text = point_job_text(plan, step)
            _check_stages(step.job, text)
            if repeated:
                _check_logs(step.job, text)
            require_target(find_job(step.job), text, job_target)
            label = f"{step.job} with {step.label}"
            facts = inspect_text(fio, private, text, label, Path.cwd())
            writes = writes or facts.writes
            descriptions.setdefault(step.job, []).append(describe_job(text))
            if step.settings_of(BIND).get("bind") == "queues":
                bind_jobs(text, {}, job_target, devices)
            size = step.settings_of(SIZE).get("size", conditions.size)
            if job_target is not None and job_target.kind == kinds.DIRECTORY:
                total = _scratch_bytes(text, facts.sections, size, share, job_target)
                largest = max(largest, total)
                continue
            file = write_text(private, JOB, text)
            request = replace(conditions, job=str(file), overrides={}, size=size, bind=False)
            prepared = prepare(request, job_target, fio, private, devices, roots)
            prepared.close()
            if repeated:
                _check_second_run(step.job, prepared, conditions.destroy_data)
    finally:
        remove(private)
    titles = {job: _title(texts, bool(plan.variants)) for job, texts in descriptions.items()}
    return Preview(titles, writes, dict(_current_knobs(plan, target, devices, roots)), largest)


def _title(descriptions: Sequence[str], variants: bool) -> str:
    """The job's description. If a sweep's points have different ones, that of the first point."""
    is_uniform = variants or len(set(descriptions)) == 1
    return descriptions[0] if is_uniform else f"{descriptions[0]} at the first point"


def representative_points(plan: Plan) -> Iterator[PlannedPoint]:
    """Points in which each value occurs at least once (only the first values of very long axes)."""
    covered: set[tuple[str, Setting | None]] = set()
    count = 0
    for step in expand_plan(plan):
        keys = {(step.job, setting) for setting in (*step.settings, None)}
        if keys <= covered:
            continue
        covered |= keys
        count += 1
        yield step
        if count >= MAX_CHECKED_POINTS:
            return


def _check_stages(job: str, text: str) -> None:
    for section in jobfile.effective_sections(text)[1:]:
        if any(name in section.options for name in _STAGES):
            raise UsageError(
                f"The stages of {job} run one after another (stonewall), so a run has no "
                "single result to plot or compare.",
                "Put the stage to measure into a job file of its own.",
            )


def _check_logs(job: str, text: str) -> None:
    for section in jobfile.sections(text):
        for name in (*PREFIX_LOGS, *FILE_LOGS):
            if name in section.options:
                raise UsageError(
                    f"{job} writes a log file ({name}=), and every run would overwrite it.",
                    "Remove it from the job file, or use `iopstui run`, which runs the job once.",
                )


def _check_second_run(job: str, prepared: PreparedJob, destroy_data: Sequence[str]) -> None:
    """Raise Refused if the files that a job's first run creates would make its second run fail."""
    if not prepared.makes_files or jobfile.removes_files(prepared.facts.options):
        return
    allowed = {os.path.realpath(path) for path in destroy_data}
    lost = sorted({os.path.realpath(name) for name in prepared.files} - allowed)
    if lost:
        raise Refused(
            f"{job} creates {printable(lost[0])}, and its second run would overwrite that file.",
            f"To allow that: --destroy-data {printable(lost[0])}",
        )


def _current_knobs(
    plan: Plan, target: Target, devices: Mapping[str, BlockDevice], roots: Roots
) -> Iterator[tuple[str, str]]:
    values: dict[str, set[str]] = {}
    for axis in plan.axes:
        if axis.kind == KNOB:
            values.setdefault(axis.name, set()).update(axis.values)
    for variant in plan.variants:
        for setting in variant.settings:
            if setting.kind == KNOB:
                values.setdefault(setting.name, set()).add(setting.value)
    for name, requested in values.items():
        yield name, _check_knob(name, requested, target, devices, roots)


def _check_knob(
    name: str, requested: set[str], target: Target, devices: Mapping[str, BlockDevice], roots: Roots
) -> str:
    """The current value of a tunable. It must be the same on all disks under the target."""
    disks = queued_disks(target, devices)
    if not disks:
        subject = ", ".join(target.devices_below) or target.path
        raise UsageError(f"{name} can't be changed: {subject} has no device with a request queue.")
    current = {}
    for disk in disks:
        refusal = why_not_changeable(disk, name, roots)
        if refusal is not None:
            raise refusal
        schedulers = disk.queue.schedulers if disk.queue is not None else ()
        for value in sorted(requested) if name == "scheduler" else ():
            if value not in schedulers:
                raise UsageError(f"{disk.name} has no scheduler {value!r}.",
                                 f"It has: {', '.join(schedulers)}")  # fmt: skip
        current[disk.name] = read_tunable(disk, name, roots) or ""
    if len(set(current.values())) > 1:
        values_text = ", ".join(f"{disk} {value}" for disk, value in current.items())
        raise UsageError(f"{name} differs between the disks under the target ({values_text}).",
                         "Set it to the same value first, or name one disk.")  # fmt: skip
    return next(iter(current.values()))
