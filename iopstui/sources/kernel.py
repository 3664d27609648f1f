"""Reads the kernel's counters at once, cheaply, again and again.

Files stay open and are read anew from their beginning. What cannot be read (a container may
hide any of it) is left out of the sample and named in ``KernelSampler.unavailable``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from iopstui.model.samples import CpuTimes, DiskCounters, KernelSample
from iopstui.sources import procfs
from iopstui.sources.cgroup import cpu_stat_files, parse_throttled_us
from iopstui.sources.roots import Roots

CHUNK = 64 << 10
CHEAP_NS = 2_000_000
BUDGET_NS = 1_000_000
LONGEST_STRIDE = 30

Parsed = TypeVar("Parsed")


class Reread:
    """One file that is kept open and read from its beginning each time."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """The whole file now. Large proc files come in pieces: it is read to its end."""
        pieces = []
        offset = 0
        while piece := os.pread(self._fd, CHUNK, offset):
            pieces.append(piece)
            offset += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Close it; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _opened(paths: Iterable[Path]) -> list[Reread]:
    files = []
    for path in paths:
        with contextlib.suppress(OSError):
            files.append(Reread(path))
    return files


class KernelSampler:
    """Takes ``KernelSample``s of some disks, their interrupts, and all CPUs.

    ``unavailable`` maps what could not be read ("diskstats", "stat", "softirqs", "interrupts",
    "irq 36") to the reason in words. Not for several threads at once.
    """

    def __init__(
        self,
        roots: Roots,
        disks: Sequence[str],
        irqs: Sequence[int],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.unavailable: dict[str, str] = {}
        self._roots = roots
        self._clock = clock
        self._files: dict[str, Reread] = {}
        self._disks: tuple[str, ...] = ()
        self._irqs: dict[int, Reread] = {}
        self._irqs_in_table: tuple[int, ...] = ()
        self._possible: list[int] = []
        self._stride = 1
        self._countdown = 0
        self._follow = 0
        self._cpu_stats = _opened(cpu_stat_files(roots))
        self.retarget(disks, irqs)

    def retarget(self, disks: Sequence[str], irqs: Sequence[int]) -> None:
        """Watch other disks and interrupts; what was unavailable is tried again."""
        self.unavailable = {}
        self._disks = tuple(disks)
        for name in ("diskstats", "stat", "softirqs", "interrupts"):
            if name not in self._files:
                self._open(name)
        softirqs = self._read("softirqs", procfs.parse_cpu_header)
        self._possible = softirqs or []
        self._retarget_irqs(irqs)
        self._stride, self._countdown = 1, 0

    def _retarget_irqs(self, irqs: Sequence[int]) -> None:
        for file in self._irqs.values():
            file.close()
        self._irqs = {}
        in_table = []
        for irq in dict.fromkeys(irqs):
            try:
                self._irqs[irq] = Reread(
                    self._roots.sys / "kernel" / "irq" / str(irq) / "per_cpu_count"
                )
            except OSError:
                in_table.append(irq)
        self._irqs_in_table = tuple(in_table)

    def sample(self) -> KernelSample:
        """Read everything now. Never fails: see ``unavailable``.

        /proc/diskstats is read first, and the sample's clocks stand for the middle of just
        that reading: what follows may take milliseconds on a wide machine, and not always the
        same number of them.
        """
        start = self._clock()
        disks = self._read("diskstats", self._parse_disks)
        read = self._clock()
        wall_ms = time.time_ns() / 1e6
        middle = (start + read) // 2
        softirqs = self._read("softirqs", procfs.parse_softirqs_block)
        cpus: dict[int, CpuTimes] | None = self._read("stat", procfs.parse_stat_cpus)
        irqs = self._per_irq()
        table, ipi, ipi_ns = self._interrupts()
        return KernelSample(
            monotonic_ns=middle,
            wall_ms=wall_ms - (read - middle) / 1e6,
            took_ns=self._clock() - start,
            disks=disks or {},
            cpus=cpus or {},
            softirq_block=softirqs or {},
            irqs={**irqs, **table},
            ipi=ipi,
            ipi_ns=ipi_ns,
            throttled_us=self._throttled(),
        )

    def follow_interrupts(self, samples: int) -> None:
        """Read /proc/interrupts in each of the next samples, whatever that costs: a knob was
        turned, and the function calls it brings are seen there alone."""
        self._follow = samples

    def close(self) -> None:
        """Close all files; no sample can be taken afterwards."""
        for file in (*self._files.values(), *self._irqs.values(), *self._cpu_stats):
            file.close()
        self._files, self._irqs, self._cpu_stats = {}, {}, []

    def _throttled(self) -> int | None:
        """The most that any cgroup of ours was throttled: a limit above stops us as well."""
        most = None
        for file in self._cpu_stats:
            with contextlib.suppress(OSError):
                one = parse_throttled_us(file.read())
                most = one if most is None else max(most, one or 0)
        return most

    def _open(self, name: str) -> None:
        try:
            self._files[name] = Reread(self._roots.proc / name)
        except OSError as error:
            self._give_up(name, error)

    def _give_up(self, name: str, error: OSError) -> None:
        self.unavailable[name] = error.strerror or type(error).__name__
        file = self._files.pop(name, None)
        if file is not None:
            file.close()

    def _read(self, name: str, parse: Callable[[bytes], Parsed]) -> Parsed | None:
        file = self._files.get(name)
        if file is None:
            return None
        try:
            return parse(file.read())
        except OSError as error:
            self._give_up(name, error)
            return None

    def _parse_disks(self, data: bytes) -> dict[str, DiskCounters]:
        return procfs.parse_diskstats(data, self._disks)

    def _per_irq(self) -> dict[int, dict[int, int]]:
        found = {}
        for irq, file in list(self._irqs.items()):
            try:
                counts = procfs.parse_per_cpu_count(file.read(), self._possible)
            except OSError as error:
                # the device is gone, and its interrupt with it
                self.unavailable[f"irq {irq}"] = error.strerror or type(error).__name__
                self._irqs.pop(irq).close()
                continue
            if counts is not None:
                found[irq] = counts
        return found

    def _interrupts(
        self,
    ) -> tuple[Mapping[int, Mapping[int, int]], Mapping[int, int] | None, int | None]:
        """/proc/interrupts: in every sample where it is cheap, else in every Nth, so that it
        costs about ``BUDGET_NS`` a sample on average.

        If it is the only source of the device's interrupts, it is read in every sample.
        """
        if self._countdown > 0 and not self._irqs_in_table and not self._follow:
            self._countdown -= 1
            return {}, None, None
        self._follow = max(0, self._follow - 1)
        start = self._clock()
        found = self._read("interrupts", self._parse_table)
        end = self._clock()
        cost = end - start
        self._stride = 1 if cost <= CHEAP_NS else min(LONGEST_STRIDE, -(-cost // BUDGET_NS))
        self._countdown = self._stride - 1
        if found is None:
            return {}, None, None
        irqs, ipi = found
        return irqs, ipi, None if ipi is None else (start + end) // 2

    def _parse_table(self, data: bytes) -> tuple[dict[int, dict[int, int]], dict[int, int] | None]:
        return procfs.parse_interrupts(data, self._irqs_in_table)
