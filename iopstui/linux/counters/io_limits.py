"""Limits on a cgroup's I/O, the waiting time that iocost added, and the limits that any group
reached.

Version 2 is hierarchical: limits of groups above apply, too. The throttling of version 1 is not:
only a group's own limit applies, whatever the groups above it have (block/blk-throttle.c,
throtl_pd_init; Documentation/admin-guide/cgroup-v1/blkio-controller.rst).

``ReachedLimits`` looks at any group, not only at this process's. In version 2 counts and limits of
a group include all groups below it; in version 1 they are for each group alone
(Documentation/admin-guide/cgroup-v1/blkio-controller.rst)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from iopstui.linux.counters.cgroup import (
    Membership,
    group_and_parents,
    hierarchy_roots,
    membership_text,
    parse_memberships,
    unified_root,
)
from iopstui.linux.kernel_files import Roots, parse_int, read_text
from iopstui.model.answer.use import TOP_GROUP, LimitUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.cgroups import group_name
from iopstui.model.findings.conditions import (
    READ_BYTES,
    READ_IOPS,
    WRITE_BYTES,
    WRITE_IOPS,
    IoLimit,
)
from iopstui.text import printable

_NUMBER = re.compile(r"[0-9]{1,9}:[0-9]{1,9}")
_KINDS = (READ_IOPS, WRITE_IOPS, READ_BYTES, WRITE_BYTES)
VERSION_1_FILES = {
    "blkio.throttle.read_iops_device": READ_IOPS,
    "blkio.throttle.write_iops_device": WRITE_IOPS,
    "blkio.throttle.read_bps_device": READ_BYTES,
    "blkio.throttle.write_bps_device": WRITE_BYTES,
}


@dataclass(frozen=True, slots=True)
class CgroupLimits:
    """Limits by a whole disk's "major:minor", sorted by kind and the tightest first; how long
    iocost has made the group wait so far (µs); and the disks with iocost. ``in_top``: this is the
    machine's top cgroup, whose I/O iocost exempts."""

    limits: Mapping[str, tuple[IoLimit, ...]] = field(default_factory=dict)
    cost_wait_us: Mapping[str, int] = field(default_factory=dict)
    iocost_disks: frozenset[str] = frozenset()
    in_top: bool = False


@dataclass(frozen=True, slots=True)
class _Group:
    """A cgroup. ``root``: it is the machine's root group; a container's root is an ordinary
    group."""

    name: str
    place: str
    root: bool


def parse_io_max(text: str) -> Iterator[tuple[str, str, int]]:
    """(device, kind, value) of each limit in io.max, "254:0 rbps=max wbps=1048576 riops=120
    wiops=max"."""
    for line in text.splitlines():
        number, _, rest = line.strip().partition(" ")
        for part in rest.split() if _NUMBER.fullmatch(number) else ():
            kind, _, value = part.partition("=")
            limit = parse_int(value) or 0
            if kind in _KINDS and limit > 0:
                yield number, kind, limit


def parse_throttle(text: str) -> Iterator[tuple[str, int]]:
    """(device, value) of each line of blkio.throttle.*_device, "254:0 1048576"."""
    for line in text.splitlines():
        number, _, value = line.strip().partition(" ")
        limit = parse_int(value.strip()) or 0
        if _NUMBER.fullmatch(number) and limit > 0:
            yield number, limit


def parse_cost_wait(text: str) -> dict[str, int]:
    """The value cost.wait of io.stat in µs by device; it exists only with
    blk_cgroup.blkcg_debug_stats.

    Some kernels left out the end of a line, or wrote "(unknown)" for a hidden path."""
    waits: dict[str, int] = {}
    number: str | None = None
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals:
            number = word if _NUMBER.fullmatch(word) else None
        elif name == "cost.wait" and number is not None:
            wait = parse_int(value)
            if wait is not None and wait >= 0:
                waits[number] = wait
    return waits


def parse_cost_qos(text: str) -> frozenset[str]:
    """Devices with iocost in io.cost.qos of the root, "254:0 enable=1 ctrl=user rpct=..."."""
    lines = (line.split() for line in text.splitlines())
    return frozenset(
        fields[0]
        for fields in lines
        if fields and _NUMBER.fullmatch(fields[0]) and "enable=1" in fields[1:]
    )


class IoLimits:
    """Reads the limits repeatedly; looks up the cgroup paths again when they change."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._text: str | None = None
        self._v2_groups: tuple[_Group, ...] = ()
        self._v1_groups: tuple[_Group, ...] = ()

    def read(self) -> CgroupLimits:
        """Read the current limits. Never fails: an unreadable file counts as no limit."""
        text = membership_text(self._roots)
        if text != self._text:
            self._text = text
            self._find_groups(
                [membership for membership in parse_memberships(text) if not membership.outside]
            )
        limits: dict[str, list[IoLimit]] = {}
        for number, limit in (*self._v2_limits(), *self._v1_limits()):
            limits.setdefault(number, []).append(limit)
        sorted_ = {number: _sorted(some) for number, some in limits.items()}
        in_top = bool(self._v2_groups) and self._v2_groups[0].root
        return CgroupLimits(sorted_, self._cost_waits(), self._iocost_disks(), in_top)

    def _find_groups(self, members: list[Membership]) -> None:
        unified: list[_Group] = []
        own_groups: list[_Group] = []
        for membership in members:
            for top in hierarchy_roots(self._roots, membership, "blkio"):
                if membership.controllers == "":
                    top = unified_root(top)
                    unified += (
                        _group(top, place) for place in group_and_parents(top, membership.path)
                    )
                elif os.path.isdir(top):
                    # a container may see only its own group, mounted as the top
                    place = top / membership.path.strip("/")
                    place = place if os.path.isdir(place) else top
                    own_groups.append(_group(top, place))
        # the second name of a hierarchy of version 1 is a link to the first
        self._v2_groups, self._v1_groups = tuple(unified), tuple(own_groups[:1])

    def _v2_limits(self) -> Iterator[tuple[str, IoLimit]]:
        for group in self._v2_groups:
            for number, kind, value in parse_io_max(read_text(f"{group.place}/io.max") or ""):
                yield number, IoLimit(group.name, "io.max", kind, value)

    def _v1_limits(self) -> Iterator[tuple[str, IoLimit]]:
        for group in self._v1_groups:
            for file, kind in VERSION_1_FILES.items():
                for number, value in parse_throttle(read_text(f"{group.place}/{file}") or ""):
                    yield number, IoLimit(group.name, file, kind, value)

    def _iocost_disks(self) -> frozenset[str]:
        """Disks with iocost; unknown in a container, where the root can't be seen."""
        if not self._v2_groups or not self._v2_groups[-1].root:
            return frozenset()
        return parse_cost_qos(read_text(f"{self._v2_groups[-1].place}/io.cost.qos") or "")

    def _cost_waits(self) -> Mapping[str, int]:
        """The waits of the nearest group that I/O is accounted to. The machine's root does not
        count: iocost exempts its I/O, and books waits of other groups there."""
        for group in self._v2_groups:
            text = read_text(f"{group.place}/io.stat")
            if text is not None:
                return {} if group.root else parse_cost_wait(text)
        return {}


def _group(top: Path, place: Path) -> _Group:
    name = printable("/" + "/".join(place.parts[len(top.parts) :]))
    return _Group(name, str(place), not os.path.exists(place / "cgroup.type"))


def _sorted(limits: list[IoLimit]) -> tuple[IoLimit, ...]:
    return tuple(sorted(limits, key=lambda limit: (_KINDS.index(limit.kind), limit.value)))


NEAR = 0.8
"""In a single second, a group that is held back may use as little as this share of its limit."""
LOOK_EVERY = 8
"""After this many readings all groups are checked again for limits."""
MAX_GROUPS = 2000
_VERSION_2_COUNTERS = {READ_IOPS: "rios", WRITE_IOPS: "wios", READ_BYTES: "rbytes",
                       WRITE_BYTES: "wbytes"}  # fmt: skip
_VERSION_1_COUNTERS = {
    READ_IOPS: ("io_serviced", "Read"), WRITE_IOPS: ("io_serviced", "Write"),
    READ_BYTES: ("io_service_bytes", "Read"), WRITE_BYTES: ("io_service_bytes", "Write"),
}  # fmt: skip
_TEXTS = {READ_IOPS: "reads/s", WRITE_IOPS: "writes/s", READ_BYTES: "MiB/s read",
          WRITE_BYTES: "MiB/s written"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Limit:
    place: str
    group: str
    file: str
    number: str
    kind: str
    value: int


class ReachedLimits:
    """Finds limits that are reached: ``read`` compares the I/O of groups since the last reading
    with their limits."""

    def __init__(self, roots: Roots) -> None:
        mounts = roots.sys / "fs/cgroup"
        unified = unified_root(mounts)
        self._unified = unified if (unified / "cgroup.controllers").exists() else None
        self._blkio = mounts / "blkio"
        self._limits: tuple[_Limit, ...] = ()
        self._before: dict[_Limit, tuple[int, float]] = {}
        self._readings = 0

    def read(self, devices: Mapping[str, BlockDevice]) -> tuple[LimitUse, ...]:
        """The limits that are reached or nearly reached; none at the first reading."""
        if self._readings % LOOK_EVERY == 0:
            self._limits = tuple(self._find())
        self._readings += 1
        # note a time for each count: the first reading of a file takes long, and with one time for
        # all counts a share was 5 % too small
        counts = {limit: (count, time.monotonic())
                  for limit in self._limits if (count := _count(limit)) is not None}  # fmt: skip
        before, self._before = self._before, counts
        names = {f"{device.major}:{device.minor}": name for name, device in devices.items()}
        done = {
            limit: (count - before[limit][0]) / (limit.value * (at - before[limit][1]))
            for limit, (count, at) in counts.items()
            if limit in before and limit.number in names and limit.value
        }
        return tuple(
            LimitUse(names[limit.number], limit.group, _text(limit), limit.file, share)
            for limit, share in done.items()
            if share >= NEAR
        )

    @property
    def outer_groups(self) -> bool:
        """Whether the top visible group is inside other groups, whose limits cannot be read (only
        the machine's top group has no cgroup.type)."""
        return self._unified is not None and (self._unified / "cgroup.type").exists()

    @property
    def readable(self) -> bool:
        """Whether a cgroup hierarchy with I/O limits is mounted, of version 1 or 2."""
        controllers = read_text(self._unified / "cgroup.controllers") if self._unified else None
        return "io" in (controllers or "").split() or os.path.isdir(self._blkio)

    def _find(self) -> Iterator[_Limit]:
        if self._unified is not None:
            for place, path in _groups(self._unified):
                for number, kind, value in parse_io_max(read_text(f"{place}/io.max") or ""):
                    yield _Limit(place, _name(path), "io.max", number, kind, value)
        if os.path.isdir(self._blkio):
            for place, path in _groups(self._blkio):
                for file, kind in VERSION_1_FILES.items():
                    for number, value in parse_throttle(read_text(f"{place}/{file}") or ""):
                        yield _Limit(place, _name(path), file, number, kind, value)


def _groups(top: Path) -> Iterator[tuple[str, str]]:
    """(directory, path) of a hierarchy's top and of all groups below it."""
    for number, (place, names, _) in enumerate(os.walk(top)):
        if number > MAX_GROUPS:
            names.clear()
        yield place, "/" + os.path.relpath(place, top).removeprefix(".")


def _name(path: str) -> str:
    return TOP_GROUP if path == "/" else printable(group_name(path).text)


def _count(limit: _Limit) -> int | None:
    if limit.file == "io.max":
        name = _VERSION_2_COUNTERS[limit.kind]
        for line in (read_text(f"{limit.place}/io.stat") or "").splitlines():
            number, _, rest = line.partition(" ")
            if number == limit.number:
                return parse_int(dict(w.partition("=")[::2] for w in rest.split()).get(name, ""))
        return None
    file, side = _VERSION_1_COUNTERS[limit.kind]
    for line in (read_text(f"{limit.place}/blkio.throttle.{file}") or "").splitlines():
        words = line.split()
        if words[:2] == [limit.number, side] and len(words) == 3:
            return parse_int(words[2])
    return None


def _text(limit: _Limit) -> str:
    value = limit.value / (1 << 20) if limit.kind in (READ_BYTES, WRITE_BYTES) else limit.value
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{digits} {_TEXTS[limit.kind]}"
