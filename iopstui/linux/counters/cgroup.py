"""This process's cgroups, whether one throttles iopstui and its fio, and their rates.

Sources: Documentation/admin-guide/cgroup-v2.rst (cpu.stat throttled_usec, cpu.max) and
Documentation/scheduler/sched-bwc.rst (cgroup v1: cpu.stat throttled_time, in ns)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.kernel_files import Roots, decode, parse_int, read_bytes, read_text
from iopstui.model.cgroups import (
    AT_NS,
    COUNTERS,
    CPU_US,
    LIMITS,
    ROOT_FLAG,
    GroupRates,
    OwnCounts,
    counter_name,
    group_name,
    group_rates,
)


@dataclass(frozen=True, slots=True)
class Membership:
    """The group of this process in one hierarchy: a line of /proc/self/cgroup.

    ``controllers`` is empty for version 2. ``path`` begins at the root of the cgroup namespace."""

    controllers: str
    path: str

    @property
    def outside(self) -> bool:
        """True if the group is outside of this cgroup namespace ("/../x") and so can't be seen
        here: the visible groups then belong to others."""
        return ".." in self.path.split("/")


def parse_throttled_us(data: bytes) -> int | None:
    """Microseconds throttled so far, from the cpu.stat of either version; None if the file has no
    such count."""
    for line in data.splitlines():
        name, _, value = line.partition(b" ")
        if name in (b"throttled_usec", b"throttled_time") and value.strip().isdigit():
            return int(value) // (1000 if name == b"throttled_time" else 1)
    return None


def parse_memberships(text: str) -> tuple[Membership, ...]:
    """The lines of /proc/self/cgroup, "4:cpu,cpuacct:/docker/x"."""
    rests = (line.partition(":")[2].partition(":") for line in text.splitlines())
    return tuple(Membership(controllers, path) for controllers, _, path in rests)


def membership_text(roots: Roots, process: str = "self") -> str:
    """The text of /proc/PID/cgroup; empty if it can't be read."""
    return decode(read_bytes(roots.proc / process / "cgroup") or b"")


def cpu_stat_files(roots: Roots, process: str = "self") -> tuple[Path, ...]:
    """The cpu.stat files of a process's cgroup and of all groups above it, nearest first."""
    files: list[Path] = []
    for membership in parse_memberships(membership_text(roots, process)):
        path = "" if membership.outside else membership.path
        for top in hierarchy_roots(roots, membership, "cpu"):
            files += (place / "cpu.stat" for place in group_and_parents(top, path))
    return tuple(dict.fromkeys(file for file in files if os.path.isfile(file)))


def read_cpu_limits(roots: Roots) -> dict[str, int]:
    """The files with CPU limits of this process's cgroups and of their parents, and how long (µs)
    each limit has stopped its group so far."""
    limits = {}
    for stat in cpu_stat_files(roots):
        for name in ("cpu.max", "cpu.cfs_quota_us"):
            if (read_text(stat.with_name(name)) or "")[:1].isdigit():  # "max 100000", "-1": none
                stopped_us = parse_throttled_us(read_bytes(stat) or b"")
                limits[str(stat.with_name(name))] = stopped_us or 0
    return limits


def hierarchy_roots(roots: Roots, member: Membership, controller: str) -> tuple[Path, ...]:
    """Mount points of this hierarchy, if it is version 2 or has version 1's ``controller``; else
    empty."""
    mounts = roots.sys / "fs/cgroup"
    if member.controllers == "":
        return (mounts,)
    if controller in member.controllers.split(","):
        return tuple(dict.fromkeys((mounts / member.controllers, mounts / controller)))
    return ()


def group_and_parents(top: Path, path: str) -> tuple[Path, ...]:
    """The group's directory and its parents up to the hierarchy's ``top``, nearest first."""
    directory = top / path.strip("/")
    return tuple(
        place for place in (directory, *directory.parents) if place == top or top in place.parents
    )


def unified_root(top: Path) -> Path:
    """The top of version 2. If both versions are mounted (systemd's hybrid), it is in a
    subdirectory."""
    hybrid_root = top / "unified"
    is_hybrid = not _has_groups(top) and _has_groups(hybrid_root)
    return hybrid_root if is_hybrid else top


def _has_groups(top: Path) -> bool:
    return os.path.exists(top / "cgroup.controllers")


# Counters of each cgroup on some disks, and its delays: pressure, limits, CPU and memory.
#
# Documentation/admin-guide/cgroup-v2.rst: io.stat counts by whole disk, and a group's file includes
# the groups below it. Writes through the page cache are charged to the group that dirtied them.
# Documentation/accounting/psi.rst: the pressure files.


MAX_CGROUPS = 2000
"""Limit of groups that are read; each takes about 30 µs per reading."""
MAX_DETAILED = 30
"""Limit of groups whose pressure and limits are read: the groups with most I/O since the last
reading."""
QUIET_READINGS = 10
"""After this many readings without I/O, a group's details are no longer read."""


class CgroupReader:
    """Reads the counters repeatedly. Groups inside a container, a virtual machine or a unit count
    as part of that. To be used by one thread."""

    def __init__(self, disks: Sequence[str], roots: Roots) -> None:
        self.disks = tuple(dict.fromkeys(_disk_of(name, roots) for name in disks))
        device_numbers = {
            name: read_text(roots.sys / "class/block" / name / "dev") for name in self.disks
        }
        self._numbers = {number.strip(): name for name, number in device_numbers.items() if number}
        self._top = _top(roots.sys / "fs/cgroup")
        self._has_version_1 = (roots.sys / "fs/cgroup/blkio").is_dir()
        self._own_counts = OwnCounts()
        self._before: Mapping[str, int] = {}
        self._detailed: dict[str, int] = {}
        self._readings = 0

    @property
    def why_not(self) -> str:
        """Why I/O is not counted by cgroup, in words; "" if it is counted."""
        if self._top is None:
            why = "cgroup version 2 with the io controller is not mounted"
            return f"{why} (limits of version 1 are read)" if self._has_version_1 else why
        return "" if self._numbers else "the target is on no disk of this machine"

    def read(self) -> dict[str, int] | None:
        """All counters, by the keys of model/cgroups.py; ``None`` if there are none."""
        if self._top is None or not self._numbers:
            return None
        self._readings += 1
        began = time.monotonic_ns()
        places: dict[str, str] = {}
        totals: dict[tuple[str, str], tuple[int, ...]] = {}
        for path, place in _groups(self._top):
            text = read_bytes(f"{place}/io.stat")
            for disk, disk_totals in _io_stat(decode(text or b""), self._numbers):
                totals[path, disk] = disk_totals
                places[path] = place
        read_ns = time.monotonic_ns()
        counts = {
            counter_name(counter, path, disk): count
            for (path, disk), disk_counts in self._own_counts.feed(totals).items()
            for counter, count in zip(COUNTERS, disk_counts, strict=True)
        }
        self._choose_detailed(counts)
        for path in self._detailed:
            if path in places and path != "/":
                counts |= dict(self._details(path, places[path]))
        counts[counter_name(AT_NS, "/")] = (began + read_ns) // 2
        if not os.path.exists(f"{self._top}/cgroup.type"):
            counts[counter_name(ROOT_FLAG, "/")] = 1
        self._before = counts
        return counts

    def _choose_detailed(self, counts: Mapping[str, int]) -> None:
        """Read details of the groups with most I/O, and for a while longer of the groups chosen
        before."""
        totals: dict[str, int] = {}
        for name, count in counts.items():
            path = name.split(" ", 2)[2]
            totals[path] = totals.get(path, 0) + count - self._before.get(name, 0)
        busiest = sorted((path for path in totals if totals[path] > 0), key=lambda p: -totals[p])
        for path in busiest[:MAX_DETAILED]:
            self._detailed[path] = self._readings
        for path in [*self._detailed]:
            if path not in totals or self._readings - self._detailed[path] > QUIET_READINGS:
                del self._detailed[path]

    def _details(self, path: str, place: str) -> Iterator[tuple[str, int]]:
        for resource in ("io", "cpu", "memory"):
            for kind, total in _pressure(_text(f"{place}/{resource}.pressure")):
                yield counter_name(f"{resource}.{kind}", path), total
        for line in _text(f"{place}/cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == "usage_usec" and value.isdigit():
                yield counter_name(CPU_US, path), int(value)
        for name in ("memory.current", "memory.max"):
            value = _text(f"{place}/{name}").strip()
            if value.isdigit():
                yield counter_name(name, path), int(value)
        quota, _, period = _text(f"{place}/cpu.max").strip().partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            yield counter_name("cpu.max", path), 1000 * int(quota) // int(period)
        yield from _limits(_text(f"{place}/io.max"), path, self._numbers)


def _groups(top: Path) -> Iterator[tuple[str, str]]:
    """(path, directory) of the groups whose names users know. A group comes after the groups below
    it, so its counts are never lower than their sum."""
    waiting: list[tuple[str, str, bool]] = [("/", str(top), False)]
    groups = 0
    while waiting:
        path, place, expanded = waiting.pop()
        if expanded:
            yield path, place
            continue
        groups += 1
        if groups > MAX_CGROUPS:
            continue  # its I/O then counts for its parent
        waiting.append((path, place, True))
        if path != "/" and group_name(path).whole:
            continue
        try:
            # a directory's link count is the number of its subdirectories plus two
            names = () if os.stat(place).st_nlink == 2 else _directories(place)
        except OSError:
            continue
        above = "" if path == "/" else path
        waiting += ((f"{above}/{name}", f"{place}/{name}", False) for name in names)


def _directories(place: str) -> list[str]:
    with os.scandir(place) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _io_stat(text: str, numbers: Mapping[str, str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(disk, counts) for each requested disk, the counts in the order of COUNTERS; a line that
    lacks one is skipped."""
    for line in text.splitlines():
        number, _, rest = line.strip().partition(" ")
        disk = numbers.get(number)
        if disk is None:
            continue
        values = dict(field.partition("=")[::2] for field in rest.split())
        texts = [values.get(counter, "") for counter in COUNTERS]
        if all(value.isdigit() for value in texts):
            yield disk, tuple(map(int, texts))


def _pressure(text: str) -> Iterator[tuple[str, int]]:
    """("some" or "full", µs). The file says "Operation not supported" if PSI is off."""
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        total = parse_int(rest.rpartition("total=")[2])
        if kind in ("some", "full") and total is not None:
            yield kind, total


def _limits(text: str, path: str, numbers: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        number, _, rest = line.strip().partition(" ")
        disk = numbers.get(number)
        for field in rest.split() if disk else ():
            limit, _, value = field.partition("=")
            if limit in LIMITS and value.isdigit():
                yield counter_name(limit, path, disk or ""), int(value)


def _text(path: str) -> str:
    return decode(read_bytes(path) or b"")


def _disk_of(name: str, roots: Roots) -> str:
    """The disk of a partition; for a disk, the disk itself."""
    place = (roots.sys / "class/block" / name).resolve()
    return place.parent.name if (place / "partition").exists() else name


def _top(mounts: Path) -> Path | None:
    """Mount point of version 2 with the io controller."""
    place = unified_root(mounts)
    has_io = "io" in (read_text(place / "cgroup.controllers") or "").split()
    return place if has_io else None


# Paths of cgroups by their numbers, as the kernel gives them to BPF programs (kernfs ids).


# mount points: version 2 alone, version 2 beside version 1, and the version 1 hierarchy that counts
# I/O
MOUNTS = ("fs/cgroup", "fs/cgroup/unified", "fs/cgroup/blkio")
# struct file_handle with a kernfs id (exportfs.h, FILEID_KERNFS; Linux 5.5)
_HANDLE = struct.Struct("=IiQ")
_FILEID_KERNFS = 0xFE
_MAX_CACHED = 4096


class CgroupPaths:
    """Looks up and caches paths; "" for a group that is gone or not visible."""

    def __init__(self, roots: Roots) -> None:
        self._places = [roots.sys / mount for mount in MOUNTS]
        self._paths: dict[int, str] = {}
        self._mounts: list[tuple[Path, int]] | None = None
        self._libc: ctypes.CDLL | None = None

    def path(self, number: int) -> str:
        """The path below the mount point: "/system.slice/x.service"; "/" for the root."""
        path = self._paths.get(number)
        if path is None:
            if len(self._paths) >= _MAX_CACHED:
                self._paths.clear()
            path = self._paths[number] = self._look_up(number)
        return path

    def close(self) -> None:
        """Close the mount points. Idempotent."""
        mounts, self._mounts = self._mounts or [], None
        for _, fd in mounts:
            with contextlib.suppress(OSError):
                os.close(fd)

    def _look_up(self, number: int) -> str:
        if self._mounts is None:
            self._mounts = list(_open_directories(self._places))
        for place, mount in self._mounts:
            fd = self._open(mount, number)
            if fd < 0:
                continue
            try:
                path = os.readlink(f"/proc/self/fd/{fd}")
            except OSError:
                continue
            finally:
                os.close(fd)
            # the handle may be of another hierarchy, or the group was removed meanwhile
            top = os.path.realpath(place)
            if path == top or path.startswith(f"{top}/"):
                return path[len(top) :] or "/"
        return ""

    def _open(self, mount: int, number: int) -> int:
        if self._libc is None:
            self._libc = ctypes.CDLL(None, use_errno=True)
        handle = ctypes.create_string_buffer(_HANDLE.pack(8, _FILEID_KERNFS, number))
        try:
            flags = os.O_PATH | os.O_CLOEXEC
            return int(self._libc.open_by_handle_at(mount, handle, flags))
        except AttributeError:  # the C library lacks this function
            return -1


def _open_directories(places: list[Path]) -> list[tuple[Path, int]]:
    directories = []
    for place in places:
        with contextlib.suppress(OSError):
            directories.append((place, os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)))
    return directories


class CgroupLoad:
    """Returns with ``rates`` the I/O of the groups on ``disks`` since the previous reading. To be
    used by one thread."""

    def __init__(self, disks: Sequence[str], roots: Roots, least_s: float = 0.9) -> None:
        self._reader = CgroupReader(disks, roots)
        self._min_interval_s = least_s
        self._at = 0.0
        self._before: Mapping[str, int] | None = None
        self._rates: tuple[GroupRates, ...] | None = None

    @property
    def disks(self) -> tuple[str, ...]:
        return self._reader.disks

    @property
    def why_not(self) -> str:
        """Why I/O is not counted by cgroup, in words; "" if it is counted."""
        return self._reader.why_not

    def rates(self) -> tuple[GroupRates, ...] | None:
        """The groups with I/O, the busiest first; ``None`` until there are two readings."""
        now = time.monotonic()
        if self.why_not or (self._at and now - self._at < self._min_interval_s):
            return self._rates
        counts = self._reader.read()
        if self._at:
            self._rates = group_rates(counts, self._before, now - self._at)
        self._at, self._before = now, counts
        return self._rates
