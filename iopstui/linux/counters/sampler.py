"""Read the kernel's counters together, repeatedly and at low cost.

Files stay open and are read again from their beginning. Unreadable ones (a container may hide any)
are left out of the sample and named in ``KernelSampler.unavailable``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from iopstui.linux.counters import procfs
from iopstui.linux.counters.cgroup import cpu_stat_files, parse_throttled_us
from iopstui.linux.counters.energy import EnergyCounters
from iopstui.linux.counters.interrupts import (
    FunctionCallReader,
    FunctionCalls,
    PerCpuCount,
    next_per_cpu_count,
)
from iopstui.linux.counters.mountstats import NfsCounters
from iopstui.linux.kernel_files import KernelFile, Roots, open_files
from iopstui.model.metrics.shares import NFS
from iopstui.model.samples import DiskCounters, IrqCounts, KernelSample
from iopstui.model.sources import POWER, SOURCES, Counters

# /proc/interrupts is read within a sample up to this many CPUs and this time per reading
MAX_CHEAP_CPUS = 32
MAX_CHEAP_NS = 2_000_000
# mean time per sample that this file may take if it is read in the background
SAMPLE_BUDGET_NS = 1_000_000
MAX_STRIDE = 30

Parsed = TypeVar("Parsed")


class _PerCpuCount(KernelFile):
    """Counts of one interrupt on each CPU. Raises OSError once its device is gone."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._last: PerCpuCount | None = None

    def counts(self, possible: Sequence[int]) -> PerCpuCount | None:
        """The counts now; the same object as last time if nothing has changed."""
        self._last = next_per_cpu_count(self.read_attribute(), possible, self._last)
        return self._last


class KernelSampler:
    """Takes ``KernelSample``s of some disks, their interrupts, and all CPUs.

    ``unavailable`` maps what could not be read ("diskstats", "stat", "softirqs", "interrupts", "irq
    36") to the reason in words. ``shares`` are mount points of NFS, each of another file system;
    ``more_sources`` are further counters: functions that read them, by name. Not thread-safe."""

    def __init__(
        self,
        roots: Roots,
        disks: Sequence[str],
        irqs: Sequence[int],
        clock: Callable[[], int] = time.monotonic_ns,
        shares: Sequence[str] = (),
        more_sources: Mapping[str, Callable[[], Counters | None]] | None = None,
    ) -> None:
        self.unavailable: dict[str, str] = {}
        self._roots = roots
        self._clock = clock
        self._files: dict[str, KernelFile] = {}
        self._disks: frozenset[str] = frozenset()
        self._irqs: dict[int, _PerCpuCount] = {}
        self._irqs_in_table: tuple[int, ...] = ()
        self._possible: tuple[int, ...] = ()
        self._calls: FunctionCallReader | None = None
        self._samples = 0
        self._calls_sample = 0
        self._cost_ns = 0
        self._followed_samples = 0
        self._cpu_stats = open_files(cpu_stat_files(roots))
        self._sources = {
            source: file
            for source in SOURCES
            if source.file
            for file in open_files([roots.proc / source.file])
        }
        self._energy = EnergyCounters(roots)
        self._shares = NfsCounters(shares)
        self._more_sources = dict(more_sources or {})
        self._mountstats = open_files([roots.proc / "self/mountstats"] if shares else [])
        self.retarget(disks, irqs)

    def retarget(self, disks: Sequence[str], irqs: Sequence[int]) -> None:
        """Watch other disks and interrupts; unavailable files are tried again."""
        self.unavailable = {}
        self._disks = frozenset(disks)
        for name in ("diskstats", "stat", "softirqs", "interrupts"):
            if name not in self._files:
                self._open(name)
        softirqs = self._read("softirqs", procfs.parse_cpu_header)
        self._possible = tuple(softirqs or ())
        self._retarget_irqs(irqs)
        self._begin_calls()

    def _retarget_irqs(self, irqs: Sequence[int]) -> None:
        for file in self._irqs.values():
            file.close()
        self._irqs = {}
        in_table = []
        for irq in dict.fromkeys(irqs):
            try:
                self._irqs[irq] = _PerCpuCount(
                    self._roots.sys / "kernel" / "irq" / str(irq) / "per_cpu_count"
                )
            except OSError:
                in_table.append(irq)
        self._irqs_in_table = tuple(in_table)

    def _begin_calls(self) -> None:
        if self._calls is None and "interrupts" in self._files:
            self._calls = FunctionCallReader(self._files["interrupts"], self._clock)
        # the first rate needs two readings
        self._cost_ns, self._followed_samples = 0, max(2, self._followed_samples)

    def disks(self) -> dict[str, DiskCounters]:
        """Read /proc/diskstats alone."""
        return self._read("diskstats", self._parse_disks) or {}

    def sample(self) -> KernelSample:
        """Read everything now. Never fails: see ``unavailable``.

        /proc/diskstats is read first, and the sample's clocks are the middle of that reading alone:
        the rest may take milliseconds on a wide machine, and not always equally long."""
        start = self._clock()
        disks = self.disks()
        read_ns = self._clock()
        wall_ms = time.time_ns() / 1e6
        middle = (start + read_ns) // 2
        softirqs = self._read("softirqs", procfs.parse_softirqs_block)
        cpus = self._read("stat", procfs.parse_stat_cpus)
        readings = self._per_irq()
        table, ipi, ipi_ns = self._interrupts()
        return KernelSample(
            monotonic_ns=middle,
            wall_ms=wall_ms - (read_ns - middle) / 1e6,
            took_ns=self._clock() - start,
            disks=disks,
            cpus={} if cpus is None else cpus,
            softirq_block={} if softirqs is None else softirqs,
            irqs=IrqCounts(readings, table),
            ipi=ipi,
            ipi_ns=ipi_ns,
            throttled_us=self._throttled(),
            more=self._read_more_sources(),
        )

    def follow_interrupts(self, samples: int) -> None:
        """Read /proc/interrupts with each of the next samples at any cost: a tunable was changed,
        and only that file shows the resulting function calls."""
        self._followed_samples = samples

    def close(self) -> None:
        """Close all files and end all threads; no sample can be taken afterwards."""
        if self._calls is not None:
            self._calls.close()
        files = (
            *self._files.values(),
            *self._irqs.values(),
            *self._cpu_stats,
            *self._sources.values(),
            *self._mountstats,
        )
        for file in files:
            file.close()
        self._files, self._irqs, self._cpu_stats, self._calls = {}, {}, [], None
        self._sources, self._mountstats = {}, []
        self._energy.close()

    def _read_more_sources(self) -> dict[str, Counters]:
        """Read the sources that this kernel has; a source that failed once is not tried again."""
        by_source: dict[str, Counters] = {}
        for source, file in list(self._sources.items()):
            try:
                by_source[source.name] = source.parse(file.read())
            except (OSError, ValueError, KeyError, IndexError):
                self._sources.pop(source).close()
        more = {name: read() for name, read in self._more_sources.items()}
        more |= {POWER: self._energy.read(), NFS: self._read_shares()}
        return by_source | {
            name: counters for name, counters in more.items() if counters is not None
        }

    def _read_shares(self) -> Counters | None:
        """Counters of the NFS mounts; ``None`` while one of them is not mounted."""
        for file in self._mountstats:
            with contextlib.suppress(OSError):
                return self._shares.read(file.chunks())
        return None

    def _throttled(self) -> int | None:
        """The longest time that any of our cgroups was throttled: a limit of a parent stops us as
        well."""
        most = None
        for file in self._cpu_stats:
            with contextlib.suppress(OSError):
                throttled_us = parse_throttled_us(file.read())
                most = throttled_us if most is None else max(most, throttled_us or 0)
        return most

    def _open(self, name: str) -> None:
        try:
            self._files[name] = KernelFile(self._roots.proc / name)
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

    def _per_irq(self) -> dict[int, PerCpuCount]:
        count_by_irq: dict[int, PerCpuCount] = {}
        for irq, file in list(self._irqs.items()):
            try:
                counts = file.counts(self._possible)
            except OSError as error:
                # the device is gone, and its interrupt with it
                self.unavailable[f"irq {irq}"] = error.strerror or type(error).__name__
                self._irqs.pop(irq).close()
                continue
            if counts is not None:
                count_by_irq[irq] = counts
        return count_by_irq

    def _interrupts(
        self,
    ) -> tuple[Mapping[int, Mapping[int, int]], Mapping[int, int] | None, int | None]:
        """Counts from /proc/interrupts: of the device's interrupts that are in no other file, at
        any cost, and the function calls with the time of the reading."""
        self._samples += 1
        if not self._irqs_in_table:
            calls = self._function_calls()
            if calls is None or calls.counts is None:
                return {}, None, None
            return {}, calls.counts, calls.at_ns
        start = self._clock()
        tables = self._read("interrupts", self._parse_table)
        end = self._clock()
        irqs, ipi = tables or ({}, None)
        return irqs, ipi, None if ipi is None else (start + end) // 2

    def _function_calls(self) -> FunctionCalls | None:
        """The function calls, read within the sample if that is cheap. Otherwise they are read in
        the background for a later sample, and only in every Nth, so that this costs about
        ``SAMPLE_BUDGET_NS`` per sample on average."""
        if self._calls is None:
            return None
        try:
            calls = self._calls.take()
            if calls is not None:
                self._cost_ns = calls.took_ns
            if not self._calls.busy and self._is_due():
                self._calls_sample, self._followed_samples = (
                    self._samples,
                    max(0, self._followed_samples - 1),
                )
                if len(self._possible) <= MAX_CHEAP_CPUS and self._cost_ns <= MAX_CHEAP_NS:
                    calls = self._calls.read()
                    self._cost_ns = calls.took_ns
                else:
                    self._calls.ask()
        except OSError as error:
            self._calls = None
            self._give_up("interrupts", error)
            return None
        return calls

    def _is_due(self) -> bool:
        cost = self._cost_ns
        stride = 1 if cost <= MAX_CHEAP_NS else min(MAX_STRIDE, -(-cost // SAMPLE_BUDGET_NS))
        return self._followed_samples > 0 or self._samples >= self._calls_sample + stride

    def _parse_table(self, data: bytes) -> tuple[dict[int, dict[int, int]], dict[int, int] | None]:
        return procfs.parse_interrupts(data, self._irqs_in_table)
