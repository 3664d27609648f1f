"""Which interrupts belong to a block device, and which hardware queue each one serves.

The kernel has no such map. It is derived from the device's sysfs ancestors (``msi_irqs/`` or
``irq``) and the names drivers give their interrupts (/sys/kernel/irq/N/actions, else
/proc/interrupts)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from iopstui.linux.kernel_files import (
    Roots,
    decode,
    list_names,
    parse_cpu_list,
    read_bytes,
    read_count,
    read_int,
    read_text,
)
from iopstui.model.block.device import Hctx, IrqVector

_NVME = re.compile(r"nvme[0-9]+q([0-9]+)")
_VIRTIO_QUEUE = re.compile(r"virtio[0-9]+-req\.([0-9]+)")
_VIRTIO_SHARED = re.compile(r"virtio[0-9]+(-virtqueues)?")
_VIRTIO_SCSI = re.compile(r"virtio[0-9]+-request")
_OTHER_VIRTIO = re.compile(r"virtio[0-9]+-\w+")
_NAMED_AFTER_ANCESTOR = re.compile(r"virtio[0-9]+|mmc[0-9]+")
_LINE = re.compile(r"\s*([0-9]+):((?:\s+[0-9]+)*)\s+(.*)")
# MSI-X: the vector's index is in the low bits; Linux before 6.2 puts the PCI address above them
_VECTOR_INDEX = 0x7FF


@dataclass(frozen=True, slots=True)
class _Vector:
    irq: int
    names: tuple[str, ...]
    index: int


class IrqTable:
    """Names of interrupts, read on first use. Make a new one for fresh answers."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._names: dict[int, tuple[str, ...]] = {}

    def names(self, irq: int) -> tuple[str, ...]:
        """The actions of an interrupt; empty if no driver has requested it."""
        if irq not in self._names:
            text = read_text(self._roots.sys / f"kernel/irq/{irq}/actions")
            listed = text.split(",") if text else self._from_proc.get(irq, ())
            self._names[irq] = tuple(name.strip() for name in listed if name.strip())
        return self._names[irq]

    def named(self, name: str) -> list[int]:
        """Interrupts with an action of exactly this name, in numerical order."""
        numbers = {int(n) for n in list_names(self._roots.sys / "kernel/irq") if n.isdecimal()}
        numbers.update(self._from_proc)
        return sorted(irq for irq in numbers if name in self.names(irq))

    def index(self, irq: int) -> int:
        """The vector's index in its device, or the interrupt's number if that is unknown."""
        hwirq = read_int(self._roots.sys / f"kernel/irq/{irq}/hwirq")
        return irq if hwirq is None else hwirq & _VECTOR_INDEX

    def effective_cpus(self, irq: int) -> tuple[int, ...]:
        """CPUs that the interrupt goes to now; empty if the kernel doesn't say."""
        text = read_text(self._roots.proc / f"irq/{irq}/effective_affinity_list")
        return parse_cpu_list(text or "")

    def node(self, irq: int) -> int | None:
        """The NUMA node of the interrupt's device."""
        return read_count(self._roots.proc / f"irq/{irq}/node")

    @cached_property
    def _from_proc(self) -> dict[int, tuple[str, ...]]:
        data = read_bytes(self._roots.proc / "interrupts")
        return parse_names(decode(data or b""))


def parse_names(text: str) -> dict[int, tuple[str, ...]]:
    """Action names by interrupt number, from /proc/interrupts.

    The last column has them, separated by ", "; the chip and trigger columns before it contain no
    comma and are separated from it by two or more spaces."""
    names: dict[int, tuple[str, ...]] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if not match:
            continue
        first, *more = match[3].split(", ")
        fields = first.split()
        if len(fields) > 1:
            names[int(match[1])] = (fields[-1], *(name.strip() for name in more))
    return names


def read_irqs(
    directory: Path, kind: str, hctxs: tuple[Hctx, ...], roots: Roots, table: IrqTable
) -> tuple[IrqVector, ...]:
    """The interrupts of the whole disk whose real sysfs directory is ``directory``.

    Empty for devices without hardware (loop, dm, md, zram, null_blk, ram)."""
    irqs = _device_irqs(directory, kind, len(hctxs), roots, table)
    vectors = [_Vector(irq, table.names(irq), table.index(irq)) for irq in irqs]
    vectors = [vector for vector in vectors if vector.names]
    served = _queue_by_irq(vectors, len(hctxs))
    return tuple(
        IrqVector(
            irq=vector.irq,
            name=",".join(vector.names),
            hctx=served[vector.irq][0],
            shared=served[vector.irq][1],
            effective_cpus=table.effective_cpus(vector.irq),
            node=table.node(vector.irq),
        )
        for vector in vectors
    )


def _device_irqs(
    directory: Path, kind: str, queues: int, roots: Roots, table: IrqTable
) -> list[int]:
    """The interrupt numbers of the nearest ancestor that has interrupts."""
    top = Path(os.path.realpath(roots.sys)) / "devices"
    if top not in directory.parents or top / "virtual" in directory.parents:
        return []
    for ancestor in directory.parents:
        if ancestor == top:
            break
        vectors = sorted(int(n) for n in list_names(ancestor / "msi_irqs") if n.isdecimal())
        if vectors:
            return vectors
        if (ancestor / "irq").exists():
            # ancestors further up are bridges, whose interrupts belong to other devices
            irq = read_int(ancestor / "irq")
            return [irq] if irq else []
    for ancestor in directory.parents:
        if _NAMED_AFTER_ANCESTOR.fullmatch(ancestor.name):
            return table.named(ancestor.name)
    if kind == "xen":
        blkif = table.named("blkif")
        # all Xen disks' interrupts have the same name: only a single disk's can be recognised
        return blkif if len(blkif) == queues else []
    return []


def _queue_by_irq(vectors: list[_Vector], queues: int) -> dict[int, tuple[int | None, bool]]:
    """For each interrupt its hctx, and whether it serves all queues."""
    requests = [v for v in vectors if any(_VIRTIO_SCSI.fullmatch(n) for n in v.names)]
    order = {v.irq: k for k, v in enumerate(sorted(requests, key=lambda v: (v.index, v.irq)))}
    if vectors and len(vectors) == queues and all("blkif" in v.names for v in vectors):
        order = {v.irq: k for k, v in enumerate(vectors)}
    served: dict[int, tuple[int | None, bool]] = {}
    for vector in vectors:
        if vector.irq in order:
            hctx = order[vector.irq]
            served[vector.irq] = (hctx if hctx < queues else None, False)
        else:
            served[vector.irq] = _queue_by_name(vector, queues, len(vectors))
    return served


def _queue_by_name(vector: _Vector, queues: int, vectors: int) -> tuple[int | None, bool]:
    hctxs = {h for name in vector.names if (h := _named_hctx(name)) is not None}
    only = 0 if queues == 1 else None
    if any(_VIRTIO_SHARED.fullmatch(name) for name in vector.names):
        return only, True
    if hctxs - {-1}:
        valid = sorted(h for h in hctxs if 0 <= h < queues)
        return (valid[0], False) if len(valid) == 1 else (None, len(valid) > 1)
    if hctxs or any(_OTHER_VIRTIO.fullmatch(name) for name in vector.names):
        return None, False  # an interrupt for admin, configuration, control or events
    if vectors == 1:
        return only, queues > 1
    return None, False


def _named_hctx(name: str) -> int | None:
    """The hctx in an interrupt's name, -1 for NVMe's admin queue, None if there is none."""
    if match := _NVME.fullmatch(name):
        return int(match[1]) - 1
    if match := _VIRTIO_QUEUE.fullmatch(name):
        return int(match[1])
    return None
