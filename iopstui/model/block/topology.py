"""CPU topology: NUMA nodes and last-level-cache domains.

The kernel decides by these domains whether to move a completion (block/blk-mq.c,
blk_mq_complete_need_ipi): with rq_affinity 1 it stays on the CPU of the interrupt if the
submitter's CPU shares that CPU's cache."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from iopstui.model.block.device import Hctx


@dataclass(frozen=True, slots=True)
class Domain:
    """CPUs that share a last-level cache. ``node`` is their NUMA node, ``None`` if unknown;
    ``cache`` numbers the machine's domains from 0; it is ``None`` if the kernel does not report
    caches."""

    node: int | None
    cache: int | None
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """The machine's CPUs. ``caches`` maps a CPU to the lowest CPU of its last-level-cache domain,
    ``nodes`` to its NUMA node; CPUs without data are absent. ``isolated`` are CPUs that are kept
    free of other work (isolcpus=). ``irq_time`` is True if the kernel accounts interrupt time
    (``None``: not known yet)."""

    online: tuple[int, ...] = ()
    possible: tuple[int, ...] = ()
    isolated: tuple[int, ...] = ()
    nodes: Mapping[int, int] = field(default_factory=dict)
    caches: Mapping[int, int] = field(default_factory=dict)
    irq_time: bool | None = None

    def domains(self, cpus: Iterable[int] | None = None) -> tuple[Domain, ...]:
        """These CPUs (default: the online ones) grouped by node and cache, ordered by node and then
        by their lowest CPU."""
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


# Choose the CPU of each fio job so that every job uses a different hardware queue.
#
# The order is that of the ESSD document (jobs/essd-1m-iops.fio): the first CPU of every queue, then
# the second of every queue, and so on. fio's ``cpus_allowed_policy=split`` gives out the CPUs of
# the set in ascending order, one to each job, and begins again if there are more jobs.


@dataclass(frozen=True, slots=True)
class Binding:
    """The CPUs for fio jobs. ``cpus`` is the ascending set for cpus_allowed=; ``rows`` has (job,
    CPU, hctx) in fio's order, with jobs counted from 0; ``notes`` describe anything unexpected in
    words."""

    cpus: tuple[int, ...]
    rows: tuple[tuple[int, int, int], ...]
    notes: tuple[str, ...]

    @property
    def option(self) -> str:
        """The value of cpus_allowed=."""
        return ",".join(map(str, self.cpus))


def queue_order(hctxs: Sequence[Hctx], usable: Collection[int]) -> list[tuple[int, int]]:
    """(CPU, hctx) pairs in the order of the ESSD document (see above), with every usable CPU once.

    CPUs that are offline or not allowed are left out: cpu_list names possible CPUs."""
    assigned: set[int] = set()
    columns = []
    for hctx in sorted(hctxs, key=lambda h: h.index):
        # queues of different types overlap (read, poll): the first queue that has a CPU keeps it
        cpus = [cpu for cpu in hctx.cpus if cpu in usable and cpu not in assigned]
        assigned.update(cpus)
        columns.append([(cpu, hctx.index) for cpu in cpus])
    return [pair for rank in zip_longest(*columns) for pair in rank if pair is not None]


def bind_to_queues(hctxs: Sequence[Hctx], jobs: int, usable: Collection[int]) -> Binding | None:
    """The binding of ``jobs`` fio jobs; ``None`` if the device has no queue with a usable CPU."""
    order = queue_order(hctxs, usable)
    if not order:
        return None
    chosen = dict(order[:jobs])
    cpus = tuple(sorted(chosen))
    rows = tuple((job, cpus[job % len(cpus)], chosen[cpus[job % len(cpus)]]) for job in range(jobs))
    return Binding(cpus, rows, tuple(_binding_notes(hctxs, jobs, order, usable)))


def _binding_notes(
    hctxs: Sequence[Hctx], jobs: int, order: list[tuple[int, int]], usable: Collection[int]
) -> list[str]:
    notes = []
    queues = len({hctx for _, hctx in order})
    if jobs > len(order):
        notes.append(
            f"{jobs} jobs on {len(order)} CPUs: fio wraps around, so some CPUs run several jobs"
        )
    if jobs > queues:
        notes.append(
            f"{jobs} jobs on {queues} hardware queue{'s' if queues > 1 else ''}: "
            "some jobs share one"
        )
    cpus = [cpu for hctx in hctxs for cpu in hctx.cpus]
    if len(set(cpus)) < len(cpus):
        notes.append("some CPUs are in the lists of several queues (read or poll queues)")
    absent = sorted(set(cpus) - set(usable))
    if absent:
        notes.append(f"not used (offline or not allowed): CPU  {_cpus_text(absent)}")
    return notes


def _cpus_text(cpus: Sequence[int]) -> str:
    text = ", ".join(map(str, cpus[:8]))
    return f"{text}, ... ({len(cpus)} CPUs)" if len(cpus) > 8 else text
