"""How large a job's scratch files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.model import jobfile
from iopstui.model.jobfile import Section
from iopstui.session import scratch
from iopstui.session.job_text import expand, largest_block, number
from iopstui.sources.fio_stream import size_bytes

SMALLEST = 4 << 20


def shared_name(job: Section) -> str:
    """The name of the file that a job's threads share, "" if each has files of its own."""
    parts = [Path(part).name for part in expand(job.options.get("filename", "")).split(":")]
    return ":".join(part for part in parts if part)


def distinct(jobs: Sequence[Section], names: Sequence[str], sizes: Sequence[int]) -> dict[str, int]:
    """Bytes by file: shared files count once, a clone's own files once each."""
    total: dict[str, int] = {}
    for index, (job, name, size) in enumerate(zip(jobs, names, sizes, strict=True)):
        if name:
            total[name] = max(total.get(name, 0), size)
        else:
            total[f"/{index}"] = size * number(job.options.get("numjobs"))
    return total


def scratch_sizes(
    jobs: Sequence[Section],
    names: Sequence[str],
    wanted: str | None,
    room: int,
    most: int | None = None,
    spread: int = 1,
) -> list[int]:
    """The size in bytes for each section's files, so that all together fit into ``room``.

    Asked for (``wanted``): exactly that for every section, or UsageError. Otherwise what the
    job says, at most an equal share of 512 MiB (and ``most``), less where the disk is nearly
    full. In ``spread`` directories each file has a part in every one, and its size is that of
    all parts together (fio shares size= out among a job's files); ``wanted`` is each part's.
    """
    counts = distinct(jobs, names, [1] * len(jobs))
    files = sum(counts.values())
    if wanted is not None:
        size = size_bytes(wanted)
        if not size:
            raise UsageError(f"--size {wanted!r} is not a size.", "For example: --size 512m")
        size *= spread
        if size * files > room:
            raise UsageError(
                f"{files * spread} scratch file(s) of {wanted} need {_mib(size * files)} MiB, but "
                f"only {_mib(room)} MiB may be used here (5 % of the file system stay free).",
                "Give a smaller --size or another directory.",
            )
        return [size] * len(jobs)
    share = min(scratch.DEFAULT_BYTES, room) // max(files, 1)
    largest = spread * max((largest_block(job) for job in jobs), default=4096)
    if share < max(SMALLEST // files, largest):
        raise UsageError(
            f"Only {_mib(room)} MiB may be used on this file system (5 % of it stay free), "
            "too little for a scratch file.",
            "Name a directory on another disk: iopstui run DIRECTORY ...",
        )
    return [_share(job, min(share, most or share), largest, spread) for job in jobs]


def files_of(text: str) -> int:
    """How many scratch files a job makes."""
    jobs = jobfile.effective(text)
    return sum(distinct(jobs, [shared_name(job) for job in jobs], [1] * len(jobs)).values())


def scratch_total(
    text: str, wanted: str | None, room: int, most: int | None, spread: int = 1
) -> int:
    """Bytes of all scratch files of a job; UsageError as ``scratch_sizes``."""
    jobs = jobfile.effective(text)
    names = [shared_name(job) for job in jobs]
    return sum(
        distinct(jobs, names, scratch_sizes(jobs, names, wanted, room, most, spread)).values()
    )


def _share(job: Section, share: int, largest: int, spread: int) -> int:
    declared = size_bytes(expand(job.options.get("size", ""))) or share
    size = min(declared, share)
    return max(size - size % max(4096 * spread, largest), largest)


def _mib(size: int) -> int:
    return size >> 20
