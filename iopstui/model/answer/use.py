"""Who uses which disk, as read beside the samples: processes, tasks that wait, io_uring, limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import TypeVar

from iopstui.format import counted, cut
from iopstui.model.block.target import DeviceLinks
from iopstui.model.rates import fmean

ELSEWHERE = ("(reads elsewhere)", "(writes elsewhere)")
"""Stands among a process's devices for a server, or a file system in user space."""

ALL_HIDDEN = -1
"""Count of unreadable processes if it is unknown, because /proc hides other users' processes."""
WITH_CHILDREN = " with its children"
MUCH_CPU_WAIT = 50.0
"""From this percentage of the time in which tasks wait for a CPU, the CPUs may be full."""
MIRROR = "raid1"
COMMAND_IN_A_SENTENCE = 48
"""Columns of a command line in a sentence; a table has more room."""


@dataclass(frozen=True, slots=True)
class DiskUser:
    """A process and what it reads and writes, in bytes per second over all disks. ``devices`` are
    the block devices of its open files with all devices below them (empty: none was seen).
    ``only_read`` are those where it has no file open for writing, ``only_written`` those with none
    for reading. ``group`` is its unit, container or pod. ``children``: includes I/O of children
    that have ended."""

    pid: int
    comm: str
    command: str = ""
    user: str = ""
    read_s: float = 0.0
    write_s: float = 0.0
    devices: frozenset[str] = frozenset()
    group: str = ""
    children: bool = False
    kernel: bool = False
    only_read: frozenset[str] = frozenset()
    only_written: frozenset[str] = frozenset()

    @property
    def reads_on(self) -> frozenset[str]:
        """The devices on which it has files open for reading."""
        return self.devices - self.only_written

    @property
    def writes_on(self) -> frozenset[str]:
        """The devices on which it has files open for writing."""
        return self.devices - self.only_read

    @property
    def name(self) -> str:
        """ "fio --name=hog (965)", "bash (812) with its children", "fio (965, container docker
        8c1d2f0a9b7e)". A unit is not named: most have the name of their program."""
        where = f", {self.container}" if self.container else ""
        command = cut(self.command or self.comm, COMMAND_IN_A_SENTENCE)
        return f"{command} ({self.pid}{where}){WITH_CHILDREN * self.children}"

    @property
    def container(self) -> str:
        """ "container docker 8c1d2f0a9b7e"; "" outside of containers and pods."""
        return self.group if " " in self.group else ""


@dataclass(frozen=True, slots=True)
class BlockedTask:
    """A task in state D; ``place`` is the kernel function it waits in ("": not readable).
    ``share``: the part of several readings (0..1) in which it was found blocked, at least."""

    pid: int
    comm: str
    place: str = ""
    kernel: bool = False
    share: float = field(default=1.0, compare=False)


@dataclass(frozen=True, slots=True)
class RingWaiter:
    """A process that sleeps in io_uring, or in libaio, until one of its requests completes."""

    pid: int
    comm: str

    @property
    def name(self) -> str:
        """ "dragonfly (812)"."""
        return f"{self.comm} ({self.pid})"


TOP_GROUP = "the top cgroup"
"""The name of the machine's top cgroup, or of a container's own, in a sentence."""


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A cgroup that is at or near a limit on a disk. ``text`` is the limit ("1,000 reads/s"),
    ``file`` where it is set, ``share`` how much of it was used."""

    disk: str
    group: str
    text: str
    file: str
    share: float = field(default=1.0, compare=False)


@dataclass(frozen=True, slots=True)
class DiskUse:
    """One reading: rates are over the ``seconds`` before ``t`` (the session's clock). ``hidden``
    counts processes that could not be read. ``disks`` has (bytes read, written, requests in flight)
    per second of every disk of the machine. ``with_tasks``: tasks that wait were looked for.
    ``remote``: network or user-space file systems are mounted, whose waits count as I/O pressure,
    too. ``write_back``: bytes that the kernel was writing from the page cache, to any disk, at a
    moment when the disk of this name had a request in flight; ``swap_s`` pages swapped in and out.
    ``cpu_some`` is percent of the time in which a task waited for a CPU (PSI), and ``cpu_user`` the
    program that then used the CPUs most: "cc1 (4 processes) with 180 %" of one."""

    t: float
    seconds: float
    users: tuple[DiskUser, ...] = ()
    hidden: int = 0
    as_root: bool = False
    disks: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    with_tasks: bool = True
    blocked: tuple[BlockedTask, ...] = ()
    ring_waiters: tuple[RingWaiter, ...] = ()
    aio_waiters: tuple[RingWaiter, ...] = ()
    """As ``ring_waiters``, for libaio."""
    limits: tuple[LimitUse, ...] = ()
    near_limits: tuple[LimitUse, ...] = ()
    """Of several readings: limits that were reached or nearly reached in only some of them."""
    outer_groups: bool = False
    """This is a container: cgroups above it may have limits that cannot be seen."""
    outer_processes: bool = False
    """This is a PID namespace (a container, most often): processes outside cannot be seen."""
    limits_readable: bool = True
    """A hierarchy of cgroups with limits of I/O is mounted."""
    remote: bool = False
    write_back: Mapping[str, float] = field(default_factory=dict)
    swap_s: float | None = None
    cpu_some: float | None = None
    cpu_user: str = ""
    boot_ms: Mapping[str, float] = field(default_factory=dict)
    """Mean milliseconds of all requests since boot, by disk."""
    boot_in_flight: Mapping[str, float] = field(default_factory=dict)
    """Mean number in flight while any was, since boot."""
    up_s: float | None = None
    suspended: Mapping[str, float] = field(default_factory=dict)
    """The share of the readings at which a device-mapper device let nothing pass, by device."""
    links: tuple[DeviceLinks, ...] = ()
    """The devices that lie on others and are used, each with what is directly below it; of a
    partition also its disk."""
    kernel_s: tuple[float, float] | None = None
    """Bytes read and written per second by kernel threads that may be those of loop devices;
    ``None`` if they could not be read."""

    @property
    def sees_all_limits(self) -> bool:
        """Whether no limit of I/O can be hidden."""
        return self.limits_readable and not self.outer_groups

    def above(self, disk: str) -> set[str]:
        """The devices that lie on this one."""
        found = {disk}
        while more := {one.name for one in self.links if found & {*one.below}} - found:
            found |= more
        return found - {disk}

    def tree(self, disk: str) -> set[str]:
        """This device and those below it."""
        found = {disk}
        while more := {below for one in self.links if one.name in found
                       for below in one.below} - found:  # fmt: skip
            found |= more
        return found

    def copies(self, disk: str) -> set[str]:
        """The members of mirrors that have this one as a member."""
        return {name for one in self.links if one.layer == MIRROR and disk in one.below
                for name in one.below}  # fmt: skip

    @property
    def hidden_text(self) -> str:
        """ "3 processes", "all processes"."""
        return "all processes" if self.hidden == ALL_HIDDEN else counted(
            self.hidden, "process", "processes"
        )  # fmt: skip


SURE = 1.96
"""Standard errors by which a share of the looks may differ from that of the time (95 %)."""


def at_least(share: float, looks: int) -> float:
    """The share of the time that chance leaves of a ``share`` of the looks (Wilson's lower
    bound)."""
    z2 = SURE * SURE / looks
    spread = SURE * sqrt(share * (1 - share) / looks + z2 / looks / 4)
    return (share + z2 / 2 - spread) / (1 + z2)


REACHED = 0.97
"""Least share of a limit at which a group is held back: the kernel lets through a little less than
allowed."""
NEARLY = 0.92
"""The mean of a group that is held back all the time, on a busy machine."""
AT_TIMES, FEW_READINGS = 0.3, 3
OFTEN = 0.6
"""A fact must be in this part of the readings; one alone may be chance."""
FOR_TAG, FOR_RQ_QOS, FOR_IOCOST = BEFORE_DISK = ("blk_mq_get_tag", "rq_qos_", "ioc_")
"""Beginnings of the kernel functions in which a task waits before the disk has its request: for a
place in the queue, io.latency or the throttling of write-back, io.cost."""


def mean_use(uses: Sequence[DiskUse], recent: Sequence[DiskUse] = ()) -> DiskUse | None:
    """Several readings as one: means of rates, and what was seen in most of them. The rates of
    users and disks are of ``recent`` if these are given."""
    if not uses:
        return None
    last, seconds = uses[-1], sum(use.seconds for use in uses)
    rated, reached = recent or uses, _reached(uses)
    rated_s = sum(use.seconds for use in rated)
    names = {name for use in rated for name in use.disks}
    return replace(
        last, seconds=seconds, users=_mean_users(rated, rated_s),
        disks={name: _mean_rates(name, rated, rated_s) for name in names},
        with_tasks=any(use.with_tasks for use in uses),
        blocked=_often_blocked([use.blocked for use in uses if use.with_tasks]),
        ring_waiters=_often([use.ring_waiters for use in uses if use.with_tasks]),
        aio_waiters=_often([use.aio_waiters for use in uses if use.with_tasks]),
        limits=reached, near_limits=_reached_at_times(uses, reached),
        write_back=_mean_write_back(uses),
        swap_s=_mean_known([use.swap_s for use in uses]),
        suspended={name: fmean(use.suspended.get(name, 0.0) for use in uses)
                   for name in {name for use in uses for name in use.suspended}},
        cpu_some=_mean_known([use.cpu_some for use in uses]),
        cpu_user=next((use.cpu_user for use in reversed(uses) if use.cpu_user), ""),
        links=tuple({link.name: link for use in uses for link in use.links}.values()),
        kernel_s=_mean_kernel(uses, seconds),
    )  # fmt: skip


def _mean_write_back(uses: Sequence[DiskUse]) -> dict[str, float]:
    """Of the disks that had a request in flight in several readings: between two bursts of
    write-back one reading may see nothing but a commit of the journal."""
    seen: dict[str, list[float]] = {}
    for use in uses:
        for name, size in use.write_back.items():
            seen.setdefault(name, []).append(size)
    least = min(FEW_READINGS, len(uses))
    return {name: fmean(sizes) for name, sizes in seen.items() if len(sizes) >= least}


def _mean_users(uses: Sequence[DiskUse], seconds: float) -> tuple[DiskUser, ...]:
    sums: dict[int, DiskUser] = {}
    for use in uses:
        for user in use.users:
            before = sums.get(user.pid)
            reads_on, writes_on = user.reads_on, user.writes_on
            if before is not None:
                reads_on, writes_on = reads_on | before.reads_on, writes_on | before.writes_on
            sums[user.pid] = replace(
                user,
                read_s=user.read_s * use.seconds + (before.read_s if before else 0.0),
                write_s=user.write_s * use.seconds + (before.write_s if before else 0.0),
                devices=reads_on | writes_on,
                only_read=reads_on - writes_on,
                only_written=writes_on - reads_on,
                children=user.children or bool(before and before.children),
            )
    users = [
        replace(user, read_s=user.read_s / seconds, write_s=user.write_s / seconds)
        for user in sums.values()
    ]
    return tuple(sorted(users, key=lambda user: -user.read_s - user.write_s))


def _mean_rates(name: str, uses: Sequence[DiskUse], seconds: float) -> tuple[float, float, float]:
    sums = [0.0, 0.0, 0.0]
    for use in uses:
        for index, value in enumerate(use.disks.get(name, ())):
            sums[index] += value * use.seconds
    return sums[0] / seconds, sums[1] / seconds, sums[2] / seconds


def _mean_kernel(uses: Sequence[DiskUse], seconds: float) -> tuple[float, float] | None:
    known = [(*use.kernel_s, use.seconds) for use in uses if use.kernel_s is not None]
    if len(known) < len(uses):
        return None
    return (sum(read_s * own for read_s, _, own in known) / seconds,
            sum(write_s * own for _, write_s, own in known) / seconds)  # fmt: skip


def _reached(uses: Sequence[DiskUse]) -> tuple[LimitUse, ...]:
    """The limits that are nearly reached in most readings and reached in their mean: on a busy
    machine one second has less and the next one more. Or those reached in the mean of all: the
    kernel lets written pages through in lumps, of which each is held back for seconds."""
    often = _often([use.limits for use in uses])
    seconds = sum(use.seconds for use in uses)
    return tuple(
        one for one in dict.fromkeys(one for use in uses for one in use.limits)
        if (one in often and _mean_share(one, uses) >= REACHED)
        or sum(share * own for share, own in _shares(one, uses)) >= REACHED * seconds
    )  # fmt: skip


def _shares(limit: LimitUse, uses: Sequence[DiskUse]) -> list[tuple[float, float]]:
    """(share of the limit, seconds) of the readings that found it nearly reached."""
    return [(one.share, use.seconds) for use in uses for one in use.limits if one == limit]


def _mean_share(limit: LimitUse, uses: Sequence[DiskUse]) -> float:
    near = _shares(limit, uses)
    return sum(part * seconds for part, seconds in near) / sum(s for _, s in near)


def _reached_at_times(
    uses: Sequence[DiskUse], reached: Sequence[LimitUse]
) -> tuple[LimitUse, ...]:  # fmt: skip
    """The other limits that tasks may have waited for: reached at times (share 1), or hardly any
    more in most readings. A lump of several seconds' share counts for so many readings."""
    least = 0.0 if len(uses) < FEW_READINGS else REACHED
    counts: Counter[LimitUse] = Counter()
    for one in (one for use in uses for one in use.limits if one.share >= least):
        counts[one] += max(1, round(one.share))
    near = {one: _mean_share(one, uses) for one in _often([use.limits for use in uses])}
    near |= {one: 1.0 for one, count in counts.items() if count >= AT_TIMES * len(uses)}
    return tuple(replace(one, share=share) for one, share in near.items() if one not in reached)


_Item = TypeVar("_Item", bound=Hashable)


def _often(readings: Sequence[Sequence[_Item]]) -> tuple[_Item, ...]:
    counts = Counter(item for reading in readings for item in set(reading))
    return tuple(item for item, count in counts.items() if count >= OFTEN * len(readings))


def _often_blocked(readings: Sequence[Sequence[BlockedTask]]) -> tuple[BlockedTask, ...]:
    """Each process once, with the function its threads waited in most often (fsync alone waits in
    several), or one before the disk if that is a good part: the rest is for the requests."""
    places: dict[BlockedTask, Counter[str]] = {}
    for task in (task for reading in readings for task in reading):
        # a task that is just waking up is in no kernel function any more
        places.setdefault(replace(task, place=""), Counter())[task.place] += bool(task.place)
    looks = len(readings)
    counts = Counter(task for reading in readings
                     for task in {replace(each, place="") for each in reading})  # fmt: skip
    return tuple(
        replace(task, place=_main_place(places[task]), share=at_least(count / looks, looks))
        for task, count in counts.items() if count >= OFTEN * looks
    )  # fmt: skip


def _main_place(places: Counter[str]) -> str:
    least = AT_TIMES * places.total()
    before = (place for place, count in places.most_common() if count >= least)
    held = next((place for place in before if place.startswith(BEFORE_DISK)), "")
    return held or places.most_common(1)[0][0]


def _mean_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
