"""The ticks of a session: reads the kernel, makes frames, reports what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from iopstui import events
from iopstui.events import LAYOUT
from iopstui.format import ranges
from iopstui.linux.counters.cgroup import CgroupReader
from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.devices.usage.mounts import distinct_file_systems
from iopstui.linux.machine.topology import online_cpus
from iopstui.model.answer.answer import Answer
from iopstui.model.answer.judge import AnswerTracker, SecondFilter
from iopstui.model.answer.use import DiskUse
from iopstui.model.cgroups import SOURCE as GROUPS
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.findings.tunable_effect import SECONDS_COMPARED
from iopstui.model.metrics.aws import SOURCE as AWS
from iopstui.model.metrics.frame import PARTIAL, UNCOUNTED, Frame, FrameBuilder
from iopstui.model.metrics.nvme import DIAG
from iopstui.model.metrics.shares import SMB
from iopstui.model.metrics.slow.stalls import StallWatch
from iopstui.model.network import SOURCE as TCP
from iopstui.model.samples import (
    DriveReading,
    FioStatus,
    JobThread,
    KernelSample,
    ProbeSample,
    RawSample,
)
from iopstui.model.sources import Counters
from iopstui.session.tick.context import Context, CurrentRun, GuardTime, OverheadMonitor, Viewer
from iopstui.session.tick.findings import FindingTracker
from iopstui.session.tick.probe import SessionProbe
from iopstui.session.tick.readers import (
    ConditionsReader,
    DriveReader,
    HourBaseline,
    UseWatch,
    with_arrays,
)

if TYPE_CHECKING:
    from iopstui.model.experiment.disturbance import DisturbanceMeter
    from iopstui.model.findings.evidence import JobShape

LATE_FACTOR = 1.5
FIRST_S = 0.2
# how often the device's health and limits are read, during a run and between runs
CHECK_EVERY_S = 2.0
IDLE_CHECK_EVERY_S = 10.0


@dataclass(slots=True)
class Reading:
    """The readings of one tick."""

    status: FioStatus | None
    kernel: KernelSample | None
    arrived_ns: int
    wall_ms: float
    jobs: tuple[JobThread, ...]
    probe: ProbeSample | None = None
    block_io: tuple[int, int] | None = None


class Sampling:
    """Makes the ticks of a session. ``deadline_ns`` is the monotonic time of the next tick unless a
    fio document arrives earlier.

    Created in any thread, used only in the session's."""

    def __init__(
        self, context: Context, current: CurrentRun, request: RunRequest, viewer: Viewer
    ) -> None:
        self.deadline_ns = 0
        uncounted = [place.no_device for place in context.target.without_device]
        self.findings = FindingTracker(uncounted, context.target.links, request.volume)
        self._context = context
        self._current = current
        self.interval_s = request.interval_s
        self._viewer = viewer
        self._judge_every_s = viewer.judge_every * request.interval_s
        self._cgroups = request.cgroups
        self._builder = self._new_builder()
        self._stalls = StallWatch()
        self._disturbances: DisturbanceMeter | None = None
        self._overhead_monitor = OverheadMonitor(request.interval_s)
        self._guards = GuardTime()
        self._pinning = (0, Pinning())
        self._seq = 0
        self._conditions = ConditionsReader(context.roots)
        self._drives = DriveReader(context.roots)
        self._answers = AnswerTracker(context.target, every_second=viewer.renews_answers)
        self._second_filter = SecondFilter()
        self._second_builder = None if request.interval_s >= 1.0 else self._new_builder()
        self._hours = HourBaseline(context.roots)
        self._use = UseWatch(context.roots, min_interval_s=self._judge_every_s)
        self.disk_use: DiskUse | None = None
        """Who used the disks, by the last reading; None while a job runs, and before the first
        reading."""
        self._conditions_asked_at = -inf
        self._io_counts: object = None
        self._handover = self._handover_ends = False
        self.probe = SessionProbe(context, viewer.on_screen)

    @cached_property
    def _sampler(self) -> KernelSampler:
        # opened at the first reading in the session's thread, so that the screen need not wait
        irqs = [vector.irq for disk in self._context.disks() for vector in disk.irqs]
        target = self._context.target
        roots = self._context.roots
        # imported here, so that the screen need not wait for it
        from iopstui.linux.network import endpoints

        more_sources: dict[str, Callable[[], Counters | None]] = {}
        if target.smb_shares:
            from iopstui.linux.counters.smb_stats import SmbStats

            more_sources[SMB] = SmbStats(target.smb_shares, roots).read
        if self._cgroups:
            more_sources[GROUPS] = CgroupReader(target.devices_below, roots).read
        servers = endpoints(target, roots)
        if servers:
            from iopstui.linux.network import ConnectionReader

            more_sources[TCP] = ConnectionReader(servers).read
        more_sources |= self._aws_volumes() | self._nvme_diag()
        nfs = () if target.smb_shares else distinct_file_systems(target.shares, roots)
        return KernelSampler(roots, target.tree, irqs, shares=nfs, more_sources=more_sources)

    def _aws_volumes(self) -> dict[str, Callable[[], Counters | None]]:
        context = self._context
        tree = [context.devices[name] for name in context.target.tree if name in context.devices]
        # most machines have no such counters, and load less code
        if not any("Amazon" in (device.model or "") for device in tree):
            return {}
        from iopstui.linux.nvme.aws import VolumeReader, volumes_of

        volumes = volumes_of(context.roots, context.devices, context.target.tree)
        return {AWS: VolumeReader(context.roots, volumes).read} if volumes else {}

    def _nvme_diag(self) -> dict[str, Callable[[], Counters | None]]:
        context = self._context
        if not context.target.on_nvme:
            return {}
        from iopstui.linux.nvme.health import counter_reader

        tree = [context.devices[name] for name in context.target.tree if name in context.devices]
        read = counter_reader(context.roots, tree)
        # most kernels have no such counters
        return {DIAG: read} if read() else {}

    def close(self) -> None:
        """Report the stalls that still last, end the readers in the background, and close the
        kernel's files if they were opened."""
        for stall in self._stalls.ongoing():
            self._context.emit(events.StallFound(self._context.now(), stall))
        self._conditions.close()
        self._drives.close()
        self._use.close()
        self.probe.close()
        sampler = self.__dict__.get("_sampler")
        if sampler is not None:
            sampler.close()

    def first(self) -> None:
        """The session's first tick. With ``short_first_interval`` the first rates come sooner; all
        other ticks cover whole intervals."""
        self.tick()
        if self._viewer.short_first_interval:
            self.deadline_ns -= int(max(0.0, self.interval_s - FIRST_S) * 1e9)

    def tick_if_due(self) -> bool:
        """Tick if a tick is due and no document made one; True if so."""
        if self._context.clock.monotonic_ns() < self.deadline_ns:
            return False
        self.tick()
        return True

    def tick(self) -> None:
        """Make a tick of the monotonic clock. Missed ticks are skipped, not caught up."""
        reading = self.read(None, kernel=True)
        self.sample(reading, final=False)
        self.deadline_ns = reading.arrived_ns + int(self.interval_s * 1e9)

    def postpone(self, seconds: float) -> None:
        """Make no tick for this time."""
        self.deadline_ns = self._context.clock.monotonic_ns() + int(seconds * 1e9)

    def wait_for_document(self, since_ns: int) -> None:
        """Wait for the next tick: it comes from fio, or from the clock if fio is late."""
        self.deadline_ns = since_ns + int(LATE_FACTOR * self.interval_s * 1e9)

    def read(self, status: FioStatus | None, kernel: bool) -> Reading:
        """Read the current counters, the kernel's first because they must be closest to fio's."""
        clock = self._context.clock
        now, wall = clock.monotonic_ns(), clock.wall_ms()
        sample = self._sampler.sample() if kernel else None
        run = self._current.fio
        jobs = run.jobs() if run is not None and kernel else ()
        block_io = run.block_io() if run is not None and kernel else None
        probe = self.probe.take() if kernel else None
        return Reading(status, sample, now, wall, jobs, probe, block_io)

    def sample(self, reading: Reading, final: bool) -> None:
        """Record the reading, and make a frame of it. ``final``: fio's last document."""
        context, run, fio = self._context, self._current.fio, reading.status
        measuring = run is not None and run.phase != LAYOUT
        guard_s = run.guard_busy_s() if run is not None else None
        raw = RawSample(
            seq=self._seq,
            arrived_ns=reading.arrived_ns,
            wall_ms=reading.wall_ms,
            kernel=reading.kernel,
            fio=fio,
            final=final,
            step=self._current.step if fio is not None or measuring else 0,
            interval_s=self.interval_s,
            jobs=reading.jobs,
            own_busy_s=context.clock.own_busy_s() + self._guards.total(guard_s),
            probe=reading.probe,
            nvme=self._read_drives(final and measuring),
            read_bytes=reading.block_io[0] if reading.block_io else None,
            written_bytes=reading.block_io[1] if reading.block_io else None,
            handover=self._handover,
        )
        if self._handover_ends and (fio is not None or not measuring):
            self._handover = self._handover_ends = False
        if self._seq == 0:
            context.count_from(reading.arrived_ns)
        self._seq += 1
        if run is not None:
            run.watch(raw)
        context.recording.sample(raw)
        for problem in context.recording.problems():
            context.notice("error", problem)
        frame = self._builder.feed(raw)
        self._read_conditions(frame, measuring)
        is_shown = fio is not None or (measuring and frame.fio_age_s is not None)
        second = self._second(raw, frame)
        self._emit(frame, second, reading.jobs, self._viewer.idle_frames or is_shown)
        if self._viewer.on_screen:
            disks = [frame.disks[name] for name in frame.opened if name in frame.disks]
            ios = sum(disk.ios or 0 for disk in disks)
            self.probe.adjust(run is not None, ios / (frame.seconds or 1.0))

    def begin_run(self, shape: JobShape) -> None:
        """Look for disturbances of the run of a job of this shape. A point of an experiment has a
        meter of its own, which leaves out the time to settle."""
        # imported here, so that the screen need not wait for it
        from iopstui.linux.activity.io_users import disturbance_meter

        context = self._context
        self._disturbances = None
        if not context.outcomes.in_experiment:
            self._disturbances = disturbance_meter(
                context.target, shape, context.devices, context.roots
            )

    def end_run(self) -> tuple[str, ...]:
        """What disturbed the run, in sentences."""
        meter, self._disturbances = self._disturbances, None
        return () if meter is None else meter.result().reasons

    def _new_builder(self) -> FrameBuilder:
        target = self._context.target
        return FrameBuilder(opened=target.opened, links=target.links)

    def _second(self, raw: RawSample, frame: Frame) -> Frame | None:
        """The frame to judge: samples less than a second apart are joined. ``None`` between two
        such frames."""
        if self._second_builder is None:
            return frame
        return self._second_builder.feed(raw) if self._second_filter.passes(raw) else None

    def _emit(
        self, frame: Frame, second: Frame | None, jobs: tuple[JobThread, ...], is_shown: bool
    ) -> None:
        """Emit a frame and everything that follows from it together, so that the screen is painted
        once."""
        conclusions = [*self._conclusions(frame, second)]
        if is_shown:
            self._context.emit(events.FrameReady(frame.t, frame))
        for warning in (*self._overhead_monitor.feed(frame), *self._pinning_warnings(jobs)):
            self._context.warn(warning)
        for event in conclusions:
            self._context.emit(event)

    def _read_drives(self, last: bool) -> Mapping[str, DriveReading]:
        """The drives' counters, read beside the samples. At a run's end this waits for a
        reading."""
        context = self._context
        if last:
            return self._drives.read_last(context.devices, context.target.tree)
        self._drives.start_if_due(context.now(), context.devices, context.target.tree)
        return self._drives.take()

    def _conclusions(self, frame: Frame, second: Frame | None) -> Iterator[events.Event]:
        """The stalls and findings that began or ended with this frame, and the answer if it
        changed."""
        context = self._context
        if self._disturbances is not None:
            self._disturbances.add(frame, not (UNCOUNTED | {PARTIAL}) & frame.flags)
        for stall in self._stalls.feed(frame):
            yield events.StallFound(frame.t, stall)
        all_devices, target = context.devices, context.target
        devices = [all_devices[name] for name in frame.opened if name in all_devices]
        tree = [all_devices[name] for name in target.tree if name in all_devices]
        looks = bool(frame.step) or not frame.seq % self._viewer.judge_every
        for finding in self.findings.feed(frame, devices, tree, looks):
            yield events.FindingReported(frame.t, finding)
        for ended_finding in self.findings.ended_findings():
            yield events.FindingEnded(
                frame.t,
                ended_finding.finding.rule,
                ended_finding.finding.text,
                ended_finding.since,
                ended_finding.until,
                ended_finding.why,
            )
        answer = self._answer(second, looks) if second is not None else None
        if answer is not None:
            yield events.AnswerGiven(frame.t, answer)

    def _answer(self, frame: Frame, looks: bool) -> Answer | None:
        """The answer of the last seconds if it has changed. Without a job, also request a reading
        of who uses the disks."""
        context, answers, findings = self._context, self._answers, self.findings
        use = self._use.take()
        if use is not None:
            answers.note_use(use)
        if use is not None or frame.step:
            self.disk_use = None if frame.step else use
        if not frame.step and self._viewer.idle_frames and self._viewer.judge_every == 1:
            self._hours.ask(frame.t, frame.wall_ms / 1e3, context.devices)
            answers.hours = self._hours.medians
        answer = answers.feed(frame, context.devices, findings.conditions, findings.firing, looks,
                              findings.shape)  # fmt: skip
        findings.idle_rings = answers.idle_rings
        if (answers.needs_use or self._viewer.on_screen) and not frame.step:
            self._use.ask(frame.t, context.devices, answers.needs_tasks)
        return answer

    def _read_conditions(self, frame: Frame, measuring: bool) -> None:
        """From time to time, request a reading of the device's health and limits, and of the sleep
        states of the jobs' CPUs."""
        conditions = self._conditions.take()
        if conditions is not None:
            self.findings.note_conditions(conditions)
        processes = measuring and self.findings.asks_for_processes
        groups = self.findings.asks_for_groups and frame.groups is None
        # rarely for an unattended recorder: a reading covers the state of each of its many disks
        often = measuring or (groups and self._viewer.judge_every == 1)
        every_s = CHECK_EVERY_S if often else max(IDLE_CHECK_EVERY_S, self._judge_every_s)
        if frame.t >= self._conditions_asked_at + every_s or processes:
            self._conditions_asked_at = frame.t
            cpus = sorted({job.cpu for job in frame.jobs})
            job_pids = frozenset(job.pid for job in frame.jobs if job.pid) if processes else None
            tree, devices = self._context.target.tree, self._context.devices
            names = with_arrays(tree, devices)
            self._conditions.ask(frame.t, devices, names, cpus, job_pids, groups)

    def _pinning_warnings(self, jobs: tuple[JobThread, ...]) -> Iterator[str]:
        if self._pinning[0] != self._current.step:
            self._pinning = self._current.step, Pinning()
        return self._pinning[1].feed(jobs, lambda: online_cpus(self._context.roots))

    def note_tunable_change(self, names: str, name: str, before: str, now: str) -> None:
        """Note that a tunable of the disks ``names`` was changed, to watch its effect closely."""
        self.findings.note_tunable_change(self._context.now(), names, name, before, now)
        self._sampler.follow_interrupts(SECONDS_COMPARED + 2)

    def begin_handover(self) -> None:
        """Note that the next run begins to work beside the active one."""
        self._handover, self._handover_ends = True, False

    def end_handover(self) -> None:
        """Note that only one run works from now on; the interval of the next document is the last
        with both."""
        self._handover_ends = self._handover

    def await_first_io(self) -> None:
        """Begin to watch for the job's first I/O (see ``job_did_io``). From now on the drives'
        counters are compared with their present values."""
        context = self._context
        self._io_counts = None
        self._drives.begin()
        self._drives.start_if_due(context.now(), context.devices, context.target.tree)

    def job_did_io(self) -> bool:
        """Whether a disk has done I/O for the job since the last call, by its processes' own counts
        (others may use the disk, too). Without these counts: whether one of the target's devices
        did any I/O."""
        names = self._context.target.devices_below
        if not names:
            return True
        run = self._current.fio
        done: object = run.block_io() if run is not None else None
        if done is None:
            disks = self._sampler.disks()
            done = [(disks[name].reads, disks[name].writes) for name in names if name in disks]
        moved = self._io_counts is not None and done != self._io_counts
        self._io_counts = done
        return moved


# Check that fio's jobs stay on their assigned CPUs.
#
# If a task's last CPU goes offline, the kernel lets it run anywhere from then on, and only logs it
# (select_fallback_rq).


class Pinning:
    """Checks the CPUs of one run's jobs."""

    def __init__(self) -> None:
        self._bound: dict[int, frozenset[int]] = {}
        self._samples: dict[int, int] = {}
        self._reported: set[int] = set()

    def feed(self, jobs: Sequence[JobThread], online: Callable[[], Sequence[int]]) -> Iterator[str]:
        """Changes of the jobs' CPUs since the last sample, in words; at most one message per job.
        ``online`` reads the online CPUs, if needed."""
        for job in jobs:
            now, samples = frozenset(job.allowed), self._samples.get(job.pid, 0)
            self._samples[job.pid] = samples + 1
            # a job binds itself a moment after it was started
            if samples < 2 and now <= self._bound.get(job.pid, now):
                self._bound[job.pid] = now
            elif job.pid not in self._reported and not now <= self._bound[job.pid]:
                self._reported.add(job.pid)
                before = self._bound[job.pid]
                offline = before.isdisjoint(online())
                yield (
                    f"job {job.index} (process {job.pid}) is no longer bound to CPU "
                    f"{ranges(before)}{', which is offline' if offline else ''}: it may now run "
                    f"on CPU {ranges(now)}"
                )
