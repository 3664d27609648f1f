"""The stages of a request as mean times that add up, and which CPU completes the requests of which
other CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui import format as units
from iopstui.model.block.topology import Topology
from iopstui.model.metrics.frame import Frame

# the numbers of requests and of fio's I/Os may differ by this share and still mean the same I/Os
TOLERANCE = 0.05
MAX_GROUPS = 16

Matrix = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True, slots=True)
class RequestPath:
    """Means in ns of one second. ``lat_ns`` is fio's (slat + clat); ``waiting_ns`` from the
    request's allocation to its issue, ``device_ns`` from there to its completion, ``rest_ns`` the
    remainder: the program's side, before and after. ``missing_reason`` says why the remainder is
    unknown."""

    waiting_ns: float
    device_ns: float
    lat_ns: float | None
    slat_ns: float | None
    clat_ns: float | None
    rest_ns: float | None
    missing_reason: str = ""


def request_path(frame: Frame) -> RequestPath | None:
    """Request path of all requests of the job's devices; ``None`` without the probe's part "way",
    or if nothing was completed."""
    requests = frame.probe.combined(frame.opened) if frame.probe is not None else None
    if requests is None or requests.waiting is None or requests.device.mean_ns is None:
        return None
    waiting, device = requests.waiting.mean_ns or 0.0, requests.device.mean_ns
    total = frame.fio.total if frame.fio is not None else None
    if total is None:
        return RequestPath(waiting, device, None, None, None, None, "no job of ours runs")
    lat = total.lat_ns if total.lat_ns is not None else total.clat_ns
    why = _difference_text(requests.iops, total.iops)
    if lat is None:
        why = "the job measures no latency"
    elif not why and lat < waiting + device:
        why = "the job's interval and the kernel's differ too much"
    remainder = None if why or lat is None else lat - waiting - device
    return RequestPath(waiting, device, lat, total.slat_ns, total.clat_ns, remainder, why)


def _difference_text(requests: float | None, ios: float | None) -> str:
    if not requests or not ios:
        return "nothing to compare with"
    if requests > ios * (1 + TOLERANCE):
        return "the disk has more requests than the job has I/Os: split ones, or another program's"
    if requests < ios * (1 - TOLERANCE):
        return "the disk has fewer requests than the job has I/Os: merged ones, or a cache's"
    return ""


@dataclass(frozen=True, slots=True)
class CompletionMatrix:
    """Completed requests per second between groups of CPUs: ``rates[row][column]`` were allocated
    by the group ``names[row]`` and completed by the group ``names[column]``. ``group_kind`` says
    what the groups are: "CPU", "CPUs of a cache" or "NUMA node"."""

    group_kind: str
    names: tuple[str, ...]
    rates: tuple[tuple[float, ...], ...]

    @property
    def total(self) -> float:
        return sum(map(sum, self.rates))

    @property
    def diagonal(self) -> float | None:
        """The part (0..1) completed in the group that allocated the request; ``None`` without
        requests."""
        total = self.total
        return sum(row[n] for n, row in enumerate(self.rates)) / total if total else None


def completion_matrix(
    matrix: Matrix, topology: Topology, max_groups: int = MAX_GROUPS
) -> CompletionMatrix:
    """The matrix of single CPUs if there are at most ``max_groups`` of them, otherwise of groups of
    CPUs (by cache or node)."""
    cpus = sorted({*matrix, *(cpu for row in matrix.values() for cpu in row)})
    if len(cpus) <= max_groups:
        return _sum_groups("CPU", [(str(cpu), (cpu,)) for cpu in cpus], matrix)
    for group_kind, groups in _groupings(topology, cpus):
        if 1 < len(groups) <= max_groups:
            return _sum_groups(group_kind, groups, matrix)
    return _sum_groups("CPU", [("all", tuple(cpus))], matrix)


def _groupings(
    topology: Topology, cpus: Sequence[int]
) -> list[tuple[str, list[tuple[str, tuple[int, ...]]]]]:
    """The possible groupings, from small groups to large ones."""
    caches = [(units.ranges(domain.cpus), domain.cpus) for domain in topology.domains(cpus)]
    nodes: dict[int, list[int]] = {}
    for cpu in cpus:
        if cpu in topology.nodes:
            nodes.setdefault(topology.nodes[cpu], []).append(cpu)
    by_node = [(f"node {node}", tuple(members)) for node, members in sorted(nodes.items())]
    return [("CPUs of a cache", caches), ("NUMA node", by_node)]


def crossing_share(matrix: Matrix, group_of: Mapping[int, int]) -> float | None:
    """The part (0..1) of the requests that were completed in another group than allocated; ``None``
    without requests."""
    total = crossed = 0.0
    for submitter, row in matrix.items():
        for completer, rate in row.items():
            if submitter in group_of and completer in group_of:
                total += rate
                crossed += rate if group_of[submitter] != group_of[completer] else 0.0
    return crossed / total if total else None


def _sum_groups(
    group_kind: str, groups: Sequence[tuple[str, tuple[int, ...]]], matrix: Matrix
) -> CompletionMatrix:
    rates = tuple(
        tuple(
            sum(
                matrix.get(submitter, {}).get(completer, 0.0)
                for submitter in rows
                for completer in columns
            )
            for _, columns in groups
        )
        for _, rows in groups
    )
    return CompletionMatrix(group_kind, tuple(name for name, _ in groups), rates)
