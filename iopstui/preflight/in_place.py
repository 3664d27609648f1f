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
from iopstui.model.block import target
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.fio import job_rules, jobfile
from iopstui.model.fio.sizes import size_bytes
from iopstui.preflight.examined_request import ExaminedRequest, group_reporting, refuse_unfenced
from iopstui.preflight.passthrough import passthrough_options
from iopstui.preflight.prepared import PreparedJob
from iopstui.preflight.staging import Staging
from iopstui.preflight.target_area import area_options
from iopstui.safety import scratch
from iopstui.safety.write_guard import GuardedJob, WriteGuard

# what can be written between two looks at the free space
QUICK_BYTES = 1 << 30


def prepare_in_place(asked: ExaminedRequest, devices: Mapping[str, BlockDevice]) -> PreparedJob:
    """Prepare a job on the target's device or file, or on those that the job names."""
    where = asked.where
    given = _on_own_files(asked) if where is None else _on_path(asked, where, devices)
    cwd = Path.cwd()
    check_variables(given, f"The job file {asked.path}")
    check_directories(given, cwd)
    facts = asked.inspected(given, cwd)
    files = absolute_files(facts, cwd)
    logs = FioLogs(given, asked.label, cwd, asked.request.io_log)
    prepared = PreparedJob(
        asked.label, describe_job(given), logs.text, facts, files, cwd, logs=logs
    )
    try:
        guarded = GuardedJob(facts, files, cwd)
        prepared.guard = WriteGuard(guarded, asked.request.destroy_data, asked.roots)
        prepared.guard.check(devices)
        refuse_unfenced(asked, prepared)
        if asked.where is None:
            _stage(prepared)
        prepared.longest = _largest_file(prepared)
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
    if prepared.facts.writes or job_rules.makes_files(prepared.facts.options):
        return
    new = set(staging.new)
    wanted = [
        index
        for index, section in enumerate(prepared.facts.sections)
        if any(os.path.realpath(prepared.cwd / path) in new for path in section.paths)
    ]
    only = jobfile.only_sections(staged, wanted)
    sections = [prepared.facts.sections[index] for index in wanted]
    prepared.layout_text = layout_text(only)
    prepared.layout_bytes = layout_bytes(only, sections, lambda path: _size(prepared.cwd / path))


def _size(path: Path) -> int | None:
    return path.stat().st_size if os.path.exists(path) else None


def _largest_file(prepared: PreparedJob) -> int | None:
    """How long a file may become: what is free but for 5 %, and where that is little an equal
    share of it. ``None``: the job has only devices."""
    files = [name for name in prepared.files if not _is_device(name)]
    if not files:
        return None
    room = min(scratch.room_for(Path(os.path.dirname(name))) for name in files)
    there = [os.stat(name).st_size for name in files if os.path.isfile(name)]
    growing = len(files) if prepared.facts.writes else len(files) - len(there)
    if room < QUICK_BYTES:
        room //= max(1, growing)
    return room + (max(there, default=0) if prepared.facts.writes else 0)


def _is_device(name: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        return False


def _on_own_files(asked: ExaminedRequest) -> str:
    size = asked.request.size
    wanted = {**asked.overrides, **({"size": size} if size else {})}
    return jobfile.with_overrides(asked.text, group_reporting(asked.text, wanted))


def _on_path(asked: ExaminedRequest, where: Target, devices: Mapping[str, BlockDevice]) -> str:
    """The job with every section on all devices or files of the target."""
    paths = [place.path for place in where.places]
    wanted = {**asked.overrides, "filename": join_paths(paths)}
    part = asked.request.part
    if part is not None:
        text = jobfile.with_overrides(asked.text, asked.overrides)
        wanted |= area_options(part, where, asked.request.size, text, devices)
    elif asked.request.size:
        wanted["size"] = _size_of_each(asked.request.size, len(paths))
    elif where.kind == target.FILE:
        # a job larger than the file would make fio extend it; it shares size= out among files
        text = jobfile.with_overrides(asked.text, asked.overrides)
        smallest = min(Path(path).stat().st_size for path in paths)
        wanted["size"] = str(_capped(text, len(paths) * smallest))
    given = jobfile.with_overrides(asked.text, asked.overrides)
    return jobfile.with_overrides(
        asked.text, group_reporting(asked.text, wanted),
        passthrough_options(given, where, asked.roots), removed=("directory",),
    )  # fmt: skip


def _size_of_each(size: str, count: int) -> str:
    """fio's size= for so much of every one of ``count`` files."""
    if count == 1:
        return size
    one = size_bytes(size)
    if not one:
        raise UsageError(f"--size {size!r} is not a size.", "For example: --size 512m")
    return str(count * one)


def _capped(text: str, size: int) -> int:
    declared = [
        size_bytes(expand_variables(s.options.get("size", "")))
        for s in jobfile.effective_sections(text)
    ]
    return min([size, *(one for one in declared if one)])
