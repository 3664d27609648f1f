"""CPUs: load, interrupts, softirqs, and the job's share of them."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from iopstui import format as f
from iopstui.model import rates
from iopstui.model.figures.figure import SECONDS, Figure
from iopstui.model.fio.interval import DirectionInterval, FioInterval
from iopstui.model.fio.jobfile import PASSTHROUGH
from iopstui.model.metrics.waits import DirectionLoad, JobLoad
from iopstui.model.rates import per_second
from iopstui.model.samples import (
    MIXED,
    READ,
    TRIM,
    WRITE,
    FioStatus,
    IrqCounts,
    IrqReading,
    JobStatus,
    KernelSample,
    RawSample,
)


@dataclass(frozen=True, slots=True)
class CpuFrame:
    """A CPU in one second. Counts are per second; ``irq_s`` is the target device's own interrupts
    (``None``: it has none), ``ipi_s`` function-call interrupts between the last two readings of
    /proc/interrupts (``None`` if the frame's sample did not read it)."""

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


def cpu_frames(
    current: KernelSample,
    previous: KernelSample,
    seconds: float,
    irqs: IrqRates,
    ipi: Mapping[int, float],
) -> dict[int, CpuFrame]:
    """The figures of each CPU of the later sample. ``ipi`` are the rates of function-call
    interrupts."""
    block = per_second(current.softirq_block, previous.softirq_block, seconds)
    own = irqs.by_cpu()
    frames = {}
    for cpu, times in current.cpus.items():
        earlier = previous.cpus.get(cpu)
        load = rates.cpu_load(times, earlier) if earlier else None
        frames[cpu] = CpuFrame(load, block.get(cpu), own.get(cpu), ipi.get(cpu))
    return frames


def busy_of(cpus: Mapping[int, CpuFrame]) -> list[float]:
    """Busy time of each CPU in percent: all but idle and iowait, where reported."""
    loads = [cpu.load for cpu in cpus.values() if cpu.load is not None]
    return [100 - load.idle - load.iowait for load in loads]


def rate_of(cpus: Mapping[int, CpuFrame], name: str) -> dict[int, float]:
    """The rates ``block_s``, ``irq_s`` or ``ipi_s`` by CPU, for the CPUs that have one."""
    pairs = ((cpu, getattr(frame, name)) for cpu, frame in cpus.items())
    return {cpu: rate for cpu, rate in pairs if rate is not None}


# CPUs that completed I/O in each second: shows the effect of rq_affinity.


MAX_SAMPLES = 1200
MAX_VALUES = 200_000
"""Most samples times CPUs (1 MB): a machine with many CPUs keeps fewer seconds."""


@dataclass(frozen=True, slots=True)
class _Sample:
    start: float
    end: float
    cpus: tuple[int, ...]
    values: array[float]


class CpuHistory:
    """History of completions by CPU. ``add`` needs increasing ``t``; older or equal times are
    dropped."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    @property
    def end(self) -> float | None:
        """When the newest sample ended."""
        return self._samples[-1].end if self._samples else None

    def copy(self) -> CpuHistory:
        """A copy of the current history, unaffected by later additions."""
        history = CpuHistory()
        history._samples = self._samples.copy()
        return history

    def add(self, t: float, seconds: float, rates: Mapping[int, float | None]) -> None:
        """Add an interval: completions per second by CPU (``None``: not counted)."""
        counted = {cpu: rate for cpu, rate in sorted(rates.items()) if rate is not None}
        end = self.end
        if not counted or seconds <= 0 or (end is not None and t <= end):
            return
        before = self._samples[-1].cpus if self._samples else ()
        cpus = tuple(counted)
        # share one tuple among all samples of the same CPUs
        cpus = before if cpus == before else cpus
        self._samples.append(_Sample(t - seconds, t, cpus, array("f", counted.values())))
        max_samples = min(MAX_SAMPLES, max(60, MAX_VALUES // len(counted)))
        while len(self._samples) > max_samples:
            self._samples.popleft()

    def columns(self, start: float, column_s: float, count: int) -> list[dict[int, float] | None]:
        """For each of ``count`` columns from ``start`` on: each CPU's share (0..1) of the
        completions in the samples whose middle lies in the column, without CPUs that have none.
        ``None`` without a sample, empty if nothing was completed."""
        sums: list[dict[int, float] | None] = [None] * count
        for sample in self._samples:
            at = int(((sample.start + sample.end) / 2 - start) // column_s)
            if 0 <= at < count:
                sums_by_cpu = sums[at]
                if sums_by_cpu is None:
                    sums_by_cpu = sums[at] = {}
                seconds = sample.end - sample.start
                for cpu, rate in zip(sample.cpus, sample.values, strict=True):
                    if rate > 0:
                        sums_by_cpu[cpu] = sums_by_cpu.get(cpu, 0.0) + rate * seconds
        return [_shares(column) for column in sums]

    @property
    def cpus(self) -> Sequence[int]:
        """CPUs of the newest sample, in order."""
        return self._samples[-1].cpus if self._samples else ()


def _shares(sums: dict[int, float] | None) -> dict[int, float] | None:
    if not sums:
        return sums
    total = sum(sums.values())
    return {cpu: value / total for cpu, value in sums.items()}


# Rate of each interrupt on each CPU between two readings.


Counts = Mapping[int, int]


class IrqRates(Mapping[int, Mapping[int, float]]):
    """Interrupts per second by number and CPU, for interrupts and CPUs in both readings. A wide
    machine has tens of thousands of these figures, most of them 0 and few shown, so an interrupt's
    rates are computed on demand. Their sums don't need that."""

    __slots__ = ("_counts", "_earlier_counts", "_irqs", "_rates_by_irq", "_seconds")

    def __init__(
        self, now: Mapping[int, Counts], before: Mapping[int, Counts], seconds: float
    ) -> None:
        self._irqs = [irq for irq in now if irq in before]
        self._counts = now
        self._earlier_counts = before
        self._seconds = seconds
        self._rates_by_irq: dict[int, Mapping[int, float]] = {}

    def __getitem__(self, irq: int) -> Mapping[int, float]:
        rates = self._rates_by_irq.get(irq)
        if rates is None:
            rates = self._rates_by_irq[irq] = self._rates(irq)
        return rates

    def __iter__(self) -> Iterator[int]:
        return iter(self._irqs)

    def __len__(self) -> int:
        return len(self._irqs)

    def __repr__(self) -> str:
        return repr(dict(self))

    def by_cpu(self) -> dict[int, float]:
        """The sum of all interrupts on each CPU that has a count."""
        total: dict[int, float] = {}
        last_columns: object = None
        for irq in self._irqs:
            columns, rates = self._changed_rates(irq)
            # nearly all interrupts have the very same object
            if columns is not last_columns:
                last_columns = columns
                total = {**dict.fromkeys(columns, 0.0), **total}
            for cpu, rate in rates.items():
                total[cpu] += rate
        return total

    def _rates(self, irq: int) -> Mapping[int, float]:
        columns, rates = self._changed_rates(irq)
        return rates if columns is rates else {**dict.fromkeys(columns, 0.0), **rates}

    def _changed_rates(self, irq: int) -> tuple[Collection[int], Mapping[int, float]]:
        """The CPUs that have a rate, and by CPU the rates that are not 0."""
        reading, before = _reading(self._counts, irq), _reading(self._earlier_counts, irq)
        increase = (
            reading.increase_since(before) if reading is not None and before is not None else None
        )
        # a count that went backwards has no rate
        if reading is None or increase is None or min(increase.values(), default=0) < 0:
            rates = per_second(self._counts[irq], self._earlier_counts[irq], self._seconds)
            return rates, rates
        return reading.cpus, {cpu: count / self._seconds for cpu, count in increase.items()}


def _reading(counts: Mapping[int, Counts], irq: int) -> IrqReading | None:
    return counts.reading(irq) if isinstance(counts, IrqCounts) else None


# The job's part in the I/Os that wait: how many are in flight in fio, and how many reach the
# devices.


ALIGNED = 0.05
"""fio's interval and the kernel's count as equal if they differ by at most this share."""
_LETTERS = {READ: "r", WRITE: "w", TRIM: "d"}
UNSENT_ENGINES = frozenset({"null", "cpuio"})
"""Engines that only pretend to do I/O."""
_FALSE_VALUES = frozenset({"0", "none", "false"})


Sent = tuple[float, float]
"""Bytes per second that block devices read and wrote for the job's processes."""


class SentBytes:
    """Bytes per second that block devices read and wrote for fio's processes."""

    def __init__(self) -> None:
        self.previous = (0, 0)

    def feed(self, raw: RawSample, seconds: float | None) -> Sent | None:
        """Rates over the kernel's interval of ``seconds`` that ends with this sample; ``None``: not
        known. A run's first sample counts everything since the run began."""
        if raw.read_bytes is None or raw.written_bytes is None:
            return None
        now, before = (raw.read_bytes, raw.written_bytes), self.previous
        self.previous = now
        if not seconds or now[0] < before[0] or now[1] < before[1]:
            return None
        return (now[0] - before[0]) / seconds, (now[1] - before[1]) / seconds


def job_load(
    status: FioStatus,
    fio: FioInterval | None,
    cpu_waits: Sequence[float],
    workers_wait: float,
    kernel_s: float | None,
    sent: Sent | None = None,
) -> JobLoad | None:
    """What the jobs of an interval had in flight. ``cpu_waits`` are the percentages of the interval
    in which each job waited for a CPU, ``workers_wait`` the same summed over all workers,
    ``kernel_s`` the length of the kernel's interval. ``None`` without fio's figures, or if some
    I/Os have no latency."""
    if fio is None or fio.ramp or not (fio.measures_latency and fio.times_all):
        return None
    total = fio.total
    lat_ns = _latency_ns(total)
    if total.iops is None or lat_ns is None:
        return None
    shares = [min(1.0, percent / 100) for percent in cpu_waits]
    ios = total.iops * lat_ns / 1e9
    return JobLoad(
        ios=ios,
        iops=total.iops,
        cpu_wait=sum(shares) / len(shares) if shares else None,
        workers_wait=workers_wait / 100,
        directions=_direction_loads(fio, status, sent),
        aligned=bool(
            kernel_s and fio.seconds and abs(kernel_s - fio.seconds) <= ALIGNED * kernel_s
        ),
        unsent=_unsent_ios(fio, status, ios),
    )


def _latency_ns(part: DirectionInterval) -> float | None:
    return part.lat_ns if part.lat_ns is not None else part.clat_ns


def _unsent_ios(fio: FioInterval, status: FioStatus, ios: float) -> float:
    """How many of the I/Os in flight belong to engines that send nothing to a disk."""
    rows = [job for job in fio.jobs if _engine(status.jobs[job.index]) in UNSENT_ENGINES]
    if len(rows) == len(fio.jobs):
        return ios
    return min(ios, sum((job.iops or 0.0) * (job.clat_ns or 0.0) / 1e9 for job in rows))


def _engine(job: JobStatus) -> str:
    return job.options.get("ioengine", "").strip()


def _direction_loads(
    fio: FioInterval, status: FioStatus, sent: Sent | None
) -> tuple[DirectionLoad, ...]:
    """A load for each direction, or one for all if fio does not separate reads and writes."""
    in_cache = writes_in_cache(status)
    direct = not any(_buffered(job) for job in status.jobs)
    by_letter = {"r": sent[0], "w": sent[1], "": sum(sent)} if sent is not None else {}
    parts = {_LETTERS[name]: part for name, part in fio.directions.items() if name != MIXED}
    if MIXED in fio.directions:
        parts = {"": fio.total}
    return tuple(
        DirectionLoad(
            letter, part.iops or 0.0, part.bw, in_cache and letter == "w", direct,
            (part.iops or 0.0) * (_latency_ns(part) or 0.0) / 1e9, by_letter.get(letter),
        )
        for letter, part in parts.items()
    )  # fmt: skip


def writes_in_cache(status: FioStatus) -> bool:
    """Whether all jobs that write leave their writes in the page cache: buffered, and without
    O_SYNC, which makes each write wait for the device."""
    writing = [job for job in status.jobs if _writes(job)]
    return bool(writing) and all(_buffered(job) and not _is_enabled(job, "sync") for job in writing)


def _writes(job: JobStatus) -> bool:
    return WRITE in job.directions and job.directions[WRITE].issued > 0


def _buffered(job: JobStatus) -> bool:
    """Whether I/O is buffered, which is fio's default. NVMe commands never are; I/O on mapped files
    always is."""
    if _engine(job) in (PASSTHROUGH, "mmap"):
        return _engine(job) == "mmap"
    if "buffered" in job.options:
        return _is_enabled(job, "buffered")
    return not _is_enabled(job, "direct")


def _is_enabled(job: JobStatus, name: str) -> bool:
    value = job.options.get(name)
    return value is not None and value.strip().lower() not in _FALSE_VALUES
