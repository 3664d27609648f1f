"""Who uses the disks, and what else waits for I/O, read beside the samples (model/answer/use.py).

An ordinary user sees only own processes; ``DiskUse.hidden`` counts the others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from iopstui.linux.counters.cgroup import parse_memberships
from iopstui.linux.counters.io_limits import ReachedLimits
from iopstui.linux.counters.whole_disks import SECTOR, has_remote_mounts
from iopstui.linux.devices.open_devices import ByAccess, KnownFiles, OpenDevices
from iopstui.linux.devices.target import device_links
from iopstui.linux.kernel_files import Roots, decode, list_names, read_bytes, read_int, read_text
from iopstui.linux.process.cpu_users import CpuUsers
from iopstui.linux.process.process_io import MAX_COMMAND, ProcessIo, ProcessRates
from iopstui.linux.process.processes import command_of, task_stat, user_of
from iopstui.model.answer.process import ASYNCHRONOUS, CHILD, FROZEN, RING_PLACE, place_kind
from iopstui.model.answer.use import (
    ALL_HIDDEN,
    MUCH_CPU_WAIT,
    BlockedTask,
    DiskUse,
    DiskUser,
    RingWaiter,
)
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DeviceLinks
from iopstui.model.cgroups import group_name
from iopstui.model.samples import DiskCounters
from iopstui.model.sources import parse_pressure
from iopstui.text import printable

MAX_USERS, MAX_MORE_USERS = 12, 36
"""How many of the busiest processes are listed, and how many if processes that may do most of a
slower disk's I/O are added."""
MAIN_PART, MIN_BYTES_S = 0.5, 64 << 10
MAX_TASKS = 4000
"""How many tasks' states one reading looks at."""
MANY = 500
"""For at most this many parents, the devices of their children are remembered."""
PAGE = os.sysconf("SC_PAGESIZE")
_OF_LOOPS = ("kworker", "loop")
"""Beginnings of the names of kernel threads that may do the I/O of loop devices."""
_SLEEPS, _BLOCKED = b"S", b"D"
_FLAGS, _KERNEL_THREAD = 6, 0x00200000


class DiskUseReader:
    """Reads who uses the disks: ``read`` returns the use since the last reading. To be used by one
    thread."""

    def __init__(self, roots: Roots | None = None) -> None:
        self._roots = roots or Roots()
        self._processes = ProcessIo(0.0, self._roots)
        self._limits = ReachedLimits(self._roots)
        self._before: Mapping[str, DiskCounters] = {}
        self._vm_before: dict[str, int] = {}
        self._cpu_before: int | None = None
        self._cpu_users: CpuUsers | None = None
        self._at = 0.0
        self._of_children: dict[int, ByAccess] = {}
        self._files: KnownFiles = {}

    def read(self, t: float, devices: Mapping[str, BlockDevice], tasks: bool) -> DiskUse | None:
        """Return the use since the last reading; ``None`` at the first one. ``t`` is the session's
        clock. ``tasks``: also look for tasks that are blocked or sleep in io_uring."""
        now = time.monotonic()
        rates, vm = self._processes.rates(), self._vmstat()
        counts = self._processes.disks
        cpu = self._cpu_wait()
        limits = self._limits.read(devices)
        before, self._before = self._before, counts
        vm_before, self._vm_before = self._vm_before, vm
        cpu_before, self._cpu_before = self._cpu_before, cpu
        seconds, first = now - self._at, not self._at
        self._at = now
        if first or seconds <= 0:
            return None
        blocked, ring, aio = self._tasks() if tasks else ((), (), ())
        cpu_some = None if cpu is None or cpu_before is None else min(
            100.0, (cpu - cpu_before) / 1e4 / seconds)  # fmt: skip
        moved = _rates(counts, before, seconds)
        kernel = [one for one in rates or [] if one.kernel and one.comm.startswith(_OF_LOOPS)]
        users = tuple(self._users(_looked_at(rates or [], moved), devices))
        write_back = vm.get("nr_writeback")
        return DiskUse(
            t=t, seconds=seconds, users=users,
            hidden=self._processes.closed if (self._roots.proc / "1").exists() else ALL_HIDDEN,
            as_root=not os.geteuid(), disks=moved,
            with_tasks=tasks, blocked=blocked, ring_waiters=ring, aio_waiters=aio,
            limits=limits,
            outer_processes=_in_pid_namespace(self._roots),
            outer_groups=self._limits.outer_groups, limits_readable=self._limits.readable,
            remote=has_remote_mounts(self._roots),
            write_back={} if write_back is None else dict.fromkeys(
                (name for name, row in counts.items() if row.in_flight), float(PAGE * write_back)
            ),
            swap_s=_growth(vm, vm_before, ("pswpin", "pswpout"), seconds),
            cpu_some=cpu_some, cpu_user=self._cpu_user((cpu_some or 0.0) >= MUCH_CPU_WAIT),
            boot_ms=_since_boot(counts), boot_in_flight=_depths_since_boot(counts),
            up_s=self._uptime(),
            suspended={name: 1.0 for name in devices if self._is_suspended(name)},
            links=tuple(self._links(devices, moved, users)),
            kernel_s=None if os.geteuid()
            else (sum(one.read_s for one in kernel), sum(one.write_s for one in kernel)),
        )  # fmt: skip

    def _users(
        self, rates: list[ProcessRates], devices: Mapping[str, BlockDevice]
    ) -> Iterator[DiskUser]:
        finder = OpenDevices(devices, self._roots, self._files)
        self._files = finder.seen
        if len(self._of_children) > MANY:
            self._of_children.clear()
        # children first: if they had files open, their parent's counters now include their I/O
        for process in sorted(rates, key=lambda one: one.children):
            if process.pid == os.getpid():
                continue
            place = f"{self._roots.proc}/{process.pid}"
            names = finder.of_process(place, process.faults)
            if process.read_s and not names[0]:
                # look at its mappings after all: their pages may be read ahead, so that no fault
                # waits (git)
                names = finder.of_process(place)
            of_siblings = self._of_children.get(process.parent, _NO_FILES)
            self._of_children[process.parent] = _both(of_siblings, names)
            if process.children:
                names = _both(names, self._of_children.get(process.pid, _NO_FILES))
            reading, writing = names
            yield DiskUser(
                process.pid, process.comm, command_of(place, MAX_COMMAND), user_of(place),
                process.read_s, process.write_s, reading | writing,
                group_of(process.pid, self._roots), process.children, process.kernel,
                reading - writing, writing - reading,
            )  # fmt: skip

    def _links(
        self, devices: Mapping[str, BlockDevice],
        moved: Mapping[str, tuple[float, float, float]], users: Sequence[DiskUser],
    ) -> Iterator[DeviceLinks]:  # fmt: skip
        """The devices on others that a process uses. The file of a loop device without I/O is not
        looked for: its server may be gone."""
        used = {name for user in users for name in user.devices}
        for name, device in devices.items():
            is_busy = device.backing_file and any(moved.get(name, ())[:2])
            if is_busy or (device.slaves and name in used):
                lower = device_links((name,), devices, self._roots)[0].below
                disks = [disk for one in lower if (disk := devices[one].disk)]
                yield DeviceLinks(name, tuple(dict.fromkeys((*lower, *disks))), device.layer)

    def _vmstat(self) -> dict[str, int]:
        rows = (line.split() for line in decode(
            read_bytes(self._roots.proc / "vmstat") or b"").splitlines())  # fmt: skip
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}

    def _is_suspended(self, name: str) -> bool:
        return name.startswith("dm-") and read_int(
            self._roots.sys / "class/block" / name / "dm/suspended") == 1  # fmt: skip

    def _cpu_wait(self) -> int | None:
        try:
            return parse_pressure(read_bytes(self._roots.proc / "pressure/cpu") or b"").get("some")
        except (ValueError, KeyError, IndexError):
            return None

    def _cpu_user(self, waited: bool) -> str:
        """The program that used the CPUs most since the last reading; looked for only while tasks
        wait for a CPU, as all processes must be read."""
        users = self._cpu_users
        busiest = users.busiest() if users is not None and waited else ""
        self._cpu_users = CpuUsers(self._roots, with_kernel=True) if waited else None
        return busiest

    def _uptime(self) -> float | None:
        words = (read_text(self._roots.proc / "uptime") or "").split()
        try:
            return float(words[0])
        except (IndexError, ValueError):
            return None

    def _tasks(
        self,
    ) -> tuple[tuple[BlockedTask, ...], tuple[RingWaiter, ...], tuple[RingWaiter, ...]]:
        blocked = []
        asleep: dict[str, dict[int, RingWaiter]] = {RING_PLACE: {}, ASYNCHRONOUS: {}}
        for pid, place, comm, state, kernel in _all_tasks(str(self._roots.proc)):
            if pid == os.getpid():
                continue
            wchan = (read_text(f"{place}/wchan") or "0") if state == _BLOCKED or not kernel else ""
            where = "" if wchan == "0" else wchan
            if state == _BLOCKED and place_kind(where, blocked=True) not in (CHILD, FROZEN):
                blocked.append(BlockedTask(pid, comm, where, kernel))
            elif state == _SLEEPS and where in asleep:
                asleep[where][pid] = RingWaiter(pid, comm)
        ring, aio = (tuple(one.values()) for one in asleep.values())
        return tuple(blocked), ring, aio


def _all_tasks(proc: str) -> Iterator[tuple[int, str, str, bytes, bool]]:
    """For each task that sleeps or is blocked: process, directory, name, state, and whether it is a
    kernel thread."""
    count = 0
    for name in os.listdir(proc):
        for task in list_names(f"{proc}/{name}/task") if name.isdecimal() else ():
            count += 1
            if count > MAX_TASKS:
                return
            place = f"{proc}/{name}/task/{task}"
            try:
                comm, fields = task_stat(place)
            except OSError:
                continue
            if len(fields) > _FLAGS and fields[0] in (_SLEEPS, _BLOCKED):
                kernel = bool(int(fields[_FLAGS]) & _KERNEL_THREAD)
                yield int(name), place, printable(decode(comm)), fields[0], kernel


def _looked_at(
    rates: list[ProcessRates], moved: Mapping[str, tuple[float, float, float]]
) -> list[ProcessRates]:
    """The processes whose files are examined. The first of ``rates`` are the busiest."""
    used = [sum(row[:2]) for row in moved.values() if sum(row[:2]) >= MIN_BYTES_S]
    least = MAIN_PART * min(used, default=float("inf"))
    return rates[:MAX_USERS] + [
        one for one in rates[MAX_USERS:MAX_MORE_USERS] if one.read_s + one.write_s >= least
    ]


_NO_FILES: ByAccess = (frozenset(), frozenset())


def _both(one: ByAccess, other: ByAccess) -> ByAccess:
    return one[0] | other[0], one[1] | other[1]


def _rates(
    now: Mapping[str, DiskCounters], before: Mapping[str, DiskCounters], seconds: float
) -> dict[str, tuple[float, float, float]]:
    """For each disk: bytes read and written per second, and requests in flight on average."""
    rates = {}
    for name, row in now.items():
        last = before.get(name)
        if last is None or row.reads < last.reads:
            continue
        in_flight = max(0, (row.weighted_ms or 0) - (last.weighted_ms or 0)) / 1e3 / seconds
        if not in_flight and (row.reads, row.writes) == (last.reads, last.writes):
            in_flight = float(row.in_flight or 0)  # the counters have no time of these requests yet
        rates[name] = (
            SECTOR * max(0, row.read_sectors - last.read_sectors) / seconds,
            SECTOR * max(0, row.write_sectors - last.write_sectors) / seconds,
            in_flight,
        )
    return rates


def _since_boot(counts: Mapping[str, DiskCounters]) -> dict[str, float]:
    """Mean milliseconds of all reads and writes since boot, by disk."""
    means = {}
    for name, row in counts.items():
        if row.reads + row.writes > 0 and row.read_ms is not None and row.write_ms is not None:
            means[name] = (row.read_ms + row.write_ms) / (row.reads + row.writes)
    return means


def _depths_since_boot(counts: Mapping[str, DiskCounters]) -> dict[str, float]:
    """Mean number of requests in flight while any was, since boot, by disk."""
    return {name: row.weighted_ms / row.io_ms for name, row in counts.items()
            if row.io_ms and row.weighted_ms is not None}  # fmt: skip


def _growth(
    now: Mapping[str, int], before: Mapping[str, int], names: tuple[str, ...], seconds: float
) -> float | None:
    if any(name not in now or name not in before for name in names):
        return None
    return sum(now[name] - before[name] for name in names) / seconds


def _in_pid_namespace(roots: Roots) -> bool:
    """Whether processes of the machine are outside of this one's PID namespace (the first one's
    number is PROC_PID_INIT_INO, include/linux/proc_ns.h)."""
    try:
        return os.readlink(roots.proc / "self/ns/pid") != "pid:[4026531836]"
    except OSError:
        return False


def group_of(pid: int, roots: Roots) -> str:
    """The unit, container or pod that a process is in; "" if its groups have no names."""
    for membership in parse_memberships(read_text(roots.proc / str(pid) / "cgroup") or ""):
        name = group_name(membership.path)
        if name.whole and not membership.outside:
            return printable(name.text)
    return ""


INTERVAL_S, FIRST_S, LATE_S = 5.0, 1.0, 5.0
"""Seconds. A reading that is made ``LATE_S`` or more after it is due covers too much other time, so
it is not used."""
MAX_CPU_SHARE = 0.0005
"""Share of a CPU that the readings may take: if one takes 10 ms, the next is made 20 s later."""
SEEN_INTERVAL_S, SEEN_CPU_SHARE = 2.0, 0.005
"""The same for a reading that somebody looks at."""


class OccasionalUse:
    """Reads who uses the disks from time to time: less often if a reading is expensive, as on
    machines with thousands of processes. To be used by one thread."""

    def __init__(
        self,
        reader: DiskUseReader | None = None,
        clock: Callable[[], float] = time.monotonic,
        cost: Callable[[], float] = time.thread_time,
    ) -> None:
        self._reader = reader or DiskUseReader()
        self._clock, self._cost = clock, cost
        self._due_at = self._seen_due_at = self._late_at = 0.0

    def is_due(self, is_seen: bool = False) -> bool:
        """Whether a new reading may be made; sooner if somebody looks at it (``is_seen``)."""
        return self._clock() >= (self._seen_due_at if is_seen else self._due_at)

    def __call__(self, t: float, devices: Mapping[str, BlockDevice]) -> DiskUse | None:
        """The use since the last reading; ``None`` if the last reading is too old or missing. ``t``
        is the time of the screen that shows the use."""
        began, before = self._clock(), self._cost()
        use = self._reader.read(t, devices, tasks=False)
        if use is None or began >= self._late_at:
            use, pause_s, seen_pause_s = None, FIRST_S, FIRST_S
        else:
            cost_s = self._cost() - before
            pause_s = max(INTERVAL_S, cost_s / MAX_CPU_SHARE)
            seen_pause_s = max(SEEN_INTERVAL_S, cost_s / SEEN_CPU_SHARE)
        self._due_at, self._seen_due_at = self._clock() + pause_s, self._clock() + seen_pause_s
        self._late_at = self._due_at + LATE_S
        return use
