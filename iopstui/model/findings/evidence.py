"""Evidence for the rules of model/findings/diagnosis.py: frames, the device, and the job's shape.
Figures over several frames are means of what those frames say; a figure that no frame has is
``None`` or empty, never 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DeviceLinks
from iopstui.model.findings.conditions import Conditions, DeviceState
from iopstui.model.means import fmean, pstdev
from iopstui.model.metrics.cpus.cpu_frames import rate_of
from iopstui.model.metrics.frame import (
    FINAL,
    NO_LATENCY,
    PARTIAL,
    RAMP,
    RESET,
    SOME_LATENCY,
    WRONG_LATENCY,
    Frame,
)
from iopstui.model.samples import DriveReading

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures

ENOUGH_SECONDS = 3
LONG_ENOUGH = 10
# a job without any CPU left, and CPUs with much of it, in percent
SATURATED_BUSY = 93.0
MUCH_IDLE = 10.0
# what two runs may differ by and be called the same
SAME_SHARE = 0.05

SYNCHRONOUS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})


NOT_READ = Conditions()


@dataclass(frozen=True, slots=True)
class JobShape:
    """Shape of the running job: ``jobs`` in all, each with up to ``iodepth`` I/Os. ``iodepth``,
    ``engine`` and ``direct`` are ``None`` where the sections differ. ``in_flight`` is the sum over
    all jobs, a synchronous one counting 1 (``None``: jobs × iodepth). ``paced``: the job holds
    itself back (rate, rate_iops, thinktime). ``polls``: it waits for completions by asking again
    and again, so its CPU is always busy. ``offloads``: threads of fio's submit for the jobs
    (io_submit_mode=offload), so that a synchronous engine has a depth as well. ``syncs``: it calls
    fsync or the like, which writes more than it counts. ``block_size`` is its smallest I/O in bytes
    (``None``: not told), ``writes`` whether it may write, ``aligned`` of what number of bytes all
    its I/Os begin at multiples (``None``: not told)."""

    jobs: int = 1
    iodepth: int | None = 1
    engine: str | None = None
    direct: bool | None = None
    in_flight: int | None = None
    paced: bool = False
    polls: bool = False
    syncs: bool = False
    block_size: int | None = None
    writes: bool = False
    aligned: int | None = None
    offloads: bool = False

    @property
    def depth(self) -> int:
        """I/Os in flight at most: N of Little's law."""
        return self.in_flight or self.jobs * (self.iodepth or 1)


@dataclass(frozen=True, slots=True)
class SteadyRun:
    """An earlier run of this session that differs in depth or block size only: its shape and its
    steady figures. ``spread`` is the standard deviation of its seconds' IOPS over their mean."""

    shape: JobShape
    iops: float
    lat_ns: float
    bytes_s: float = 0.0
    spread: float | None = None


@dataclass(frozen=True)
class Evidence:
    """Evidence for the rules. ``frames`` are the running step's (without a job: the last ones),
    oldest first; ``before`` those of the quiet time right before it; ``online`` the CPUs that can
    be used. ``devices`` are those that the job works on, ``tree`` these and all below them,
    ``links`` what lies directly below each; ``unseen`` says what else the job works on, if that is
    on no block device. ``now`` are the conditions read last, ``then`` those at the run's beginning.
    ``volume`` is what was bought, if the user says so. ``drives`` are the
    last readings of NVMe drives."""

    frames: Sequence[Frame]
    before: Sequence[Frame] = ()
    devices: Sequence[BlockDevice] = ()
    shape: JobShape = JobShape()
    online: tuple[int, ...] = ()
    earlier: Sequence[SteadyRun] = ()
    unseen: tuple[str, ...] = ()
    now: Conditions = NOT_READ
    then: Conditions = NOT_READ
    tree: Sequence[BlockDevice] = ()
    links: Sequence[DeviceLinks] = ()
    volume: PromisedFigures | None = None
    drives: Mapping[str, DriveReading] = field(default_factory=dict)

    @cached_property
    def measured(self) -> list[Frame]:
        """Frames whose figures cover a whole interval."""
        return measured(self.frames)


@dataclass(frozen=True, slots=True)
class Finding:
    """``rule`` names what fired, ``text`` is the sentence, ``advice`` what to try ("" if
    nothing helps), ``key`` the key that does it ("" if none). ``test`` are the options of the run
    that decides it (empty: there is none). ``since`` and ``until`` are the seconds of the session
    that it is about (``None``: of no seconds, or an older recording's).
    """

    rule: str
    text: str
    advice: str = ""
    key: str = ""
    test: tuple[tuple[str, str], ...] = ()
    since: float | None = None
    until: float | None = None

    @property
    def options(self) -> str:
        """The options of ``test`` in words: "bs=8k"; "" if it has none."""
        return " ".join(f"{name}={value}" for name, value in self.test)


# -- figures


def measured(frames: Iterable[Frame]) -> list[Frame]:
    """Frames whose figures stand for a whole interval, the kernel's as well: after a stall of
    ours they may be of its last milliseconds."""
    unfit = {RAMP, PARTIAL, RESET}
    return [
        f
        for f in frames
        if f.fio is not None
        and f.fio.seconds
        and not unfit & f.flags
        and (f.seconds is None or f.seconds >= f.fio.seconds / 2)
    ]


def recent(evidence: Evidence, count: int = ENOUGH_SECONDS) -> list[Frame]:
    """The last ``count`` measured frames; empty if there are fewer."""
    found = evidence.measured
    return found[-count:] if len(found) >= count else []


def frame_start_s(frame: Frame) -> float:
    """The second of the session at which the longer of a frame's two intervals began."""
    seconds = max(frame.seconds or 0.0, (frame.fio.seconds or 0.0) if frame.fio else 0.0)
    return max(0.0, frame.t - seconds)


def window(evidence: Evidence, count: int = ENOUGH_SECONDS) -> list[Frame]:
    """The last ``count`` frames that measured the kernel's side: of the job's seconds if one runs,
    else of all; empty if there are fewer."""
    running = any(f.fio is not None for f in evidence.frames)
    if running:
        return recent(evidence, count)
    found = [f for f in evidence.frames if f.seconds and FINAL not in f.flags and f.step == 0]
    return found[-count:] if len(found) >= count else []


def newest_while(evidence: Evidence, holds: Callable[[Frame], bool]) -> list[Frame]:
    """The newest frames of the running step, oldest first, as far back as ``holds`` is true."""
    found: list[Frame] = []
    for frame in reversed([one for one in evidence.frames if one.seconds and one.step]):
        if not holds(frame):
            break
        found.insert(0, frame)
    return found


def device_state(device: BlockDevice, evidence: Evidence) -> DeviceState:
    """The last state read of this device."""
    return evidence.now.devices.get(device.name, DeviceState())


def in_flight(frames: Sequence[Frame]) -> float | None:
    """I/Os that fio has under way on average, by Little's law: N = X·R (``None``: no latency, or
    not of all I/Os)."""
    latency = fio_latency(frames)
    if latency is None or any({NO_LATENCY, SOME_LATENCY, WRONG_LATENCY} & f.flags for f in frames):
        return None
    return fio_iops(frames) * latency / 1e9


def spread(frames: Sequence[Frame]) -> float | None:
    """Standard deviation of the seconds' IOPS over their mean; ``None`` of fewer than two."""
    each = [f.fio.total.iops for f in frames if f.fio and f.fio.total.iops]
    return pstdev(each) / fmean(each) if len(each) > 1 else None


def fio_iops(frames: Sequence[Frame]) -> float:
    """fio's completions per second over these frames."""
    each = [f.fio for f in frames if f.fio]
    seconds = sum([one.seconds or 0.0 for one in each])
    return sum([one.total.ios for one in each]) / seconds if seconds else 0.0


def fio_bytes(frames: Sequence[Frame]) -> float:
    """fio's bytes per second over these frames."""
    seconds = sum(f.fio.seconds or 0.0 for f in frames if f.fio)
    return sum(f.fio.total.bytes for f in frames if f.fio) / seconds if seconds else 0.0


def fio_latency(frames: Sequence[Frame]) -> float | None:
    """Mean latency (lat, else clat) in ns, weighted by the I/Os."""
    weighted, count = 0.0, 0
    for frame in frames:
        total = frame.fio.total if frame.fio and WRONG_LATENCY not in frame.flags else None
        mean = None if total is None else total.lat_ns or total.clat_ns
        if total is not None and mean is not None:
            weighted += mean * total.ios
            count += total.ios
    return weighted / count if count else None


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """Devices together over some frames: means of what ``DiskRates`` calls the same. ``own_s`` are
    the I/Os without empty flushes, which Linux counts among a disk's writes, and some of them
    twice (O_SYNC on a disk without FUA): at least so many I/Os carry data."""

    r_s: float
    w_s: float
    ios_s: float
    bytes_s: float
    merges_s: float
    f_s: float = 0.0
    aqu_sz: float | None = None

    @property
    def own_s(self) -> float:
        """I/Os that carry data, at least."""
        return max(0.0, self.ios_s - self.f_s)


def device_figures(
    frames: Sequence[Frame], devices: Sequence[BlockDevice], least: int = ENOUGH_SECONDS
) -> DeviceFigures | None:
    """Means over the frames that measured all the devices; ``None`` if fewer than ``least``
    did."""
    least = max(least, 1)
    # a dozen rules ask for it each second
    if not devices or len(frames) < least:
        return None
    names = [device.name for device in devices]
    each = [frame.combined(names) for frame in frames]
    disks = [d for d in each if d is not None and d.r_s is not None and d.w_s is not None]
    count = len(disks)
    if count < least:
        return None
    return DeviceFigures(
        r_s=fsum([d.r_s or 0.0 for d in disks]) / count,
        w_s=fsum([d.w_s or 0.0 for d in disks]) / count,
        ios_s=fsum([d.ios_s or 0.0 for d in disks]) / count,
        bytes_s=fsum([d.bytes_s or 0.0 for d in disks]) / count,
        merges_s=fsum([d.merges_s or 0.0 for d in disks]) / count,
        f_s=fsum([d.f_s or 0.0 for d in disks]) / count,
        aqu_sz=mean([d.aqu_sz for d in disks]),
    )


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of all values; ``None`` if one is missing."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def each_second(
    frames: Sequence[Frame], devices: Sequence[BlockDevice]
) -> list[tuple[float, float, float]]:
    """(fio's IOPS, the fewest and the most I/Os with data that the devices' counters allow per
    second) of each frame that has both."""
    found = []
    for frame in frames:
        own, theirs = fio_iops([frame]), device_figures([frame], devices, 1)
        if own and theirs is not None:
            found.append((own, theirs.own_s, theirs.ios_s))
    return found


def per_cpu(frames: Sequence[Frame], name: str) -> dict[int, float]:
    """Mean of ``block_s``, ``irq_s`` or ``ipi_s`` for each CPU, over the frames that have it."""
    found: dict[int, list[float]] = {}
    for frame in frames:
        for cpu, value in rate_of(frame.cpus, name).items():
            found.setdefault(cpu, []).append(value)
    return {cpu: fmean(values) for cpu, values in found.items()}


def job_busy(frames: Sequence[Frame]) -> dict[int, list[float]]:
    """Percent of a CPU by job, one value for each frame that knows it."""
    busy: dict[int, list[float]] = {}
    for frame in frames:
        for job in frame.jobs:
            if job.busy is not None:
                busy.setdefault(job.index, []).append(job.busy)
    return busy


def full_jobs(frames: Sequence[Frame]) -> tuple[dict[int, list[float]], dict[int, float]]:
    """(busy percents of all jobs, mean of those that had nothing left all the time)."""
    busy = job_busy(frames)
    full = {
        n: fmean(b)
        for n, b in busy.items()
        if len(b) >= ENOUGH_SECONDS and min(b) >= SATURATED_BUSY
    }
    return busy, full


def cpus_have_time(evidence: Evidence) -> bool:
    """Whether the CPUs that can be used had idle time in each of the last seconds."""
    idle = idle_percents(evidence)
    return len(idle) >= ENOUGH_SECONDS and min(idle) > MUCH_IDLE


def idle_percents(evidence: Evidence) -> list[float]:
    """Idle percentage of all usable CPUs together, for each of the last seconds that have it."""
    frames = recent(evidence)
    loads = [[f.cpus[c].load for c in evidence.online if c in f.cpus] for f in frames]
    return [fmean(one.idle + one.iowait for one in row if one) for row in loads if any(row)]


def flush_await(frames: Sequence[Frame], devices: Sequence[BlockDevice]) -> float | None:
    """How long a flush took in these frames, in ms; ``None`` if there was none."""
    waited = count = 0.0
    for frame in frames:
        disk = frame.combined([device.name for device in devices])
        if disk is not None and disk.f_s and disk.f_await is not None:
            waited += disk.f_s * disk.f_await
            count += disk.f_s
    return waited / count if count else None


def is_same_figure(one: float, other: float) -> bool:
    """Whether two figures of different runs differ by no more than ``SAME_SHARE``, and aren't 0."""
    return 0 < max(one, other) <= (1 + SAME_SHARE) * min(one, other)


def waits_longer(deeper: float, then_ns: float, now_ns: float) -> bool:
    """Whether latency grew at least by half of what Little's law gives a queue that is ``deeper``
    times as deep and brings no more IOPS."""
    return now_ns >= then_ns * (1 + 0.5 * (deeper - 1))


def busiest_cpu(counts: Mapping[int, float]) -> tuple[int, float]:
    """(CPU, count) of the busiest one; ``counts`` must not be empty."""
    return max(counts.items(), key=lambda pair: (pair[1], -pair[0]))


# -- words in a sentence


def seconds_text(finding: Finding) -> str:
    """The seconds that it is about: "0:05-0:08"; "" of none."""
    if finding.since is None or finding.until is None:
        return ""
    return f"{units.clock(finding.since)}-{units.clock(finding.until)}"


def ceased_text(since: float, until: float, why: str = "") -> str:
    """When its cause ended, and how long it lasted: "ended at 0:36, after 24 s". One that later
    seconds contradict is "withdrawn: vda counts its I/Os all the same"."""
    if why:
        return f"withdrawn: {why}"
    return f"ended at {units.clock(until)}, after {units.duration(until - since)}"


def names_text(devices: Sequence[BlockDevice], most: int = 4) -> str:
    """ "vda", "vda and vdb", "vda, vdb, vdc and 5 more"."""
    names = [device.name for device in devices]
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def cpus_text(cpus: Sequence[int], most: int = 6) -> str:
    """ "CPU 0, 1, 5", with long lists cut: "CPU 0, 1, 2 ... (64 CPUs)"."""
    shown = ", ".join(map(str, cpus[:most]))
    return f"CPU {shown}" + (f" ... ({len(cpus)} CPUs)" if len(cpus) > most else "")
