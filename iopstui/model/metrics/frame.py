"""Frames: what happened between two raw samples, in rates.

``FrameBuilder`` is a pure fold over raw samples: the same samples give the same frames, live or
replayed. The kernel's rates use the monotonic clock, fio's rates fio's own clock; the difference of
the clocks is kept as ``skew_ms``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from math import inf
from typing import Any

from iopstui.model import rates, sources
from iopstui.model.block.target import DeviceLinks
from iopstui.model.cgroups import SOURCE as GROUPS
from iopstui.model.cgroups import GroupRates, group_rates
from iopstui.model.figures.disk import DiskRates, disk_rates, sum_rates
from iopstui.model.fio.interval import FioInterval
from iopstui.model.fio.intervals import FioIntervals
from iopstui.model.metrics.aws import SOURCE as AWS
from iopstui.model.metrics.aws import VolumeGrowth, volume_growths
from iopstui.model.metrics.cpus import (
    CpuFrame,
    IrqRates,
    Sent,
    SentBytes,
    cpu_frames,
    job_load,
)
from iopstui.model.metrics.nvme import DIAG, diag_rates
from iopstui.model.metrics.probe import ProbeInterval, ProbeIntervals
from iopstui.model.metrics.shares import NFS, SMB, Share, place_on_share, share_rates, smb_rates
from iopstui.model.metrics.waits import RequestTimes, Stack, Waits, place_waits
from iopstui.model.network import SOURCE as TCP
from iopstui.model.network import Connection, connections
from iopstui.model.samples import DriveReading, JobThread, KernelSample, RawSample

RAMP = "RAMP"
PARTIAL = "PARTIAL"
LATE = "LATE"
RESET = "RESET"
NO_FIO = "NO_FIO"
NO_LATENCY = "NO_LATENCY"
FINAL = "FINAL"
SUBMITTED = "SUBMITTED"
SOME_LATENCY = "SOME_LATENCY"
WRONG_LATENCY = "WRONG_LATENCY"
APPROX_IOPS = "APPROX_IOPS"
APPROX_BW = "APPROX_BW"
"""Flag: the I/Os or bytes per second cover clearly different seconds than the rest of the row."""
APART = "APART"
"""Flag: fio's and the kernel's figures cover clearly different seconds, so they are not
compared."""
_UNSURE = frozenset({RAMP, PARTIAL, LATE, RESET, APPROX_IOPS})
SOME_HOSTS = "SOME_HOSTS"
"""Flag of a total over many hosts in which some of the hosts that take part are missing."""
HANDOVER = "HANDOVER"
"""Flag: in this interval one run handed over to the next, so both worked."""
UNCOUNTED = frozenset({RAMP, HANDOVER})
"""Flags of intervals that are drawn, but are in no figure of a whole run."""

APART_SHARE = 0.1
# without a job, a kernel interval shorter than this share of the usual one is marked
SHORT_SHARE = 0.8
LEAST_STEP_S = 0.001
"""Least time between two frames. A merge drops a frame with the same time as the one before, as a
duplicate."""
# the reading that shows a run's first I/O came soon after it if it shows at most this many I/Os, or
# this share of those of the following second
MANY_FIRST_IOS = 16
EARLY_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class JobFrame:
    """A fio job in one interval: ``index`` from 0, the CPU it ran on last, ``pinned`` if it may run
    on that CPU only, ``busy`` percent of one CPU (``None`` in its first interval). ``pid`` is the
    number of its process or thread. ``cpu_wait`` is the percentage of the interval in which it was
    ready to run and had no CPU (``None``: not known), ``workers_wait`` the sum of this over its
    workers (``None``: it has no workers). ``nice`` and ``policy`` are the scheduler's (JobThread),
    and so is the ``state`` at its end."""

    index: int
    cpu: int
    pinned: bool
    busy: float | None
    pid: int | None = None
    cpu_wait: float | None = None
    workers_wait: float | None = None
    nice: int | None = None
    policy: int | None = None
    state: str | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether a signal (SIGSTOP) or a debugger has stopped it."""
        return self.state in ("T", "t")


@dataclass(frozen=True, slots=True)
class Frame:
    """An interval of the session. ``t`` is seconds since the first raw sample (monotonic).
    ``seconds`` is the kernel interval, ``whole`` the frame with the kernel's figures over fio's
    interval. ``fio`` is ``None`` if no document arrived; ``fio_age_s`` is then the age of fio's
    last one. ``skew_ms`` is kernel sampling time minus fio's timestamp. ``flags`` are the quality
    flags of this module. ``jobs`` are fio's jobs with the CPUs they are on; ``throttled`` percent
    of the interval in which a cgroup's CPU limit stopped us. ``ipi_age_s`` is how long before ``t``
    the function-call interrupts of ``cpus`` were counted: reading them may take long. ``opened``
    names the devices of ``disks`` that the jobs work on (model/block/target.py); ``total`` is their
    sum. ``more`` are the figures of model/sources.py, ``probe`` what the probe counted (``None`` if
    it is off, or has nothing new). ``waits`` says where the I/Os in flight are
    (model/metrics/waits.py). ``nvme`` has the drives' own counters by controller, if they were read
    again (model/metrics/nvme.py). ``share`` has the figures of the NFS or SMB mounts that the jobs
    work on (``None``: none, or not measured), ``groups`` the cgroups that did I/O on their disks,
    the busiest first (``None``: not read), ``connections`` the TCP connections to the servers that
    the target is on (``None``: none, or not read), ``aws`` what AWS volumes count themselves, by
    disk (``None``: none, or not read), ``nvme_diag`` the rates of new kernels' counters of NVMe
    objects (model/metrics/nvme.py; ``None``: none, or not read)."""

    seq: int
    step: int
    t: float
    wall_ms: float
    seconds: float | None
    flags: frozenset[str]
    fio: FioInterval | None
    fio_age_s: float | None
    skew_ms: float | None
    disks: Mapping[str, DiskRates] = field(default_factory=dict)
    cpus: Mapping[int, CpuFrame] = field(default_factory=dict)
    irqs: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    own_cpu: float | None = None
    jobs: tuple[JobFrame, ...] = ()
    throttled: float | None = None
    ipi_age_s: float | None = None
    opened: tuple[str, ...] = ()
    more: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    probe: ProbeInterval | None = None
    waits: Waits | None = None
    nvme: Mapping[str, DriveReading] = field(default_factory=dict)
    share: Share | None = None
    groups: tuple[GroupRates, ...] | None = None
    connections: tuple[Connection, ...] | None = None
    aws: Mapping[str, VolumeGrowth] | None = None
    nvme_diag: Mapping[str, Mapping[str, float]] | None = None
    beside: Frame | None = None

    @property
    def holds(self) -> bool:
        """Whether the rates of the row are the job's rates for the whole interval."""
        return not self.flags & _UNSURE

    @property
    def drawn(self) -> tuple[float | None, float | None]:
        """fio's IOPS and bytes per second for a chart; ``None`` is a gap. Frames of a ramp and of a
        handover are drawn, other frames only if ``holds``."""
        unsure = self.flags & _UNSURE and not self.flags & UNCOUNTED
        if self.fio is None or unsure:
            return None, None
        total = self.fio.total
        return total.iops, (None if APPROX_BW in self.flags else total.bw)

    @property
    def whole(self) -> Frame:
        """The frame with the kernel's figures over fio's interval. The kernel's figures of the
        frame itself may cover only the last part of that interval, if the kernel was also read
        while fio's document was late. Whole frames may overlap, so don't add them up."""
        return self if self.beside is None else self.beside

    @property
    def total(self) -> DiskRates | None:
        """All devices that the jobs work on as one."""
        return self.combined(self.opened)

    def combined(self, names: Sequence[str]) -> DiskRates | None:
        """Return these devices combined (``sum_rates``); ``None`` if one of them was not
        measured."""
        if len(names) == 1:
            return self.disks.get(names[0])
        disks = [self.disks[name] for name in names if name in self.disks]
        return sum_rates(disks) if len(disks) == len(names) else None


@dataclass(slots=True)
class FirstIo:
    """When the kernel saw a run's first I/O: ``wall_ms`` of the reading that shows it. It is
    ``None`` if that reading may have come late, or if no reading before fio's first document shows
    I/O. ``ios`` is the number of I/Os in that reading."""

    wall_ms: float | None = None
    ios: int = 0

    def feed(
        self, current: KernelSample, previous: KernelSample | None, opened: Sequence[str]
    ) -> None:
        """Take a reading that came no later than the run's first document."""
        ios = sum(
            now.reads + now.writes - before.reads - before.writes
            for name in opened
            if (now := current.disks.get(name))
            and (before := previous.disks.get(name) if previous is not None else None)
        )
        if self.ios == 0:
            self.wall_ms, self.ios = (current.wall_ms if ios else None), ios
        elif self.ios > max(MANY_FIRST_IOS, EARLY_SHARE * ios):
            self.wall_ms = None


class FrameBuilder:
    """Folds raw samples into frames. The first sample is a baseline and gives no kernel rates.

    ``opened`` are the devices that the jobs work on, ``links`` what lies below each device."""

    def __init__(
        self,
        origin_ns: int | None = None,
        opened: Sequence[str] = (),
        links: Sequence[DeviceLinks] = (),
    ) -> None:
        self._opened = tuple(opened)
        self._stack = Stack.from_tops(opened, links)
        # when the session's first sample was taken; needed if the frames begin in the middle of a
        # session
        self._origin_ns = origin_ns
        self._kernel: KernelSample | None = None
        self._ipi: KernelSample | None = None
        self._fio = FioIntervals()
        self._first_io = FirstIo()
        self._fio_kernel: KernelSample | None = None
        self._fio_arrived_ns: int | None = None
        self._step = 0
        self._last_t = 0.0
        self._jobs: dict[int, tuple[int, JobThread]] = {}
        self._own_busy: tuple[int, float] | None = None
        self._probe = ProbeIntervals()
        self._sent = SentBytes()

    def feed(self, raw: RawSample) -> Frame:
        if self._origin_ns is None:
            self._origin_ns = raw.arrived_ns
        if raw.step != self._step:
            self._start_step(raw.step)
        flags: set[str] = set()
        before_fio = raw.step and self._fio_arrived_ns is None
        if before_fio and raw.kernel is not None and (raw.fio is None or self._first_io.ios):
            self._first_io.feed(raw.kernel, self._kernel, self._opened)
        fio = self._fio_interval(raw, flags)
        previous, self._kernel = self._kernel, raw.kernel or self._kernel
        ipi_before = self._ipi
        if raw.kernel is not None and raw.kernel.ipi is not None:
            self._ipi = raw.kernel
        jobs, probe = self._job_frames(raw), self._probe.feed(raw.probe, raw.arrived_ns)
        frame = Frame(
            seq=raw.seq,
            step=raw.step,
            t=self._time(raw),
            wall_ms=raw.wall_ms,
            seconds=None,
            flags=frozenset(flags),
            fio=fio,
            fio_age_s=self._fio_age(raw),
            skew_ms=_skew(raw),
            own_cpu=self._own_cpu(raw),
            jobs=jobs,
            ipi_age_s=_ipi_age(raw),
            opened=self._opened,
            probe=probe,
            nvme=raw.nvme,
        )
        return self._over_both(frame, raw, previous, ipi_before)

    def _over_both(
        self,
        frame: Frame,
        raw: RawSample,
        previous: KernelSample | None,
        ipi_before: KernelSample | None,
    ) -> Frame:
        """``frame`` with the kernel's figures since ``previous``, and in ``whole`` with the
        kernel's figures over fio's interval."""
        fio = frame.fio
        began, self._fio_kernel = self._fio_kernel, self._kernel_at_fio(raw, fio)
        over_fio = previous
        if fio is not None and raw.kernel is not None and began is not None:
            # before a run's first document, the first I/O may be another program's
            readings = [each for each in (previous, began) if each is not None]
            over_fio = min(readings, key=lambda each: _distance(raw.kernel, each, fio.seconds))
        sent = self._sent.feed(raw, _seconds(raw.kernel, over_fio)) if fio is not None else None
        if not raw.step and (_seconds(raw.kernel, previous) or inf) < SHORT_SHARE * raw.interval_s:
            frame = replace(frame, flags=frame.flags | {PARTIAL})
        whole = _marked(self._with_kernel(frame, raw, over_fio, ipi_before, sent))
        if over_fio is previous:
            return whole
        frame = self._with_kernel(frame, raw, previous, ipi_before, sent)
        return replace(frame, flags=whole.flags, waits=whole.waits, beside=whole)

    def _kernel_at_fio(self, raw: RawSample, fio: FioInterval | None) -> KernelSample | None:
        """The kernel reading at which fio's next interval begins; ``None`` if there is none."""
        kernel = raw.kernel
        is_first = raw.fio is None and kernel and kernel.wall_ms == self._first_io.wall_ms
        return kernel if fio is not None or is_first else self._fio_kernel

    def _with_kernel(
        self,
        frame: Frame,
        raw: RawSample,
        previous: KernelSample | None,
        ipi_before: KernelSample | None,
        sent: Sent | None,
    ) -> Frame:
        kernel, seconds = raw.kernel, _seconds(raw.kernel, previous)
        figures: dict[str, Any] = {}
        if kernel is not None and previous is not None and seconds and seconds > 0:
            figures = _kernel_figures(kernel, previous, ipi_before, seconds)
        return replace(frame, waits=self._waits(raw, frame, figures, sent), **figures)

    def _start_step(self, step: int) -> None:
        self._step = step
        self._fio = FioIntervals()
        self._first_io = FirstIo()
        self._fio_kernel = None
        self._fio_arrived_ns = None
        self._sent = SentBytes()

    @property
    def state(self) -> tuple[object, ...]:
        """Return all state that the next frames depend on: two builders with equal states continue
        equally."""
        return (
            self._origin_ns, self._kernel, self._ipi, self._fio.state, astuple(self._first_io),
            self._fio_arrived_ns, self._fio_kernel,
            self._step, self._last_t, self._jobs, self._own_busy, self._probe.previous,
            self._sent.previous,
        )  # fmt: skip

    def _own_cpu(self, raw: RawSample) -> float | None:
        before, self._own_busy = self._own_busy, None
        if raw.own_busy_s is None:
            return None
        self._own_busy = (raw.arrived_ns, raw.own_busy_s)
        if before is None:
            return None
        seconds = (raw.arrived_ns - before[0]) / 1e9
        return rates.ratio(100 * max(0.0, raw.own_busy_s - before[1]), max(seconds, 0.0))

    def _job_frames(self, raw: RawSample) -> tuple[JobFrame, ...]:
        before, self._jobs = self._jobs, {j.pid: (raw.arrived_ns, j) for j in raw.jobs}
        frames = []
        for job in raw.jobs:
            busy = waited = workers = None
            if job.pid in before:
                sampled_ns, old = before[job.pid]
                seconds = max((raw.arrived_ns - sampled_ns) / 1e9, 0.0)
                busy = rates.ratio(100 * max(0.0, job.busy_s - old.busy_s), seconds)
                increase = rates.delta(job.cpu_wait_ns, old.cpu_wait_ns)
                waited = rates.ratio(increase, seconds * 1e7)
                increase = rates.delta(job.workers_wait_ns, old.workers_wait_ns or 0)
                workers = rates.ratio(increase, seconds * 1e7)
            pinned = job.allowed == (job.cpu,)
            frames.append(JobFrame(job.index, job.cpu, pinned, busy, job.pid, waited, workers,
                                   job.nice, job.policy, job.state))  # fmt: skip
        return tuple(frames)

    def _waits(
        self, raw: RawSample, frame: Frame, figures: Mapping[str, Any], sent: Sent | None
    ) -> Waits | None:
        load, share = None, figures.get("share")
        if raw.fio is not None:
            waited = [job.cpu_wait for job in frame.jobs if job.cpu_wait is not None]
            workers = sum(job.workers_wait for job in frame.jobs if job.workers_wait is not None)
            load = job_load(raw.fio, frame.fio, waited, workers, figures.get("seconds"), sent)
        if raw.kernel is None or (raw.step and load is None and self._fio_arrived_ns is not None):
            return None
        # the SMB client counts times per connection, not per share
        if share is not None and share.smb is None and not self._stack.tops:
            return place_on_share(share, load)
        times = _request_times(frame.probe, self._stack)
        return place_waits(self._stack, figures.get("disks", {}), load, times)

    def _fio_interval(self, raw: RawSample, flags: set[str]) -> FioInterval | None:
        if raw.handover:
            flags |= {HANDOVER, PARTIAL}
        if raw.fio is None:
            late = raw.step and self._fio_arrived_ns is not None
            flags.add(LATE if late and not self._fio.writes_logs(raw.wall_ms) else NO_FIO)
            return None
        interval = self._fio.feed(
            raw.fio, raw.arrived_ns, raw.interval_s, raw.final, self._first_io.wall_ms, raw.wall_ms
        )
        self._fio_arrived_ns = raw.arrived_ns
        if interval is None:
            # fio's last document may only repeat the one before it
            flags |= {NO_FIO, FINAL, PARTIAL} if raw.final else {NO_FIO}
            return None
        for name, present in (
            (RAMP, interval.ramp),
            (RESET, interval.reset),
            (PARTIAL, interval.partial),
            (FINAL, raw.final),
            (NO_LATENCY, not interval.measures_latency),
            (SOME_LATENCY, not interval.times_all),
            (SUBMITTED, interval.counts_submissions),
            (WRONG_LATENCY, not interval.latency_possible),
            (APPROX_IOPS, interval.ios_elsewhere),
            (APPROX_BW, interval.bytes_elsewhere),
        ):
            if present:
                flags.add(name)
        return interval

    def _time(self, raw: RawSample) -> float:
        """Seconds since the session began. A document found late (iopstui was stopped, so no kernel
        reading belongs to it) gets the time of its own timestamp."""
        arrived = (raw.arrived_ns - (self._origin_ns or 0)) / 1e9
        late = (raw.wall_ms - raw.fio.timestamp_ms) / 1000 if raw.fio else 0.0
        t = arrived - late if raw.kernel is None and late > 0 else arrived
        self._last_t = min(max(t, self._last_t + LEAST_STEP_S), arrived)
        return self._last_t

    def _fio_age(self, raw: RawSample) -> float | None:
        if not raw.step or self._fio_arrived_ns is None:
            return None
        return (raw.arrived_ns - self._fio_arrived_ns) / 1e9


def _seconds(current: KernelSample | None, previous: KernelSample | None) -> float | None:
    if current is None or previous is None:
        return None
    return (current.monotonic_ns - previous.monotonic_ns) / 1e9


def _distance(current: KernelSample | None, previous: KernelSample, seconds: float | None) -> float:
    return abs((_seconds(current, previous) or 0.0) - (seconds or 0.0))


def _marked(frame: Frame) -> Frame:
    """``frame`` with the flag APART if fio's and the kernel's seconds differ. (In a partial frame,
    the kernel's seconds often go on after the jobs' end.)"""
    fio_s = frame.fio.seconds if frame.fio is not None and PARTIAL not in frame.flags else None
    if not fio_s or not frame.seconds or abs(frame.seconds - fio_s) <= APART_SHARE * fio_s:
        return frame
    return replace(frame, flags=frame.flags | {APART})


def _request_times(probe: ProbeInterval | None, stack: Stack) -> RequestTimes | None:
    requests = probe.combined(stack.lowest) if probe is not None and stack.tops else None
    if requests is None or requests.device.mean_ns is None:
        return None
    return RequestTimes(
        requests.device.mean_ns, (requests.waiting.mean_ns or 0.0) if requests.waiting else None
    )


def _skew(raw: RawSample) -> float | None:
    if raw.fio is None or raw.kernel is None:
        return None
    return raw.kernel.wall_ms - raw.fio.timestamp_ms


def _kernel_figures(
    current: KernelSample, previous: KernelSample, ipi_before: KernelSample | None, seconds: float
) -> dict[str, Any]:
    """The fields of a frame that come from two kernel readings."""
    now, before = current.more, previous.more
    disks = {
        name: disk_rates(counters, previous.disks[name], seconds)
        for name, counters in current.disks.items()
        if name in previous.disks
    }
    irqs = IrqRates(current.irqs, previous.irqs, seconds)
    throttled_us = rates.delta(current.throttled_us, previous.throttled_us)
    return {
        "seconds": seconds,
        "disks": {name: disk for name, disk in disks.items() if disk is not None},
        "cpus": cpu_frames(
            current, previous, seconds, irqs, _ipi_rates(current, ipi_before)
        ),
        "irqs": irqs,
        "throttled": rates.ratio(throttled_us, seconds * 1e4),
        "more": sources.figures(now, before, seconds),
        "share": smb_rates(now[SMB], before.get(SMB), seconds)
        if SMB in now else share_rates(now.get(NFS), before.get(NFS), seconds),
        "groups": group_rates(now.get(GROUPS), before.get(GROUPS), seconds),
        "connections": connections(now.get(TCP), before.get(TCP), seconds),
        "aws": volume_growths(now.get(AWS), before.get(AWS)),
        "nvme_diag": diag_rates(now.get(DIAG), before.get(DIAG), seconds),
    }  # fmt: skip


def _ipi_rates(current: KernelSample, before: KernelSample | None) -> dict[int, float]:
    if before is None:
        return {}
    seconds = (_ipi_ns(current) - _ipi_ns(before)) / 1e9
    return rates.per_second(current.ipi, before.ipi, seconds)


def _ipi_age(raw: RawSample) -> float | None:
    if raw.kernel is None or raw.kernel.ipi is None:
        return None
    return max(0.0, (raw.arrived_ns - _ipi_ns(raw.kernel)) / 1e9)


def _ipi_ns(sample: KernelSample) -> int:
    return sample.monotonic_ns if sample.ipi_ns is None else sample.ipi_ns
