"""Fleets in a tree: what a fleet of some hosts agrees with the fleet above it.

The one above checks what all hosts say together, gives the signal to start, and adds up the totals
that come from below. A sub-fleet does for its hosts what a fleet does, but waits for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from iopstui.fleet.hosts.free_space import SpaceNeed
from iopstui.fleet.hosts.member import Member

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StartOrder:
    """Start at ``at_ns`` of our CLOCK_MONOTONIC. Our wall clock is ``ahead_ms`` ahead of that of
    the fleet above, whose seconds count."""

    at_ns: int
    ahead_ms: float = 0.0


class ParentFleet(Protocol):
    """The fleet above, as a sub-fleet asks it."""

    def report_space_needs(self, needs: Mapping[str, Sequence[SpaceNeed]]) -> None:
        """Say what each host would lay out."""

    def may_lay_out(self) -> bool:
        """Whether it has answered that files may be laid out."""

    def report_ready(self, members: Iterable[Member]) -> None:
        """Say that these hosts are ready."""

    def start_order(self) -> StartOrder | None:
        """The signal to start, once it has come."""


def total_space_needs(needs: Mapping[str, Sequence[SpaceNeed]]) -> list[SpaceNeed]:
    """What all hosts together need of each file system: one entry for each, with the mark of its
    first host."""
    totals: dict[str, SpaceNeed] = {}
    for host_needs in needs.values():
        for need in host_needs:
            total = totals.get(need.system)
            if total is None:
                totals[need.system] = need
                continue
            available = min(total.available, need.available)
            totals[need.system] = replace(
                total, bytes=total.bytes + need.bytes, available=available
            )
    return [*totals.values()]


def marking_hosts(needs: Mapping[str, Sequence[SpaceNeed]]) -> list[str]:
    """The hosts whose marks ``total_space_needs`` has: they look for those of other sub-fleets."""
    first: dict[str, str] = {}
    for name, host_needs in needs.items():
        for need in host_needs:
            if need.shared:
                first.setdefault(need.system, name)
    return [*dict.fromkeys(first.values())]


def sub_fleet_disks(members: Iterable[Member]) -> list[Object]:
    """The disks of all hosts, each with the name of its host in the words for people."""
    disks = []
    for member in members:
        for disk in member.disks:
            uses = disk.get("uses")
            writes = disk.get("writes")
            disks.append({
                **disk, "writes": f"{writes} of {member.name}" if writes else None,
                "uses": [f"{use} (host {member.name})"
                         for use in (uses if type(uses) is list else ())],
            })  # fmt: skip
    return disks
