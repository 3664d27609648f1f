"""The area of a file or device that one of several machines uses (--part)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from iopstui.errors import UsageError
from iopstui.fio.job_text import expand_variables, largest_block
from iopstui.format import size as size_text
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target, TargetPart, TargetPath
from iopstui.model.fio import jobfile
from iopstui.model.fio.sizes import part_bytes, size_bytes
from iopstui.text import printable

UNIT = 1 << 20
SMALLEST_UNIT = 4096
_AREA_OPTIONS = ("offset", "offset_increment", "zonemode", "zonesize", "zonerange", "zoneskip")


def check_part(part: TargetPart | None, target: Target | None) -> None:
    """UsageError for a part of something that has none."""
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
    """fio's offset= and size= for ``part`` of every place of the target. ``size`` is the user's
    for the whole target, ``text`` the job. UsageError if it cannot be divided."""
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
    # fio shares size= out among the files of a job
    return {"offset": str(offset), "size": str(length * len(target.places))}


def _requested_bytes(size: str, target_bytes: int, target: Target) -> int:
    requested = size_bytes(size)
    if not requested:
        raise UsageError(f"--size {size!r} is not a size.", "For example: --size 512m")
    if requested > target_bytes:
        # machines that each make it longer could cut off what another has written
        path = printable(target.places[0].path)
        hint = "Leave out --size."
        if target.kind == kinds.FILE:
            hint = f"To make it longer: truncate -s {printable(size)} {path}"
        raise UsageError(
            f"--size {printable(size)}: {path} has only {size_text(target_bytes)}.", hint
        )
    return requested


def _smallest_place_bytes(places: Sequence[TargetPath], devices: Mapping[str, BlockDevice]) -> int:
    """Bytes of the smallest place, 0 if unknown."""
    sizes = []
    for place in places:
        if place.kind == kinds.FILE:
            sizes.append(os.stat(place.path).st_size)
        else:
            device = devices.get(place.device or "")
            sizes.append((device.size if device is not None else None) or 0)
    return min(sizes)
