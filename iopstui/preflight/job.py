"""Turn a request into a job file that fio can run on the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.fio.dangerous_values import refuse_dangerous_values
from iopstui.fio.inspect import Fio, cancel_flag, cancel_when
from iopstui.fio.job_text import common_options, count_of, named_paths, read_job, sets_filename
from iopstui.fio.library import find_job, is_shipped
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.load import read_memory
from iopstui.linux.own_threads import initial_cpus
from iopstui.linux.shares import call_with_timeout
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Binding, bind_to_queues
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.preflight.in_directories import prepare_in_directories
from iopstui.preflight.in_place import check_part, passthrough_options, prepare_in_place
from iopstui.preflight.prepared_job import LoadedRequest, PreparedJob
from iopstui.preflight.staging import LentScratch
from iopstui.safety.locks import ActiveRun


def prepare(
    request: RunRequest,
    target: Target | None,
    fio: Fio,
    private: Path,
    devices: Mapping[str, BlockDevice],
    roots: Roots,
    active: ActiveRun | None = None,
    lent: LentScratch | None = None,
) -> PreparedJob:
    """Do everything before the start of fio. ``target`` is ``None`` if the job names its own files.
    ``private`` is the run's private directory, ``active`` is the run that this one replaces,
    ``lent`` is the scratch directory that it uses if it shares one. Raises UsageError, Refused or
    Missing; then nothing is left behind, except on a mount whose server is gone."""
    cwd = Path.cwd()
    places = [cwd / request.job, *(Path(place.path) for place in (target.places if target else ()))]
    signal = cancel_flag()

    def work() -> PreparedJob:
        cancel_when(signal)
        path = find_job(request.job)
        text = read_job(path)
        require_target(path, text, target)
        if target is None:
            places.extend(cwd / name for name in named_paths(text))
        overrides = _checked_overrides(request, text, target, roots)
        examined = LoadedRequest(
            request, target, path, text, overrides, fio, private, roots, active, lent
        )
        return _prepare(examined, devices)

    return call_with_timeout(places, work, PreparedJob.close, roots)


def _checked_overrides(
    request: RunRequest, text: str, target: Target | None, roots: Roots
) -> dict[str, str]:
    """The options to change in the job. Raises UsageError for options that must not be changed."""
    _check_replay(request, target)
    check_part(request.part, target)
    overrides = {**_without_verify_state(text), **_implied_options(request.overrides)}
    conflicting = {"filename", "directory"} & overrides.keys()
    if target is not None and conflicting:
        raise UsageError(
            f"--set {conflicting.pop()}= conflicts with the target. Both set where the job runs.",
            "Use only TARGET: iopstui run TARGET --job ...",
        )
    refuse_dangerous_values(
        jobfile.effective_sections(jobfile.with_overrides(text, overrides)), read_memory(roots)
    )
    return overrides


def _prepare(examined: LoadedRequest, devices: Mapping[str, BlockDevice]) -> PreparedJob:
    request, target, text = examined.request, examined.target, examined.text
    binding = bind_jobs(text, examined.overrides, target, devices) if request.bind else None
    if binding is not None:
        bound = {"cpus_allowed": binding.option, "cpus_allowed_policy": "split"}
        examined = replace(examined, overrides={**examined.overrides, **bound})
    if target is not None and target.kind == kinds.DIRECTORY:
        passthrough_options(
            jobfile.with_overrides(text, examined.overrides), target, examined.roots
        )
        prepared = prepare_in_directories(examined, target, devices)
    else:
        prepared = prepare_in_place(examined, devices)
    prepared.binding = binding
    prepared.trace = request.trace
    prepared.options = _requested_options(text, request)
    return prepared


def _requested_options(text: str, request: RunRequest) -> dict[str, str]:
    options = common_options(jobfile.with_overrides(text, request.overrides))
    own_options = {
        "bind": "queues" if request.bind else None,
        "size": request.size,
        "part": str(request.part) if request.part is not None else None,
    }
    return {**options, **{name: value for name, value in own_options.items() if value}}


def require_target(path: Path, text: str, target: Target | None) -> None:
    """Raises UsageError for a job that needs a target and has none: fio would create its files in
    the current directory and leave them there."""
    if target is None and (is_shipped(path) or not sets_filename(text)):
        raise UsageError(
            f"The job {path.name} names no files, and there is no target.",
            "Give a TARGET, or choose a job that names its files.",
        )


def _check_replay(request: RunRequest, target: Target | None) -> None:
    """Raise UsageError for a replay on anything but one scratch file."""
    if request.trace and (target is None or target.kind != kinds.DIRECTORY or target.has_several):
        raise UsageError(
            "A trace is replayed on a scratch file only, never on a device or a file of yours.",
            "Give one directory: iopstui run DIRECTORY --replay FILE",
        )


def _without_verify_state(text: str) -> dict[str, str]:
    """Options that keep fio from saving the progress of verify in its current directory, where it
    must not create files."""
    names = {name for section in jobfile.sections(text) for name in section.options}
    if "verify" not in names or "verify_state_save" in names:
        return {}
    return {"verify_state_save": "0"}


def _implied_options(overrides: Mapping[str, str]) -> dict[str, str]:
    """Options that others imply: a requested runtime also sets time_based, or fio would stop at the
    end of the file."""
    options = dict(overrides)
    if {"runtime", "timeout"} & options.keys() and "time_based" not in options:
        options["time_based"] = "1"
    return options


# Jobs bound to hardware queues.


def bind_jobs(
    text: str,
    overrides: Mapping[str, str],
    target: Target | None,
    devices: Mapping[str, BlockDevice],
) -> Binding:
    """The CPUs with which each fio job uses another hardware queue. If there are several devices,
    the queues of the first decide, because every job uses all devices. Raises UsageError if there
    are no queues."""
    stacks = target.stacks if target is not None else {}
    device_stacks = ([devices[name] for name in (top, *below)] for top, below in stacks.items())
    first_queued = (
        next((device for device in stack if device.hctxs), None) for stack in device_stacks
    )
    queued = [device for device in first_queued if device is not None]
    queues = queued[0].hctxs if queued else ()
    jobs = jobfile.effective_sections(jobfile.with_overrides(text, overrides))
    count = sum(count_of(job.options.get("numjobs")) for job in jobs)
    binding = bind_to_queues(queues, count, initial_cpus())
    if binding is None:
        subject = (
            ", ".join(target.devices_below)
            if target is not None and target.devices_below
            else "this target"
        )
        raise UsageError(
            f"Cannot bind jobs to hardware queues: {subject} has no visible hardware queue.",
            "Remove --bind queues. `iopstui devices` shows each device's queues.",
        )
    different = [device.name for device in queued if _cpus_of(device) != _cpus_of(queued[0])]
    if different:
        note = (
            f"jobs are bound to the CPUs of {queued[0].name}'s queues; the queues of "
            f"{', '.join(different)} serve other CPUs"
        )
        return replace(binding, notes=(*binding.notes, note))
    return binding


def _cpus_of(device: BlockDevice) -> tuple[tuple[int, ...], ...]:
    return tuple(hctx.cpus for hctx in device.hctxs)
