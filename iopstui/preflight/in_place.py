"""Prepare a job that works directly on the target or on the devices and files it names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.fio.job_shape import direct, engine
from iopstui.fio.job_text import (
    absolute_files,
    check_directories,
    check_variables,
    describe_job,
    expand_variables,
    join_paths,
    largest_block,
)
from iopstui.fio.logs import FioLogs
from iopstui.fio.write_bound import layout_bytes, layout_text
from iopstui.format import size as size_text
from iopstui.linux.devices.aliases import generic_of
from iopstui.linux.kernel_files import Roots
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target, TargetPart, TargetPath
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import PASSTHROUGH
from iopstui.model.sizes import fixed_block_sizes, part_bytes, size_bytes
from iopstui.model.sizes import size_text as block_text
from iopstui.preflight.prepared_job import (
    LoadedRequest,
    PreparedJob,
    group_reporting,
    refuse_unfenced,
)
from iopstui.preflight.staging import Staging, is_special
from iopstui.safety import scratch
from iopstui.safety.write_guard import CheckedJob, WriteGuard
from iopstui.text import printable

# how much can be written between two checks of the free space
QUICK_BYTES = 1 << 30


def prepare_in_place(examined: LoadedRequest, devices: Mapping[str, BlockDevice]) -> PreparedJob:
    """Prepare a job on the target's device or file, or on the devices and files that the job
    names."""
    target = examined.target
    text = (
        _text_on_own_files(examined)
        if target is None
        else _text_on_target(examined, target, devices)
    )
    if target is not None:
        check_block_sizes(text, target, devices)
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
    """Have fio create missing files that the job names, in directories apart from existing files. A
    job that only reads runs with --readonly, so its files are created before it."""
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
    """The maximum length of a file: the free space with 5 % of the file system left free, or an
    equal share of that if little is free; for a job that writes, plus the largest length that a
    file has now. ``None``: the job has only devices."""
    files = [name for name in prepared.files if not is_special(name)]
    if not files:
        return None
    free_bytes = min(scratch.usable_bytes(Path(os.path.dirname(name))) for name in files)
    lengths = [os.stat(name).st_size for name in files if os.path.isfile(name)]
    growing = len(files) if prepared.facts.writes else len(files) - len(lengths)
    if free_bytes < QUICK_BYTES:
        free_bytes //= max(1, growing)
    return free_bytes + (max(lengths, default=0) if prepared.facts.writes else 0)


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
        # a job larger than the file would make fio extend it; fio divides size= among the files
        smallest = min(Path(path).stat().st_size for path in paths)
        overrides["size"] = str(_capped_size(text, len(paths) * smallest))
    return jobfile.with_overrides(
        examined.text, group_reporting(examined.text, overrides),
        passthrough_options(text, target, examined.roots), removed=("directory",),
    )  # fmt: skip


_ALIGNED_ENGINES = ("libaio", "io_uring", "posixaio", "psync", "sync", "pvsync", "pvsync2")


def check_block_sizes(text: str, target: Target, devices: Mapping[str, BlockDevice]) -> None:
    """Raise UsageError if a direct I/O is not a multiple of a device's logical block: the kernel
    would refuse it (EINVAL)."""
    blocks = {
        block: place.path
        for place in target.places
        if place.kind == DEVICE and (block := _logical_block(place.device, devices))
    }
    for job in jobfile.effective_sections(text):
        if not direct(job.options) or engine(job.options) not in _ALIGNED_ENGINES:
            continue
        for size in filter(None, fixed_block_sizes(job.options).values()):
            for block, path in blocks.items():
                if size % block:
                    larger = size + -size % block
                    raise UsageError(
                        f"[{printable(job.name)}] has direct I/Os of {size} bytes, and "
                        f"{printable(path)} takes multiples of {block} (its logical block).",
                        f"Try bs={block_text(larger)}, or direct=0.",
                    )


def _logical_block(name: str | None, devices: Mapping[str, BlockDevice]) -> int | None:
    device = devices.get(name or "")
    if device is not None and device.queue is None and device.disk:
        device = devices.get(device.disk)
    return device.queue.logical_block_size if device is not None and device.queue else None


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


# Jobs that send NVMe commands past the block layer (ioengine=io_uring_cmd).
#
# They open the namespace's generic device (/dev/ng0n1) instead of its block device. The block
# device stays the target: it is checked, locked and reserved, and it is measured as far as the
# kernel counts such commands.


_DIRECT = sorted(jobfile.option_names("direct"))


def passthrough_options(text: str, target: Target, roots: Roots) -> Mapping[int, Mapping[str, str]]:
    """The options of each section of ``text`` by its index, if one section passes commands through:
    such a section opens the generic device, which can't be opened with O_DIRECT. Raises UsageError
    if the target has no generic device, or if the target is one and a section would do ordinary I/O
    on it."""
    per_section: dict[int, dict[str, str]] = {}
    jobs = jobfile.effective_sections(text)
    for index, job in enumerate(jobs):
        if engine(job.options) == PASSTHROUGH:
            per_section[index] = {
                "filename": join_paths(_nodes(target.places, roots)),
                "direct": "0",
            }
        else:
            _check_ordinary(job.name, engine(job.options), target.places)
    for index, job in enumerate(jobs if per_section else ()):
        # the rewriting removes these options everywhere, so the other sections get theirs back
        per_section.setdefault(
            index, {name: job.options[name] for name in _DIRECT if name in job.options}
        )
    return per_section


def _nodes(places: Sequence[TargetPath], roots: Roots) -> list[str]:
    return [place.path if place.passthrough else _generic_node(place, roots) for place in places]


def _generic_node(place: TargetPath, roots: Roots) -> str:
    node = generic_of(roots, place.device or "") if place.kind == DEVICE else None
    if node is None:
        raise UsageError(
            f"ioengine={PASSTHROUGH} sends NVMe commands, and {printable(place.path)} is not a "
            "whole NVMe namespace with a generic device (/dev/ng0n1).",
            "Name a namespace (iopstui devices), or use ioengine=io_uring.",
        )
    return node


def _check_ordinary(section: str, name: str, places: Sequence[TargetPath]) -> None:
    for place in places:
        if place.passthrough:
            raise UsageError(
                f"{printable(place.path)} takes only NVMe commands, and [{printable(section)}] "
                f"uses ioengine={printable(name)}.",
                f"Add --set ioengine={PASSTHROUGH}, or name the block device /dev/{place.device}.",
            )


# The area of a file or device that one of several machines uses (--part).


UNIT = 1 << 20
SMALLEST_UNIT = 4096
_AREA_OPTIONS = ("offset", "offset_increment", "zonemode", "zonesize", "zonerange", "zoneskip")


def check_part(part: TargetPart | None, target: Target | None) -> None:
    """Raises UsageError if the target can't be divided into parts."""
    if part is None:
        return
    if target is None:
        raise UsageError(
            f"Part {part} needs a target, but the job names its own files.",
            "Give a file or a device as TARGET.",
        )
    if target.kind == kinds.DIRECTORY:
        raise UsageError(
            f"Part {part} of a directory: scratch files are made by each machine for itself.",
            "Give a file that all machines see (to make one: truncate -s 100g FILE), or a device.",
        )


def area_options(
    part: TargetPart,
    target: Target,
    size: str | None,
    text: str,
    devices: Mapping[str, BlockDevice],
) -> dict[str, str]:
    """fio's offset= and size= that restrict the job to ``part`` of each place of the target.
    ``size`` is the user's for the whole target, ``text`` the job. Raises UsageError if the target
    can't be divided."""
    jobs = jobfile.effective_sections(text)
    for job in jobs:
        areas = [name for name in _AREA_OPTIONS if name in job.options]
        if areas:
            raise UsageError(
                f"[{printable(job.name)}] has {areas[0]}=, so it chooses its own area of the "
                f"target, and part {part} another one.",
                "Use a job without it.",
            )
    target_bytes = _smallest_place_bytes(target.places, devices)
    declared = [
        part_bytes(expand_variables(job.options.get("size", "")), target_bytes) for job in jobs
    ]
    area_bytes = min([target_bytes, *(n for n in declared if n)])
    if size is not None:
        area_bytes = _requested_bytes(size, target_bytes, target)
    largest = max(largest_block(job) for job in jobs)
    unit = max(largest, UNIT if area_bytes // part.of >= 4 * UNIT else SMALLEST_UNIT)
    offset, length = part.area(area_bytes, unit)
    if area_bytes // part.of < unit:
        raise UsageError(
            f"{size_text(area_bytes)} cannot be divided into {part.of} parts of at least "
            f"{size_text(unit)}.",
            "Use a larger file, or fewer machines.",
        )
    # fio divides size= among the files of a job
    return {"offset": str(offset), "size": str(length * len(target.places))}


def _requested_bytes(size: str, target_bytes: int, target: Target) -> int:
    requested = size_bytes(size)
    if not requested:
        raise UsageError(f"--size {size!r} is not a size.", "For example: --size 512m")
    if requested > target_bytes:
        # no file is extended: if several machines did so, one could cut off what another has
        # written
        path = printable(target.places[0].path)
        hint = "Leave out --size."
        if target.kind == kinds.FILE:
            hint = f"To make it longer: truncate -s {printable(size)} {path}"
        raise UsageError(
            f"--size {printable(size)}: {path} has only {size_text(target_bytes)}.", hint
        )
    return requested


def _smallest_place_bytes(places: Sequence[TargetPath], devices: Mapping[str, BlockDevice]) -> int:
    """The size of the smallest place in bytes, 0 if unknown."""
    sizes = []
    for place in places:
        if place.kind == kinds.FILE:
            sizes.append(os.stat(place.path).st_size)
        else:
            device = devices.get(place.device or "")
            sizes.append((device.size if device is not None else None) or 0)
    return min(sizes)
