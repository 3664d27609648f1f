"""Detect that two mounts are the same file system, such as one export under two names.

A name (free_space.py) can show that file systems are the same, but not that they differ. So if the
files of all hosts would not fit into one of them, hosts look for each other's scratch directories.
Their random names were made just now: a host that sees one is on the same file system. The
directories are made and removed anyway; nothing else is written. Not seeing one proves nothing (the
same file system may be mounted at another directory). So file systems of equal size and nearly
equal free space are then taken for one, unless the user says otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from iopstui.features.fleet.hosts.free_space import SpaceNeed, overcommit_messages
from iopstui.safety.scratch import is_scratch_name

MAX_SEARCHED_MARKS = 256
"""Names that a host is asked to look for."""
SIZE_TOLERANCE, FREE_TOLERANCE = 0.001, 0.01
"""Of its size two file systems may differ: servers round it, and others write meanwhile."""
Needs = Mapping[str, Sequence[SpaceNeed]]


def find_marks(directories: Iterable[str], names: Sequence[str]) -> list[str]:
    """The ``names`` of scratch directories that exist beside one of ``directories``. Each name is
    looked up, because a listing may be as old as the mount's caches allow."""
    present = []
    for name in names[:MAX_SEARCHED_MARKS]:
        if is_scratch_name(name):
            siblings = (Path(directory).parent / name for directory in directories)
            present += [name] if any(map(os.path.lexists, siblings)) else []
    return present


def marks_to_find(hosts: Needs) -> dict[str, list[str]]:
    """Which host is to look for which names: one host of each file system that several can mount,
    for those of the others. Empty where all would fit even into one of them."""
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
    """The same with one name for file systems that are one: a host that was asked saw the mark of
    another one beside its own. One with several file systems saw it in any of them: all are taken
    for that one."""
    systems = _EqualNames()
    marks = {need.mark: need.system for _, need in _mountable(hosts) if need.mark}
    for host, names in seen_marks.items():
        host_systems = [need.system for need in hosts.get(host, ()) if need.shared]
        for name in names:
            for system in host_systems if name in marks else ():
                systems.join(marks[name], system)
    return _with_canonical_names(hosts, systems)


def join_similar(hosts: Needs) -> dict[str, list[SpaceNeed]]:
    """Return the places with one name for file systems that look alike."""
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
    """Names that mean the same."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def canonical(self, name: str) -> str:
        """The one name of all of them."""
        while name in self._parents:
            name = self._parents[name]
        return name

    def join(self, first: str, second: str) -> None:
        """Record that both names mean the same file system."""
        first, second = self.canonical(first), self.canonical(second)
        if first != second:
            self._parents[first] = second
