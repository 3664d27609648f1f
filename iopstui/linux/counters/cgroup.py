"""This process's cgroups, and whether one of them throttles iopstui and its fio.

Sources: Documentation/admin-guide/cgroup-v2.rst (cpu.stat throttled_usec, cpu.max) and
Documentation/scheduler/sched-bwc.rst (cgroup v1: cpu.stat throttled_time, in ns).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import decode, read_bytes


@dataclass(frozen=True, slots=True)
class Membership:
    """The group that this process is in, of one hierarchy: a line of /proc/self/cgroup.

    ``controllers`` is empty for version 2. ``path`` begins at the root of the cgroup namespace.
    """

    controllers: str
    path: str

    @property
    def outside(self) -> bool:
        """True if the group is outside of this cgroup namespace ("/../x"): it can't be seen from
        here, and those that can be are others'."""
        return ".." in self.path.split("/")


def parse_throttled_us(data: bytes) -> int | None:
    """Microseconds throttled so far, from cpu.stat of either version; None if it has none."""
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
    """/proc/PID/cgroup; empty if it can't be read."""
    return decode(read_bytes(roots.proc / process / "cgroup") or b"")


def cpu_stat_files(roots: Roots, process: str = "self") -> tuple[Path, ...]:
    """cpu.stat of a process's cgroup and of every one above it, nearest first."""
    files: list[Path] = []
    for membership in parse_memberships(membership_text(roots, process)):
        path = "" if membership.outside else membership.path
        for top in hierarchy_roots(roots, membership, "cpu"):
            files += (place / "cpu.stat" for place in group_and_parents(top, path))
    return tuple(dict.fromkeys(file for file in files if os.path.isfile(file)))


def hierarchy_roots(roots: Roots, member: Membership, controller: str) -> tuple[Path, ...]:
    """Mount points of the hierarchy, version 2 or ``controller``'s; empty if there is none."""
    mounts = roots.sys / "fs/cgroup"
    if member.controllers == "":
        return (mounts,)
    if controller in member.controllers.split(","):
        return tuple(dict.fromkeys((mounts / member.controllers, mounts / controller)))
    return ()


def group_and_parents(top: Path, path: str) -> tuple[Path, ...]:
    """The group's directory and those above it up to the hierarchy's ``top``, nearest first."""
    directory = top / path.strip("/")
    return tuple(
        place for place in (directory, *directory.parents) if place == top or top in place.parents
    )


def unified_root(top: Path) -> Path:
    """Version 2 has a place of its own where both versions are mounted (systemd's hybrid)."""
    hybrid_root = top / "unified"
    is_hybrid = not _has_groups(top) and _has_groups(hybrid_root)
    return hybrid_root if is_hybrid else top


def _has_groups(top: Path) -> bool:
    return os.path.exists(top / "cgroup.controllers")
