"""Ordinary jobs on a quiet or a busy machine: no finding may be false.

A finding is allowed if counters beside the session show that it is true: jobs that waited for a CPU
(schedstat), CPU time that the hypervisor took (steal), a job without CPU time left and a depth that
is not reached (fio's own figures), completions on one CPU (softirqs), memory pressure (PSI). All
others are false alarms."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import loads
from devices import ext4, loop
from effect import Effect
from proofs import PSI, memory_pressure, worked
from scenario import HERE, Beside, Recipe, Scenario

SECONDS = 20.0


@dataclass(frozen=True)
class Kind:
    """An ordinary job, and the rules that are true of such a job."""

    name: str
    job: Mapping[str, object]
    true: frozenset[str] = frozenset()
    file: bool = False
    size: str | None = None


BUFFERED = frozenset({"disagree", "write-back", "depth"})
KINDS = (
    Kind("randread-1", {"ioengine": "psync"}),
    Kind("randread-8", {"iodepth": 8}),
    Kind("randread-32", {"iodepth": 32}),
    Kind("randwrite-4", {"rw": "randwrite", "iodepth": 4}),
    Kind("mixed", {"rw": "randrw", "rwmixread": 70, "iodepth": 8}),
    Kind("four-jobs", {"ioengine": "psync", "numjobs": 4}),
    Kind("sequential", {"rw": "read", "bs": "128k", "iodepth": 4}, frozenset({"disagree"})),
    Kind("large-writes", {"rw": "write", "bs": "1m", "iodepth": 2}, frozenset({"disagree"})),
    Kind("rate-200", {"rate_iops": 200, "iodepth": 4}),
    Kind("rate-2000", {"rate_iops": 2000, "iodepth": 8}),
    Kind("poisson", {"rate_iops": 300, "rate_process": "poisson", "ioengine": "psync"}),
    Kind("thinktime", {"thinktime": "5ms", "ioengine": "psync"}),
    Kind("io_uring", {"ioengine": "io_uring", "iodepth": 16}),
    Kind("ranges", {"rw": "randrw", "bsrange": "4k-64k", "iodepth": 4}),
    Kind("file", {"iodepth": 4}, file=True, size="32m"),
    Kind("file-writes", {"rw": "randwrite", "ioengine": "psync"}, frozenset({"disagree"}), True,
         "32m"),
    Kind("buffered-reads", {"ioengine": "psync", "direct": 0}, BUFFERED, True, "32m"),
    Kind("buffered-writes", {"rw": "randwrite", "ioengine": "psync", "direct": 0}, BUFFERED, True,
         "32m"),
)  # fmt: skip
BESIDE: Mapping[str, tuple[Beside, ...]] = {
    "quiet": (),
    "hog": (loads.hogs(0),),
    "hogs": (loads.hogs(0, 1),),
    "other-disk": (loads.fio(loop(), iodepth=8, rate_iops=2000),),
}


def scenarios(count: int, seed: int) -> Iterator[Scenario]:
    """``count`` random scenarios; equal seeds give equal ones."""
    chance = random.Random(seed)
    for number in range(count):
        kind, load = chance.choice(KINDS), chance.choice(list(BESIDE))
        device: Recipe = ext4(loop()) if kind.file else loop()
        yield Scenario(
            f"quiet-{seed}-{number + 1}-{kind.name}-{load}", HERE,
            f"{kind.name}, {load}", device, kind.job, {}, kind.true, seconds=SECONDS,
            size=kind.size, beside=BESIDE[load], watch=(PSI,), proof=worked(1),
            truths=TRUTHS,
        )  # fmt: skip


def _busy(effect: Effect) -> bool:
    return effect.last.own_cpu > 85


def _shallow(effect: Effect) -> bool:
    return effect.last.shallow > 45


def _one_cpu(effect: Effect) -> bool:
    counts = effect.last.softirqs()
    return bool(counts) and max(counts) > 0.75 * sum(counts)


def _short_of_memory(effect: Effect) -> bool:
    return not memory_pressure(effect)


TRUTHS: Mapping[str, Callable[[Effect], bool]] = {
    "job-cpu": _busy, "depth": _shallow, "one-cpu": _one_cpu, "softirq-cpu": _one_cpu,
    "memory": _short_of_memory,
}  # fmt: skip
