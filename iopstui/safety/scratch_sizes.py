"""Choose the size of a job's scratch files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.fio.inspect import SectionFiles
from iopstui.fio.job_text import count_of, expand_variables, largest_block
from iopstui.format import counted
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.model.fio.rows import flag
from iopstui.model.fio.sizes import size_bytes
from iopstui.safety import scratch
from iopstui.text import printable

SMALLEST = 4 << 20


def shared_name(job: Section) -> str:
    """The name of the file that a job's threads share, "" if each has files of its own."""
    parts = [
        Path(part).name for part in expand_variables(job.options.get("filename", "")).split(":")
    ]
    return ":".join(part for part in parts if part)


def last_offset(job: Section) -> int:
    """The byte at which the last of its clones begins: fio's size= comes on top of it. 0 if it is
    given in percent, which are those of the file."""
    count = count_of(job.options.get("numjobs"))
    first = size_bytes(expand_variables(job.options.get("offset", ""))) or 0
    increment = size_bytes(expand_variables(job.options.get("offset_increment", ""))) or 0
    return first + increment * (count - 1)


def bytes_by_file(
    sections: Sequence[SectionFiles], sizes: Sequence[int], begin: Sequence[int] | None = None
) -> dict[str, int]:
    """Bytes by file: ``size=`` of a section is what each clone with files of its own gets, split
    over them (fio(1)), after the bytes where it begins; a file that several share counts once."""
    total: dict[str, int] = {}
    for section, size, skipped in zip(sections, sizes, begin or [0] * len(sizes), strict=True):
        file_bytes = -(-size * section.sets // max(1, len(section.paths))) + skipped
        for path in section.paths:
            total[path] = max(total.get(path, 0), file_bytes)
    return total


def scratch_sizes(
    jobs: Sequence[Section],
    files: Sequence[SectionFiles],
    requested: str | None,
    space: int,
    most: int | None = None,
    spread: int = 1,
) -> list[int]:
    """The ``size=`` of each section, so that all ``files`` together fit into ``space``.

    ``requested``: exactly that for every section, or UsageError. Otherwise what the
    job says, at most an equal share of 512 MiB (and ``most``), less where the disk is nearly
    full. In ``spread`` directories each file has a part in every one, and its size is that of
    all parts together (fio shares size= out among a job's files); ``requested`` is each part's.
    What lies before a section's offset= is part of the file, and of these limits.
    """
    shares = _shares(files)
    if requested is not None:
        size = size_bytes(requested)
        if not size:
            raise UsageError(f"--size {requested!r} is not a size.", "For example: --size 512m")
        size *= spread
        if size * shares > space:
            files_of = f"{counted(shares * spread, 'scratch file')} of {requested}"
            raise UsageError(
                f"{files_of} would need {_mib(size * shares)} MiB, but only {_mib(space)} MiB "
                "may be used here (5 % of the file system stays free).",
                "Give a smaller --size or another directory.",
            )
        return [_from_offset(job, size, size, spread) for job in jobs]
    share = min(scratch.DEFAULT_BYTES, space) // shares
    largest = spread * max((largest_block(job) for job in jobs), default=4096)
    if share < max(SMALLEST // shares, largest):
        raise UsageError(
            f"Only {_mib(space)} MiB of this file system may be used (5 % stays free), too little "
            "for a scratch file.",
            "Choose a directory on another disk: iopstui run DIRECTORY ...",
        )
    return [_share(job, min(share, most or share), largest, spread) for job in jobs]


def _shares(files: Sequence[SectionFiles]) -> int:
    """How many times ``size=`` is used up if it is the same for all sections."""
    unit = 1 << 40
    sizes = bytes_by_file(files, [unit] * len(files))
    # each of them is rounded up by less than a byte
    return max(1, -(-(sum(sizes.values()) - len(sizes)) // unit))


def time_based_values(jobs: Sequence[Section], sizes: Sequence[int]) -> list[str]:
    """``time_based`` for each section whose file has ``sizes`` bytes. One whose file is smaller
    than the job says would be at its end long before the job's runtime is over."""
    return [
        "1" if flag(job.options, "time_based") or _ends_early(job, size) else "0"
        for job, size in zip(jobs, sizes, strict=True)
    ]


def _ends_early(job: Section, size: int) -> bool:
    limited = {"io_size", "io_limit", "number_ios"} & job.options.keys()
    if limited or not {"runtime", "timeout"} & job.options.keys():
        return False
    declared = size_bytes(expand_variables(job.options.get("size", "")))
    return declared is None or declared > size


def files_of(text: str) -> int:
    """Return the files from the text alone, for the points of an experiment."""
    total: dict[str, int] = {}
    for index, job in enumerate(jobfile.effective_sections(text)):
        name = shared_name(job)
        key, count = (name, 1) if name else (f"/{index}", count_of(job.options.get("numjobs")))
        total[key] = max(total.get(key, 0), count)
    return max(1, sum(total.values()))


def scratch_total(
    text: str,
    files: Sequence[SectionFiles],
    requested: str | None,
    space: int,
    most: int | None,
    spread: int = 1,
) -> int:
    """Bytes of all scratch files of a job; UsageError as ``scratch_sizes``."""
    jobs = jobfile.effective_sections(text)
    sizes = scratch_sizes(jobs, files, requested, space, most, spread)
    return sum(bytes_by_file(files, sizes, [last_offset(job) for job in jobs]).values())


def _share(job: Section, share: int, largest: int, spread: int) -> int:
    declared = size_bytes(expand_variables(job.options.get("size", ""))) or share
    size = min(declared, _from_offset(job, share, largest, spread))
    return max(size - size % max(4096 * spread, largest), largest)


def _from_offset(job: Section, size: int, least: int, spread: int) -> int:
    """Bytes left of a file of ``size`` bytes where this section begins."""
    skipped = last_offset(job) * spread
    remaining = size - skipped
    if skipped and remaining < min(least, largest_block(job) * spread):
        raise UsageError(
            f"[{printable(job.name)}] starts at {_mib(skipped)} MiB of each scratch file "
            f"(offset=), but scratch files have only {_mib(size)} MiB here.",
            "Give a larger --size, or a smaller offset=",
        )
    return remaining


def _mib(size: int) -> int:
    return size >> 20
