"""Find the disks of the machine with current I/O."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.errors import UsageError
from iopstui.linux.counters.procfs import parse_diskstats
from iopstui.linux.devices.target import LIST_DEVICES, device_tree
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_bytes
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target, TargetPath, combine_targets
from iopstui.model.samples import DiskCounters


def active_disks(devices: Mapping[str, BlockDevice], roots: Roots) -> Target:
    """All whole disks that have done any I/O, as one target, without devices on other disks
    (partitions, dm, md, loop), so that each I/O counts once. UsageError if there is none."""
    counters = disk_counters(roots)
    paths = [
        TargetPath(DEVICE, device.path, name, device_tree(name, devices, roots))
        for name, device in devices.items()
        if name in counters
        and (counters[name].reads or counters[name].writes or counters[name].discards)
        and _is_below_all(device, devices)
    ]
    if not devices and any(disk.reads or disk.writes for disk in counters.values()):
        raise UsageError(
            f"{roots.sys}/class/block shows no block device, although the kernel counts some.",
            "In a container: docker run -v /sys:/sys:ro ... (iopstui doctor)",
        )
    if not paths:
        raise UsageError("No disk of this machine has done any I/O yet.", LIST_DEVICES)
    return combine_targets(paths)


def disk_counters(roots: Roots) -> dict[str, DiskCounters]:
    """The counters of all disks. UsageError if /proc shows none."""
    counters = parse_diskstats(read_bytes(roots.proc / "diskstats") or b"")
    if not counters:
        raise UsageError(
            f"{roots.proc}/diskstats has no disk's counters, so no I/O can be seen.",
            "In a container: run iopstui on the host. iopstui doctor shows what is missing.",
        )
    return counters


def _is_below_all(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> bool:
    if device.hidden or not device.size or device.disk or device.backing_file:
        return False
    return not any(name in devices and not devices[name].hidden for name in device.slaves)
