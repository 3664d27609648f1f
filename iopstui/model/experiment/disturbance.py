"""Decide whether other I/O, a full CPU or a moved interrupt disturbed a measurement.

One place for lessons, sweeps and comparisons. The device's own counters minus what the job did are
other programs' (or the kernel's own) I/O. What the job may have caused itself is not counted: what
the page cache does for a buffered job, what a file system writes for one that syncs, and requests
that are only split or merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from iopstui import format as units
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.findings.evidence import JobShape
from iopstui.model.findings.finding import cpus_text
from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.job_rules import PASSTHROUGH
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import DiskRates
from iopstui.model.samples import MIXED, READ, TRIM, WRITE

DISTURBING_SHARE = 0.05
"""Share of the I/Os or bytes of a device: more of others' spoils a measurement. With a neighbour of
10 % a lesson would call IOPS lower that are not."""
LARGEST_UNSPLIT = 64 << 10
"""I/Os up to this size are seldom split into several requests."""
MIN_OTHERS = (10.0, 16 << 10)
"""I/Os and bytes per second: fewer of both don't disturb even a job that hardly does more."""
FULL_CPU_PERCENT = 95.0
OTHER_CPU_PERCENT = 25.0
"""Percent of a full CPU that other programs use in user mode."""
COMPLETING_SHARE = 0.1
"""Share of the completions from which on a CPU takes part in the I/O."""
READ_S, UNKNOWN_SKEW_S = 0.02, 0.2
"""Seconds by which fio's time and the kernel's may differ: at least, and where no clock says."""
MIN_INTERRUPTS_PER_S = 100.0
ONE_CPU_SHARE = 0.8
_PAGE, _SECTOR = 4096, 512
_NO_IO_ENGINES = ("null", "cpuio")
FLUSH = "flush"
_PLURALS = {READ: "reads", WRITE: "writes", TRIM: "discards", FLUSH: "flushes"}


@dataclass(frozen=True, slots=True)
class IoRate:
    """I/Os and bytes, in all or per second."""

    ios: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: IoRate) -> IoRate:
        return IoRate(self.ios + other.ios, self.bytes + other.bytes)

    def times(self, factor: float) -> IoRate:
        """So many times as much."""
        return IoRate(factor * self.ios, factor * self.bytes)


@dataclass(frozen=True, slots=True)
class OtherIo:
    """I/O of others on ``name``, of ``total``; ``kind`` is "reads", "writes", "discards" or
    "flushes" where nearly all of it is. ``job`` is the job's, which may be more than reached the
    device: the page cache answers, or requests are merged."""

    name: str
    others: IoRate
    total: IoRate
    kind: str = ""
    job: IoRate = IoRate()

    @property
    def share(self) -> float:
        """Share (0..1) of the I/Os or of the bytes, whichever is larger."""
        return max(self._ios_share, self._bytes_share)

    @property
    def _ios_share(self) -> float:
        total = max(self.total.ios, self.job.ios)
        return self.others.ios / total if total else 0.0

    @property
    def _bytes_share(self) -> float:
        total = max(self.total.bytes, self.job.bytes)
        return self.others.bytes / total if total else 0.0

    @property
    def text(self) -> str:
        """ "54.6k of 82.2k I/Os a second on vda were not this job's (reads)"."""
        kind = f" ({self.kind})" if self.kind else ""
        if self._ios_share >= self._bytes_share:
            amounts = f"{units.number(self.others.ios)} of {units.number(self.total.ios)} I/Os"
        else:
            amounts = f"{units.size(self.others.bytes)} of {units.size(self.total.bytes)}"
        return f"{amounts} a second on {self.name} were not this job's{kind}"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What else went on in a run: ``others`` is the share (0..1) of others' I/O (``None``: can't be
    told), ``reasons`` are sentences on all that spoils the figures, ``irq_cpus`` the CPU that
    served each interrupt of the devices."""

    others: float | None = None
    reasons: tuple[str, ...] = ()
    irq_cpus: Mapping[str, int] = field(default_factory=dict)


def others_io(job: IoRate, device: IoRate) -> IoRate:
    """The device's I/O that the job can't have caused by splitting or merging its own."""
    more_bytes = max(0.0, device.bytes - job.bytes)
    if not job.ios:
        return IoRate(device.ios, more_bytes)
    size = job.bytes / job.ios
    if size > LARGEST_UNSPLIT:
        share = more_bytes / device.bytes if device.bytes else 0.0
        return IoRate(device.ios * share, more_bytes)
    # what has no bytes of its own is split; nothing splits a page
    smallest = _SECTOR if size <= _PAGE else _PAGE
    return IoRate(min(max(0.0, device.ios - job.ios), more_bytes / smallest), more_bytes)


def sole_devices(target: Target) -> tuple[tuple[str, str], ...]:
    """Pairs (lower, upper) below the target's only device where the lower one does what the upper
    one does: the disk of a partition, the one device below a device-mapper device."""
    name = target.opened[0] if len(target.opened) == 1 else ""
    below = {link.name: link.below for link in target.links}
    pairs = []
    while name:
        disk = next((disk for disk in target.tree if _is_part_of(name, disk)), "")
        if disk:
            pairs.append((disk, name))
        lower = below.get(name, ())
        if len(lower) != 1 or not name.startswith("dm-"):
            break
        pairs.append((lower[0], name))
        name = lower[0]
    return tuple(pairs)


def _is_part_of(name: str, disk: str) -> bool:
    number = name.removeprefix(disk).removeprefix("p")
    return name != disk and name.startswith(disk) and number.isdecimal()


class _Mean:
    """A rate's mean over seconds."""

    def __init__(self) -> None:
        self._sum = self.seconds = 0.0

    def add(self, rate: float, seconds: float) -> None:
        self._sum += rate * seconds
        self.seconds += seconds

    @property
    def value(self) -> float:
        return self._sum / self.seconds if self.seconds else 0.0


Directions = Mapping[str, IoRate]


class _DiskCounts:
    """What a device, or several together, did by direction; flushes are no writes here. ``peak`` is
    its highest rate in an interval."""

    def __init__(self, devices: Sequence[str], syncs: bool = False) -> None:
        self._devices = tuple(devices)
        self._syncs = syncs
        self.counts: dict[str, IoRate] = dict.fromkeys(_PLURALS, IoRate())
        self.peak = dict(self.counts)

    def add(self, frame: Frame) -> None:
        disk = frame.combined(self._devices) if self._devices else None
        if disk is None or disk.r_s is None or disk.w_s is None:
            return
        rates = {
            READ: IoRate(disk.r_s, disk.r_bytes_s or 0.0),
            WRITE: IoRate(self._writes(disk), disk.w_bytes_s or 0.0),
            TRIM: IoRate(disk.d_s or 0.0, disk.d_bytes_s or 0.0),
            FLUSH: IoRate(disk.f_s or 0.0),
        }
        for name, rate in rates.items():
            self.counts[name] += rate.times(disk.seconds)
            peak = self.peak[name]
            self.peak[name] = IoRate(max(peak.ios, rate.ios), max(peak.bytes, rate.bytes))

    def _writes(self, disk: DiskRates) -> float:
        """Linux counts an empty flush among the writes, and those of O_SYNC twice."""
        flushes = (2 if self._syncs else 1) * (disk.f_s or 0.0)
        return max(0.0, (disk.w_s or 0.0) - flushes)

    def surely(self, uncertain_s: float) -> Directions:
        """The counts without what it may have done in so many seconds that aren't the job's."""
        return {
            name: IoRate(
                max(0.0, count.ios - uncertain_s * self.peak[name].ios),
                max(0.0, count.bytes - uncertain_s * self.peak[name].bytes),
            )
            for name, count in self.counts.items()
        }


class DisturbanceMeter:
    """Looks for disturbances of one run of a job of ``shape`` on ``target``."""

    def __init__(self, target: Target, shape: JobShape) -> None:
        self._shape = shape
        self._on_files = any(place.kind != DEVICE for place in target.places)
        self._tops = _DiskCounts(target.opened, shape.syncs)
        self._name = target.name
        self._pairs = [
            (lower, _DiskCounts([lower]), _DiskCounts([upper]))
            for lower, upper in sole_devices(target)
        ]
        self._job: dict[str, IoRate] = {}
        self._seconds = 0.0
        self._first_skew: float | None = None
        self._last_skew: float | None = None
        self._end_skew: float | None = None
        self._between: list[Frame] = []
        self._carried: list[tuple[FioInterval, bool]] = []
        self._cpus = _CpuMeans()
        self._irqs: dict[int, list[int]] = {}

    def add(self, frame: Frame, measured: bool = True) -> None:
        """Count a frame of the run. Those that are not ``measured`` are needed as well: fio's next
        figures, or the kernel's, may be of their time, too."""
        if frame.fio is None:
            self._between.append(frame)
            return
        self._carried.append((frame.fio, measured))
        if not frame.seconds:
            return
        carried, self._carried = self._carried, []
        between, self._between = self._between, []
        began, self._last_skew = self._last_skew, frame.skew_ms
        if not all(is_measured for _, is_measured in carried):
            return
        if not self._seconds:
            self._first_skew = began
        self._end_skew = frame.skew_ms
        for fio, _ in carried:
            self._count_job(fio)
        for each in (*between, frame):
            self._tops.add(each)
            for _, lower, upper in self._pairs:
                lower.add(each)
                upper.add(each)
        self._cpus.add(frame)
        self._add_interrupts(frame)

    def _count_job(self, fio: FioInterval) -> None:
        self._seconds += fio.seconds or 0.0
        parts = {MIXED: fio.total} if MIXED in fio.directions else fio.directions
        for name, part in parts.items():
            self._job[name] = self._job.get(name, IoRate()) + IoRate(part.ios, part.bytes)

    def _add_interrupts(self, frame: Frame) -> None:
        for irq, rates in frame.irqs.items():
            total = sum(rates.values())
            cpu = max(rates, key=lambda number: rates[number], default=None)
            if cpu is None or total < MIN_INTERRUPTS_PER_S:
                continue
            if rates[cpu] >= ONE_CPU_SHARE * total:
                self._irqs.setdefault(irq, []).append(cpu)

    def result(self) -> Disturbance:
        """What the frames so far show."""
        found = list(filter(None, (self._on_job_devices(), *self._below())))
        worst = max(found, key=lambda other: other.share, default=None)
        reasons = [worst.text] if worst is not None and worst.share >= DISTURBING_SHARE else []
        reasons += self._cpus.reasons()
        reasons += [
            f"interrupt {irq} moved from CPU {cpus[0]} to CPU {cpus[-1]}"
            for irq, cpus in sorted(self._irqs.items())
            if cpus[0] != cpus[-1]
        ]
        irq_cpus = {str(irq): cpus[-1] for irq, cpus in sorted(self._irqs.items())}
        return Disturbance(None if worst is None else worst.share, tuple(reasons), irq_cpus)

    @property
    def _uncertain_s(self) -> float:
        """By how much the kernel's time may be longer than fio's: its counters were read later at
        the end than at the beginning."""
        if self._first_skew is None or self._end_skew is None:
            return UNKNOWN_SKEW_S
        return READ_S + abs(self._end_skew - self._first_skew) / 1000

    def _on_job_devices(self) -> OtherIo | None:
        job = dict(self._job)
        if self._shape.engine in (*_NO_IO_ENGINES, PASSTHROUGH) or not job:
            return None
        if MIXED in job and not self._judges_all:
            return None
        device, total = (
            self._by_direction(counts, job)
            for counts in (self._tops.surely(self._uncertain_s), self._tops.counts)
        )
        judged = {name for name in device if self._judges(name, job)}
        own = {name: self._with_file_system(name, job.get(name, IoRate())) for name in judged}
        others = {name: others_io(own[name], device[name]) for name in judged}
        whole = sum(job.values(), IoRate())
        return _other_io(self._name, others, total, self._seconds, whole)

    def _by_direction(self, counts: Directions, job: Directions) -> Directions:
        """The counts by the directions that the job's figures tell apart. Nothing is transferred
        for a discard, however long it is."""
        device = dict(counts)
        if TRIM not in job:
            device[TRIM] = IoRate(device[TRIM].ios)
        return {MIXED: sum(device.values(), IoRate())} if MIXED in job else device

    @property
    def _judges_all(self) -> bool:
        """Whether the device's counters are the job's in each direction."""
        return self._shape.direct is True and not (self._on_files and self._shape.syncs)

    def _judges(self, name: str, job: Directions) -> bool:
        """Whether more I/O in this direction can't be the job's own doing."""
        does = bool(job.get(name, IoRate()).ios)
        if name == FLUSH:
            return not self._shape.syncs
        if self._judges_all or name == TRIM:
            return True
        if name == READ:
            # a buffered write of a part of a page reads the rest
            whole_pages = bool(self._shape.alignment) and not (self._shape.alignment or 1) % _PAGE
            return self._shape.direct is True or (not does and whole_pages)
        return not does

    def _with_file_system(self, name: str, own: IoRate) -> IoRate:
        """The job's I/O and what a file system may write for it: as much again."""
        copies = 2 if self._on_files and name in (WRITE, MIXED) else 1
        return IoRate(copies * own.ios, copies * own.bytes)

    def _below(self) -> Iterator[OtherIo | None]:
        """Others' I/O on a device below, which the job's own device does not see."""
        for name, lower, upper in self._pairs:
            # both are read at once
            device, above = lower.counts, upper.counts
            # some layers write a journal
            own = {**above, WRITE: above[WRITE] + above[WRITE]}
            data = {way: device[way] for way in (READ, WRITE)}
            others = {way: others_io(own[way], rate) for way, rate in data.items()}
            yield _other_io(name, others, data, self._seconds)


def _other_io(
    name: str, others: Directions, device: Directions, seconds: float, job: IoRate = IoRate()
) -> OtherIo:
    """The share of others in counts of so many ``seconds``, in rates."""
    per_s = 1 / seconds if seconds else 0.0
    job = job.times(per_s)
    others = {way: count.times(per_s) for way, count in others.items()}
    total = sum(device.values(), IoRate()).times(per_s)
    all_others = sum(others.values(), IoRate())
    if not total.ios or (all_others.ios < MIN_OTHERS[0] and all_others.bytes < MIN_OTHERS[1]):
        return OtherIo(name, IoRate(), total)
    way, most = max(others.items(), key=lambda item: (item[1].ios, item[1].bytes))
    nearly_all = most.ios >= 0.9 * all_others.ios and most.bytes >= 0.9 * all_others.bytes
    return OtherIo(name, all_others, total, _PLURALS.get(way, "") if nearly_all else "", job)


class _CpuMeans:
    """How busy each CPU was, with what, and which ones took part in the job's I/O."""

    def __init__(self) -> None:
        self._busy: dict[int, _Mean] = {}
        self._user: dict[int, _Mean] = {}
        self._job_user: dict[int, _Mean] = {}
        self._own_user = _Mean()
        self._completions: dict[int, float] = {}
        self._job_cpus: set[int] = set()

    def add(self, frame: Frame) -> None:
        """Count a frame with figures of fio and of the kernel."""
        seconds = frame.seconds or 0.0
        job_user, by_cpu = _job_user(frame)
        self._own_user.add(job_user + (frame.own_cpu or 0.0), seconds)
        for cpu, figures in frame.cpus.items():
            load = figures.load
            if load is not None:
                self._busy.setdefault(cpu, _Mean()).add(100 - load.idle - load.iowait, seconds)
                self._user.setdefault(cpu, _Mean()).add(load.usr, seconds)
                self._job_user.setdefault(cpu, _Mean()).add(by_cpu.get(cpu, 0.0), seconds)
            count = max(figures.block_s or 0.0, figures.irq_s or 0.0)
            self._completions[cpu] = self._completions.get(cpu, 0.0) + count * seconds
        self._job_cpus |= {job.cpu for job in frame.jobs}

    def reasons(self) -> list[str]:
        """A sentence if other programs fill a CPU that takes part in the I/O."""
        total = sum(self._completions.values())
        part = self._job_cpus | {
            cpu for cpu, count in self._completions.items() if count > COMPLETING_SHARE * total
        }
        part &= set(self._busy)
        # jobs move between CPUs within a second: what they use must not pass for others' time
        most = sum(self._user[cpu].value for cpu in part) - self._own_user.value
        others = {cpu: self._user[cpu].value - self._job_user[cpu].value for cpu in part}
        full = [cpu for cpu in sorted(part) if self._busy[cpu].value >= FULL_CPU_PERCENT]
        full = [cpu for cpu in full if min(others[cpu], most) >= OTHER_CPU_PERCENT]
        if not full:
            return []
        used = min(most, sum(others[cpu] for cpu in full))
        were = "were" if len(full) > 1 else "was"
        text = f"{cpus_text(full)} {were} full: other programs used at least {used:.0f} %"
        return [f"{text} of a CPU there"]


def _job_user(frame: Frame) -> tuple[float, dict[int, float]]:
    """fio's time in user mode in percent of a CPU: in all, and by the CPU that its jobs were on."""
    fio = frame.fio
    user = (fio.usr_cpu or 0.0) if fio is not None else 0.0
    total = user + ((fio.sys_cpu or 0.0) if fio is not None else 0.0)
    share = user / total if total else 1.0
    by_cpu: dict[int, float] = {}
    for job in frame.jobs:
        by_cpu[job.cpu] = by_cpu.get(job.cpu, 0.0) + (job.busy or 0.0) * share
    return user, by_cpu


class MeasuredRun(Protocol):
    """The disturbances of one run (model/experiment/point.py, Point)."""

    @property
    def others(self) -> float | None:
        """Share (0..1) of others' I/O."""
        ...

    @property
    def disturbed(self) -> tuple[str, ...]:
        """Sentences on what spoiled the figures."""
        ...

    @property
    def irq_cpus(self) -> Mapping[str, int]:
        """The CPU that served each interrupt."""
        ...


def moved_between(runs: Sequence[MeasuredRun]) -> str:
    """The interrupt that other CPUs served in some of these runs than in others; "" if none."""
    seen: dict[str, int] = {}
    for run in runs:
        for irq, cpu in run.irq_cpus.items():
            if seen.setdefault(irq, cpu) != cpu:
                return f"interrupt {irq} moved from CPU {seen[irq]} to CPU {cpu} between the runs"
    return ""


def disturbance_text(runs: Sequence[MeasuredRun], unit: str = "runs") -> str:
    """How many of these runs were disturbed, by what and by how much; "" if none was."""
    disturbed = [run for run in runs if run.disturbed]
    moved = moved_between(runs)
    if not disturbed:
        return moved
    worst = max(disturbed, key=lambda run: run.others or 0.0)
    shares = [100 * (run.others or 0.0) for run in disturbed]
    amount = f"others did {span_text(min(shares), max(shares))} of the I/O; " if max(shares) else ""
    text = f"{len(disturbed)} of {len(runs)} {unit}, {amount}{'; '.join(worst.disturbed)}"
    return f"{text}; {moved}" if moved else text


def span_text(low: float, high: float) -> str:
    """ "12 to 66 %", "66 %"."""
    first, last = f"{low:.0f}", f"{high:.0f}"
    return f"{last} %" if first == last else f"{first} to {last} %"


def uncertainty_text(runs: Sequence[MeasuredRun]) -> str:
    """That others used the disk, ", on a shared disk: others did up to 66 % of its I/O"; how much
    more the job would have done alone is not known. "" without any disturbance."""
    shares = [run.others or 0.0 for run in runs if run.disturbed]
    if max(shares, default=0.0) >= DISTURBING_SHARE:
        return f", on a shared disk: others did up to {100 * max(shares):.0f} % of its I/O"
    return ", while the runs were disturbed" if shares else ""
