"""CPU figures of one second, computed on demand.

A wide machine has thousands of these figures. A terminal shows some of them in some seconds, and
most others look at one figure of each CPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from iopstui import format as f
from iopstui.model import rates
from iopstui.model.figures.figure import SECONDS, Figure
from iopstui.model.lazy_dict import LazyDict
from iopstui.model.metrics.cpus.irq_rates import IrqRates
from iopstui.model.rates import CpuLoad
from iopstui.model.samples import CpuTimes, KernelSample


@dataclass(frozen=True, slots=True)
class CpuFrame:
    """A CPU in one second. Counts are per second; ``irq_s`` is the target device's own interrupts,
    ``None`` where the device has none; ``ipi_s`` function-call interrupts, over the last two
    readings of /proc/interrupts (``None`` in a frame whose sample did not read it)."""

    load: rates.CpuLoad | None
    block_s: float | None
    irq_s: float | None
    ipi_s: float | None


CPU = (
    *(
        Figure(name, "%", meaning, f"load/{name}", over=SECONDS, source="/proc/stat", width=4,
               form=f.percent, rank=rank)
        for name, meaning, rank in (
            ("usr", "user time, nice included", 0),
            ("sys", "system time", 0),
            ("iowait", "idle while an I/O was outstanding", 5),
            ("irq", "hard interrupts; stays 0 on kernels that only sample time", 6),
            ("soft", "softirqs", 0),
            ("idle", "idle", 0),
            ("steal", "taken by the hypervisor", 9),
        )
    ),
    Figure("block/s", "1/s", "BLOCK softirqs: I/O completions handled here", "block_s",
           over=SECONDS, source="/proc/softirqs"),
    Figure("irq/s", "1/s", "the target device's own interrupts", "irq_s", over=SECONDS,
           source="/sys/kernel/irq"),
    Figure("ipi/s", "1/s", "function-call IPIs received (of all kinds), since the file was last "
           "read; null in a frame that did not read it (wide machines)", "ipi_s", over=SECONDS,
           source="/proc/interrupts"),
)  # fmt: skip


class CpuInterval:
    """The data for CPU figures between two samples. ``ipi`` are the rates of function calls."""

    __slots__ = ("after", "before", "rates")

    def __init__(
        self,
        current: KernelSample,
        previous: KernelSample,
        seconds: float,
        irqs: IrqRates,
        ipi: LazyDict[int, float],
    ) -> None:
        self.after: Mapping[int, CpuTimes] = current.cpus
        self.before: Mapping[int, CpuTimes] = previous.cpus
        block = partial(rates.per_second, current.softirq_block, previous.softirq_block, seconds)
        self.rates: dict[str, LazyDict[int, float]] = {
            "block_s": LazyDict(block), "irq_s": LazyDict(irqs.by_cpu), "ipi_s": ipi,
        }  # fmt: skip

    def frames(self) -> dict[int, CpuFrame]:
        """Frames of all CPUs in the later sample."""
        block, irqs, ipi = (rate.full() for rate in self.rates.values())
        before = self.before
        frames = {}
        for cpu, times in self.after.items():
            earlier = before.get(cpu)
            frames[cpu] = CpuFrame(
                load=rates.cpu_load(times, earlier) if earlier else None,
                block_s=block.get(cpu),
                irq_s=irqs.get(cpu),
                ipi_s=ipi.get(cpu),
            )
        return frames

    def load(self, cpu: int) -> CpuLoad | None:
        """One CPU's load, without the others'."""
        now, earlier = self.after.get(cpu), self.before.get(cpu)
        return rates.cpu_load(now, earlier) if now and earlier else None

    def busy(self) -> list[float]:
        """Return the busy share, like ``busy_of``."""
        before = self.before.get
        pairs = [(now, earlier) for cpu, now in self.after.items() if (earlier := before(cpu))]
        percentages = [rates.cpu_busy(now, earlier) for now, earlier in pairs]
        return [busy for busy in percentages if busy is not None]


class CpuFrames(LazyDict[int, CpuFrame]):
    """CPU figures of one interval, built on first access. ``busy_of`` and ``rate_of`` work
    without building them."""

    __slots__ = ("_interval_of",)

    def __init__(self, between: CpuInterval) -> None:
        super().__init__(between.frames)
        self._interval_of: CpuInterval | None = between

    def full(self) -> dict[int, CpuFrame]:
        """Return all frames; callers must not change them."""
        frames = super().full()
        # two samples: no longer needed
        self._interval_of = None
        return frames

    def unbuilt(self) -> CpuInterval | None:
        """The data they are built from; ``None`` once built."""
        return self._interval_of

    def __iter__(self) -> Iterator[int]:
        between = self._interval_of
        return iter(self.full() if between is None else between.after)

    def __len__(self) -> int:
        between = self._interval_of
        return len(self.full() if between is None else between.after)


def _interval_of(cpus: Mapping[int, CpuFrame]) -> CpuInterval | None:
    return cpus.unbuilt() if type(cpus) is CpuFrames else None


def busy_of(cpus: Mapping[int, CpuFrame]) -> list[float]:
    """Busy time of each CPU in percent: all but idle and iowait, where reported."""
    between = _interval_of(cpus)
    if between is not None:
        return between.busy()
    loads = [cpu.load for cpu in cpus.values() if cpu.load is not None]
    return [100 - load.idle - load.iowait for load in loads]


def steal_of(cpus: Mapping[int, CpuFrame], wanted: Collection[int]) -> dict[int, float]:
    """Percent that the hypervisor took of each of the ``wanted`` CPUs, where reported."""
    between = _interval_of(cpus)
    loads = (
        ((cpu, cpus[cpu].load) for cpu in wanted if cpu in cpus)
        if between is None
        else ((cpu, between.load(cpu)) for cpu in wanted)
    )
    return {cpu: load.steal for cpu, load in loads if load is not None}


def rate_of(cpus: Mapping[int, CpuFrame], name: str) -> dict[int, float]:
    """``block_s``, ``irq_s`` or ``ipi_s`` by CPU, of those that have it."""
    between = _interval_of(cpus)
    if between is None:
        pairs = ((cpu, getattr(frame, name)) for cpu, frame in cpus.items())
        return {cpu: rate for cpu, rate in pairs if rate is not None}
    rate_by_cpu = between.rates[name].full()
    return (
        {cpu: rate_by_cpu[cpu] for cpu in between.after if cpu in rate_by_cpu}
        if rate_by_cpu
        else {}
    )
