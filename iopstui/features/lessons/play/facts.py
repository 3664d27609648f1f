"""Collect facts about a lesson's target before any run (FACTS in model/formula.py)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.features.lessons.model.formula import Figures, Value
from iopstui.linux.devices.aliases import generic_of
from iopstui.linux.kernel_files import Roots, read_text
from iopstui.linux.machine.topology import online_cpus
from iopstui.linux.own_threads import initial_cpus
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice, parse_version
from iopstui.model.block.target import Target
from iopstui.model.block.tunable import why_rq_affinity_cannot_matter
from iopstui.safety.scratch import supports_direct
from iopstui.safety.tunables import TunableState, queued_disks, tunable_states

PASSTHROUGH_SINCE = (6, 2)
"""Since this Linux version, NVMe commands are checked by how the device was opened
(drivers/nvme/host/ioctl.c)."""
CHANGED_TUNABLES = ("rq_affinity", "scheduler", "nomerges", "read_ahead_kb")


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """``facts`` by name (``None``: unknown), and the present value of each tunable of the disks."""

    facts: Mapping[str, Value | None]
    knobs: Mapping[str, str]


def read_target_facts(
    target: Target, devices: Mapping[str, BlockDevice], roots: Roots
) -> TargetFacts:
    """Read the facts. In a target directory, a file is created for a test and removed."""
    disks = queued_disks(target, devices)
    online = online_cpus(roots)
    states = {state.name: state for state in tunable_states(target, devices, roots)}
    facts: Figures = {
        "host.cpus": float(len(online)) if online else None,
        "host.memory": _memory(),
        "target.kind": target.kind,
        "target.fstype": target.fstype,
        "target.direct": _direct(target),
        "device.name": target.device,
        "why.device": target.no_device or None,
    }
    facts |= _passthrough(target, roots)
    facts |= _device(target, devices, disks, online)
    facts |= _tunable_figures(states, disks, online)
    return TargetFacts(facts, {name: state.now for name, state in states.items()})


def _passthrough(target: Target, roots: Roots) -> Figures:
    reason = _no_passthrough_reason(target, roots)
    return {"can.passthrough": not reason, "why.passthrough": reason or None}


def _no_passthrough_reason(target: Target, roots: Roots) -> str:
    node = generic_of(roots, target.device or "") if target.kind == kinds.DEVICE else None
    if node is None or target.has_several:
        return "only one whole NVMe namespace takes NVMe commands (iopstui lesson 9 /dev/nvme0n1)"
    if target.passthrough:
        return f"name the block device /dev/{target.device}, which has both ways"
    version = parse_version(read_text(roots.proc / "sys/kernel/osrelease") or "")
    if version is not None and version < PASSTHROUGH_SINCE:
        return "before Linux 6.2 the kernel can't keep fio from writing there"
    if not os.access(node, os.R_OK):
        return f"only root can open {node}"
    return ""


def _memory() -> float | None:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        return None


def _direct(target: Target) -> bool | None:
    """Whether O_DIRECT works on the target; ``None`` if that can't be tried out."""
    if target.kind == kinds.DEVICE:
        return True
    if target.kind == kinds.DIRECTORY:
        return supports_direct(Path(target.path))
    try:
        os.close(os.open(target.path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        return False if error.errno == errno.EINVAL else None
    return True


def _device(
    target: Target,
    devices: Mapping[str, BlockDevice],
    disks: Sequence[BlockDevice],
    online: Sequence[int],
) -> Figures:
    device = devices.get(target.device or "")
    if device is None:
        return {"device.queues": 0.0}
    disk = disks[0] if disks else device
    figures: Figures = {
        "device.kind": disk.kind,
        "device.queues": float(len(disk.hctxs)),
        "device.cpus_per_queue": _cpus_per_queue(disk, online),
    }
    queue = disk.queue
    if queue is not None:
        alternatives = [scheduler for scheduler in queue.schedulers if scheduler != queue.scheduler]
        figures |= {
            "device.rotational": queue.rotational,
            "device.scheduler": queue.scheduler if queue.schedulers else None,
            # mq-deadline changes less than bfq, which shares out the disk's time
            "device.other_scheduler": next(
                (
                    scheduler
                    for scheduler in ("none", "mq-deadline", *alternatives)
                    if scheduler in alternatives
                ),
                None,
            ),
            "device.nomerges": queue.nomerges,
            "device.nr_requests": queue.nr_requests,
            "device.rq_affinity": queue.rq_affinity,
            "device.max_request": _kib(queue.max_sectors_kb),
            "device.read_ahead": _kib(queue.read_ahead_kb),
        }
    cpus = next(_far_cpus(disk, online), None)
    if cpus is not None:
        figures |= {"device.far_cpu": float(cpus[0]), "device.irq_cpu": cpus[1]}
    return figures


def _kib(value: int | None) -> float | None:
    return None if value is None else 1024.0 * value


def _cpus_per_queue(disk: BlockDevice, online: Sequence[int]) -> float | None:
    counts = [len(set(hctx.cpus) & set(online)) for hctx in disk.hctxs]
    return float(max(counts)) if counts and online else None


def _far_cpus(disk: BlockDevice, online: Sequence[int]) -> Iterator[tuple[int, float | None]]:
    """The CPUs on which iopstui may run and whose queue's interrupt is handled by another CPU, each
    with that other CPU. For a device without interrupts (loop), the last of the allowed CPUs."""
    usable = sorted(set(online) & initial_cpus())
    for hctx in disk.hctxs:
        vectors = [v for v in disk.irqs if v.hctx == hctx.index or v.shared]
        irq_cpus = {cpu for vector in vectors for cpu in vector.effective_cpus}
        for cpu in usable if len(irq_cpus) == 1 else ():
            if cpu in hctx.cpus and cpu not in irq_cpus:
                yield cpu, float(min(irq_cpus))
    if disk.hctxs and not disk.irqs and len(usable) > 1:
        yield usable[-1], None


def _tunable_figures(
    states: Mapping[str, TunableState], disks: Sequence[BlockDevice], online: Sequence[int]
) -> Figures:
    figures: Figures = {}
    for name in CHANGED_TUNABLES:
        reason = _unchangeable_reason(name, states.get(name), disks)
        figures[f"can.{name}"] = not reason
        figures[f"why.{name}"] = reason or None
    reasons_by_disk = [why_rq_affinity_cannot_matter(disk, online) for disk in disks]
    reasons = [text for text in reasons_by_disk if text is not None]
    matters = bool(disks) and len(reasons) < len(disks)
    figures["matters.rq_affinity"] = matters
    if not matters:
        figures["why.rq_affinity"] = reasons[0] if reasons else figures["why.rq_affinity"]
    return figures


def _unchangeable_reason(
    name: str, state: TunableState | None, disks: Sequence[BlockDevice]
) -> str:
    if not disks:
        return "no device with a request queue can be seen under the target"
    if state is None:
        return f"{disks[0].name} has no {name}"
    if state.refused:
        return f"{state.refused} {state.hint}".rstrip(" .")
    if len({value for _, value in state.by_disk}) > 1:
        return f"{name} differs between the disks under the target"
    return ""
