"""The queue map: hardware queues and interrupts, the CPUs they serve, and their activity.

For the disks under a target, one row per hardware queue and interrupt: its CPUs, where the
interrupt goes, how often it came this second, and which jobs run on these CPUs. The kernel counts
I/Os for a device, not for a queue, so I/Os per interrupt are the device's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from iopstui.model.block.device import BlockDevice, Hctx, IrqVector
from iopstui.model.block.topology import Topology
from iopstui.model.metrics.cpus import rate_of
from iopstui.model.metrics.frame import Frame, JobFrame

BUSY_IOS = 100.0
NEGLIGIBLE_SHARE = 0.1

IDLE = "idle"
SOFTIRQ = "softirq"
INLINE = "inline"
SUBMITTER = "submitter"
POLLED = "polled"
MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A hardware queue with one of its interrupts, or an interrupt that serves none. ``hctx`` is
    ``None`` for an interrupt of no (or of an unknown) queue. ``cpus`` are the queue's CPUs that are
    online, ``offline`` its other CPUs. ``effective`` is where the kernel says it sends the
    interrupt (may be stale); ``served_on`` the CPUs that served it this second, busiest first.
    ``irq_s`` is interrupts per second (``None``: not measured). ``jobs`` run on a CPU of this queue
    now; those in ``pinned`` are bound to one CPU."""

    device: str
    hctx: int | None
    cpus: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    nr_tags: int | None = None
    irq: int | None = None
    name: str = ""
    shared: bool = False
    effective: tuple[int, ...] = ()
    served_on: tuple[int, ...] = ()
    node: int | None = None
    irq_s: float | None = None
    jobs: tuple[int, ...] = ()
    pinned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceMap:
    """Queue map of one disk. ``ios_s`` counts completed requests (reads, writes, discards,
    flushes), ``ios_per_irq`` how many of them each interrupt had (``None``: no interrupt, or too
    few I/Os to say). ``completion`` is one of this module's constants IDLE ... MIXED,
    ``completion_text`` describes it, and ``note`` says why there is no interrupt or no queue to
    show ("" if there is)."""

    device: str
    kind: str
    rows: tuple[QueueRow, ...]
    ios_s: float | None
    irq_s: float | None
    ios_per_irq: float | None
    completion: str | None
    completion_text: str
    note: str


def mapped_disks(tree: Iterable[str], devices: Mapping[str, BlockDevice]) -> list[BlockDevice]:
    """The disks of a target's tree to map; partitions count as their disk, each disk once."""
    disks: dict[str, BlockDevice] = {}
    for name in tree:
        device = devices.get(name)
        if device is not None and device.disk is not None:
            device = devices.get(device.disk)
        if device is not None:
            disks.setdefault(device.name, device)
    return list(disks.values())


def queue_map(
    disks: Sequence[BlockDevice], frame: Frame | None, topology: Topology
) -> tuple[DeviceMap, ...]:
    """The map of each disk, with the rates of ``frame`` (``None``: nothing measured yet)."""
    return tuple(_device_map(disk, frame, topology) for disk in disks)


def _device_map(device: BlockDevice, frame: Frame | None, topology: Topology) -> DeviceMap:
    rows = tuple(_rows(device, frame, topology))
    disk = frame.disks.get(device.name) if frame is not None else None
    ios = disk.ios_s if disk is not None else None
    irq_rates = [row.irq_s for row in rows if row.irq_s is not None and _serves_queue(row, rows)]
    irq_s = _interrupts_per_second(rows) if irq_rates else None
    per_irq = ios / irq_s if ios is not None and irq_s and ios >= BUSY_IOS else None
    completes = completion_mode(device, frame)
    return DeviceMap(
        device=device.name,
        kind=device.kind,
        rows=rows,
        ios_s=ios,
        irq_s=irq_s,
        ios_per_irq=per_irq,
        completion=completes,
        completion_text=completion_text(device, completes),
        note=why_no_interrupt(device),
    )


# -- rows


def _rows(device: BlockDevice, frame: Frame | None, topology: Topology) -> Iterable[QueueRow]:
    online = frozenset(topology.online)
    shared = [vector for vector in device.irqs if vector.shared]
    vectors: dict[int | None, list[IrqVector | None]] = {h.index: [*shared] for h in device.hctxs}
    unassigned: list[IrqVector] = []
    for vector in device.irqs:
        if vector.hctx in vectors and not vector.shared:
            vectors[vector.hctx].append(vector)
        elif not vector.shared or not device.hctxs:
            unassigned.append(vector)
    for hctx in sorted(device.hctxs, key=lambda h: h.index):
        for irq_vector in vectors[hctx.index] or [None]:
            yield _row(device, hctx, irq_vector, frame, topology, online)
    for vector in unassigned:
        yield _row(device, None, vector, frame, topology, online)


def _row(
    device: BlockDevice,
    hctx: Hctx | None,
    vector: IrqVector | None,
    frame: Frame | None,
    topology: Topology,
    online: Collection[int],
) -> QueueRow:
    listed = hctx.cpus if hctx else ()
    # if the online CPUs are unknown, none is called offline
    cpus = tuple(cpu for cpu in listed if not online or cpu in online)
    counts = frame.irqs.get(vector.irq) if frame is not None and vector is not None else None
    jobs = _jobs_on(frame, cpus)
    return QueueRow(
        device=device.name,
        hctx=hctx.index if hctx else None,
        cpus=cpus,
        offline=tuple(cpu for cpu in listed if cpu not in cpus),
        nr_tags=hctx.nr_tags if hctx else None,
        irq=vector.irq if vector else None,
        name=vector.name if vector else "",
        shared=vector.shared if vector else False,
        effective=vector.effective_cpus if vector else (),
        served_on=_serving_cpus(counts),
        node=_node(device, vector, cpus, topology),
        irq_s=sum(counts.values()) if counts else None,
        jobs=tuple(job.index for job in jobs),
        pinned=tuple(job.index for job in jobs if job.pinned),
    )


def _serving_cpus(counts: Mapping[int, float] | None) -> tuple[int, ...]:
    """CPUs with at least a hundredth of the interrupts, busiest first."""
    total = sum(counts.values()) if counts else 0.0
    if not counts or not total:
        return ()
    serving = [(-rate, cpu) for cpu, rate in counts.items() if rate >= 0.01 * total]
    return tuple(cpu for _, cpu in sorted(serving))


def _node(
    device: BlockDevice, vector: IrqVector | None, cpus: Sequence[int], topology: Topology
) -> int | None:
    """The interrupt's NUMA node, else the node of the queue's CPUs, else the disk's."""
    if vector is not None and vector.node is not None:
        return vector.node
    nodes = {topology.nodes.get(cpu) for cpu in cpus}
    return nodes.pop() if len(nodes) == 1 else device.numa_node


def _jobs_on(frame: Frame | None, cpus: Sequence[int]) -> list[JobFrame]:
    cpu_set = set(cpus)
    return [job for job in frame.jobs if job.cpu in cpu_set] if frame is not None else []


def _serves_queue(row: QueueRow, rows: Sequence[QueueRow]) -> bool:
    """Whether the interrupt may signal I/O. Configuration or administration interrupts don't; if no
    interrupt is known to serve a queue, each one may."""
    return row.hctx is not None or all(r.hctx is None or r.irq is None for r in rows)


def _interrupts_per_second(rows: Sequence[QueueRow]) -> float:
    """Interrupts per second of the queues; a shared vector is in several rows but counts once."""
    rates = {r.irq: r.irq_s for r in rows if r.irq_s is not None and _serves_queue(r, rows)}
    return sum(rates.values())


# -- texts


def completion_mode(device: BlockDevice, frame: Frame | None) -> str | None:
    """How this second's completions ran; ``None`` if nothing was measured. BLOCK softirqs are
    counted for all disks together: if they are few, a busy device raises none; if they are many,
    other busy disks may have raised them."""
    if frame is None or device.name not in frame.disks:
        return None
    ios = frame.disks[device.name].ios_s
    if ios is None:
        return None
    if ios < BUSY_IOS:
        return IDLE
    block = sum(rate_of(frame.cpus, "block_s").values())
    serving = {v.irq for v in device.irqs if v.hctx is not None or v.shared}
    serving = serving or {v.irq for v in device.irqs}
    irq = sum(sum(frame.irqs.get(number, {}).values()) for number in serving)
    if not serving:
        return SUBMITTER if block < NEGLIGIBLE_SHARE * ios else SOFTIRQ
    if irq < 0.001 * ios:
        return POLLED
    if block < NEGLIGIBLE_SHARE * irq:
        return INLINE
    return SOFTIRQ if block >= 0.5 * min(irq, ios) else MIXED


def completion_text(device: BlockDevice, completes: str | None) -> str:
    """``completion_mode`` as a sentence for the screen."""
    name = device.name
    bio_based = not device.hctxs
    return {
        IDLE: f"{name} is idle: fewer than {BUSY_IOS:.0f} I/Os per second",
        SOFTIRQ: "completions run as BLOCK softirqs (counted for all disks together)",
        INLINE: "I/O completes inside the hard interrupt, so no BLOCK softirq: that is not idle",
        MIXED: "some completions run as BLOCK softirqs, some inside the hard interrupt",
        SUBMITTER: f"{name} completes without an interrupt of its own"
        + (": the disks below it have them" if bio_based and device.slaves else ""),
        POLLED: f"{name} completes I/O without interrupts: it is polled",
    }.get(completes or "", "")


def why_no_interrupt(device: BlockDevice) -> str:
    """Why a device has no interrupt of its own to show; "" if it has one."""
    if any(v.hctx is not None or v.shared for v in device.irqs):
        return ""
    if device.irqs:
        return (
            f"the names of {device.name}'s interrupts don't tell which queue each one serves"
            if device.hctxs
            else ""
        )
    if device.kind == "loop":
        behind = f" ({device.backing_file})" if device.backing_file else ""
        return f"a loop device has no interrupt: a kernel worker does its I/O on a file{behind}"
    if device.kind == "null_blk":
        return "null_blk is not hardware: it completes on the submitting CPU, or from a timer"
    if device.kind in ("zram", "ram"):
        return f"{device.kind} is memory: the submitting CPU copies the data, nothing interrupts"
    if device.slaves:
        below = ", ".join(device.slaves[:4]) + (" ..." if len(device.slaves) > 4 else "")
        return f"{device.layer or device.kind} has no interrupt of its own; {below} below it may"
    return f"the kernel names no interrupt of {device.name}"
