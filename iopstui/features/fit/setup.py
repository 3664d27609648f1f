"""Turn the arguments into checked runs, and describe what they write."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iopstui.catalog import SUFFIX, read_toml, user_directory
from iopstui.errors import UsageError
from iopstui.features.fit.model import Program, parse_program
from iopstui.fio.inspect import Fio, find_fio
from iopstui.fio.library import shipped_directory
from iopstui.format import counted, duration, size
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.point import run_length_s
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.sizes import size_bytes
from iopstui.preflight.job import prepare
from iopstui.preflight.targets import choose_targets
from iopstui.recording.writer import check_creatable
from iopstui.text import printable

JOB, SCRATCH_FILE = "fit", "fit.scratch"
SETTLE_S, OVERHEAD_S = 2.0, 5.0
IN_MEMORY = ("tmpfs", "ramfs")
FAST_SYNCS, FAST_BYTES = 10_000, 1_000_000_000
"""The syncs and bytes per second of a fast disk, to estimate how much may be written."""


@dataclass(frozen=True, slots=True)
class FitSetup:
    """What to run: the ``programs``, on scratch files in the directory ``target``, each with the
    settings in ``run``. ``file_bytes`` has the size of each program's file; ``measure`` replaces
    the programs' own measuring times, in seconds."""

    programs: tuple[Program, ...]
    target: Target
    devices: Mapping[str, BlockDevice]
    run: RunRequest
    measure: float | None
    fio: Fio
    file_bytes: Mapping[str, int]

    def seconds_of(self, program: Program) -> float:
        return self.measure or program.seconds

    def request(self, program: Program) -> RunRequest:
        # the shipped job's own fdatasync must not remain if the program has none
        plain = {} if "fdatasync" in program.job else {"fdatasync": "0"}
        length = run_length_s(SETTLE_S, self.seconds_of(program), self.run.interval_s)
        times = {"time_based": "1", "runtime": f"{round(1000 * length)}ms"}
        return replace(self.run, job=JOB, overrides={**plain, **program.job, **times})


def split_words(words: Sequence[str], programs: Programs) -> tuple[str, tuple[Program, ...]]:
    """Split the words into the directory (default: the current one) and the programs. Raises
    UsageError."""
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
    """Check everything before anything runs. Raises UsageError, Refused or Missing."""
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
    """The size of each program's file. All runs are checked now, so that none is refused after
    others have run."""
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
    """About how long all runs take, in seconds."""
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
        # not less than: fio's file may be a little smaller, because it has whole blocks only
        if setup.file_bytes[program.name] < 0.99 * (size_bytes(program.job["size"]) or 0):
            yield (
                "  (no room for a larger file; it is overwritten again and again, which may be "
                "faster)"
            )
    if setup.run.write_budget is not None:
        yield f"limit: {size(setup.run.write_budget)} (--write-budget)"
    yield "The scratch files are removed at the end. No other file is touched."


# Load the programs that are shipped in fits/, and the user's own ones.


FOLDER = "fits"


@dataclass(frozen=True, slots=True)
class Programs:
    """All programs by name. ``problems`` are sentences about files of the user that could not be
    used."""

    by_name: Mapping[str, Program] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def find(self, word: str) -> Program | None:
        """The program with that name, or with that other name."""
        key = word.strip().lower()
        return self.by_name.get(key) or next(
            (program for program in self.by_name.values() if key in program.also), None
        )

    def choose(self, words: Sequence[str]) -> tuple[Program, ...]:
        """The programs with these names, each once; all programs if no names are given. Raises
        UsageError."""
        chosen: dict[str, Program] = {}
        for word in words:
            program = self.find(word)
            if program is None:
                raise UsageError(f"No program is called {word!r}.", self.advice(word))
            chosen[program.name] = program
        return tuple(chosen.values() if words else self.by_name.values())

    def advice(self, word: str) -> str:
        """A hint for an unknown name: similar names, and how to list all."""
        names = [name for one in self.by_name.values() for name in (one.name, *one.also)]
        matches = difflib.get_close_matches(word.lower(), names, n=2, cutoff=0.5)
        unused = f" {self.problems[0]}" if self.problems else ""
        return (f"Did you mean {' or '.join(matches)}? " if matches else "") + (
            f"Programs: {', '.join(self.by_name)}.{unused}")  # fmt: skip


def read_programs(directory: Path | None = None) -> Programs:
    """Read the shipped programs, and the user's in ``directory`` (default: ~/.config/iopstui/fits),
    which win if names are equal. Raises Missing if the shipped ones are not there."""
    shipped = shipped_directory(FOLDER, "program's file")
    programs: dict[str, Program] = {}
    problems: list[str] = []
    directory = user_directory(FOLDER) if directory is None else directory
    own = sorted(directory.glob(f"*{SUFFIX}")) if directory and directory.is_dir() else []
    for path in (*sorted(shipped.glob(f"*{SUFFIX}")), *own):
        try:
            data = read_toml(path, path.parent == shipped)
        except UsageError as error:
            problems.append(error.message)
            continue
        program, mistakes = parse_program(data, path.name.removesuffix(SUFFIX))
        if program is None:
            more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
            problems.append(f"{path} is not used: {mistakes[0]}{more}.")
        else:
            programs[program.name] = program
    return Programs(programs, tuple(problems))
