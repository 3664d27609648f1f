"""Turn the options into a checked promise test, and describe what it does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.features.promise.model import (
    LATENCY,
    SINGLE,
    Check,
    QueueDepth,
    credits_used,
    list_checks,
    max_written_bytes,
    open_loop,
)
from iopstui.fio.inspect import Fio, find_fio
from iopstui.format import duration, size
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.experiment.point import run_length_s
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.sizes import size_bytes
from iopstui.model.volumes.promised import PromisedFigures
from iopstui.model.volumes.volume import IOPS, THROUGHPUT
from iopstui.preflight.job import prepare
from iopstui.preflight.targets import choose_targets
from iopstui.recording.writer import check_creatable
from iopstui.safety.scratch import DEFAULT_BYTES
from iopstui.text import printable

JOB = "promise"
WHOLE_TARGET = "100%"
SINGLE_IO_S = 3.0
"""How long single I/Os are measured, because their latency determines the depth of later checks."""
OVERHEAD_S = 2.5
DRAIN_MARGIN_S = 10.0
"""How much longer than a full bucket lasts credits are used up, so that it is certainly empty."""
MAX_DEEPER_RUNS = 2
"""How many times a deeper queue is tried if one was too shallow."""


@dataclass(frozen=True, slots=True)
class PromiseSetup:
    """A promise test: the settings for each ``run``, the checks to run (``todo``), the checks that
    are left out with the reasons (``skipped``), and the target. Times are in seconds."""

    promised: PromisedFigures
    run: RunRequest
    settle: float
    measure: float
    tolerance: float
    """The share by which a measured figure may miss the promised one."""
    drain: bool
    """Use up the burst credits first, so that the baseline can be measured, too."""
    target: Target
    job_target: Target
    devices: Mapping[str, BlockDevice]
    todo: tuple[Check, ...]
    skipped: Mapping[Check, str]
    fio: Fio

    @property
    def uses_scratch(self) -> bool:
        """Whether the test creates its own scratch file."""
        return self.job_target.kind == kinds.DIRECTORY

    def request(
        self, check: Check, depth: QueueDepth, seconds: float, interval_s: float = 1.0
    ) -> RunRequest:
        settle = self.settle if seconds != SINGLE_IO_S else 1.0
        overrides = {
            "rw": check.rw, "bs": str(check.block_size), "iodepth": str(depth.iodepth),
            "numjobs": str(depth.jobs), "time_based": "1",
            "runtime": f"{round(1000 * run_length_s(settle, seconds, interval_s))}ms",
        }  # fmt: skip
        if check.load:
            overrides |= open_loop(check, fio_cpu_count())[1]
        on_device = self.job_target.kind == kinds.DEVICE
        size = self.run.size or (WHOLE_TARGET if on_device else None)
        return replace(self.run, job=JOB, overrides=overrides, size=size)


def target_disk(texts: tuple[str, ...], devices: Mapping[str, BlockDevice]) -> BlockDevice | None:
    """The disk that is the target, or on which it is; it has a size and a model. ``None`` if no
    disk is visible."""
    target, _ = choose_targets(texts, JOB, devices, Roots())
    device = devices.get(target.device or "")
    if device is not None and target.kind != kinds.DEVICE and device.disk in devices:
        return devices[device.disk or ""]
    return device


def set_up(
    promised: PromisedFigures, run: RunRequest, settle: float, measure: float,
    tolerance: float | None, drain: bool,
) -> PromiseSetup:  # fmt: skip
    """Check everything before anything runs. Raises UsageError, Refused or Missing. The default
    ``tolerance`` is the provider's own definition of delivered, or 2 %."""
    fio = find_fio()
    devices = read_devices(Roots())
    target, job_target = choose_targets(run.targets, JOB, devices, Roots())
    if job_target is None or target.has_several:
        raise UsageError("A promise is about one volume: give one TARGET.")
    all_checks = list_checks(promised)
    may_write = target.kind == kinds.DIRECTORY or bool(run.destroy_data)
    reason = f"writing needs --destroy-data {printable(target.path)}"
    skipped = {} if may_write else {check: reason for check in all_checks if check.writes}
    todo = tuple(check for check in all_checks if check not in skipped)
    if not todo:
        raise UsageError(f"No figure of {promised.volume.id} can be tested by only reading.",
                         f"Add --destroy-data {printable(target.path)}.")  # fmt: skip
    _check_file_size(run.size, todo)
    if run.record:
        check_creatable(Path(run.record))
    delivers = promised.volume.delivers
    if tolerance is None:
        tolerance = 1 - delivers[0] if delivers is not None else 0.02
    setup = PromiseSetup(
        promised, run, settle, measure, tolerance, drain, target, job_target, devices, todo,
        skipped, fio,
    )  # fmt: skip
    _preflight(setup)
    return setup


def _check_file_size(text: str | None, todo: tuple[Check, ...]) -> None:
    """Raise UsageError if the area is smaller than one of fio's blocks."""
    area, block = size_bytes(text) if text else None, max(check.block_size for check in todo)
    if area is not None and area < block:
        raise UsageError(
            f"--file-size {printable(str(text))} is too small ({area:,} bytes): blocks have up to "
            f"{size(block)}.",
            f"Give at least {size(block)}, better 1g.",
        )


def _preflight(setup: PromiseSetup) -> None:
    """Check every kind of run now, so that none is refused during the test."""
    private = private_directory()
    try:
        for check in {(check.rw, check.load): check for check in setup.todo}.values():
            request = setup.request(check, SINGLE, setup.measure)
            prepare(request, setup.job_target, setup.fio, private, setup.devices, Roots()).close()
    finally:
        remove(private)


def run_seconds(setup: PromiseSetup) -> float:
    """About how long the whole test takes, in seconds."""
    check_s = setup.settle + setup.measure + 1 + OVERHEAD_S
    singles = len(single_checks(setup)) * (SINGLE_IO_S + 2 + OVERHEAD_S)
    drains = sum(seconds + OVERHEAD_S for seconds in drained_checks(setup).values())
    return len(setup.todo) * check_s + singles + drains


def drained_checks(setup: PromiseSetup) -> dict[Check, float]:
    """The checks before which burst credits are used up (``--drain``), each with the seconds that a
    full bucket lasts. They are the first checks that use each bucket."""
    durations: dict[Check, float] = {}
    kinds: set[str] = set()
    for check in setup.todo if setup.drain else ():
        bucket = setup.promised.bucket(check.kind) if check.kind != LATENCY else None
        if bucket is None or check.burst is None or check.kind in kinds:
            continue
        lasts_s = bucket.lasts_s(
            check.target_iops * (check.block_size if check.kind == THROUGHPUT else 1)
        )
        if lasts_s is not None:
            kinds.add(check.kind)
            durations[check] = lasts_s + DRAIN_MARGIN_S
    return durations


def single_checks(setup: PromiseSetup) -> list[Check]:
    """The checks of single I/Os that run before the others: one for each kind of check that needs
    their latency."""
    by_rw: dict[str, Check] = {}
    for check in setup.todo:
        if check.kind != LATENCY:
            by_rw.setdefault(check.rw, check)
    return list(by_rw.values())


def plan_lines(setup: PromiseSetup) -> Iterator[str]:
    """Describe the test: runs, writes, credits used, duration."""
    yield f"{len(setup.todo)} figures, about {duration(run_seconds(setup))}:"
    for check in setup.todo:
        yield f"  {title_of_check(check)}: {setup.measure:g} s"
    for check, seconds in drained_checks(setup).items():
        yield f"  first {title_of_check(check)} until the credits are used up: {duration(seconds)}"
    for check, reason in setup.skipped.items():
        yield f"  {title_of_check(check)}: not tested; {reason}"
    yield from _write_lines(setup)
    for kind, unit in ((IOPS, "I/O credits"), (THROUGHPUT, "bytes of credits")):
        bucket = setup.promised.bucket(kind)
        length = setup.settle + setup.measure + 1
        spent = credits_used(setup.promised, setup.todo, kind, length)
        if bucket is not None and spent:
            spent = bucket.size if drained_checks(setup) else min(spent, bucket.size)
            refill_s = bucket.refills_s(level=bucket.size - spent) or 0.0
            yield (f"credits: uses up to {spent:,.0f} of {bucket.size:,.0f} {unit}; full again "
                   f"after {duration(refill_s)} without I/O")  # fmt: skip


def _write_lines(setup: PromiseSetup) -> Iterator[str]:
    place = printable(setup.target.path)
    length = setup.settle + setup.measure + 1
    total = max_written_bytes(setup.todo, length)
    more = "more if it is faster"
    if setup.uses_scratch:
        file_size = setup.run.size
        file = (size_bytes(file_size) if file_size else None) or DEFAULT_BYTES
        yield (f"writes: a scratch file ({size(file)}) in {place}, removed at the end, and about "
               f"{size(total)} into it at the promised speed, {more}")  # fmt: skip
    elif any(check.writes for check in setup.todo):
        yield f"writes: OVERWRITES {place}, about {size(total)} at the promised speed, {more}"
    else:
        yield f"writes: nothing; {place} is read only"
    if setup.run.write_budget is not None:
        yield f"limit: {size(setup.run.write_budget)} (--write-budget)"


def title_of_check(check: Check) -> str:
    """The title of a check, such as "random reads, 4 KiB"."""
    block = check.block_size
    unit = f"{block >> 20} MiB" if block >= 1 << 20 and not block % (1 << 20) else (
        f"{block / 1024:g} KiB")  # fmt: skip
    plural = f"{check.direction}s"
    if check.kind == LATENCY:
        figure = check.percentile or "latency"
        if check.load:
            return f"{figure} of random {plural} at {check.load:,.0f}/s, {unit}"
        return f"{figure} of single {check.rw.removeprefix('rand')}s, {unit}"
    return f"{'random' if check.kind == IOPS else 'sequential'} {plural}, {unit}"


def fio_cpu_count() -> int:
    return len(os.sched_getaffinity(0))
