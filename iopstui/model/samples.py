"""Raw samples: counters exactly as the kernel and fio reported them.

Nothing here is a rate. Two of these make a frame (model/metrics/frame.py), so a recording of raw
samples can be replayed through corrected formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

READ, WRITE, TRIM, MIXED = "read", "write", "trim", "mixed"
DIRECTIONS = (READ, WRITE, TRIM, MIXED)


# DiskCounters and CpuTimes are not frozen: with many disks and CPUs hundreds are made each second,
# and making a frozen one takes four times as long
@dataclass(slots=True)
class DiskCounters:
    """One row of /proc/diskstats (Documentation/admin-guide/iostats.rst).

    Sectors are 512 bytes, times are milliseconds. The discard fields are ``None`` before Linux
    4.18, the flush fields before 5.5. A partition row of early 2.6 kernels has only four counters;
    the others are ``None``."""

    name: str
    major: int
    minor: int
    reads: int
    read_merges: int | None
    read_sectors: int
    read_ms: int | None
    writes: int
    write_merges: int | None
    write_sectors: int
    write_ms: int | None
    in_flight: int | None
    io_ms: int | None
    weighted_ms: int | None
    discards: int | None = None
    discard_merges: int | None = None
    discard_sectors: int | None = None
    discard_ms: int | None = None
    flushes: int | None = None
    flush_ms: int | None = None


@dataclass(slots=True)
class CpuTimes:
    """A cpuN line of /proc/stat, in clock ticks since boot (man 5 proc). ``user`` and ``nice``
    contain guest time, as the kernel counts it."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int


class IrqReading(Protocol):
    """Raw counts of one interrupt, parsed only on demand."""

    @property
    def cpus(self) -> Sequence[int]:
        """CPUs that have a count, in order."""

    def counts(self) -> Mapping[int, int]:
        """Return all counts by CPU."""

    def increase_since(self, before: object) -> Mapping[int, int] | None:
        """The increase of each count since an earlier reading (negative if the count fell), without
        counts that did not change; ``None`` if that is not known."""


class IrqCounts(Mapping[int, Mapping[int, int]]):
    """Interrupt counts by CPU. ``table`` has parsed counts; ``readings`` are parsed on demand,
    since most interrupts touch few of hundreds of CPUs and few are shown."""

    __slots__ = ("_readings", "_table")

    def __init__(
        self,
        readings: Mapping[int, IrqReading] = MappingProxyType({}),
        table: Mapping[int, Mapping[int, int]] = MappingProxyType({}),
    ) -> None:
        self._readings = readings
        self._table = {irq: counts for irq, counts in table.items() if irq not in readings}

    def __getitem__(self, irq: int) -> Mapping[int, int]:
        reading = self._readings.get(irq)
        return self._table[irq] if reading is None else reading.counts()

    def __iter__(self) -> Iterator[int]:
        yield from self._readings
        yield from self._table

    def __len__(self) -> int:
        return len(self._readings) + len(self._table)

    def __contains__(self, irq: object) -> bool:
        return irq in self._readings or irq in self._table

    def __repr__(self) -> str:
        return repr(dict(self))

    def reading(self, irq: int) -> IrqReading | None:
        return self._readings.get(irq)


@dataclass(frozen=True, slots=True)
class KernelSample:
    """Kernel counters at one moment.

    ``monotonic_ns`` is CLOCK_MONOTONIC, ``wall_ms`` the wall clock (ms since the epoch), both at
    the middle of the reading of diskstats; ``took_ns`` is how long the whole reading took. CPU keys
    are the kernel's CPU numbers. ``irqs`` maps an IRQ number to its count per CPU. ``ipi`` is the
    CAL line of /proc/interrupts (function-call interrupts) as read at ``ipi_ns`` (CLOCK_MONOTONIC);
    both are ``None`` if the architecture has no such line, and in samples that left out that file
    because it is large (machines with many CPUs). A disk that has no diskstats row is absent from
    ``disks``. ``throttled_us`` is how long a cgroup's CPU limit has stopped this process's group so
    far (``None``: no such limit can be seen). ``more`` has the counters of model/sources.py, by
    source and name; a source that could not be read is absent."""

    monotonic_ns: int
    wall_ms: float
    took_ns: int
    disks: Mapping[str, DiskCounters]
    cpus: Mapping[int, CpuTimes]
    softirq_block: Mapping[int, int]
    irqs: Mapping[int, Mapping[int, int]]
    ipi: Mapping[int, int] | None
    ipi_ns: int | None = None
    throttled_us: int | None = None
    more: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LatencySum:
    """A cumulative mean (nanoseconds) and the number of samples in it (fio's mean and N)."""

    mean_ns: float
    count: int


@dataclass(frozen=True, slots=True)
class DirectionStatus:
    """One data direction of one fio row, cumulative since the job began (or its ramp ended).
    ``issued`` counts submissions (fio's total_ios); ``completed`` counts completions with a latency
    sample (N, or the sum of the bins before fio 3.19); it is ``None`` if fio measured no latencies.
    ``bins`` maps a bucket's midpoint in ns to its count; ``None`` when fio gave no histogram.
    ``bins_of`` says which latency the bins describe: "clat" or "lat". ``iops`` and ``bw_bytes`` are
    fio's own averages over the whole run."""

    issued: int
    completed: int | None
    io_bytes: int
    runtime_ms: int
    slat: LatencySum | None
    clat: LatencySum | None
    lat: LatencySum | None
    bins: Mapping[int, int] | None
    bins_of: str
    iops: float
    bw_bytes: float
    percentiles: Mapping[str, int] = field(default_factory=dict)
    lat_max_ns: int | None = None


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A row of fio's ``jobs`` array. Rows have no unique name: their index is their key.
    ``usr_cpu`` and ``sys_cpu`` are percent of ``job_runtime_ms`` (which is summed over the members
    of a group). ``job_start`` is ms since the epoch, ``None`` before fio 3.36. ``block_size`` is
    set when every I/O of the job has this size (bytes). ``has_ramp``: the job has a ramp_time, so
    its counters will be reset once. ``measures_latency`` is False with gtod_reduce or when clat and
    lat are both disabled; ``times_all`` is False if only some sections of a group measure
    latencies. ``in_flight`` is the most I/Os that can be under way (depth x jobs), ``members`` is
    the number of jobs in the row; ``None``: the job file is not known, so ``options`` are only
    those of a group's last section. ``failed`` is fio's total_err. ``changing`` is the option that
    makes its load change by itself ("thinktime"; "": none). If ``block_size`` is ``None``,
    ``block_sizes`` has the sizes for those directions in which all I/Os have one size. ``sync`` has
    its syncs (fsync, fdatasync, sync_file_range), with their latency as ``clat``; ``None``: the job
    does none, or fio is older than 3.16."""

    name: str
    group: int
    error: int
    elapsed_s: int | None
    eta_s: int | None
    job_start: int | None
    job_runtime_ms: int
    usr_cpu: float
    sys_cpu: float
    ctx: int
    iodepth_level: Mapping[str, float]
    directions: Mapping[str, DirectionStatus]
    options: Mapping[str, str]
    block_size: int | None
    has_ramp: bool
    measures_latency: bool
    times_all: bool = True
    in_flight: int | None = None
    members: int | None = None
    failed: int | None = None
    changing: str = ""
    block_sizes: Mapping[str, int] = field(default_factory=dict)
    sync: DirectionStatus | None = None


@dataclass(frozen=True, slots=True)
class FioStatus:
    """A complete status document of fio; ``timestamp_ms`` is fio's wall clock when it was made."""

    version: str
    timestamp_ms: int
    jobs: tuple[JobStatus, ...]


@dataclass(frozen=True, slots=True)
class JobThread:
    """A job of the running fio (a process, or a thread with the option ``thread``). ``index``
    counts jobs from 0 in the order fio started them; ``cpu`` is the CPU it last ran on; ``allowed``
    the CPUs it may run on; ``busy_s`` its user and system time since it began; ``cpu_wait_ns`` how
    long it was ready to run but had no CPU (/proc/PID/schedstat, the second field; sched-stats),
    ``workers_wait_ns`` the sum of the same for its other threads (io_uring's workers, each of which
    executes one I/O at a time); ``None``: it has no workers. Older recordings have the sum of both
    in ``cpu_wait_ns``. ``nice`` and ``policy`` are the scheduler's (sched(7); policy 0:
    SCHED_OTHER, 5: SCHED_IDLE). ``state`` is the letter of /proc/PID/stat: "D" waits in the
    kernel."""

    index: int
    pid: int
    cpu: int
    allowed: tuple[int, ...]
    busy_s: float
    cpu_wait_ns: int | None = None
    workers_wait_ns: int | None = None
    nice: int | None = None
    policy: int | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Cumulative I/O of one task on a disk. The task is the one that allocated the requests;
    ``group`` is its cgroup ("" if that is not known). ``bins`` are latencies from issue to
    completion, by direction, in bins coarser than fio's (12 % wide), ``sectors`` are of 512
    bytes."""

    pid: int
    comm: str
    group: str
    disk: str
    sectors: int
    bins: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One request that the probe has kept: one of the ``slow``est of its direction between two
    readings, one of a random sample (``sampled``), or both. ``kind`` is "read", "write", "discard"
    or "flush". ``sector`` (512 bytes) is of the whole disk, ``offset`` (bytes) of ``disk``, which
    may be a partition; ``size`` is in bytes, ``flags`` are those of the kernel's tracepoints
    ("WSM"); a flush has neither. ``comm``, ``tid`` and ``pid`` are the thread that sent it and its
    process, ``group`` the cgroup that it is charged to ("": not known). ``cpu`` allocated it,
    ``cpu_done`` completed it, ``hctx`` is its hardware queue. Times are CLOCK_MONOTONIC;
    ``allocated_ns`` is ``None`` if the kernel does not record it (iostats=0), ``inserted_ns`` is
    ``None`` if the request was issued at once. ``error`` is the kernel's status, 0 for none.
    ``level`` counts the layers of the stack above ``disk``: an I/O has a request on each layer
    (dm-multipath and its paths; a loop device and the disk below). ``requeued_ns``: when the driver
    last sent it back to be issued again (it was busy, or gave up after a timeout); its insertion is
    not known then. ``beside_flush``: a flush was in flight meanwhile (set when seconds are added
    up)."""

    disk: str
    kind: str
    slow: bool
    sampled: bool
    sector: int | None
    offset: int | None
    size: int
    flags: str
    pid: int
    tid: int
    comm: str
    group: str
    cpu: int
    cpu_done: int
    hctx: int
    allocated_ns: int | None
    inserted_ns: int | None
    issued_ns: int
    completed_ns: int
    error: int = 0
    level: int = 0
    requeued_ns: int | None = None
    beside_flush: bool = False

    @property
    def began_ns(self) -> int:
        """When the request began, as far as known."""
        return self.allocated_ns or self.inserted_ns or self.issued_ns

    @property
    def total_ns(self) -> int:
        """The time from its allocation to its completion."""
        return self.completed_ns - self.began_ns

    @property
    def device_ns(self) -> int:
        """The time from its issue to its completion."""
        return self.completed_ns - self.issued_ns

    @property
    def plugged_ns(self) -> int | None:
        """The time from its allocation to its insertion into a scheduler or a queue; ``None``: not
        inserted, or not known."""
        if self.allocated_ns is None or self.inserted_ns is None:
            return None
        return self.inserted_ns - self.allocated_ns

    @property
    def tried_ns(self) -> int | None:
        """The time of earlier tries: from the request's allocation until the driver last sent it
        back; ``None``: it was never sent back, or that is not known."""
        if self.allocated_ns is None or self.requeued_ns is None:
            return None
        return self.requeued_ns - self.allocated_ns

    @property
    def queued_ns(self) -> int | None:
        """The time from its insertion (if unknown, from when it was sent back or allocated) to its
        issue; ``None``: not known."""
        begins = self.requeued_ns or self.inserted_ns or self.allocated_ns
        return None if begins is None else self.issued_ns - begins


@dataclass(frozen=True, slots=True)
class ProbeSample:
    """The probe's counts (linux/probe) since it began, as of ``time_ns``, read at ``arrived_ns``
    (CLOCK_MONOTONIC). ``device`` and ``waiting`` are histograms by disk and direction, with fio's
    keys (ns): of the time from a request's issue to its completion, and from its allocation to its
    issue (empty: not known). ``matrix`` has completed requests by the CPU that allocated them and
    the one that completed them. ``sizes`` are requests by disk, direction and size (the power of
    two in bytes that is not larger). ``counts``: "missed" completions (their beginning was not
    seen, or only the disk has counted them), "skipped" probes (another one ran on that CPU),
    "requeued" requests, "lost" events, "full" maps. ``busy_s`` is the CPU time for reading the
    maps; ``run_ns`` is how long the probes ran, for ``run_ios`` requests, while the kernel measured
    that. ``parts`` names what is counted; ``begun`` numbers the probes of a session: with each, all
    counts begin at 0. ``exemplars`` are the slowest requests and a sample since the reading before,
    the slowest first."""

    time_ns: int
    arrived_ns: int
    parts: tuple[str, ...]
    begun: int
    device: Mapping[str, Mapping[str, Mapping[int, int]]]
    waiting: Mapping[str, Mapping[str, Mapping[int, int]]]
    matrix: Mapping[int, Mapping[int, int]]
    sizes: Mapping[str, Mapping[str, Mapping[int, int]]]
    tasks: tuple[TaskCounts, ...]
    counts: Mapping[str, int]
    busy_s: float | None = None
    run_ns: int | None = None
    run_ios: int | None = None
    exemplars: tuple[Exemplar, ...] = ()


@dataclass(frozen=True, slots=True)
class DriveReading:
    """An NVMe drive's own counters as it reports them (linux/nvme/admin.py), by name: ``counts`` as
    they were read last, ``began`` as they were at the beginning of the run (before the first run:
    of the session). ``problem`` is a sentence on why the drive did not report more ("": it did);
    then perhaps only the temperature is known. ``devices`` are the disks of this drive in the
    target's tree."""

    counts: Mapping[str, int]
    began: Mapping[str, int]
    problem: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RawSample:
    """One tick: the kernel's counters and, if a document made the tick, fio's.

    ``arrived_ns`` is CLOCK_MONOTONIC when the tick was noticed. ``kernel`` is ``None`` when several
    documents were found at once (because iopstui was stopped): only the last one gets a kernel
    reading. ``final`` marks fio's last document. ``step`` numbers the fio runs of a session:
    counters are never subtracted across two of them; 0 = no run. ``own_busy_s`` is iopstui's own
    CPU time, including the process that guards fio. ``probe`` has the probe's last counts, if they
    are new. ``nvme`` likewise has the drives' own counters by controller. ``read_bytes`` and
    ``written_bytes`` are the bytes that fio's processes have made block devices read and write so
    far (/proc/PID/io; buffered writes count when they dirty a page); ``None``: not read.
    ``handover``: another run of the session was being laid out or did I/O in this interval, too."""

    seq: int
    arrived_ns: int
    wall_ms: float
    kernel: KernelSample | None
    fio: FioStatus | None
    final: bool
    step: int
    interval_s: float = 1.0
    jobs: tuple[JobThread, ...] = ()
    own_busy_s: float | None = None
    probe: ProbeSample | None = None
    nvme: Mapping[str, DriveReading] = field(default_factory=dict)
    read_bytes: int | None = None
    written_bytes: int | None = None
    handover: bool = False
