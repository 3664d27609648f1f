"""Prepare a job on scratch files, in directories that iopstui creates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.fio.job_text import (
    absolute_files,
    count_of,
    describe_job,
    escape_path,
    largest_block,
    uses_direct_io,
)
from iopstui.fio.logs import FioLogs
from iopstui.fio.write_bound import layout_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.preflight.prepared_job import (
    LoadedRequest,
    PreparedJob,
    group_reporting,
    refuse_unfenced,
)
from iopstui.safety.scratch import (
    Scratch,
    bytes_by_file,
    last_offset,
    make_scratches,
    scratch_sizes,
    shared_name,
    supports_direct,
    time_based_values,
    usable_bytes_for_all,
)
from iopstui.safety.write_guard import CheckedJob, WriteGuard
from iopstui.text import printable


def prepare_in_directories(
    examined: LoadedRequest, target: Target, devices: Mapping[str, BlockDevice]
) -> PreparedJob:
    """Prepare scratch files in the target's directories; nothing else is touched."""
    lent = examined.lent
    scratch = lent.scratch if lent else make_scratches([Path(p.path) for p in target.places])
    prepared: PreparedJob | None = None
    try:
        prepared = _prepare_on_scratch(examined, scratch)
        prepared.shares_scratch = lent is not None
        guarded = CheckedJob(prepared.facts, prepared.files, scratch.path, scratch=scratch.path)
        prepared.guard = WriteGuard(guarded, (), examined.roots)
        prepared.guard.check(devices)
        refuse_unfenced(examined, prepared)
        return prepared
    except BaseException:
        if prepared is not None:
            prepared.close()
        if lent is None:
            scratch.close()
        raise


def _directory_options(job: Section, index: int, scratch: Scratch) -> dict[str, str]:
    name, spread = shared_name(job), len(scratch.paths)
    options = {"directory": escape_path(str(scratch.path))}
    if spread > 1:
        options |= _spread_names(job, index, name, spread)
    elif name:
        options["filename"] = name
    return options


def _need_direct(directories: Sequence[Path]) -> None:
    for path in directories:
        if not supports_direct(path):
            raise UsageError(
                f"The file system of {path.parent} has no O_DIRECT, which the job needs.",
                "Choose a directory on a disk, or measure the page cache with --set direct=0",
            )


def _prepare_on_scratch(examined: LoadedRequest, scratch: Scratch) -> PreparedJob:
    request = examined.request
    jobs = jobfile.effective_sections(jobfile.with_overrides(examined.text, examined.overrides))
    directories = scratch.paths
    per_section = {index: _directory_options(job, index, scratch) for index, job in enumerate(jobs)}
    text = jobfile.with_overrides(
        examined.text, group_reporting(examined.text, examined.overrides), per_section
    )
    facts = examined.inspect(text, scratch.path)
    if any(uses_direct_io(job) for job in jobs):
        _need_direct(directories)
    free_bytes = usable_bytes_for_all([path.parent for path in directories]) + scratch.used_bytes()
    max_bytes = examined.lent.max_bytes if examined.lent is not None else None
    sizes = scratch_sizes(
        jobs, facts.sections, request.size, free_bytes, max_bytes, len(directories)
    )
    sized = {index: {"size": str(size)} for index, size in enumerate(sizes)}
    timed = time_based_values(jobs, sizes)
    if "1" in timed:
        sized = {index: {**options, "time_based": timed[index]} for index, options in sized.items()}
    sized_text = jobfile.with_overrides(text, {}, sized)
    logs = FioLogs(sized_text, examined.label, Path.cwd(), request.io_log)
    text = logs.text
    by_name = bytes_by_file(facts.sections, sizes, [last_offset(job) for job in jobs])
    total = sum(by_name.values())
    files = absolute_files(facts, scratch.path)
    layout = None if _is_laid_out(files, total) else jobfile.with_overrides(
        layout_text(text), {"overwrite": "1", "fallocate": "none"}
    )  # fmt: skip
    prepared = PreparedJob(
        examined.label, describe_job(text), text, facts, files, scratch.path, layout, total
    )
    prepared.scratch, prepared.logs, prepared.file_sizes = scratch, logs, by_name
    # the directory may have files of other points of an experiment, which had more or other jobs
    prepared.other_bytes = max(0, scratch.used_bytes() - sum(map(_allocated, files)))
    largest_bytes = max(by_name.values(), default=0)
    # fio makes the first of several files one block longer (filesetup.c)
    longer = largest_bytes + max(map(largest_block, jobs), default=0)
    prepared.max_file_bytes = longer if len(by_name) * longer <= free_bytes else largest_bytes
    return prepared


def _spread_names(job: Section, index: int, name: str, count: int) -> dict[str, str]:
    """Options that put a file of a section into each of ``count`` directories (safety/scratch.py:
    links 0, 1 ...). Files that the section's jobs share get names here; a job's own files get fio's
    numbers."""
    if name:
        names = name.split(":")
        return {"filename": ":".join(f"{n}/{file}" for file in names for n in range(count))}
    file_count = count_of(job.options.get("nrfiles"))
    if file_count > 1:
        raise UsageError(
            f"[{printable(job.name)}] has nrfiles={file_count}, so its files cannot be spread over "
            "several directories.",
            "Give one directory, or add --set nrfiles=1",
        )
    return {"nrfiles": str(count), "filename_format": jobfile.spread_format(index)}


def _is_laid_out(files: Sequence[str], total: int) -> bool:
    """True if an earlier run on the same scratch directory has laid out all of these files."""
    return all(map(os.path.exists, files)) and sum(map(_allocated, files)) >= total


def _allocated(file: str) -> int:
    """The bytes that a file occupies; 0 if it does not exist yet."""
    try:
        return os.stat(file).st_blocks * 512
    except OSError:
        return 0
