"""Limits that cgroups have reached: of any group, not only this process's (io_limits.py). In
version 2 counts and limits of a group include all groups below it; in version 1 they are for each
group alone (Documentation/admin-guide/cgroup-v1/blkio-controller.rst)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.counters.cgroup import unified_root
from iopstui.linux.counters.io_limits import VERSION_1_FILES, parse_io_max, parse_throttle
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import parse_int, read_text
from iopstui.model.answer.use import TOP_GROUP, LimitUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.cgroups.names import group_name
from iopstui.model.findings.conditions import READ_BYTES, READ_IOPS, WRITE_BYTES, WRITE_IOPS
from iopstui.text import printable

NEAR = 0.8
"""In a single second, a group that is held back may do as little as this share of its limit."""
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
    """``read`` compares the I/O of groups since the last reading with their limits."""

    def __init__(self, roots: Roots) -> None:
        mounts = roots.sys / "fs/cgroup"
        unified = unified_root(mounts)
        self._unified = unified if (unified / "cgroup.controllers").exists() else None
        self._blkio = mounts / "blkio"
        self._limits: tuple[_Limit, ...] = ()
        self._before: dict[_Limit, tuple[int, float]] = {}
        self._readings = 0

    def read(self, devices: Mapping[str, BlockDevice]) -> tuple[LimitUse, ...]:
        """The limits that are nearly reached; none at the first reading."""
        if self._readings % LOOK_EVERY == 0:
            self._limits = tuple(self._find())
        self._readings += 1
        # a time for each count: the first reading of a file takes long, and one time for all made
        # a share 5 % too small
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
        """Whether the top visible group is inside others, whose limits cannot be read (only the
        machine's top group has no cgroup.type)."""
        return self._unified is not None and (self._unified / "cgroup.type").exists()

    @property
    def readable(self) -> bool:
        """Whether a hierarchy with limits of I/O is mounted, of version 2 or 1."""
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
    """(directory, path) of all groups below a hierarchy's top."""
    for number, (place, names, _) in enumerate(os.walk(top)):
        if number > MAX_GROUPS:
            names.clear()
        yield place, "/" + os.path.relpath(place, top).removeprefix(".")


def _name(path: str) -> str:
    return TOP_GROUP if path == "/" else printable(group_name(path).text)


def _count(limit: _Limit) -> int | None:
    """The counter that belongs to a limit."""
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
