"""Turn arguments into checked runs, with a description of what they write."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.features.fit.library import Programs
from iopstui.features.fit.model.program import Program
from iopstui.fio.inspect import Fio, find_fio
from iopstui.format import counted, duration, size
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.private import private_directory, remove
from iopstui.linux.roots import Roots
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.point import run_length_s
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio.sizes import size_bytes
from iopstui.preflight.job import prepare
from iopstui.preflight.targets import choose_targets
from iopstui.recording.writer import check_creatable
from iopstui.text import printable

JOB, SCRATCH_FILE = "fit", "fit.scratch"
SETTLE_S, OVERHEAD_S = 2.0, 5.0
IN_MEMORY = ("tmpfs", "ramfs")
FAST_SYNCS, FAST_BYTES = 10_000, 1_000_000_000
"""A second, of a fast disk, for what may be written."""


@dataclass(frozen=True, slots=True)
class FitSetup:
    """What runs: the ``programs`` on scratch files in ``target``, a directory; ``run`` holds for
    each of them. ``file_bytes`` is the size of each program's file, ``measure`` takes the place of
    the programs' own seconds."""

    programs: tuple[Program, ...]
    target: Target
    devices: Mapping[str, BlockDevice]
    run: RunRequest
    measure: float | None
    fio: Fio
    file_bytes: Mapping[str, int]

    def seconds_of(self, program: Program) -> float:
        """Measured seconds."""
        return self.measure or program.seconds

    def request(self, program: Program) -> RunRequest:
        """The run of a program."""
        # of the shipped job's own options none must remain beside the program's
        plain = {} if "fdatasync" in program.job else {"fdatasync": "0"}
        length = run_length_s(SETTLE_S, self.seconds_of(program), self.run.interval_s)
        times = {"time_based": "1", "runtime": f"{round(1000 * length)}ms"}
        return replace(self.run, job=JOB, overrides={**plain, **program.job, **times})


def split_words(words: Sequence[str], programs: Programs) -> tuple[str, tuple[Program, ...]]:
    """The directory (default: the current one) and the programs. UsageError."""
    first, rest = (words[0], words[1:]) if words else ("", ())
    if not first or programs.find(first) is not None:
        return ".", programs.choose(words)
    if "/" in first or os.path.lexists(first) or first in (".", ".."):
        return first, programs.choose(rest)
    raise UsageError(
        f"{first!r} is neither a directory nor a program.", programs.advice(first)
    )  # fmt: skip


def set_up(
    directory: str, programs: Sequence[Program], run: RunRequest, measure: float | None
) -> FitSetup:
    """Check everything before anything runs. UsageError, Refused or Missing."""
    fio, devices = find_fio(), read_devices(Roots())
    target, job_target = choose_targets((directory,), JOB, devices, Roots())
    if job_target is None or target.kind != kinds.DIRECTORY or target.has_several:
        raise UsageError(
            f"{printable(directory)} is no directory.",
            "Give the directory that the program would write to: iopstui fit /var/lib/etcd etcd",
        )
    if target.fstype in IN_MEMORY:
        raise UsageError(
            f"{printable(directory)} is on {target.fstype}, which is memory: a sync there says "
            "nothing about a disk.",
            "Give a directory on the disk that the program would use.",
        )
    if run.record:
        check_creatable(Path(run.record))
    setup = FitSetup(tuple(programs), job_target, devices, run, measure, fio, {})
    return replace(setup, file_bytes=_preflight(setup))


def _preflight(setup: FitSetup) -> dict[str, int]:
    """The size of each program's file. Every run is examined now: no refusal in the middle."""
    private, sizes = private_directory(), {}
    try:
        for program in setup.programs:
            prepared = prepare(
                setup.request(program), setup.target, setup.fio, private, setup.devices, Roots()
            )
            sizes[program.name] = sum(prepared.file_sizes.values())
            prepared.close()
    finally:
        remove(private)
    return sizes


def run_seconds(setup: FitSetup) -> float:
    """About how long all takes."""
    return sum(setup.seconds_of(program) + SETTLE_S + 1 + OVERHEAD_S for program in setup.programs)


def plan_lines(setup: FitSetup) -> Iterator[str]:
    """Describe the runs: programs, writes, duration."""
    count, place = counted(len(setup.programs), "program"), printable(setup.target.path)
    yield f"{count} in {place}, about {duration(run_seconds(setup))}:"
    for program in setup.programs:
        length = setup.seconds_of(program) + SETTLE_S + 1
        file = size(setup.file_bytes[program.name])
        rate = size_bytes(program.job.get("rate", ""))
        if rate is not None:
            speed = f"{size(rate * length)} at most"
        elif program.job.get("fdatasync") == "1":
            most = size(FAST_SYNCS * program.block_size * length)
            speed = f"{most} at {FAST_SYNCS:,} syncs a second, less on a slower disk"
        else:
            speed = f"as much as the disk takes: {size(FAST_BYTES * length)} at 1 GB/s"
        yield f"  {program.name}: a scratch file of {file}, written for {length:g} s: {speed}"
        # fio's file has whole blocks, which is a little less
        if setup.file_bytes[program.name] < 0.99 * (size_bytes(program.job["size"]) or 0):
            yield "  (there is no room for more, so it is written over and over: may be faster)"
    if setup.run.write_budget is not None:
        yield f"limit: {size(setup.run.write_budget)} (--write-budget)"
    yield "The scratch files are removed at the end. No other file is touched."
