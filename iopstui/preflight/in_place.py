"""Prepare a job that works directly on the target or on the devices and files it names."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.fio.job_text import (
    absolute_files,
    check_directories,
    check_variables,
    describe_job,
    expand_variables,
    join_paths,
)
from iopstui.fio.layout import layout_text
from iopstui.fio.logs import FioLogs
from iopstui.fio.write_bound import layout_bytes
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.fio import jobfile
from iopstui.model.fio.sizes import size_bytes
from iopstui.preflight.loaded_request import LoadedRequest, group_reporting, refuse_unfenced
from iopstui.preflight.passthrough import passthrough_options
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.staging import Staging
from iopstui.preflight.target_area import area_options
from iopstui.safety import scratch
from iopstui.safety.write_guard import CheckedJob, WriteGuard

# what can be written between two checks of the free space
QUICK_BYTES = 1 << 30


def prepare_in_place(examined: LoadedRequest, devices: Mapping[str, BlockDevice]) -> PreparedJob:
    """Prepare a job on the target's device or file, or on those that the job names."""
    target = examined.target
    text = (
        _text_on_own_files(examined)
        if target is None
        else _text_on_target(examined, target, devices)
    )
    cwd = Path.cwd()
    check_variables(text, f"The job file {examined.path}")
    check_directories(text, cwd)
    facts = examined.inspect(text, cwd)
    files = absolute_files(facts, cwd)
    logs = FioLogs(text, examined.label, cwd, examined.request.io_log)
    prepared = PreparedJob(
        examined.label, describe_job(text), logs.text, facts, files, cwd, logs=logs
    )
    try:
        guarded = CheckedJob(facts, files, cwd)
        prepared.guard = WriteGuard(guarded, examined.request.destroy_data, examined.roots,
                                    examined.active)  # fmt: skip
        prepared.guard.check(devices)
        refuse_unfenced(examined, prepared)
        if examined.target is None:
            _stage(prepared)
        prepared.max_file_bytes = _largest_file(prepared)
        return prepared
    except BaseException:
        prepared.close()
        raise


def _stage(prepared: PreparedJob) -> None:
    """Files that the job names and that don't exist are made apart from all others. A reading job
    has them made first, because it is run with --readonly afterwards."""
    if all(map(os.path.exists, prepared.files)):
        return
    staging = prepared.staging = Staging(prepared.text, prepared.facts.sections, prepared.cwd)
    staged = staging.text
    if prepared.makes_files:
        prepared.text = staged
    if prepared.facts.writes or jobfile.makes_files(prepared.facts.options):
        return
    new = set(staging.new_paths)
    indices = [
        index
        for index, section in enumerate(prepared.facts.sections)
        if any(os.path.realpath(prepared.cwd / path) in new for path in section.paths)
    ]
    only = jobfile.only_sections(staged, indices)
    sections = [prepared.facts.sections[index] for index in indices]
    prepared.layout_text = layout_text(only)
    prepared.layout_bytes = layout_bytes(only, sections, lambda path: _size(prepared.cwd / path))


def _size(path: Path) -> int | None:
    return path.stat().st_size if os.path.exists(path) else None


def _largest_file(prepared: PreparedJob) -> int | None:
    """Maximum length of a file: the free space but for 5 %, or an equal share of it if little is
    free. ``None``: the job has only devices."""
    files = [name for name in prepared.files if not _is_device(name)]
    if not files:
        return None
    free_bytes = min(scratch.usable_bytes(Path(os.path.dirname(name))) for name in files)
    lengths = [os.stat(name).st_size for name in files if os.path.isfile(name)]
    growing = len(files) if prepared.facts.writes else len(files) - len(lengths)
    if free_bytes < QUICK_BYTES:
        free_bytes //= max(1, growing)
    return free_bytes + (max(lengths, default=0) if prepared.facts.writes else 0)


def _is_device(name: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        return False


def _text_on_own_files(examined: LoadedRequest) -> str:
    size = examined.request.size
    overrides = {**examined.overrides, **({"size": size} if size else {})}
    return jobfile.with_overrides(examined.text, group_reporting(examined.text, overrides))


def _text_on_target(
    examined: LoadedRequest, target: Target, devices: Mapping[str, BlockDevice]
) -> str:
    """The job with every section on all devices or files of the target."""
    text = jobfile.with_overrides(examined.text, examined.overrides)
    paths = [place.path for place in target.places]
    overrides = {**examined.overrides, "filename": join_paths(paths)}
    part = examined.request.part
    if part is not None:
        overrides |= area_options(part, target, examined.request.size, text, devices)
    elif examined.request.size:
        overrides["size"] = _size_of_each(examined.request.size, len(paths))
    elif target.kind == kinds.FILE:
        # a job larger than the file would make fio extend it; it shares size= out among files
        smallest = min(Path(path).stat().st_size for path in paths)
        overrides["size"] = str(_capped_size(text, len(paths) * smallest))
    return jobfile.with_overrides(
        examined.text, group_reporting(examined.text, overrides),
        passthrough_options(text, target, examined.roots), removed=("directory",),
    )  # fmt: skip


def _size_of_each(size: str, count: int) -> str:
    """fio's size= that gives each of ``count`` files this size."""
    if count == 1:
        return size
    file_bytes = size_bytes(size)
    if not file_bytes:
        raise UsageError(f"--size {size!r} is not a size.", "For example: --size 512m")
    return str(count * file_bytes)


def _capped_size(text: str, size: int) -> int:
    declared = [
        size_bytes(expand_variables(s.options.get("size", "")))
        for s in jobfile.effective_sections(text)
    ]
    return min([size, *(n for n in declared if n)])
