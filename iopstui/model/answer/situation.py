"""The facts on one disk that the table of answers decides with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from iopstui.model.answer.use import MIRROR, BlockedTask, DiskUse, RingWaiter
from iopstui.model.answer.who import (
    MIN_FOR_P99,
    Role,
    Share,
    as_bounds,
    moved_s,
    parts_of_below,
    role,
    shares,
    syncing_array,
)
from iopstui.model.block.device import BlockDevice
from iopstui.model.figures.disk import DiskRates, has_too_many_ticks, mean_ms_over
from iopstui.model.findings.conditions import Array, Conditions
from iopstui.model.findings.evidence import NO_CONDITIONS, NO_SHAPE, JobShape
from iopstui.model.findings.finding import Finding
from iopstui.model.histogram import merge, percentiles
from iopstui.model.metrics.cpus import busy_of
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.probe import DOUBTFUL_SHARE, ProbeInterval
from iopstui.model.rates import fmean

ENOUGH_SECONDS = 3
MIN_INTERVAL_S = 0.5
"""Shorter intervals are not judged: hardly any slow I/O completes in them."""

MOST_SECONDS, FEW_SECONDS = 0.6, 0.3
"""A statement is true if it holds in the first share of the seconds, and false below the second;
between them it is unknown."""
FEW, FEW_SHARE = 5, 0.5
"""If there are fewer seconds, it must hold in all of them."""

DEEP_QUEUE, VERY_DEEP_QUEUE = 4.0, 16.0
SLOW_MS = {"disk": 20.0, "flash": 2.0, "unknown": 5.0}
"""If there is a queue, slower requests wait in it: about 10 times the time of one alone."""
VERY_DEEP_FACTOR = 0.2
"""In a very deep queue, most of a time above this share of SLOW_MS is waiting, too."""
QUEUE_FACTOR, QUEUED_MS = 4.0, 0.5
"""In a very deep queue requests wait, too, if they take QUEUE_FACTOR times as long as alone and at
least QUEUED_MS."""
ALONE_FACTOR = 1.5
"""A disk with several requests in flight may take a little longer for each by itself."""
SINGLE_DEPTH = 2.0
"""With fewer in flight, the measured time is nearly that of a request alone."""
SLOW_FACTOR, VERY_SLOW_FACTOR = 1.5, 4.0
"""Without a queue, a device that takes this many times as long as that is slow itself: the first
number if a program waits for it nearly all the time and it is no flash, which takes 3 ms in a guest
with little CPU time. Requests of libaio may wait for a CPU to complete."""
TRANSFER_BYTES_S = 200 << 20
"""Large requests may take longer: the time to move them at this speed."""
NEARLY_ALWAYS = 0.8
"""While this many are in flight on average, somebody waits for one nearly all the time."""
MOST_OF_THE_TIME = 0.7
"""While this many are in flight on average, somebody waits for one most of the time."""
LONG_UP_S = 3600.0
"""Since a boot so long ago, a disk has had other loads than the present one."""
PERHAPS_SLOW_FACTOR = 2.0
"""With few in flight, a device that takes this many times SLOW_MS may be slow."""
SLOW_IN_FLIGHT = 0.3
"""A slow request now and then does not make a device slow."""
BUSY_UTIL = 40.0
"""A disk that has no request in flight for most of a second gets its requests in bursts
(write-back). (Kernels since 5.0 sample this figure: it is rather too low.)"""
BURST_DEPTH = 16.0
"""This many in flight while the disk is busy are short bursts, or it is busy for longer than util
says: a load in step with the kernel's tick (fio's rate_iops=3000) showed 0.2 % at a mean of 0.5."""
MIN_IOS_S = 0.9
"""One request in a second, which may take a little longer than a second."""
IN_TURN, MUCH_PRESSURE = 1.5, 20.0
"""With fewer in flight, hardly any waits for another one; more I/O pressure (percent of the time)
must be explained by a disk or a limit."""
WAITED_PERCENT = 10.0
"""Tasks that wait for this percentage of the time (PSI) wait for something that matters."""
FEW_IOS = 0.05
"""Fewer requests in flight on average are not told."""
HARDLY_USED = 0.1
"""Requests in flight on average."""
BLOCKED_PERCENT = 30.0
"""While a task is blocked most of the time, tasks wait for at least half of this time (PSI)."""
AS_PRESSURE = ("submit_bio_wait", "blk_mq_get_tag", "rq_qos_wait", "folio_wait_bit", "io_schedule",
               "blk_io_schedule")  # fmt: skip
"""Beginnings of kernel functions in which tasks always count as waiting for I/O."""
LOG_PLACES = "xlog_", "jbd2_"
"""Beginnings of kernel functions in which programs wait for the log of xfs or the journal of
ext4."""
MEMORY_PERCENT, SWAPPED_PAGES_S = 10.0, 50.0
"""Memory is short, at least a cgroup's, if tasks wait for it for this percentage of the time (PSI),
or this many pages per second are swapped in and out."""
PAGE = 4096
"""Bytes of a page, at least."""
DIRECT_SHARE = 0.5
"""Write-back of less than this part of what is in flight: somebody writes directly."""


class Usual(NamedTuple):
    """The last seconds compared with the disk's own past: "6× its median at this load (last 2 h)",
    "" if that is not worth saying; and the factor itself."""

    text: str
    times: float


Waited: TypeAlias = tuple[float, float, float]
"""Requests in flight, requests per second, and their mean ms."""


class AloneTime(NamedTuple):
    """A request alone takes at most ``ms``, and hardly less if ``is_known``. If many were in
    flight, the measured time may include waiting for each other, in the device too."""

    ms: float
    is_known: bool


class HourMedian(NamedTuple):
    """The slowest second of a minute at this hour: the median over ``days`` other days."""

    ms: float
    days: int


@dataclass(frozen=True)
class Machine:
    """Figures of the whole machine in these seconds, the same for each of its disks."""

    frames: Sequence[Frame]

    @cached_property
    def waited_percent(self) -> float | None:
        """Percent of the time in which a task waited for I/O of any disk (PSI)."""
        return self._pressure("pressure")

    @cached_property
    def memory_percent(self) -> float | None:
        """Percent of the time in which a task waited for memory (PSI)."""
        return self._pressure("memory")

    def _pressure(self, source: str) -> float | None:
        values = [frame.more.get(source, {}).get("some") for frame in self.frames]
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    @cached_property
    def in_flight(self) -> Mapping[str, float]:
        """Requests in flight on average, by disk. If none completed, the number at the end: the
        counters have no time of them yet."""
        sums: dict[str, float] = {}
        for frame in self.frames:
            for name, rates in frame.disks.items():
                sums[name] = sums.get(name, 0.0) + (
                    rates.aqu_sz or (0.0 if rates.ios else rates.in_flight) or 0.0
                )
        return {name: total / len(self.frames) for name, total in sums.items()}

    @cached_property
    def cpus_idle(self) -> list[float]:
        """Idle percentage of all CPUs in each second."""
        busy = [busy_of(frame.cpus) for frame in self.frames]
        return [100 - fmean(each) for each in busy if each]


@dataclass(frozen=True)
class Situation:
    """Everything known about one disk. ``frames`` are the last measured seconds, oldest first;
    ``below`` the disk and all devices below it. ``findings`` hold now. ``past`` compares with the
    disk's own past. ``shape`` is the running job's."""

    disk: str
    frames: Sequence[Frame]
    below: Sequence[str]
    devices: Mapping[str, BlockDevice] = field(default_factory=dict)
    lower: Mapping[str, Sequence[str]] = field(default_factory=dict)
    conditions: Conditions = NO_CONDITIONS
    use: DiskUse | None = None
    findings: Sequence[Finding] = ()
    past: Callable[[], Usual | None] | None = None
    machine_facts: Machine | None = None
    shape: JobShape = NO_SHAPE

    @cached_property
    def seconds(self) -> list[DiskRates]:
        """The disk's rates in each of these seconds."""
        return [frame.disks[self.disk] for frame in self.frames if self.disk in frame.disks]

    @property
    def has_job(self) -> bool:
        """Whether a run of fio is measured."""
        return bool(self.frames) and self.frames[-1].step > 0

    @property
    def is_gone(self) -> bool:
        """The last frame has no such disk."""
        return bool(self.frames) and self.disk not in self.frames[-1].disks

    @cached_property
    def kind(self) -> str:
        """ "disk" (it turns), "flash" or "unknown" (a key of SLOW_MS)."""
        lowest = [name for name in self.below if not self.lower.get(name)]
        kinds = {medium(self.devices.get(name)) for name in lowest or [self.disk]}
        return kinds.pop() if len(kinds) == 1 else "unknown"

    @property
    def layer(self) -> str:
        """The layer of a stacked device with a space before it (" (LVM)"); "" for a plain disk."""
        device = self.devices.get(self.disk)
        return f" ({device.layer})" if device is not None and device.layer else ""

    @cached_property
    def in_flight(self) -> float:
        """Requests in flight on average."""
        return self._mean_rate("weighted_ms") / 1e3

    @property
    def flushing(self) -> float:
        """Flushes under way on average; the requests in flight don't include them."""
        seconds = sum(rates.seconds for rates in self.seconds)
        return self._flushed_ms / 1e3 / seconds if seconds else 0.0

    @property
    def flush_ms(self) -> float | None:
        """Mean time of a flush."""
        count = sum(rates.flushes or 0 for rates in self.seconds)
        return self._flushed_ms / count if count else None

    @property
    def _flushed_ms(self) -> float:
        return sum((rates.flushes or 0) * (rates.f_await or 0.0) for rates in self.seconds)

    @cached_property
    def ios_s(self) -> float:
        """Requests completed per second."""
        return self._mean_rate("ios")

    @cached_property
    def bytes_s(self) -> float:
        """Bytes read and written per second; discards move no data."""
        return self._mean_rate("data")

    @cached_property
    def writes_s(self) -> float:
        """Write requests completed per second."""
        return self._mean_rate("writes")

    @cached_property
    def reads_s(self) -> float:
        """Read requests completed per second."""
        return self._mean_rate("reads")

    def _mean_rate(self, growth: str) -> float:
        """The mean rate of a counter, computed from its growth without making all rates: many disks
        have thousands of them."""
        get = attrgetter(growth)
        return _mean([
            None if (value := get(rates)) is None else value / rates.seconds
            for rates in self.seconds
        ])  # fmt: skip

    @cached_property
    def busy(self) -> float | None:
        """Percent of the time with a request in flight (util), and never more than all requests
        took; ``None`` if the kernel, which samples it, must have missed most of that time."""
        utils = [rates.util for rates in self.seconds if rates.util is not None]
        busy = fmean(utils) if utils else None
        if busy is not None and has_too_many_ticks(self.seconds):
            busy = min(busy, 100 * self.in_flight)
        most = BURST_DEPTH * (busy or 0.0) / 100
        if busy is None or busy >= BUSY_UTIL or self.in_flight <= most:
            return busy
        # in bursts as deep as that, requests would wait for each other and take long
        return busy if (self.mean_ms or 0.0) >= QUEUED_MS else None

    @cached_property
    def mean_ms(self) -> float | None:
        """Mean of all reads and writes of these seconds, each counted once."""
        return mean_ms_over(self.seconds)

    @cached_property
    def probes(self) -> list[ProbeInterval]:
        """The probe's intervals; empty if it missed a second, or many requests were sent again."""
        counted = [one for frame in self.frames if (one := frame.probe) and not one.doubtful]
        return counted if len(counted) == len(self.frames) and not self.sent_again else []

    @cached_property
    def p99_ns(self) -> float | None:
        """The probe's 99th percentile over these seconds; ``None`` if it missed a second or counted
        too few requests."""
        counted = [probe.disks.get(self.disk) for probe in self.probes]
        merged = merge(part.device.bins for kinds in counted if kinds for part in kinds.values())
        if None in counted:
            return None
        if sum(merged.values()) < MIN_FOR_P99:
            return None
        return percentiles(merged, [99.0]).get(99.0)

    @cached_property
    def sent_again(self) -> bool:
        """Whether drivers returned more than one in a hundred requests (of any probed disk). The
        probe times only a request's last try."""
        probes = [frame.probe for frame in self.frames if frame.probe is not None]
        returned = sum((probe.requeued_s or 0.0) * probe.seconds for probe in probes)
        ios = sum(one.device.ios for probe in probes for kinds in probe.disks.values()
                  for one in kinds.values())  # fmt: skip
        return returned > DOUBTFUL_SHARE * ios

    @cached_property
    def machine(self) -> Machine:
        """Figures of the whole machine; computed once if its disks share ``machine_facts``."""
        return self.machine_facts or Machine(self.frames)

    @property
    def waited_percent(self) -> float | None:
        """As of ``Machine``."""
        return self.machine.waited_percent

    @property
    def most_waited_percent(self) -> float | None:
        """Percent of the time in which a task may have waited for I/O. In the pressure each CPU
        counts by the time in which it is not idle, so busy ones hide waits of a task on another."""
        if self.waited_percent is None or not self.cpus_idle:
            return None
        busy = len(self.frames[-1].cpus) * (100 - fmean(self.cpus_idle)) / 100
        return self.waited_percent * (1 + busy)

    @property
    def memory_percent(self) -> float | None:
        """As of ``Machine``."""
        return self.machine.memory_percent

    @property
    def has_pressure(self) -> bool:
        """Whether I/O pressure (PSI) is high enough to matter."""
        return (self.waited_percent or 0.0) >= WAITED_PERCENT

    @property
    def swaps(self) -> bool:
        """Whether the machine swaps, on any disk."""
        return self.use is not None and (self.use.swap_s or 0.0) >= SWAPPED_PAGES_S

    @property
    def swapped_share(self) -> float:
        """Pages swapped in and out, as part of the bytes of this disk; 0 if another one has swap,
        too."""
        others = (d for name, d in self.devices.items() if self._whole(name) not in self.below)
        if self.use is None or any(device.swap for device in others):
            return 0.0
        moved = moved_s(self.disk, self.below, self.use, self.parts_of_below)
        return PAGE * (self.use.swap_s or 0.0) / moved if moved else 0.0

    @property
    def memory_is_short(self) -> bool:
        """Whether tasks wait for memory, of the machine or of a cgroup."""
        return self.swaps or (self.memory_percent or 0.0) >= MEMORY_PERCENT

    @property
    def cpus_idle(self) -> list[float]:
        """As of ``Machine``."""
        return self.machine.cpus_idle

    @cached_property
    def compared(self) -> Usual | None:
        """These seconds compared with the disk's own past; ``None`` without such a history."""
        return self.past() if self.past is not None else None

    @cached_property
    def silent_s(self) -> float:
        """For how long, up to now, requests were in flight and none completed."""
        seconds = 0.0
        for frame in reversed(self.frames):
            rates = frame.disks.get(self.disk)
            if rates is None or rates.ios_s or rates.f_s or not rates.in_flight:
                break
            seconds += frame.seconds or 0.0
        return seconds

    @cached_property
    def now_in_flight(self) -> int:
        """Requests in flight at the end of the last second."""
        return (self.seconds[-1].in_flight or 0) if self.seconds else 0

    @cached_property
    def slow_ms(self) -> float:
        """Above this mean (ms), requests of this size wait in a queue of this kind of device."""
        return SLOW_MS[self.kind] + self._transfer_ms

    @cached_property
    def _transfer_ms(self) -> float:
        requests = self.reads_s + self.writes_s
        size = self.bytes_s / requests if requests else 0.0
        return 1e3 * size / TRANSFER_BYTES_S

    @cached_property
    def queue_share(self) -> float:
        """Part of the seconds in which requests waited behind others. Short bursts that reach into
        many seconds leave the disk idle for most of the time: then it is no more than that."""
        share = self._share([*map(self._waits_in_queue, self.seconds, self._waited)])
        in_use = (100.0 if self.busy is None else self.busy) / 100
        return min(share, in_use) if in_use < FEW_SECONDS else share

    @cached_property
    def unclear_share(self) -> float:
        """Part of the seconds in which many were in flight, and perhaps waited for each other."""
        return self._share([*map(self._may_wait_in_queue, self.seconds, self._waited)])

    @cached_property
    def slow_share(self) -> float:
        """Share of the seconds in which the device took very long for few requests, or completed
        none."""
        often_stalled = self.stalled_seconds >= FEW_SECONDS * len(self.seconds)
        return self._share([
            stalled or self._is_slow_alone(rates, waited)
            or (often_stalled and self._waits_in_queue(rates, waited))
            for rates, waited, stalled
            in zip(self.seconds, self._waited, self._stalled, strict=True)
        ])  # fmt: skip

    @cached_property
    def waits_at_times(self) -> bool:
        """Whether requests waited in some of the seconds: in many of all or of those with I/O, or
        repeatedly."""
        share = max(self.queue_share, self.slow_share)
        waited = [*map(self._waits_in_queue, self.seconds, self._waited)]
        begins = sum(now and not before
                     for before, now in zip([False, *waited], waited, strict=False))  # fmt: skip
        used = sum(map(is_used, self.seconds))
        return share < MOST_SECONDS and (
            share > FEW_SECONDS or begins > 1 or sum(waited) > FEW_SECONDS * used
        )

    @cached_property
    def may_be_slow(self) -> bool:
        """Whether in most seconds requests that tasks wait for take as long as in a queue though
        few, or just one, are in flight, or so long that the device may be slow. Pressure does not
        show waits for libaio. Where tasks only may wait for writes, a third of the seconds is
        enough."""
        few = SINGLE_DEPTH if self.kind == "flash" else MOST_OF_THE_TIME
        waited, least = self._waited, MOST_SECONDS
        if not self.writes_are_waited_for and self.others_are_idle and (
            self.blocked or (self.most_waited_percent or 0.0) >= WAITED_PERCENT
        ):  # fmt: skip
            waited = [self._waited_for(rates, with_writes=True) for rates in self.seconds]
            least = FEW_SECONDS
        long = self._share([
            (in_flight >= few and mean_ms >= self.slow_ms and not _rests(rates))
            or (in_flight >= SLOW_IN_FLIGHT and mean_ms >= PERHAPS_SLOW_FACTOR * self.slow_ms)
            for rates, (in_flight, _, mean_ms) in zip(self.seconds, waited, strict=True)
        ])  # fmt: skip
        is_same = self.in_flight < SINGLE_DEPTH and self._is_soon_after_boot
        return long >= least and (is_same or not self._takes_as_long_alone(self.mean_ms or 0.0))

    @property
    def stalled_seconds(self) -> int:
        """In how many of the seconds requests were in flight all the time, and none completed."""
        return sum(self._stalled)

    @cached_property
    def _stalled(self) -> list[bool]:
        """Which seconds are stalled: none, unless the requests of all the seconds (those of a
        stalled one complete later) took very long and somebody waited for them."""
        had = [0, *(rates.in_flight or 0 for rates in self.seconds)]
        stalled = [
            bool(((before and rates.in_flight) or later) and not rates.ios and not rates.flushes)
            for before, rates, later in zip(had, self.seconds, self._began_before, strict=False)
        ]
        if not any(stalled):
            return stalled
        ios_s = sum(one[1] for one in self._waited)
        waited_s = sum(one[0] for one in self._waited)
        slow_ms = VERY_SLOW_FACTOR * self.slow_ms
        if waited_s < SLOW_IN_FLIGHT * len(stalled) or 1e3 * waited_s < slow_ms * ios_s:
            return [False] * len(stalled)
        return stalled

    @property
    def _began_before(self) -> list[bool]:
        """Which seconds begin while a request is under way that completes later, as its time tells:
        device-mapper may count it in flight only when it is sent on (dm-delay)."""
        found, left_ms = [], 0.0
        for n in reversed(range(len(self.seconds))):
            _, ios_s, ms = self._waited[n]
            left_ms = (ms if ios_s else left_ms) - 1e3 * self.seconds[n].seconds
            found.append(left_ms >= 0)
        return found[::-1]

    def _share(self, seconds: Sequence[bool]) -> float:
        if not any(seconds):
            return 0.0
        share = fmean(seconds)
        return share if len(self.seconds) >= FEW or share == 1.0 else min(share, FEW_SHARE)

    @cached_property
    def syncing(self) -> tuple[str, Array] | None:
        """The md array with this disk that is being rebuilt or checked, or was just now."""
        return syncing_array(self.disk, self.below, self.conditions, self.devices, self.lower)

    @cached_property
    def _deep_queue(self) -> float:
        """From this many on, requests in flight wait for each other. Fewer while md syncs, because
        most of them are then its own."""
        return SINGLE_DEPTH if self.syncing and self.has_pressure else DEEP_QUEUE

    def _waits_in_queue(self, rates: DiskRates, waited: Waited) -> bool:
        in_flight, _, mean_ms = waited
        # a few reads wait behind many writes as well
        behind = in_flight >= SLOW_IN_FLIGHT and (rates.aqu_sz or 0.0) >= 2 * DEEP_QUEUE
        if in_flight < self._deep_queue and not behind:
            return False
        least_ms = self.slow_ms
        if in_flight < 2 * DEEP_QUEUE:
            least_ms += max(0.0, in_flight - 1) * self._transfer_ms  # of those before it
        if self._takes_as_long_alone(mean_ms) and mean_ms < least_ms:
            return False
        if in_flight >= VERY_DEEP_QUEUE and not self._is_parallel:
            least_ms -= (1 - VERY_DEEP_FACTOR) * SLOW_MS[self.kind]
            if self._takes_several_times(mean_ms):
                least_ms = min(least_ms, QUEUED_MS)
        return mean_ms >= least_ms and not _rests(rates)

    def _may_wait_in_queue(self, rates: DiskRates, waited: Waited) -> bool:
        in_flight, _, mean_ms = waited
        if in_flight < VERY_DEEP_QUEUE or mean_ms < QUEUED_MS or _rests(rates):
            return False
        return not any(alone.is_known for alone in self.alone)

    @property
    def may_wait_in_turn(self) -> bool:
        """Whether tasks wait for this disk much of the time, and perhaps one for another's request:
        of a few threads that sync, each waits hardly longer than for a request alone."""
        much = (self.waited_percent or 0.0) >= MUCH_PRESSURE and not self.idle_rings
        mean_ms, least_ms = self.mean_ms or 0.0, SLOW_MS["flash"] + self._transfer_ms
        few = self.in_flight >= IN_TURN and mean_ms >= least_ms and self.others_are_idle
        # the probe's time is of these same requests, not of one alone
        past = self._alone_since_boot
        is_known = past is not None and past.is_known and not self._is_soon_after_boot
        is_usual = is_known and past is not None and mean_ms < ALONE_FACTOR * past.ms
        return much and few and not is_usual

    @property
    def _is_soon_after_boot(self) -> bool:
        """Whether the past since boot may be hardly more than this same load."""
        up_s = self.use.up_s if self.use is not None else None
        return up_s is not None and up_s < LONG_UP_S

    @property
    def may_wait_in_bfq(self) -> bool:
        """Whether requests may wait in the scheduler bfq, which serves one program at a time."""
        device = self.devices.get(self.disk)
        if device is None or device.queue is None or device.queue.scheduler != "bfq":
            return False
        if self.in_flight < SINGLE_DEPTH or (self.mean_ms or 0.0) < QUEUED_MS:
            return False
        return not self._takes_as_long_alone(self.mean_ms or 0.0)

    @property
    def _is_parallel(self) -> bool:
        """Whether nothing but memory is below, in which each request takes a set time by itself."""
        lowest = [name for name in self.below if not self.lower.get(name)] or [self.disk]
        devices = [self.devices.get(name) for name in lowest]
        return all(device is not None and device.kind == "null_blk" for device in devices)

    def _takes_as_long_alone(self, mean_ms: float) -> bool:
        """Whether one alone is known to take nearly as long."""
        known = [one.ms for one in self.alone if one.is_known]
        return bool(known) and mean_ms < ALONE_FACTOR * min(known)

    def _takes_several_times(self, mean_ms: float) -> bool:
        return bool(self.alone) and mean_ms >= QUEUE_FACTOR * min(self.alone).ms

    @cached_property
    def alone(self) -> list[AloneTime]:
        """How long a request takes alone: as the probe measured it, and the mean since boot (large
        ones may take longer). A loop device's time includes the queue of its threads, a virtual
        disk's the queue of its host."""
        times = []
        ios = waited_ns = seconds = 0.0
        for frame in self.frames:
            kinds = frame.probe.disks.get(self.disk, {}) if frame.probe is not None else {}
            parts = [part for part in kinds.values() if part.device.mean_ns is not None]
            ios += sum(part.device.ios for part in parts)
            waited_ns += sum(part.device.ios * (part.device.mean_ns or 0.0) for part in parts)
            seconds += parts[0].seconds if parts else 0.0
        if ios >= MIN_FOR_P99 and seconds:
            times.append(AloneTime(waited_ns / ios / 1e6, waited_ns / 1e9 / seconds < SINGLE_DEPTH))
        past = self._alone_since_boot
        return times if past is None else [*times, past]

    @property
    def _alone_since_boot(self) -> AloneTime | None:
        boot_ms = self.use.boot_ms.get(self.disk) if self.use is not None else None
        if boot_ms is None or self.use is None:
            return None
        depth = self.use.boot_in_flight.get(self.disk, SINGLE_DEPTH)
        return AloneTime(boot_ms + self._transfer_ms, depth < SINGLE_DEPTH)

    def _is_slow_alone(self, rates: DiskRates, waited: Waited) -> bool:
        in_flight, ios_s, mean_ms = waited
        always = in_flight >= NEARLY_ALWAYS and not _rests(rates)
        always = always and self.may_have_pressure and self.kind != "flash"
        factor = SLOW_FACTOR if always else VERY_SLOW_FACTOR
        least_ms = factor * SLOW_MS[self.kind]
        # the time of large requests is found only where it matters
        if in_flight < SLOW_IN_FLIGHT or mean_ms < least_ms:
            return False
        if mean_ms < least_ms + VERY_SLOW_FACTOR * self._transfer_ms:
            return False
        return max(in_flight, rates.aqu_sz or 0.0) < 2 * DEEP_QUEUE and ios_s >= MIN_IOS_S

    @cached_property
    def _waited(self) -> list[Waited]:
        """What was waited for in each second."""
        writes = self.writes_are_waited_for
        return [self._waited_for(rates, with_writes=writes) for rates in self.seconds]

    def _waited_for(self, rates: DiskRates, with_writes: bool) -> Waited:
        """The requests that somebody waits for; write-back of the page cache is not among them."""
        ios_s = waited_ms = 0.0
        kinds = [(rates.reads, rates.read_ms), (rates.writes, rates.write_ms)]
        for count, ms in kinds if with_writes else kinds[:1]:
            if count:
                ios_s += count / rates.seconds
                waited_ms += (ms or 0.0) / rates.seconds
        return waited_ms / 1e3, ios_s, waited_ms / ios_s if ios_s else 0.0

    @cached_property
    def writes_are_waited_for(self) -> bool:
        """Whether a program waits for the writes: tasks wait for I/O, or the writes are not
        write-back."""
        if self.may_have_pressure:
            return True
        # waits for a log don't count as pressure
        if self.others_are_idle and any(one.place.startswith(LOG_PLACES) for one in self.blocked):
            return True
        if self.write_back is None:
            return False
        sizes = [rates.wareq_size or 0.0 for rates in self.seconds]
        in_flight = sum(
            (rates.w_s or 0.0) * (rates.w_await or 0.0) / 1e3 for rates in self.seconds
        ) / max(1, len(self.seconds))
        return self.write_back < DIRECT_SHARE * in_flight * _mean(list(sizes))

    @property
    def may_have_pressure(self) -> bool:
        """Whether tasks wait for I/O, and either not for other disks, or a journal on this disk is
        blocked, or a program with files on it."""
        if not self.has_pressure or self.idle_rings:
            return False
        if 100 * self.other_in_flight < (self.waited_percent or 0.0) or self.use is None:
            return True
        if self.journal_waits:
            return True
        blocked = {task.pid for task in self.blocked}
        return any(user.pid in blocked and self.disk in user.devices for user in self.use.users)

    @property
    def write_back(self) -> float | None:
        """Bytes that the kernel was writing from the page cache while this disk had a request in
        flight; ``None`` if it had none at that moment."""
        known = self.use.write_back if self.use is not None else {}
        return next((known[name] for name in self.below if name in known), None)

    @property
    def idle_rings(self) -> list[RingWaiter]:
        """Processes that sleep in io_uring and do no disk I/O: they count as waiting for I/O, so
        pressure proves nothing."""
        if self.use is None:
            return []
        active = {user.pid for user in self.use.users}
        return [waiter for waiter in self.use.ring_waiters if waiter.pid not in active]

    @cached_property
    def writes_only(self) -> bool:
        """Whether nearly all requests are writes."""
        return self.reads_s < 0.05 * (self.reads_s + self.writes_s)

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The processes that use this disk, the one with most first."""
        copies = {name for top in self.above for name in self.lower.get(top, ())
                  if top in self.devices and self.devices[top].layer == MIRROR}  # fmt: skip
        found = shares(
            self.disk, set(self.below), self.use, self.above, self.parts_of_below, copies
        )
        return found if self.use is None else as_bounds(found, self.mean_ms, self.use)

    @cached_property
    def parts_of_below(self) -> tuple[float, float]:
        """Bytes this device reads, and writes, for each byte that the disks below it do."""
        if not self.lower.get(self.disk):
            return 1.0, 1.0
        return parts_of_below(self.disk, self.below, self.use, [one.disks for one in self.frames])

    @cached_property
    def above(self) -> set[str]:
        """The devices whose I/O this disk does."""
        found = {self.disk}
        while more := {top for top, lower in self.lower.items() if found & {*lower}} - found:
            found |= more
        return found - {self.disk}

    @cached_property
    def kernel_role(self) -> str:
        """The role of a kernel thread that is blocked most of the time and works for this disk; ""
        if none."""
        found = next((one for one in self._kernel_roles), None)
        return f"waiting: {found.text(self.devices)}, in the kernel" if found is not None else ""

    @property
    def journal_waits(self) -> bool:
        """Whether the journal of a file system on this disk (jbd2) is blocked most of the time."""
        return any(one.is_journal for one in self._kernel_roles)

    @cached_property
    def _kernel_roles(self) -> list[Role]:
        tasks = [task for task in (self.use.blocked if self.use else ()) if task.kernel]
        numbers = {f"{d.major}:{d.minor}": name for name, d in self.devices.items() if tasks}
        roles = (role(task.comm, numbers) for task in tasks)
        return [one for one in roles if one is not None and one.device in ("", *self.below)]

    @cached_property
    def blocked(self) -> list[BlockedTask]:
        """The programs that are blocked most of the time, by this disk or anything else. One that
        does an I/O each second is seen in each look of that pace, or in none: the I/O pressure
        tells how long it waits."""
        tasks = [task for task in (self.use.blocked if self.use else ()) if not task.kernel]
        most = self.most_waited_percent
        if most is None or most >= BLOCKED_PERCENT:
            return tasks
        return [task for task in tasks if not task.place.startswith(AS_PRESSURE)]

    @property
    def has_iocost(self) -> bool:
        """Whether io.cost controls this disk or one below it, and either this disk has I/O or no
        other disk has io.cost."""
        states = self.conditions.devices
        with_it = {name for name, state in states.items() if state.has_iocost}
        return bool(with_it & {*self.below}) and (bool(self.ios_s) or len(with_it) == 1)

    @cached_property
    def _each_in_flight(self) -> dict[str, float]:
        """Requests in flight on each disk of the machine: from the reading of disk users, which may
        be missing or of other seconds, and from the frames."""
        rows = {name: row[2] for name, row in self.use.disks.items()} if self.use else {}
        measured = self.machine.in_flight
        return {n: max(rows.get(n, 0.0), measured.get(n, 0.0)) for n in {*rows, *measured}}

    @property
    def all_in_flight(self) -> float:
        """Requests in flight on all disks of the machine. Each layer of a stack counts them again,
        so this is rather too high."""
        return sum(self._each_in_flight.values())

    @property
    def all_were_empty(self) -> bool:
        """Whether each disk of the machine had no request in flight at the end of a second."""
        each = {name for frame in self.frames for name in frame.disks}
        empty = {name for frame in self.frames for name, rates in frame.disks.items()
                 if rates.in_flight == 0}  # fmt: skip
        return each == empty

    @cached_property
    def other_in_flight(self) -> float:
        """Requests in flight on all other disks of the machine, as far as they are known."""
        on_it = self.use.above(self.disk) if self.use is not None else ()
        own = {*self.below, *self.above, *on_it}
        return sum(value for name, value in self._each_in_flight.items()
                   if value and name not in own and self._whole(name) not in own)  # fmt: skip

    def _whole(self, name: str) -> str:
        """The disk that a partition is on; any other device itself."""
        device = self.devices.get(name)
        return device.disk if device is not None and device.disk else name

    @property
    def others_are_idle(self) -> bool:
        """Whether all other disks have hardly any request."""
        return self.other_in_flight < HARDLY_USED


def medium(device: BlockDevice | None) -> str:
    """A device's medium: "disk" (rotational), "flash" or "unknown". Whether a virtual disk claims
    to be rotational says nothing about its host."""
    if device is None or device.queue is None:
        return "unknown"
    if device.kind == "nvme":
        return "flash"
    if device.kind != "scsi" or device.transport not in ("sata", "sas", "ata", "usb"):
        return "unknown"
    return {True: "disk", False: "flash"}.get(bool(device.queue.rotational), "unknown")


def is_used(rates: DiskRates) -> bool:
    """Whether a disk had a noticeable amount of I/O in a second."""
    return (rates.aqu_sz or 0.0) >= HARDLY_USED or bool(rates.in_flight)


def _rests(rates: DiskRates) -> bool:
    return rates.util is not None and rates.util < BUSY_UTIL


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fmean(known) if known else 0.0
