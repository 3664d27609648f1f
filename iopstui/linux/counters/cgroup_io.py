"""Reads and writes of each cgroup on some disks (io.stat of cgroup version 2).

Documentation/admin-guide/cgroup-v2.rst: io.stat counts by whole disk, and a group's file has what
the groups below it do, too. Writes through the page cache are charged to the group that dirtied
them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.counters.cgroup import unified_root
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import parse_int, read_text
from iopstui.text import printable

COUNTERS = ("rios", "wios", "rbytes", "wbytes")
Counts = tuple[int, ...]
MAX_CGROUPS = 5000
"""Groups that are looked at; a reading takes about 20 µs of each."""


@dataclass(frozen=True, slots=True)
class CgroupRates:
    """I/Os and bytes per second of a group's own processes, without the groups below it."""

    name: str
    reads_s: float
    writes_s: float
    read_bytes_s: float
    write_bytes_s: float


def parse_io_stat(text: str, numbers: frozenset[str]) -> Counts:
    """The sums of COUNTERS over the disks with these "major:minor"."""
    total = [0] * len(COUNTERS)
    for line in text.splitlines():
        number, _, rest = line.strip().partition(" ")
        if number not in numbers:
            continue
        values = dict(word.partition("=")[::2] for word in rest.split())
        for index, name in enumerate(COUNTERS):
            total[index] += parse_int(values.get(name, "")) or 0
    return tuple(total)


class CgroupIo:
    """Rates of cgroups. ``rates`` returns the I/O of the groups on ``disks`` since the previous
    reading. For one thread; call it only while it is displayed."""

    def __init__(self, disks: Sequence[str], roots: Roots, least_s: float = 0.9) -> None:
        self.disks = tuple(dict.fromkeys(_disk_of(name, roots) for name in disks))
        found = (read_text(roots.sys / "class/block" / name / "dev") for name in self.disks)
        self._numbers = frozenset(number.strip() for number in found if number)
        self._top = _top(roots.sys / "fs/cgroup")
        self._least_s = least_s
        self._at = 0.0
        self._before: Mapping[str, Counts] = {}
        self._rates: list[CgroupRates] | None = None

    @property
    def there(self) -> bool:
        """Whether this kernel counts by cgroup and disk."""
        return self._top is not None and bool(self._numbers)

    def rates(self) -> list[CgroupRates] | None:
        """The busiest first; ``None`` until two readings are made."""
        now = time.monotonic()
        if not self.there or (self._at and now - self._at < self._least_s):
            return self._rates
        counts = dict(self._read())
        if self._at:
            self._rates = _difference(counts, self._before, now - self._at)
        self._at, self._before = now, counts
        return self._rates

    def _read(self) -> Iterator[tuple[str, Counts]]:
        assert self._top is not None
        for seen, (place, _, files) in enumerate(os.walk(self._top)):
            if seen == MAX_CGROUPS:
                return
            if "io.stat" in files:
                name = "/" + os.path.relpath(place, self._top).removeprefix(".")
                text = read_text(Path(place) / "io.stat")
                if text is not None:
                    yield name, parse_io_stat(text, self._numbers)


def own(grown: Mapping[str, Counts]) -> dict[str, Counts]:
    """I/O of each group without the groups below it. I/O of a group that has gone stays with its
    parent."""
    found = {name: list(values) for name, values in grown.items()}
    for name, values in grown.items():
        above = os.path.dirname(name)
        if name != "/" and above in found:
            found[above] = [a - b for a, b in zip(found[above], values, strict=True)]
    return {name: tuple(values) for name, values in found.items()}


def _difference(
    now: Mapping[str, Counts], before: Mapping[str, Counts], seconds: float
) -> list[CgroupRates]:
    none = (0,) * len(COUNTERS)
    grown = {
        name: tuple(a - b for a, b in zip(values, before.get(name, none), strict=True))
        for name, values in now.items()
    }
    found = [
        CgroupRates(printable(name), *(one / seconds for one in values))
        for name, values in own({name: g for name, g in grown.items() if min(g) >= 0}).items()
        # the files are read one after another: a group may be ahead of the one above it
        if any(values) and min(values) >= 0
    ]
    return sorted(found, key=lambda one: (-one.reads_s - one.writes_s, one.name))


def _disk_of(name: str, roots: Roots) -> str:
    """The disk of a partition; a disk is its own."""
    place = (roots.sys / "class/block" / name).resolve()
    return place.parent.name if (place / "partition").exists() else name


def _top(mounts: Path) -> Path | None:
    """Mount point of version 2 with the io controller."""
    place = unified_root(mounts)
    there = "io" in (read_text(place / "cgroup.controllers") or "").split()
    return place if there else None
