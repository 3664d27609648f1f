"""Prepare a job on scratch files, in directories of its own."""

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
from iopstui.fio.layout import layout_text
from iopstui.fio.logs import FioLogs
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.fio import job_rules, jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.preflight.examined_request import ExaminedRequest, group_reporting, refuse_unfenced
from iopstui.preflight.prepared import PreparedJob
from iopstui.safety import scratch
from iopstui.safety.scratch_sizes import (
    bytes_by_file,
    last_offset,
    scratch_sizes,
    shared_name,
    time_based_values,
)
from iopstui.safety.write_guard import GuardedJob, WriteGuard
from iopstui.text import printable


def prepare_in_directories(
    asked: ExaminedRequest, where: Target, devices: Mapping[str, BlockDevice]
) -> PreparedJob:
    """Prepare scratch files in the target's directories; nothing else is touched."""
    lent = asked.request.scratch
    made = lent or scratch.make_scratches([Path(place.path) for place in where.places])
    prepared: PreparedJob | None = None
    try:
        prepared = _on_scratch(asked, made)
        prepared.lent = lent is not None
        guarded = GuardedJob(prepared.facts, prepared.files, made.path, scratch=made.path)
        prepared.guard = WriteGuard(guarded, (), asked.roots)
        prepared.guard.check(devices)
        refuse_unfenced(asked, prepared)
        return prepared
    except BaseException:
        if prepared is not None:
            prepared.close()
        if lent is None:
            made.close()
        raise


def _directory_options(job: Section, index: int, made: scratch.Scratch) -> dict[str, str]:
    """The options that put the files of the job's section there."""
    name, spread = shared_name(job), len(made.paths)
    placed = {"directory": escape_path(str(made.path))}
    if spread > 1:
        placed |= _spread_names(job, index, name, spread)
    elif name:
        placed["filename"] = name
    return placed


def _need_direct(places: Sequence[Path]) -> None:
    for path in places:
        if not scratch.supports_direct(path):
            raise UsageError(
                f"The file system of {path.parent} has no O_DIRECT, which the job needs.",
                "Choose a directory on a disk, or measure the page cache with --set direct=0",
            )


def _on_scratch(asked: ExaminedRequest, made: scratch.Scratch) -> PreparedJob:
    request = asked.request
    jobs = jobfile.effective_sections(jobfile.with_overrides(asked.text, asked.overrides))
    places = made.paths
    per_section = {index: _directory_options(job, index, made) for index, job in enumerate(jobs)}
    text = jobfile.with_overrides(
        asked.text, group_reporting(asked.text, asked.overrides), per_section
    )
    facts = asked.inspected(text, made.path)
    if any(uses_direct_io(job) for job in jobs):
        _need_direct(places)
    room = scratch.room_for_all([path.parent for path in places]) + made.used_bytes()
    sizes = scratch_sizes(jobs, facts.sections, request.size, room, request.share, len(places))
    sized = {index: {"size": str(size)} for index, size in enumerate(sizes)}
    timed = time_based_values(jobs, sizes)
    if "1" in timed:
        sized = {index: {**one, "time_based": timed[index]} for index, one in sized.items()}
    whole = jobfile.with_overrides(text, {}, sized)
    logs = FioLogs(whole, asked.label, Path.cwd(), request.io_log)
    text = logs.text
    layout: str | None = jobfile.with_overrides(
        layout_text(text), {"overwrite": "1", "fallocate": "none"}
    )
    by_name = bytes_by_file(facts.sections, sizes, [last_offset(job) for job in jobs])
    total = sum(by_name.values())
    files = absolute_files(facts, made.path)
    if _laid_out(files, total):
        layout = None
    prepared = PreparedJob(
        asked.label, describe_job(text), text, facts, files, made.path, layout, total
    )
    prepared.scratch, prepared.logs, prepared.sizes = made, logs, by_name
    most = max(by_name.values(), default=0)
    # fio makes the first files of several longer by a block (filesetup.c)
    longer = most + max(map(largest_block, jobs), default=0)
    prepared.longest = longer if len(by_name) * longer <= room else most
    return prepared


def _spread_names(job: Section, index: int, name: str, count: int) -> dict[str, str]:
    """Options that put a file of a section into each of ``count`` directories (safety/scratch.py:
    links 0, 1 ...): those that its jobs share by their names, those of each job's own by fio's
    numbers of its files."""
    if name:
        names = name.split(":")
        return {"filename": ":".join(f"{n}/{one}" for one in names for n in range(count))}
    own = count_of(job.options.get("nrfiles"))
    if own > 1:
        raise UsageError(
            f"[{printable(job.name)}] has nrfiles={own}, so its files cannot be spread over "
            "several directories.",
            "Give one directory, or add --set nrfiles=1",
        )
    return {"nrfiles": str(count), "filename_format": job_rules.spread_format(index)}


def _laid_out(files: Sequence[str], total: int) -> bool:
    """True if an earlier run on the same scratch directory has written all of these."""
    try:
        return sum(os.stat(name).st_blocks * 512 for name in files) >= total
    except OSError:
        return False
