"""The free space of file systems that several hosts share and fill together.

Each host leaves 5 % of its file systems free, but counts only its own files. This module checks
whether the files of all hosts together still fit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iopstui.format import first_of, size
from iopstui.linux.devices.target import mount_of
from iopstui.linux.devices.usage.mounts import MountEntry, read_own_mounts
from iopstui.linux.kernel_files import Roots
from iopstui.safety.journal import boot_id
from iopstui.safety.scratch import is_scratch_name, usable_bytes
from iopstui.text import printable

Object = dict[str, Any]
MAX_NAMED = 3
MAX_BYTES = 1 << 80
"""A larger size in a host's report is not accepted."""
# file systems that several hosts can mount: their source names the server, or else the size is
# compared, too
NETWORK = ("nfs", "cifs", "smb3", "ceph", "lustre", "glusterfs", "sshfs", "beegfs", "gpfs", "9p",
           "virtiofs", "ocfs2", "gfs2", "orangefs", "afs", "wekafs")  # fmt: skip


_FIELDS = {"system": str, "name": str, "bytes": int, "room": int, "shared": bool, "size": int,
           "free": int, "mark": str}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpaceNeed:
    """What a host will create in a file system: ``bytes``, of ``available`` ones. ``system`` is
    equal on all hosts that mounted the same file system under the same name; ``name`` is for
    messages. ``shared``: other hosts can mount it, perhaps under another name. It has ``size`` and
    ``free`` bytes. ``mark`` is the name of the scratch directory in it ("": none)."""

    system: str
    name: str
    bytes: int
    available: int
    shared: bool = False
    size: int = 0
    free: int = 0
    mark: str = ""

    def as_object(self) -> Object:
        return {
            "system": self.system, "name": self.name, "bytes": self.bytes, "room": self.available,
            "shared": self.shared, "size": self.size, "free": self.free, "mark": self.mark,
        }  # fmt: skip


def measure_space_needs(layout: Mapping[str, int], roots: Roots) -> list[SpaceNeed]:
    """The space that each place (a scratch directory) needs for the bytes laid out there. Raises
    UsageError if a place cannot be examined."""
    mounts = read_own_mounts(roots)
    return [
        _space_need(directory, needed, mounts) for directory, needed in layout.items() if needed
    ]


def _space_need(directory: str, needed: int, mounts: tuple[MountEntry, ...]) -> SpaceNeed:
    available = usable_bytes(Path(directory))
    number = os.stat(directory).st_dev
    entry = mount_of(os.path.realpath(directory), number, mounts)
    local_id = f"{boot_id()} {number}"
    if entry is None:
        return SpaceNeed(local_id, directory, needed, available)
    space = os.statvfs(directory)
    all_bytes = space.f_blocks * space.f_frsize
    shared = shared_name(entry, all_bytes)
    name = Path(directory).name
    return SpaceNeed(
        shared or local_id, f"{entry.source} ({entry.fstype})", needed, available, bool(shared),
        all_bytes, space.f_bavail * space.f_frsize, name if is_scratch_name(name) else "",
    )  # fmt: skip


def shared_name(entry: MountEntry, size_bytes: int) -> str:
    """The name that all hosts give a file system that several of them can mount; "" for a local one
    (its UUID proves nothing, because disks are copied)."""
    kind = entry.fstype.removeprefix("fuse.").rstrip("4") or entry.fstype
    if ":/" in entry.source or entry.source.startswith("//"):
        return f"{kind} {entry.source}"
    return f"{kind} {entry.source} {size_bytes}" if kind in NETWORK else ""


def parse_space_needs(row: Mapping[str, Any]) -> list[SpaceNeed] | None:
    rows = row.get("needs")
    if not isinstance(rows, list):
        return None
    needs = []
    for entry in rows:
        if not isinstance(entry, dict):
            return None
        fields: dict[str, Any] = {name: entry.get(name) for name in _FIELDS}
        if any(type(fields[name]) is not kind for name, kind in _FIELDS.items()):
            return None
        if any(kind is int and not 0 <= fields[name] < MAX_BYTES for name, kind in _FIELDS.items()):
            return None
        mark = fields["mark"] if is_scratch_name(fields["mark"]) else ""
        needs.append(SpaceNeed(
            fields["system"], printable(fields["name"]), fields["bytes"], fields["room"],
            fields["shared"], fields["size"], fields["free"], mark,
        ))  # fmt: skip
    return needs


def overcommit_messages(
    hosts: Mapping[str, Sequence[SpaceNeed]], is_certain: bool = True
) -> Iterator[str]:
    """Messages about file systems that are too small for the files of several hosts.
    ``is_certain``: the hosts are known to share it."""
    systems: dict[str, dict[str, list[SpaceNeed]]] = {}
    for host, needs in hosts.items():
        for need in needs:
            systems.setdefault(need.system, {}).setdefault(host, []).append(need)
    for sharers in systems.values():
        all_needs = [need for needs in sharers.values() for need in needs]
        needed = sum(need.bytes for need in all_needs)
        available = min(need.available for need in all_needs)
        if len(sharers) > 1 and needed > available:
            host_list = first_of([printable(name) for name in sharers], MAX_NAMED)
            system_names = [*dict.fromkeys(need.name for need in all_needs)]
            share = "share" if is_certain else "may share"
            system = system_names[0]
            if len(system_names) > 1:
                system = f"one file system ({', '.join(system_names[:MAX_NAMED])})"
            yield (
                f"{host_list} {share} {system}: together they would create {size(needed)} of files "
                f"there, but only {size(available)} may be used (5 % stays free)"
            )


# Detect that two mounts are the same file system, such as one export under two names.
#
# Equal names show that file systems are the same, but different names do not show that they differ.
# So if the files of all hosts would not fit into one of them, the hosts look for each other's
# scratch directories. Their names are random and new, so a host that sees one is on the same file
# system. The directories are made and removed anyway; nothing else is written. Not seeing one
# proves nothing, because the same file system may be mounted at another directory. So file systems
# of equal size and nearly equal free space then count as one, unless the user says otherwise.


MAX_SEARCHED_MARKS = 256
"""Limit for the names that a host is asked to look for."""
SIZE_TOLERANCE, FREE_TOLERANCE = 0.001, 0.01
"""By these shares, the size and the free space of one file system may differ between hosts: servers
round, and others write meanwhile."""
Needs = Mapping[str, Sequence[SpaceNeed]]


def find_marks(directories: Iterable[str], names: Sequence[str]) -> list[str]:
    """The ``names`` of scratch directories that exist beside one of ``directories``. Each name is
    looked up by itself, because a listing may come from the mount's caches."""
    present = []
    for name in names[:MAX_SEARCHED_MARKS]:
        if is_scratch_name(name):
            siblings = (Path(directory).parent / name for directory in directories)
            present += [name] if any(map(os.path.lexists, siblings)) else []
    return present


def marks_to_find(hosts: Needs) -> dict[str, list[str]]:
    """The names that each host must look for, by host. For each file system that several hosts can
    mount, one host looks for the names created on the others: if it finds one, the two are the
    same. Empty if all files would fit even into a single file system."""
    first: dict[str, tuple[str, SpaceNeed]] = {}
    for host, need in _mountable(hosts):
        if need.mark:
            first.setdefault(need.system, (host, need))
    combined = {
        host: [replace(need, system="") for need in needs if need.shared]
        for host, needs in hosts.items()
    }
    if len(first) < 2 or not list(overcommit_messages(combined)):
        return {}
    marks: dict[str, list[str]] = {}
    for system, (host, _) in first.items():
        other_marks = [need.mark for other, (_, need) in first.items() if other != system]
        marks.setdefault(host, []).extend(other_marks[:MAX_SEARCHED_MARKS])
    return marks


def join_shared(
    hosts: Needs, seen_marks: Mapping[str, Sequence[str]]
) -> dict[str, list[SpaceNeed]]:
    """The needs, with one ``system`` for file systems that are the same, because a host saw another
    host's mark beside its own. If that host has several file systems, all of them count as that
    one."""
    systems = _EqualNames()
    marks = {need.mark: need.system for _, need in _mountable(hosts) if need.mark}
    for host, names in seen_marks.items():
        host_systems = [need.system for need in hosts.get(host, ()) if need.shared]
        for name in names:
            for system in host_systems if name in marks else ():
                systems.join(marks[name], system)
    return _with_canonical_names(hosts, systems)


def join_similar(hosts: Needs) -> dict[str, list[SpaceNeed]]:
    """The needs, with one ``system`` for file systems of about equal size and free space."""
    systems = _EqualNames()
    by_system = {need.system: need for _, need in _mountable(hosts)}
    ordered = sorted(by_system.values(), key=lambda need: (need.size, need.free))
    for index, need in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other.size - need.size > SIZE_TOLERANCE * other.size:
                break
            if abs(other.free - need.free) <= FREE_TOLERANCE * other.size:
                systems.join(need.system, other.system)
    return _with_canonical_names(hosts, systems)


def _mountable(hosts: Needs) -> Iterator[tuple[str, SpaceNeed]]:
    return ((host, need) for host, needs in hosts.items() for need in needs if need.shared)


def _with_canonical_names(hosts: Needs, systems: _EqualNames) -> dict[str, list[SpaceNeed]]:
    return {
        host: [replace(need, system=systems.canonical(need.system)) for need in needs]
        for host, needs in hosts.items()
    }


class _EqualNames:
    """Groups of names that mean the same."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def canonical(self, name: str) -> str:
        """The name that stands for all names of the group."""
        while name in self._parents:
            name = self._parents[name]
        return name

    def join(self, first: str, second: str) -> None:
        """Note that both names mean the same file system."""
        first, second = self.canonical(first), self.canonical(second)
        if first != second:
            self._parents[first] = second
