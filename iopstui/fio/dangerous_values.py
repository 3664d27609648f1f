"""Option values with which fio never ends or uses up all memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iopstui.errors import UsageError
from iopstui.fio.job_text import count_of, expand_variables, largest_block
from iopstui.format import size
from iopstui.model.fio.jobfile import Section
from iopstui.model.fio.rows import duration_s
from iopstui.model.sizes import size_bytes
from iopstui.text import printable

SECONDS_OPTIONS = ("runtime", "timeout", "ramp_time", "startdelay", "start_delay")
# fio reads a negative time as half a million years
TIMES = (*SECONDS_OPTIONS, "thinktime", "thinktime_spin")
RATES = ("rate", "rate_min", "rate_iops", "rate_iops_min")
SIZES = (
    "bs", "blocksize", "ba", "blockalign", "size", "filesize", "file_size", "io_size", "io_limit",
    "offset", "offset_increment", "bsrange", "blocksize_range", "zonesize", "zonerange", "zoneskip",
)  # fmt: skip
# hexadecimal, or with an exponent: with such a runtime= fio 3.33 ends at once and reports success
_MISREAD_NUMBER = re.compile(r"(?i)0x|[0-9.]+e[-+]?[0-9]")
# bytes that fio keeps for each I/O besides its buffer (3.33: 448 bytes)
BYTES_PER_IO = 448


def refuse_dangerous_values(jobs: Sequence[Section], memory: int | None) -> None:
    """Raises UsageError for times that fio misreads, for sizes and rates below zero, and for more
    memory than this machine has (``memory`` in bytes, ``None``: not known)."""
    for job in jobs:
        for name in TIMES:
            value = expand_variables(job.options.get(name, "")).strip()
            if value.startswith("-"):
                raise UsageError(
                    f"{name}={printable(value)} is negative, which fio takes for an endless time.",
                    f"Give a time from 0 up, for example {name}=10",
                )
            if name in SECONDS_OPTIONS and _MISREAD_NUMBER.match(value):
                raise UsageError(
                    f"{name}={printable(value)}: fio misreads a time in this notation.",
                    f"Write a decimal number and a unit, for example {name}=10s",
                )
        _refuse_long_pause(job)
        _refuse_negative(job)
    if memory is None:
        return
    for name, needed in (_depth_memory(jobs), _lock_memory(jobs)):
        if needed > memory:
            raise UsageError(
                f"{name} would need {size(needed)} of memory, but this machine has {size(memory)}.",
                "Give a smaller value.",
            )


def _refuse_long_pause(job: Section) -> None:
    """Refuse a thinktime= beyond the runtime: fio would sleep past the runtime's end."""
    text, runtime = (
        expand_variables(job.options.get(name, "")).strip() for name in ("thinktime", "runtime")
    )
    pause = float(text) / 1e6 if text.isdecimal() else duration_s(text)
    run = duration_s(runtime)
    if pause and run and pause > run:
        raise UsageError(
            f"thinktime={printable(text)} is longer than runtime={printable(runtime)}: fio ends "
            "only after that pause.",
            "Give a shorter thinktime (a bare number is in µs) or a longer runtime.",
        )


def _refuse_negative(job: Section) -> None:
    """Refuse negative values, which fio reads as other values."""
    for names, what_fio_does, advice in _NEGATIVE:
        for name in names:
            value = expand_variables(job.options.get(name, "")).strip()
            if any(part.strip().startswith("-") or "--" in part for part in value.split(",")):
                raise UsageError(
                    f"{name}={printable(value)} is negative, {what_fio_does}.",
                    advice.format(name=name),
                )


_NEGATIVE = (
    # fio reads almost 2^64 bytes, ends at once and reports success
    (("lockmem",), "and fio would end without any I/O",
     "Give a size from 0 up, for example lockmem=1g"),
    (RATES, "and fio would run without any limit",
     "Give a rate above 0, or leave {name} out for no limit."),
    # fio reads almost 2^64 bytes or a share of the file, and crashes or reports success after one
    # I/O
    (SIZES, "which fio takes for another size",
     "Give a size without a sign, for example {name}=1m"),
)  # fmt: skip


def _depth_memory(jobs: Sequence[Section]) -> tuple[str, int]:
    """Memory for fio's buffers, one for each I/O that may be under way."""
    shapes = [
        (_depth(job), count_of(job.options.get("numjobs")), largest_block(job)) for job in jobs
    ]
    needs = [depth * count * (block + BYTES_PER_IO) for depth, count, block in shapes if depth > 1]
    depths = "/".join(dict.fromkeys(str(depth) for depth, _, _ in shapes if depth > 1))
    return f"iodepth={depths}", sum(needs)


def _depth(job: Section) -> int:
    return size_bytes(expand_variables(job.options.get("iodepth", "")), job.options) or 1


def _lock_memory(jobs: Sequence[Section]) -> tuple[str, int]:
    """Memory that fio locks to leave less for the page cache (lockmem=)."""
    locked = [
        (
            size_bytes(expand_variables(job.options["lockmem"]), job.options) or 0,
            job.options["lockmem"],
        )
        for job in jobs
        if "lockmem" in job.options
    ]
    largest, text = max(locked, default=(0, ""))
    return f"lockmem={printable(text)}", largest
