"""Decide whether other I/O, a full CPU or a moved interrupt disturbed a measurement.

Used by everything that compares runs. The I/O of others is what remains in the accounts of a whole
run (model/findings/accounts.py): the device's sums less the most that the job can have caused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isinf
from typing import Protocol

from iopstui import format as units
from iopstui.model.block.target import DEVICE, DIRECT_LOOP, Target
from iopstui.model.findings.accounts import (
    FLUSHES,
    KINDS,
    MOVE_DATA,
    NOTHING,
    READS,
    WRITES,
    Flow,
    Flows,
    JobLimits,
    beyond,
    device_flows,
    is_part_of,
    lower_limits,
    own_flow,
    sole_devices,
    together,
)
from iopstui.model.findings.evidence import JobShape
from iopstui.model.findings.finding import cpus_text
from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.jobfile import PASSTHROUGH
from iopstui.model.metrics.frame import Frame
from iopstui.model.samples import MIXED

DISTURBING_SHARE = 0.05
"""A larger share of others in a device's I/Os or bytes spoils a measurement. With a neighbour at 10
%, IOPS already look lower than they are."""
LARGEST_UNSPLIT = 64 << 10
"""I/Os up to this size are seldom split into several requests."""
MIN_OTHERS = (10.0, 16 << 10)
"""I/Os and bytes per second of others: fewer of both don't disturb even a job that does hardly
more."""
MIN_READ, CACHED_LITTLE = 1 << 20, 0.1
"""Bytes per second read from a loop device, and the share of them, from which on the page cache
matters. If it has nearly all, each run reads from memory alone."""
FULL_CPU_PERCENT = 95.0
OTHER_CPU_PERCENT = 25.0
"""Percent of a CPU that other programs must use in user mode to disturb a run."""
COMPLETING_SHARE = 0.1
"""A CPU with at least this share of the completions takes part in the I/O."""
READ_S, UNKNOWN_SKEW_S = 0.02, 0.2
"""Seconds by which fio's time and the kernel's may differ: the least, and the value used if no
clock shows it."""
MIN_INTERRUPTS_PER_S = 100.0
ONE_CPU_SHARE = 0.8
_FIGURES = re.compile(r"\d[\d.]*k?(?: [KMGT]iB)?| \([^()]*\)")
"""What differs between the same disturbances of several runs."""
_NO_IO_ENGINES = ("null", "cpuio")


@dataclass(frozen=True, slots=True)
class OtherIo:
    """I/O of others on ``name``, as part of ``total``; ``kind`` is "reads", "writes", "discards" or
    "flushes" if nearly all of it is of that kind. ``job`` is the job's I/O, which may exceed what
    reached the device: the page cache answers, or requests are merged. ``above`` is the job's
    device if that one lies on ``name`` ("": it is the same, or a partition of it)."""

    name: str
    others: Flow
    total: Flow
    kind: str = ""
    job: Flow = NOTHING
    above: str = ""

    @property
    def share(self) -> float:
        """Share (0..1) of the I/Os or of the bytes, whichever is larger."""
        shares = self._shares
        return max(shares.ios_s, shares.bytes_s)

    @property
    def _shares(self) -> Flow:
        return self.others.share_of(self.total.largest(self.job))

    @property
    def of_bytes(self) -> bool:
        """Whether their share of the bytes is larger than that of the I/Os."""
        return self._shares.bytes_s > self._shares.ios_s

    def text(self, who: str = "") -> str:
        """A sentence: "others did at least 40 MiB of 48 MiB a second on vda, on which loop1 lies
        (reads; most of it: backupd 11939)". ``who`` did most of it ("": not known)."""
        if self.of_bytes:
            amounts = f"{units.size(self.others.bytes_s)} of {units.size(self.total.bytes_s)}"
        else:
            amounts = f"{units.number(self.others.ios_s)} of {units.number(self.total.ios_s)} I/Os"
        lies = f", on which {self.above} lies" if self.above else ""
        asides = "; ".join(filter(None, (self.kind, f"most of it: {who}" if who else "")))
        aside = f" ({asides})" if asides else ""
        return f"others did at least {amounts} a second on {self.name}{lies}{aside}"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Disturbances of a run: ``others`` is the share (0..1) of others' I/O (``None``: unknown),
    ``others_on`` the disk where they did it, ``reasons`` are sentences on everything that spoils
    the figures, ``irq_cpus`` the CPU that served each interrupt of the devices."""

    others: float | None = None
    reasons: tuple[str, ...] = ()
    irq_cpus: Mapping[str, int] = field(default_factory=dict)
    others_on: tuple[str, ...] = ()


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


class _FlowSums:
    """Sums of I/O by kind over a run, and the highest rate of each kind in an interval."""

    def __init__(self) -> None:
        self._sums: dict[str, Flow] = dict.fromkeys(KINDS, NOTHING)
        self._peaks = dict(self._sums)
        self._seconds = 0.0

    def add(self, rates: Flows, seconds: float) -> None:
        self._seconds += seconds
        for kind, rate in rates.items():
            self._sums[kind] += rate.times(seconds)
            self._peaks[kind] = self._peaks[kind].largest(rate)

    @property
    def means(self) -> Flows:
        """Rates over the time that was counted."""
        return self.rates(self._seconds) if self._seconds else self._sums

    def rates(self, seconds: float, uncertain_s: float = 0.0) -> Flows:
        """Rates over a run of ``seconds``. Up to ``uncertain_s`` of the counted time may be outside
        of the run: the most I/O that can have been done in it is subtracted."""
        sums = self._sums
        if uncertain_s:
            sums = {
                kind: flow - self._peaks[kind].times(uncertain_s) for kind, flow in sums.items()
            }
        return {kind: flow.times(1 / seconds) for kind, flow in sums.items()}


class DisturbanceMeter:
    """Looks for disturbances of one run of a job of ``shape`` on ``target``. ``busiest`` names the
    program that has used the CPUs most since then ("": none), and is asked only if they were
    full; ``most_of`` names the one that did most of others' I/O, and is asked only if that
    disturbed."""

    def __init__(
        self, target: Target, shape: JobShape, busiest: Callable[[], str] = lambda: "",
        most_of: Callable[[OtherIo], str] = lambda other: "",
    ) -> None:  # fmt: skip
        self._busiest, self._most_of = busiest, most_of
        # a file system may write as much as the job, but hardly anything on its own over a whole
        # run
        self._limits = JobLimits(
            shape, any(place.kind != DEVICE for place in target.places),
            moves_data=any(place.fstype in MOVE_DATA for place in target.places),
            largest_request=LARGEST_UNSPLIT, metadata=NOTHING, metadata_share=1.0,
        )  # fmt: skip
        self._name, self._devices = target.name, target.opened
        self._lower = tuple(sole_devices(target.opened, target.tree, target.links))
        self._stack = {name for lower, upper, _ in self._lower for name in (lower, upper)}
        self._disks = {name: _FlowSums() for name in ("", *self._stack)}
        self._least, self._most, self._mixed = _FlowSums(), _FlowSums(), False
        self._seconds = 0.0
        self._has_begun = False
        self._first_skew: float | None = None
        self._last_skew: float | None = None
        self._end_skew: float | None = None
        self._between: list[Frame] = []
        self._carried: list[tuple[FioInterval, bool]] = []
        self._cpus = _CpuMeans()
        self._irqs: dict[int, list[int]] = {}

    def add(self, frame: Frame, measured: bool = True) -> None:
        """Count a frame of the run. Frames that are not ``measured`` count as well: the next
        figures of fio or of the kernel may cover part of their time. What the kernel counted
        before fio's first figures may be from before the run."""
        if frame.fio is None:
            if self._has_begun:
                self._between.append(frame)
            return
        self._has_begun = True
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
            self._count_disks(each)
        self._cpus.add(frame)
        self._add_interrupts(frame)

    def _count_job(self, fio: FioInterval) -> None:
        seconds = fio.seconds or 0.0
        self._seconds += seconds
        self._mixed |= MIXED in fio.directions
        if MIXED in fio.directions:
            # reads and writes can't be separated: compare them together
            own = {READS: own_flow(fio.directions[MIXED])}
            self._least.add(own, seconds)
            self._most.add(own, seconds)
            return
        self._least.add({kind: self._limits.least(kind, fio) for kind in KINDS}, seconds)
        self._most.add({kind: self._limits.most(kind, fio) for kind in KINDS}, seconds)

    def _count_disks(self, frame: Frame) -> None:
        tops = frame.combined(self._devices) if self._devices else None
        for name, disk in (("", tops), *((name, frame.disks.get(name)) for name in self._stack)):
            if disk is not None and disk.r_s is not None and disk.w_s is not None:
                self._disks[name].add(device_flows(disk), disk.seconds)

    def _add_interrupts(self, frame: Frame) -> None:
        for irq, rates in frame.irqs.items():
            total = sum(rates.values())
            cpu = max(rates, key=lambda number: rates[number], default=None)
            if cpu is None or total < MIN_INTERRUPTS_PER_S:
                continue
            if rates[cpu] >= ONE_CPU_SHARE * total:
                self._irqs.setdefault(irq, []).append(cpu)

    def result(self) -> Disturbance:
        """The disturbances that the frames so far show."""
        found = list(filter(None, (self._on_job_devices(), *self._below())))
        worst = max(found, key=lambda other: other.share, default=None)
        reasons = []
        if worst is not None and worst.share >= DISTURBING_SHARE:
            reasons.append(worst.text(self._most_of(worst)))
        reasons += [*self._full_cpus(), *self._partly_cached()]
        reasons += [
            f"interrupt {irq} moved from CPU {cpus[0]} to CPU {cpus[-1]}"
            for irq, cpus in sorted(self._irqs.items())
            if cpus[0] != cpus[-1]
        ]
        irq_cpus = {str(irq): cpus[-1] for irq, cpus in sorted(self._irqs.items())}
        share = worst.share if worst is not None else 0.0
        known = worst is not None and (share > 0 or not self._may_be_all_its_own)
        where = (worst.name,) if worst is not None and share > 0 else ()
        return Disturbance(share if known else None, tuple(reasons), irq_cpus, where)

    def _partly_cached(self) -> Iterator[str]:
        """Loop devices whose file was partly in the page cache. The next run reads the same blocks
        again and finds more of them there, so that its figures are those of another mixture. The
        kernel reads such a file ahead, many times as much as was asked for."""
        for lower, upper, layer in self._lower if self._seconds else ():
            if not upper.startswith("loop"):
                continue
            asked, read = (self._disks[name].means[READS].bytes_s for name in (upper, lower))
            share = 1 - read / asked if asked >= MIN_READ else 0.0
            if share < -1 and layer != DIRECT_LOOP:
                yield (
                    f"{units.size(read)} a second were read from {lower} for {units.size(asked)} "
                    f"of {upper}: the kernel read its file ahead, or others read, too"
                )
            if CACHED_LITTLE < share < 1 - CACHED_LITTLE:
                yield (
                    f"{100 * share:.0f} % of what was read from {upper} was not read from {lower}: "
                    "its file is partly in the page cache, or has holes"
                )

    def _full_cpus(self) -> list[str]:
        reasons = self._cpus.reasons()
        busiest = self._busiest() if reasons else ""
        return [f"{text}; the busiest was {busiest}" if busiest else text for text in reasons]

    @property
    def _may_be_all_its_own(self) -> bool:
        """Whether all of the device's I/O may be the job's: the page cache may have read or written
        any amount for it."""
        most = self._most.rates(self._seconds) if self._seconds else {}
        return any(isinf(most[kind].bytes_s) for kind in (READS, WRITES) if kind in most)

    @property
    def _uncertain_s(self) -> float:
        """How much longer the kernel's time may be than fio's: its counters may be read later at
        the end than at the beginning."""
        if self._first_skew is None or self._end_skew is None:
            return UNKNOWN_SKEW_S
        return READ_S + abs(self._end_skew - self._first_skew) / 1000

    def _on_job_devices(self) -> OtherIo | None:
        shape, seconds = self._limits.shape, self._seconds
        if shape.engine in (*_NO_IO_ENGINES, PASSTHROUGH) or not seconds:
            return None
        # subtract a little, because fio's time and the kernel's differ
        disk, total = (
            self._disks[""].rates(seconds, uncertain) for uncertain in (self._uncertain_s, 0.0)
        )
        if self._mixed:
            if not self._limits.direct or (self._limits.files and shape.syncs):
                return None
            disk, total = _in_one(disk), _in_one(total)
        job = self._least.rates(seconds), self._most.rates(seconds)
        return _other_io(self._name, disk, total, *job)

    def _below(self) -> Iterator[OtherIo | None]:
        """I/O of others on a device below the job's device, which that one does not count. Both
        devices are read at the same time, which may be longer than fio's."""
        for lower, upper, layer in self._lower if self._seconds else ():
            disk, above = (self._disks[name].means for name in (lower, upper))
            found = _other_io(lower, disk, disk, above, lower_limits(above, upper, layer))
            if (found.total - found.others).ios_s >= 1.0:
                top = self._devices[0]
                yield replace(found, above="" if is_part_of(top, lower) else top)


def _in_one(flows: Flows) -> Flows:
    """Reads, writes and discards as one kind, called reads."""
    return {READS: together({**flows, FLUSHES: NOTHING}), FLUSHES: flows[FLUSHES]}


def _other_io(name: str, disk: Flows, total: Flows, least: Flows, most: Flows) -> OtherIo:
    """The I/O of others on a device. ``total`` is everything that the device did, ``disk`` a lower
    bound of that."""
    others = {kind: beyond(flow, least[kind], most[kind], kind, slack=1.0)
              for kind, flow in disk.items()}  # fmt: skip
    whole, all_others = _with_flushes(total), _with_flushes(others)
    if all_others.ios_s < MIN_OTHERS[0] and all_others.bytes_s < MIN_OTHERS[1]:
        return OtherIo(name, NOTHING, whole)
    kind, most_of = max(others.items(), key=lambda item: (item[1].ios_s, item[1].bytes_s))
    nearly_all = most_of.ios_s >= 0.9 * all_others.ios_s
    nearly_all = nearly_all and most_of.bytes_s >= 0.9 * all_others.bytes_s
    named = kind if nearly_all and WRITES in disk else ""
    return OtherIo(name, all_others, whole, named, together(least))


def _with_flushes(flows: Flows) -> Flow:
    return together(flows) + Flow(flows[FLUSHES].ios_s)


class _CpuMeans:
    """How busy each CPU was and with what, and which CPUs took part in the job's I/O."""

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
        # jobs move between CPUs within a second: their CPU time must not count as others'
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
    """fio's time in user mode in percent of a CPU: in total, and for each CPU that its jobs are
    on."""
    fio = frame.fio
    user = (fio.usr_cpu or 0.0) if fio is not None else 0.0
    total = user + ((fio.sys_cpu or 0.0) if fio is not None else 0.0)
    share = user / total if total else 1.0
    by_cpu: dict[int, float] = {}
    for job in frame.jobs:
        by_cpu[job.cpu] = by_cpu.get(job.cpu, 0.0) + (job.busy or 0.0) * share
    return user, by_cpu


class _Measured(Protocol):
    """A run with its disturbances (model/experiment/point.py, Point)."""

    @property
    def others(self) -> float | None: ...
    @property
    def others_on(self) -> tuple[str, ...]: ...
    @property
    def disturbed(self) -> tuple[str, ...]: ...
    @property
    def irq_cpus(self) -> Mapping[str, int]: ...


def moved_between(runs: Sequence[_Measured]) -> str:
    """The change of an interrupt that was served by different CPUs in these runs, in words; ""
    without one."""
    seen: dict[str, int] = {}
    for run in runs:
        for irq, cpu in run.irq_cpus.items():
            if seen.setdefault(irq, cpu) != cpu:
                return f"interrupt {irq} moved from CPU {seen[irq]} to CPU {cpu} between the runs"
    return ""


def disturbance_text(runs: Sequence[_Measured], unit: str = "run") -> str:
    """How many of these runs were disturbed, by what and by how much; "" if none was."""
    disturbed = [run for run in runs if run.disturbed]
    moved = moved_between(runs)
    if not disturbed:
        return moved
    worst = max(disturbed, key=lambda run: run.others or 0.0)
    shares = [100 * (run.others or 0.0) for run in disturbed]
    span = span_text(min(shares), max(shares))
    did = f"others did {span} of the I/Os or bytes{_on(disturbed)}; "
    did = did if round(max(shares)) else ""
    which = f"worst {unit}: " if len(disturbed) > 1 else ""
    share = f"{len(disturbed)} of {units.counted(len(runs), unit)}"
    alike = {_FIGURES.sub("", reason): reason for reason in reversed(worst.disturbed)}
    reasons = [reason for reason in worst.disturbed if reason in alike.values()]
    which += "in one of its runs " if len(reasons) < len(worst.disturbed) else ""
    text = f"{share}, {did}{which}{'; '.join(reasons)}"
    return f"{text}; {moved}" if moved else text


def one_sided_text(pairs: Sequence[tuple[_Measured, _Measured]]) -> str:
    """The end of a sentence on the second runs, if others did I/O during all runs of one setting
    and during none of the other; "" otherwise."""
    disturbed = {tuple((run.others or 0.0) >= DISTURBING_SHARE for run in pair) for pair in pairs}
    if disturbed == {(False, True)}:
        return "; others did I/O in all of its runs and in none of A's"
    if disturbed == {(True, False)}:
        return "; others did I/O in all of A's runs and in none of its own"
    return ""


def span_text(low: float, high: float) -> str:
    """The range of shares, in percent: "12 to 66 %", or "66 %" if they are equal."""
    first, last = f"{low:.0f}", f"{high:.0f}"
    return f"{last} %" if first == last else f"{first} to {last} %"


def uncertainty_text(runs: Sequence[_Measured]) -> str:
    """A note that others used the disk: "others did up to 66 % of the I/Os or bytes of vda" (how
    much more the job would have done alone is not known). "" without any disturbance."""
    disturbed = [run for run in runs if run.disturbed]
    most = 100 * max((run.others or 0.0 for run in disturbed), default=0.0)
    if most >= 100 * DISTURBING_SHARE:
        return f"others did up to {most:.0f} % of the I/Os or bytes{_on(disturbed)}"
    return "the runs were disturbed" if disturbed else ""


def _on(runs: Sequence[_Measured]) -> str:
    """The disks where others did most of their I/O, " of vda"; "" if that is not recorded."""
    names = dict.fromkeys(name for run in runs for name in run.others_on)
    return f" of {' and '.join(names)}" if names else ""
