"""The per-CPU view: a row for each CPU, and a compact grid for machines with many.

Pure functions of one frame, the devices' queues and the topology, so live and replay look the
same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from iopstui import format as units
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.topology import Domain, Topology
from iopstui.model.figures.figure import reader
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import CpuLoad

NO_IRQ_TIME = "this kernel does not account interrupt time: irq is always 0"
MAX_BUSIEST = 3


@dataclass(frozen=True, slots=True)
class CpuRow:
    """A CPU in one second. ``hctxs`` are the queues of the watched disks that serve it, ``jobs``
    last ran on it, ``pinned`` are the jobs that may run on no other CPU. Rates are per second;
    unknown is ``None``. ``online`` is False for a CPU that a queue names but that is offline."""

    cpu: int
    hctxs: tuple[int, ...] = ()
    jobs: tuple[int, ...] = ()
    pinned: tuple[int, ...] = ()
    irq_s: float | None = None
    block_s: float | None = None
    ipi_s: float | None = None
    load: CpuLoad | None = None
    node: int | None = None
    online: bool = True
    isolated: bool = False

    @property
    def busy(self) -> float | None:
        """Percent of the time in which the CPU is busy; time that it waits for I/O is idle."""
        return None if self.load is None else max(0.0, 100 - self.load.idle - self.load.iowait)


def cpu_rows(
    disks: Sequence[BlockDevice],
    frame: Frame | None,
    topology: Topology,
    ipi: Mapping[int, float] | None = None,
) -> tuple[CpuRow, ...]:
    """A row for every CPU that is measured or named by a queue, in order of number.

    ``ipi`` are the newest function-call interrupts, for frames that did not read them."""
    queues = _queues(disks)
    measured = frame.cpus if frame is not None else {}
    online = {*measured, *topology.online}
    queue_cpus = {cpu for cpu in queues if not topology.possible or cpu in topology.possible}
    return tuple(
        _row(cpu, queues, frame, topology, ipi, cpu in online)
        for cpu in sorted(online | queue_cpus)
    )


def _queues(disks: Sequence[BlockDevice]) -> dict[int, tuple[int, ...]]:
    hctxs_by_cpu: dict[int, dict[int, None]] = {}
    for disk in disks:
        for hctx in disk.hctxs:
            for cpu in hctx.cpus:
                hctxs_by_cpu.setdefault(cpu, {})[hctx.index] = None
    return {cpu: tuple(sorted(indices)) for cpu, indices in hctxs_by_cpu.items()}


def _row(
    cpu: int,
    queues: Mapping[int, tuple[int, ...]],
    frame: Frame | None,
    topology: Topology,
    ipi: Mapping[int, float] | None,
    online: bool,
) -> CpuRow:
    counts = frame.cpus.get(cpu) if frame is not None else None
    jobs = [job for job in frame.jobs if job.cpu == cpu] if frame is not None else []
    own_ipi = counts.ipi_s if counts is not None else None
    return CpuRow(
        cpu=cpu,
        hctxs=queues.get(cpu, ()),
        jobs=tuple(job.index for job in jobs),
        pinned=tuple(job.index for job in jobs if job.pinned),
        irq_s=counts.irq_s if counts else None,
        block_s=counts.block_s if counts else None,
        ipi_s=own_ipi if own_ipi is not None else (ipi or {}).get(cpu),
        load=counts.load if counts else None,
        node=topology.nodes.get(cpu),
        online=online,
        isolated=cpu in topology.isolated,
    )


# -- the grid


@dataclass(frozen=True, slots=True)
class GridMeasure:
    """The measure of one row of the grid: ``part`` of a CpuRow. ``scale`` is the value that fills a
    cell (``None``: the largest value of this second). ``unit`` is "%", "/s" or ""."""

    name: str
    unit: str
    part: str | Callable[[CpuRow], float]
    scale: float | None = None

    def value(self, row: CpuRow) -> float | None:
        value: float | None = reader(self.part)(row)
        return value


MEASURES: tuple[GridMeasure, ...] = (
    GridMeasure("busy", "%", "busy", 100.0),
    GridMeasure("irq/s", "/s", "irq_s"),
    GridMeasure("BLOCK/s", "/s", "block_s"),
    GridMeasure("IPI/s", "/s", "ipi_s"),
    GridMeasure("sys", "%", "load/sys", 100.0),
    GridMeasure("soft", "%", "load/soft", 100.0),
    GridMeasure("jobs", "", lambda row: float(len(row.jobs))),
)


@dataclass(frozen=True, slots=True)
class GridRow:
    """A measure over all CPUs. ``values`` is by CPU (``None``: not measured); ``scale`` the value
    that fills a cell, ``busiest`` the CPUs with most of it, largest first, and ``busiest_text``
    names them."""

    measure: GridMeasure
    values: Mapping[int, float | None]
    scale: float
    total: float | None
    busiest: tuple[tuple[int, float], ...]
    busiest_text: str

    def level(self, cpu: int, steps: int) -> int | None:
        """How full the cell is, from 0 to ``steps``. Only exactly zero gives 0, so that small
        values stay visible. ``None`` if not measured."""
        value = self.values.get(cpu)
        if value is None:
            return None
        if value <= 0 or self.scale <= 0:
            return 0
        return max(1, min(steps, round(steps * value / self.scale)))


@dataclass(frozen=True, slots=True)
class Grid:
    """CPUs as cells: ``domains`` are their groups (NUMA node and cache), in drawing order; every
    row has a value for each of these CPUs. ``notes`` say what a row can't show."""

    domains: tuple[Domain, ...]
    rows: tuple[GridRow, ...]
    notes: tuple[str, ...] = ()


def cpu_grid(
    rows: Sequence[CpuRow], topology: Topology, measures: Sequence[GridMeasure] = MEASURES
) -> Grid:
    """The grid of these CPUs, without CPUs that are offline."""
    online = [row for row in rows if row.online]
    notes = (NO_IRQ_TIME,) if topology.irq_time is False else ()
    return Grid(
        topology.domains(row.cpu for row in online),
        tuple(_grid_row(measure, online) for measure in measures),
        notes,
    )


def _grid_row(measure: GridMeasure, rows: Sequence[CpuRow]) -> GridRow:
    values = {row.cpu: measure.value(row) for row in rows}
    measured = [(cpu, value) for cpu, value in values.items() if value is not None]
    largest = max((value for _, value in measured), default=0.0)
    ranked = sorted(measured, key=lambda item: (-item[1], item[0]))
    busiest = tuple(item for item in ranked[:MAX_BUSIEST] if item[1] > 0)
    total = sum(value for _, value in measured) if measured else None
    busiest_text = _format_busiest(measure, busiest, total) if measured else "not measured"
    return GridRow(measure, values, measure.scale or largest, total, busiest, busiest_text)


def _format_busiest(
    measure: GridMeasure, busiest: Sequence[tuple[int, float]], total: float | None
) -> str:
    if not busiest:
        return "none"
    percent = measure.unit == "%"
    loads = ", ".join(
        f"CPU {cpu} {f'{units.percent(value)} %' if percent else units.number(value)}"
        for cpu, value in busiest
    )
    if measure.unit == "/s" and total:
        return f"{loads} of {units.number(total)}"
    return loads


def fold_lines(domains: Sequence[Domain], columns: int, gap: int = 1) -> list[list[Domain]]:
    """Lines of at most ``columns`` cells (one per CPU, ``gap`` between two domains). Only a domain
    wider than a line is split."""
    width = max(1, columns)
    lines: list[list[Domain]] = [[]]
    width_used = 0
    for domain in domains:
        for part in _split_domain(domain, width):
            need = len(part.cpus) + (gap if lines[-1] else 0)
            if lines[-1] and width_used + need > width:
                lines.append([])
                width_used, need = 0, len(part.cpus)
            lines[-1].append(part)
            width_used += need
    return [line for line in lines if line]


def _split_domain(domain: Domain, width: int) -> list[Domain]:
    cpus = domain.cpus
    return [
        Domain(domain.node, domain.cache, cpus[start : start + width])
        for start in range(0, len(cpus), width)
    ]
