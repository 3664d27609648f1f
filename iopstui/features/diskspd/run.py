"""Translate a DISKSPD command, show the result and run it."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from iopstui.cli.runs.run_job import run_job
from iopstui.errors import UsageError
from iopstui.features.diskspd.switches import (
    EXAMPLE,
    DiskspdCommand,
    check,
    check_distribution,
    read_command,
)
from iopstui.format import print_line, size
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.sizes import size_text
from iopstui.safety.scratch import DEFAULT_BYTES
from iopstui.text import printable


def translation_lines(
    translation: Translation, is_given: bool, size_option: str | None
) -> list[str]:
    """Lines that show the job, the options that were left out, and what replaces the files in the
    command: a TARGET if one is given, else a scratch file of ``size_option`` (--size)."""
    lines = ["iopstui: as a fio job:", ""]
    lines += [f"    {printable(line)}".rstrip() for line in translation.text.splitlines()]
    lines.append("")
    lines += [f"iopstui: {printable(note)}" for note in translation.notes]
    names = printable(", ".join(translation.targets))
    file_size = translation.file_size
    if is_given:
        lines.append(f"iopstui: TARGET replaces {names}")
    elif file_size is not None:
        of = f" of {printable(size_option)} (--size)" if size_option is not None else ""
        lines.append(f"iopstui: a scratch file{of} replaces {names}; removed at the end")
    if file_size is not None and size_option is None and file_size > DEFAULT_BYTES:
        lines.append(
            f"iopstui: -c asks for {size(file_size)}; a scratch file has "
            f"{size(DEFAULT_BYTES)} at most, unless --size {file_size >> 20}m is given"
        )
    return lines


def run_diskspd(request: RunRequest, arguments: argparse.Namespace) -> int:
    """Translate the command and run it. Returns the exit code."""
    translation = translate(arguments.diskspd)
    has_target = bool(request.targets)
    if not has_target:
        request = replace(request, targets=_default_target(translation))
    for line in translation_lines(translation, has_target, request.size):
        print_line(line, sys.stderr)
    private = private_directory()
    try:
        job = write_text(private, "diskspd.fio", translation.text)
        return run_job(replace(request, job=str(job)), arguments.format, arguments)
    finally:
        remove(private)


def _default_target(translation: Translation) -> tuple[str, ...]:
    """The default target: a scratch file beside the file that -c would create, an existing file
    itself, or none if the job names several files."""
    if translation.file_size is not None:
        directories = {os.path.dirname(target) or "." for target in translation.targets}
        if len(directories) > 1:
            raise UsageError("The DISKSPD command creates files in several directories.",
                             "Choose one as TARGET: iopstui run DIRECTORY --diskspd ...",
                             )  # fmt: skip
        return (directories.pop(),)
    return translation.targets if len(translation.targets) == 1 else ()


# Translate DISKSPD command lines to fio jobs, and report unsupported options.
#
# Nothing is dropped silently: ``notes`` mention each option without an equivalent, and commands
# that DISKSPD refuses are refused here, too (switches.py).


_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated command: the ``text`` of the fio job, the ``targets`` (files), their
    ``file_size`` in bytes as -c gives it (``None``: the files must exist), and ``notes`` on
    differences, one sentence each."""

    text: str
    targets: tuple[str, ...]
    file_size: int | None
    notes: tuple[str, ...]


def translate(command: str) -> Translation:
    """Translate the words after ``diskspd``, which are quoted as for a shell (but no shell is run).
    Raises UsageError."""
    parsed, targets = read_command(command)
    if not targets:
        raise UsageError("The DISKSPD command names no file to work on.", EXAMPLE)
    for target in targets:
        if target.startswith("#") or _DRIVE.match(target):
            raise UsageError(
                f"{target!r} is a Windows disk.",
                "Put any name in its place and give the disk as TARGET: iopstui run /dev/sdX ...",
            )
    check(parsed)
    return Translation(_job(parsed, targets), targets, parsed.file_size, tuple(parsed.notes))


def _job(command: DiskspdCommand, targets: Sequence[str]) -> str:
    options = {"ioengine": "mmap" if command.mapped else "libaio",
               "direct": "1" if command.cache == "u" else "0", "bs": size_text(command.block),
               **_pattern(command), **_area(command), **_pace(command, len(targets))}  # fmt: skip
    options |= command.options
    if command.write_through and command.writes:
        options["sync"] = "1"
    if command.warmup:
        options["ramp_time"] = str(command.warmup)
    options |= {"runtime": str(command.duration), "time_based": "1", "group_reporting": "1"}
    options |= _binding(command, len(targets))
    _add_notes(command, options)
    lines = ["[global]", *(f"{name}={value}" for name, value in options.items())]
    if command.total_threads is None:
        # each target has its own threads
        for number, target in enumerate(targets, 1):
            lines += _threads(
                command, f"target{number}", _escaped(target), command.threads, command.depth
            )
    else:
        # every thread uses all targets
        depth = command.depth_all or command.depth * len(targets)
        names = ":".join(map(_escaped, targets))
        lines += _threads(command, "threads", names, command.total_threads, depth)
    return "\n".join(lines) + "\n"


def _threads(command: DiskspdCommand, name: str, files: str, threads: int, depth: int) -> list[str]:
    """The sections for a target's threads. There is one for each thread if they start at different
    offsets (-T), because fio's offset_increment= would also move the end of the area."""
    common = [f"filename={files}", f"iodepth={depth}"]
    end = _area_end(command)
    if command.separation is None:
        return ["", f"[{name}]", *common, f"numjobs={threads}"]
    if end is None:
        increment = f"offset_increment={size_text(command.separation)}"
        return ["", f"[{name}]", *common, f"numjobs={threads}", increment]
    lines = []
    for number in range(threads):
        start = (command.base or 0) + number * command.separation
        if start + command.block > end:
            raise UsageError(
                f"-T: thread {number + 1} of {threads} would start at {size_text(start)}, where no "
                f"block is left of the target's {size_text(end)}.",
                "Give fewer threads, a smaller -T or a larger -c or -f.",
            )
        lines += ["", f"[{name}.{number + 1}]", *common]
        lines += [f"offset={size_text(start)}", f"size={size_text(end - start)}"]
    return lines


def _pattern(command: DiskspdCommand) -> dict[str, str]:
    kind = "rw" if 0 < command.writes < 100 else "write" if command.writes else "read"
    options = {"rw": f"rand{kind}" if command.random else kind}
    if kind == "rw":
        options["rwmixwrite"] = str(command.writes)
    if command.random:
        options |= _random(command)
    elif command.stride is not None and command.stride > command.block:
        # fio takes the number of bytes that it skips after each I/O
        options["rw"] += f":{command.stride - command.block}"
    return options


def _random(command: DiskspdCommand) -> dict[str, str]:
    # DISKSPD chooses each offset anew, while fio's random map would visit every block once
    options = {"norandommap": "1"}
    if command.random < 100:
        options["percentage_random"] = str(command.random)
    if command.align is not None and command.align != command.block:
        options["blockalign"] = size_text(command.align)
    if command.distribution is not None:
        options["random_distribution"] = _zones(command, *command.distribution)
    return options


def _zones(command: DiskspdCommand, kind: str, pairs: list[tuple[int, int]]) -> str:
    """fio's zoned distribution: DISKSPD's pairs, and one for the rest of the target, which DISKSPD
    leaves implicit."""
    check_distribution(kind, pairs, command.block)
    ios, parts = (sum(column) for column in zip(*pairs, strict=True))
    ends = [size for size in (command.end, command.file_size) if size is not None]
    total = 100 if kind == "pct" else min(ends) - (command.base or 0) if ends else None
    if total is not None and parts > total:
        raise UsageError(
            "-rdabs: its ranges reach beyond the target, where DISKSPD cuts them off.",
            f"Give ranges of {size_text(total)} together.",
        )
    if ios < 100:
        if total is None or parts == total:
            raise UsageError(
                f"-rdabs: {100 - ios} % of the I/O go to the rest of the target, whose size the "
                "command does not say.", "Add -fSIZE, or the last range.",
            )  # fmt: skip
        pairs = [*pairs, (100 - ios, total - parts)]
    ranges = [f"{percent}/{size_text(part) if kind == 'abs' else part}" for percent, part in pairs]
    return f"{'zoned_abs' if kind == 'abs' else 'zoned'}:{':'.join(ranges)}"


def _area(command: DiskspdCommand) -> dict[str, str]:
    """The options for the used area, which is between -B and -f (two offsets in the target)."""
    options = {}
    if command.base:
        options["offset"] = size_text(command.base)
    end = _area_end(command)
    if end is not None:
        options["size"] = size_text(end - (command.base or 0))
    return options


def _area_end(command: DiskspdCommand) -> int | None:
    ends = (command.end, command.file_size)
    return min((size for size in ends if size is not None), default=None)


def _pace(command: DiskspdCommand, targets: int) -> dict[str, str]:
    """The options that limit the rate. DISKSPD's limits apply to each thread and target, and to
    reads and writes together."""
    options = {}
    if command.rate is not None:
        name, limit = command.rate
        if command.total_threads is not None and targets > 1:
            limit *= targets
            command.notes.append("-g: with -F fio limits each thread's sum over all targets")
        shares = [limit * (100 - command.writes) // 100, limit * command.writes // 100]
        mixed = 0 < command.writes < 100
        options[name] = ",".join(str(max(1, share)) for share in shares) if mixed else str(limit)
    if command.burst is not None:
        # fio's value applies to all threads of a target together
        threads = command.total_threads or command.threads
        options["thinktime_blocks"] = str(max(1, command.burst // threads))
        options["thinktime"] = f"{command.pause}ms"
    return options


def _binding(command: DiskspdCommand, targets: int) -> dict[str, str]:
    """The options that bind the threads to CPUs in turn. If there are more CPUs than threads, only
    the first ones are used."""
    if not command.cpus:
        return {}
    threads = command.total_threads or command.threads * targets
    cpus = list(dict.fromkeys(command.cpus[:threads]))
    return {"cpus_allowed": ",".join(map(str, cpus)), "cpus_allowed_policy": "split"}


def _add_notes(command: DiskspdCommand, options: Mapping[str, str]) -> None:
    several_threads = (command.total_threads or command.threads) > 1
    for differs, note in (
        (not command.cpus and not command.unbound,
         "DISKSPD binds its threads to CPUs in turn unless -n is given; fio's are not bound (to "
         "bind them: -aCPU,... or --bind queues)"),
        (command.interlocked and several_threads,
         "-si: fio's jobs share no offset, so each goes through the file by itself"),
        (not command.random and command.stride is not None and command.stride < command.block,
         "-s: a stride below the block size has no equivalent; the block size is used"),
        (command.write_through and not command.writes,
         "write-through changes nothing: the job only reads"),
        (options["direct"] == "0" and options["ioengine"] == "libaio",
         "without -Su or -Sh I/O goes through the page cache, where libaio waits for each: the "
         "depth is not reached"),
        (command.writes and not {"zero_buffers", "refill_buffers"} & set(options),
         "written data is random here; DISKSPD writes the bytes 0 to 255 in turn"),
        (command.depth_all is not None and command.total_threads is None,
         "-O is only used with -F"),
    ):  # fmt: skip
        if differs:
            command.notes.append(note)


def _escaped(target: str) -> str:
    return target.replace("\\", "\\\\").replace(":", "\\:")
