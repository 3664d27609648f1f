"""Counters of each cgroup on some disks, and what holds it up: pressure, limits, CPU and memory.

Documentation/admin-guide/cgroup-v2.rst: io.stat counts by whole disk, and a group's file has what
the groups below it do, too. Writes through the page cache are charged to the group that dirtied
them. Documentation/accounting/psi.rst: the pressure files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from iopstui.linux.counters.cgroup import unified_root
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import decode, parse_int, read_bytes, read_text
from iopstui.model.cgroups.names import OwnCounts, group_name
from iopstui.model.cgroups.rates import AT_NS, COUNTERS, CPU_US, LIMITS, ROOT_FLAG, counter_name

MAX_CGROUPS = 2000
"""Groups that are looked at; a reading takes about 30 µs of each."""
MAX_DETAILED = 30
"""Groups whose pressure and limits are read: those that did most since the reading before."""
QUIET_READINGS = 10
"""A group that does nothing for so many readings is no longer looked at closely."""


class CgroupReader:
    """Reads the counters repeatedly. Groups inside a container, a virtual machine or a unit are
    part of it. For one thread."""

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
        """Why nothing is counted by cgroup, in words; "" if it is."""
        if self._top is None:
            why = "cgroup version 2 with the io controller is not mounted"
            return f"{why} (limits of version 1 are looked at)" if self._has_version_1 else why
        return "" if self._numbers else "the target is on no disk of this machine"

    def read(self) -> dict[str, int] | None:
        """All counters, by model/cgroups/rates.py's keys; ``None`` where there are none."""
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
        """Look closely at the groups that did most, and for a while longer at those before."""
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
    """(path, directory) of the groups that people know by name. A group comes after those below it,
    so its counts are never lower than theirs together."""
    waiting: list[tuple[str, str, bool]] = [("/", str(top), False)]
    groups = 0
    while waiting:
        path, place, expanded = waiting.pop()
        if expanded:
            yield path, place
            continue
        groups += 1
        if groups > MAX_CGROUPS:
            continue  # what it does is then the group's above it
        waiting.append((path, place, True))
        if path != "/" and group_name(path).whole:
            continue
        try:
            # a directory's link count is that of the directories in it, and two
            names = () if os.stat(place).st_nlink == 2 else _directories(place)
        except OSError:
            continue
        above = "" if path == "/" else path
        waiting += ((f"{above}/{name}", f"{place}/{name}", False) for name in names)


def _directories(place: str) -> list[str]:
    with os.scandir(place) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _io_stat(text: str, numbers: Mapping[str, str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(disk, COUNTERS) of the requested disks; a line that lacks a counter is skipped."""
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
    """("some" or "full", µs). The file says "Operation not supported" where PSI is off."""
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
    """The disk of a partition; a disk is its own."""
    place = (roots.sys / "class/block" / name).resolve()
    return place.parent.name if (place / "partition").exists() else name


def _top(mounts: Path) -> Path | None:
    """Mount point of version 2 with the io controller."""
    place = unified_root(mounts)
    has_io = "io" in (read_text(place / "cgroup.controllers") or "").split()
    return place if has_io else None
