"""Translate DISKSPD command lines into fio jobs, and report unsupported options.

Nothing is dropped silently: what has no equivalent is named in ``notes``, and what DISKSPD refuses
is refused (diskspd_switches.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui.errors import UsageError
from iopstui.model.fio.diskspd_switches import (
    EXAMPLE,
    DiskspdCommand,
    check,
    check_distribution,
    read_command,
)
from iopstui.model.sizes import size_text

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated command: ``text`` of the fio job, ``targets`` (files), ``creates`` the size
    in bytes of -c (``None``: the files must exist), and ``notes`` on differences, one sentence
    each."""

    text: str
    targets: tuple[str, ...]
    creates: int | None
    notes: tuple[str, ...]


def translate(command: str) -> Translation:
    """The words after ``diskspd``, in a shell's quoting (no shell is involved). UsageError."""
    read, targets = read_command(command)
    if not targets:
        raise UsageError("The DISKSPD command names no file to work on.", EXAMPLE)
    for target in targets:
        if target.startswith("#") or _DRIVE.match(target):
            raise UsageError(
                f"{target!r} is a Windows disk.",
                "Put any name in its place and give the disk as TARGET: iopstui run /dev/sdX ...",
            )
    check(read)
    return Translation(_job(read, targets), targets, read.creates, tuple(read.notes))


def _job(read: DiskspdCommand, targets: Sequence[str]) -> str:
    options = {"ioengine": "mmap" if read.mapped else "libaio",
               "direct": "1" if read.cache == "u" else "0", "bs": size_text(read.block),
               **_pattern(read), **_area(read), **_pace(read, len(targets))}  # fmt: skip
    options |= read.options
    if read.through and read.writes:
        options["sync"] = "1"
    if read.warmup:
        options["ramp_time"] = str(read.warmup)
    options |= {"runtime": str(read.duration), "time_based": "1", "group_reporting": "1"}
    options |= _binding(read, len(targets))
    _add_notes(read, options)
    lines = ["[global]", *(f"{name}={value}" for name, value in options.items())]
    if read.total is None:
        # each target has threads of its own
        for number, target in enumerate(targets, 1):
            lines += _threads(read, f"target{number}", _escaped(target), read.threads, read.depth)
    else:
        # every thread works on all targets
        depth = read.depth_all or read.depth * len(targets)
        names = ":".join(map(_escaped, targets))
        lines += _threads(read, "threads", names, read.total, depth)
    return "\n".join(lines) + "\n"


def _threads(read: DiskspdCommand, name: str, files: str, threads: int, depth: int) -> list[str]:
    """The sections of a target's threads: one each where they start apart (-T), because fio adds
    offset_increment= to the end of the area, too."""
    each = [f"filename={files}", f"iodepth={depth}"]
    end = _end(read)
    if read.separation is None:
        return ["", f"[{name}]", *each, f"numjobs={threads}"]
    if end is None:
        apart = f"offset_increment={size_text(read.separation)}"
        return ["", f"[{name}]", *each, f"numjobs={threads}", apart]
    lines = []
    for number in range(threads):
        start = (read.base or 0) + number * read.separation
        if start + read.block > end:
            raise UsageError(
                f"-T: thread {number + 1} of {threads} would start at {size_text(start)}, where no "
                f"block is left of the target's {size_text(end)}.",
                "Give fewer threads, a smaller -T or a larger -c or -f.",
            )
        lines += ["", f"[{name}.{number + 1}]", *each]
        lines += [f"offset={size_text(start)}", f"size={size_text(end - start)}"]
    return lines


def _pattern(read: DiskspdCommand) -> dict[str, str]:
    """Return the I/O pattern, and where it reads and writes."""
    kind = "rw" if 0 < read.writes < 100 else "write" if read.writes else "read"
    options = {"rw": f"rand{kind}" if read.random else kind}
    if kind == "rw":
        options["rwmixwrite"] = str(read.writes)
    if read.random:
        options |= _random(read)
    elif read.stride is not None and read.stride > read.block:
        # fio skips so many bytes after each I/O
        options["rw"] += f":{read.stride - read.block}"
    return options


def _random(read: DiskspdCommand) -> dict[str, str]:
    # DISKSPD draws each offset anew; fio's map would have it visit every block once
    options = {"norandommap": "1"}
    if read.random < 100:
        options["percentage_random"] = str(read.random)
    if read.align is not None and read.align != read.block:
        options["blockalign"] = size_text(read.align)
    if read.distribution is not None:
        options["random_distribution"] = _zones(read, *read.distribution)
    return options


def _zones(read: DiskspdCommand, kind: str, pairs: list[tuple[int, int]]) -> str:
    """fio's zoned distribution: the same pairs, but the rest must be said."""
    check_distribution(kind, pairs, read.block)
    ios, parts = (sum(one) for one in zip(*pairs, strict=True))
    ends = [size for size in (read.end, read.creates) if size is not None]
    whole = 100 if kind == "pct" else min(ends) - (read.base or 0) if ends else None
    if whole is not None and parts > whole:
        raise UsageError(
            "-rdabs: its ranges reach beyond the target, where DISKSPD cuts them off.",
            f"Give ranges of {size_text(whole)} together.",
        )
    if ios < 100:
        if whole is None or parts == whole:
            raise UsageError(
                f"-rdabs: {100 - ios} % of the I/O go to the rest of the target, whose size the "
                "command does not say.", "Add -fSIZE, or the last range.",
            )  # fmt: skip
        pairs = [*pairs, (100 - ios, whole - parts)]
    words = [f"{one}/{size_text(part) if kind == 'abs' else part}" for one, part in pairs]
    return f"{'zoned_abs' if kind == 'abs' else 'zoned'}:{':'.join(words)}"


def _area(read: DiskspdCommand) -> dict[str, str]:
    """-B and -f are both offsets in the target: between them lies the area."""
    options = {}
    if read.base:
        options["offset"] = size_text(read.base)
    end = _end(read)
    if end is not None:
        options["size"] = size_text(end - (read.base or 0))
    return options


def _end(read: DiskspdCommand) -> int | None:
    """End of the area; ``None``: the end of the target."""
    return min((size for size in (read.end, read.creates) if size is not None), default=None)


def _pace(read: DiskspdCommand, targets: int) -> dict[str, str]:
    """DISKSPD's limits are for each thread and target, and of reads and writes together."""
    options = {}
    if read.rate is not None:
        name, limit = read.rate
        if read.total is not None and targets > 1:
            limit *= targets
            read.notes.append("-g: with -F fio limits each thread's sum over all targets")
        shares = [limit * (100 - read.writes) // 100, limit * read.writes // 100]
        mixed = 0 < read.writes < 100
        options[name] = ",".join(str(max(1, one)) for one in shares) if mixed else str(limit)
    if read.burst is not None:
        # its count is for all threads of a target together
        threads = read.total or read.threads
        options["thinktime_blocks"] = str(max(1, read.burst // threads))
        options["thinktime"] = f"{read.pause}ms"
    return options


def _binding(read: DiskspdCommand, targets: int) -> dict[str, str]:
    """Threads are dealt out to the CPUs in turn: of more CPUs than threads the first are used."""
    if not read.cpus:
        return {}
    threads = read.total or read.threads * targets
    cpus = list(dict.fromkeys(read.cpus[:threads]))
    return {"cpus_allowed": ",".join(map(str, cpus)), "cpus_allowed_policy": "split"}


def _add_notes(read: DiskspdCommand, options: Mapping[str, str]) -> None:
    many = (read.total or read.threads) > 1
    for differs, words in (
        (not read.cpus and not read.unbound,
         "DISKSPD binds its threads to CPUs in turn unless -n is given; fio's are not bound (-aCPU,"
         "... says where, or --bind queues)"),
        (read.interlocked and many,
         "-si: fio's jobs share no offset, so each goes through the file by itself"),
        (not read.random and read.stride is not None and read.stride < read.block,
         "-s: a stride below the block size has no equivalent; it is the block"),
        (read.through and not read.writes,
         "write-through changes nothing: the job only reads"),
        (options["direct"] == "0" and options["ioengine"] == "libaio",
         "without -Su or -Sh I/O goes through the page cache, where libaio waits for each: the "
         "depth is not reached"),
        (read.writes and not {"zero_buffers", "refill_buffers"} & set(options),
         "written data is random here, in DISKSPD the bytes 0 to 255 in turn"),
        (read.depth_all is not None and read.total is None, "-O is only used with -F"),
    ):  # fmt: skip
        if differs:
            read.notes.append(words)


def _escaped(target: str) -> str:
    return target.replace("\\", "\\\\").replace(":", "\\:")
