"""Run time of the probe's programs (BPF_ENABLE_STATS, bpf(2)), and how often one was skipped.
Counting costs some time at every run of every BPF program of the machine, so it is only switched on
briefly from time to time. It is bound to a file descriptor: it is off when the process ends,
however it ends."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopstui.linux.probe import bpf
from iopstui.model.samples import ProbeSample

BPF_STATS_RUN_TIME = 0
# a per-I/O program runs at least this part as often as the one that runs most
RUNS_PER_IO = 0.3
# once in this many readings, the kernel counts their run time until the next one
COUNT_EVERY = 10


@dataclass(frozen=True, slots=True)
class BpfRunStats:
    """Statistics of a process's BPF programs: ``spent_ns`` of the per-I/O programs in ``ios``
    calls (0: not counted), and the number of calls ``skipped`` because another program ran on
    that CPU."""

    spent_ns: int
    ios: int
    skipped: int


class BpfPrograms:
    """The BPF programs of a process (from ``fdinfo`` of its descriptors; all of them, or only
    ``fds``)."""

    def __init__(self, pid: int, proc: Path = Path("/proc"), fds: Sequence[int] = ()) -> None:
        self._fdinfo = proc / str(pid) / "fdinfo"
        self._files = [self._fdinfo / str(fd) for fd in fds]

    def read(self) -> BpfRunStats | None:
        """``None`` if the kernel does not say."""
        try:
            if not self._files:
                self._files = [f for f in self._fdinfo.iterdir() if "prog_id" in _read_fdinfo(f)]
            fdinfos = [_read_fdinfo(file) for file in self._files]
            runs = [(int(fdinfo["run_cnt"]), int(fdinfo["run_time_ns"])) for fdinfo in fdinfos]
            skipped = sum(int(fdinfo.get("recursion_misses", 0)) for fdinfo in fdinfos)
        except (OSError, ValueError, KeyError):
            return None
        if not runs:
            return None
        ios = max(count for count, _ in runs)
        return BpfRunStats(
            sum(ns for count, ns in runs if count >= RUNS_PER_IO * ios), ios, skipped
        )


def _read_fdinfo(file: Path) -> dict[str, str]:
    return dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)


class RunTimeStats:
    """Switches the kernel's accounting of BPF run time on and off."""

    def __init__(self) -> None:
        self._fd = -1

    @property
    def enabled(self) -> bool:
        return self._fd >= 0

    def enable(self) -> None:
        """Needs Linux 5.8 and CAP_SYS_ADMIN; without them nothing is counted."""
        if not self.enabled:
            self._fd = bpf.call(bpf.ENABLE_STATS, struct.pack("I", BPF_STATS_RUN_TIME))

    def end(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = -1


class ProbeCost:
    """Adds the probe's cost to readings: the kernel's run-time count grows in one of
    ``COUNT_EVERY`` readings."""

    def __init__(self, programs: BpfPrograms) -> None:
        self._programs = programs
        self._run_time = RunTimeStats()
        self._stats = BpfRunStats(0, 0, 0)
        self._readings = 0

    def with_cost(self, sample: ProbeSample, busy_s: float | None) -> ProbeSample:
        """``sample`` with these costs. ``busy_s``: the CPU time of the reader."""
        self._readings += 1
        stats = self._programs.read() or self._stats
        if self._run_time.enabled:
            self._run_time.end()
            self._stats = stats
        elif self._readings % COUNT_EVERY == 2:
            self._run_time.enable()
        return replace(
            sample, busy_s=busy_s, run_ns=self._stats.spent_ns, run_ios=self._stats.ios,
            counts={**sample.counts, "skipped": stats.skipped},
        )  # fmt: skip

    def close(self) -> None:
        """Idempotent."""
        self._run_time.end()
