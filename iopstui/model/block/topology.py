"""CPU topology: NUMA nodes and last-level-cache domains.

The kernel moves a completion by these lines (block/blk-mq.c, blk_mq_complete_need_ipi): with
rq_affinity 1 it stays where the interrupt came if the submitter shares the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Domain:
    """CPUs that share a last-level cache. ``node`` is their NUMA node, ``None`` if unknown;
    ``cache`` numbers the machine's domains from 0, ``None`` where the kernel does not report
    caches."""

    node: int | None
    cache: int | None
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """The machine's CPUs. ``caches`` maps a CPU to the lowest CPU of its last-level-cache
    domain, ``nodes`` to its NUMA node; CPUs without data are absent. ``isolated`` are kept free
    of other work (isolcpus=). ``irq_time`` is True if the kernel accounts interrupt time
    (``None``: not known yet)."""

    online: tuple[int, ...] = ()
    possible: tuple[int, ...] = ()
    isolated: tuple[int, ...] = ()
    nodes: Mapping[int, int] = field(default_factory=dict)
    caches: Mapping[int, int] = field(default_factory=dict)
    irq_time: bool | None = None

    def domains(self, cpus: Iterable[int] | None = None) -> tuple[Domain, ...]:
        """These CPUs (default: those online) by node and cache, in the order of their numbers."""
        groups: dict[tuple[int | None, int | None], list[int]] = {}
        for cpu in sorted(self.online if cpus is None else set(cpus)):
            groups.setdefault((self.nodes.get(cpu), self.caches.get(cpu)), []).append(cpu)
        ordered = sorted(groups.items(), key=lambda item: (_unknown_last(item[0][0]), item[1][0]))
        place = {first: n for n, first in enumerate(sorted(set(self.caches.values())))}
        return tuple(
            Domain(node, None if first is None else place[first], tuple(members))
            for (node, first), members in ordered
        )

    @property
    def numa(self) -> bool:
        """True if the machine has several NUMA nodes."""
        return len(set(self.nodes.values())) > 1


def _unknown_last(node: int | None) -> tuple[bool, int]:
    return node is None, node or 0
