"""The tunables of the target's disks: their values and the reasons they cannot be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui.linux.machine.topology import online_cpus
from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.tunable import IRQ_PREFIX, TUNABLES, Tunable, why_rq_affinity_cannot_matter
from iopstui.safety.tunables import read_tunable, why_not_changeable


@dataclass(frozen=True, slots=True)
class TunableState:
    """A tunable. ``now`` is its value (of the first disk), ``values`` all that it takes (empty
    for a number or a CPU list), ``allowed`` the same in words. ``by_disk`` are (disk, value),
    if there are several disks. ``refused`` says why it can't be changed here and ``hint`` the
    command that can; ``idle`` why it would move nothing on these disks; all "" if nothing is."""

    name: str
    meaning: str
    now: str
    values: tuple[str, ...]
    allowed: str
    by_disk: tuple[tuple[str, str], ...] = ()
    refused: str = ""
    hint: str = ""
    idle: str = ""


def queued_disks(target: Target, devices: Mapping[str, BlockDevice]) -> list[BlockDevice]:
    """The disks whose queues serve the target, and whose tunables are changed: the first ones with
    a queue on the way down (a partition shares its disk's). Who sets a loop device does not mean
    the machine's disk under its file."""
    disk_by_name: dict[str, BlockDevice] = {}
    for top, below in target.stacks.items():
        stack = [devices[name] for name in (top, *below) if name in devices]
        queued = [device for device in stack if device.hctxs and device.disk is None]
        loops = [device for device in queued if device.kind == "loop"]
        disk_by_name |= {device.name: device for device in loops or queued}
    return list(disk_by_name.values())


def common_schedulers(disks: Sequence[BlockDevice]) -> tuple[str, ...]:
    """The schedulers that every one of the disks can have."""
    by_disk = [disk.queue.schedulers for disk in disks if disk.queue is not None]
    return tuple(
        name
        for name in (by_disk[0] if by_disk else ())
        if all(name in schedulers for schedulers in by_disk)
    )


def tunable_states(
    target: Target, devices: Mapping[str, BlockDevice], roots: Roots
) -> list[TunableState]:
    """Every tunable that the disks have, read again: the kernel does not notify of changes."""
    disks = queued_disks(target, devices)
    states = [_queue_tunable(tunable, disks, roots) for tunable in TUNABLES.values()]
    states += [_irq_tunable(disk, irq, roots) for disk, irq in _interrupts(disks)]
    return [knob for knob in states if knob is not None]


def _queue_tunable(
    tunable: Tunable, disks: Sequence[BlockDevice], roots: Roots
) -> TunableState | None:
    readings = [(disk, read_tunable(disk, tunable.name, roots)) for disk in disks]
    current_values = [(disk, value) for disk, value in readings if value is not None]
    if not current_values:
        return None
    values = tunable.values
    if tunable.name == "scheduler":
        values = common_schedulers([disk for disk, _ in current_values])
    return _state(
        tunable.name, tunable.meaning, current_values, values, _allowed_values(tunable, values),
        roots,
        _idle([disk for disk, _ in current_values], roots) if tunable.name == "rq_affinity" else "",
    )  # fmt: skip


def _allowed_values(tunable: Tunable, values: Sequence[str]) -> str:
    if values:
        return ", ".join(values)
    unit = f" ({tunable.unit})" if tunable.unit else ""
    return f"a whole number from {tunable.minimum} up{unit}"


def _idle(disks: Sequence[BlockDevice], roots: Roots) -> str:
    online = online_cpus(roots)
    reasons = [why_rq_affinity_cannot_matter(disk, online) for disk in disks]
    explanations = [f"{d.name}: {why}" for d, why in zip(disks, reasons, strict=True) if why]
    return "; ".join(explanations) if len(explanations) == len(disks) else ""


def _interrupts(disks: Sequence[BlockDevice]) -> list[tuple[BlockDevice, int]]:
    disk_by_irq: dict[int, BlockDevice] = {}
    for disk in disks:
        for vector in disk.irqs:
            disk_by_irq.setdefault(vector.irq, disk)
    return [(disk, irq) for irq, disk in disk_by_irq.items()]


def _irq_tunable(disk: BlockDevice, irq: int, roots: Roots) -> TunableState | None:
    name = f"{IRQ_PREFIX}/{irq}"
    now = read_tunable(disk, name, roots)
    vector = next(vector for vector in disk.irqs if vector.irq == irq)
    if now is None:
        return None
    serves = f"hctx {vector.hctx}" if vector.hctx is not None else "no single queue"
    meaning = f"the CPUs that interrupt {irq} ({vector.name}, {serves}) may go to"
    return _state(name, meaning, [(disk, now)], (), "a CPU list such as 0-3,8", roots, "")


def _state(
    name: str,
    meaning: str,
    current_values: Sequence[tuple[BlockDevice, str]],
    values: Sequence[str],
    takes: str,
    roots: Roots,
    idle: str,
) -> TunableState:
    refusal = next(
        (r for disk, _ in current_values if (r := why_not_changeable(disk, name, roots))), None
    )
    return TunableState(
        name=name,
        meaning=meaning,
        now=current_values[0][1],
        values=tuple(values),
        allowed=takes,
        by_disk=tuple((disk.name, value) for disk, value in current_values)
        if len(current_values) > 1
        else (),
        refused=refusal.message if refusal else "",
        hint=refusal.hint if refusal else "",
        idle=idle,
    )
