"""Facts about a host's disks, for comparing hosts.

Several hosts may see the same disk (a SAN, a shared cloud volume). Each host refuses to write to
disks that it sees in use. Use by another host only shows when hosts are compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iopstui.format import first_of
from iopstui.linux.devices.aliases import read_backings
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots, read_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.stack import uses_of_device
from iopstui.text import printable

Object = dict[str, Any]
MAX_USES = 5
MAX_NAMED = 3


def describe_disks(write_paths: Sequence[str], roots: Roots) -> list[Object]:
    """Every disk of this host with a globally unique name (WWID), what uses it here, and which of
    the paths to be written (``writes``) are on it."""
    devices = read_devices(roots)
    backings = read_backings(devices, roots)
    nodes = {_path_device_number(path): path for path in write_paths}
    disks = []
    for device in devices.values():
        wwid = _wwid(device, devices, roots)
        written_path = nodes.get(_device_number(device))
        if wwid or written_path:
            disks.append({
                "name": device.name, "wwid": wwid, "writes": written_path,
                "area": [device.start, device.size],
                "uses": list(uses_of_device(device.name, devices, backings))[:MAX_USES],
            })  # fmt: skip
    return disks


def _wwid(device: BlockDevice, devices: Mapping[str, BlockDevice], roots: Roots) -> str | None:
    disk = devices.get(device.disk or "", device)
    directory = roots.sys / "block" / disk.name.replace("/", "!")
    wwid = read_text(directory / "device/wwid") or read_text(directory / "wwid")
    return printable(wwid) if wwid else None


def _device_number(device: BlockDevice) -> tuple[int, int]:
    return device.major, device.minor


def _path_device_number(path: str) -> tuple[int, int]:
    try:
        rdev = os.stat(path).st_rdev
    except OSError:
        return -1, -1
    return os.major(rdev), os.minor(rdev)


def disk_conflicts(hosts: Mapping[str, Sequence[Object]], parts: bool = False) -> Iterator[str]:
    """Messages about disks to which one host will write, while another one uses it or writes to it.
    ``hosts`` are the disks that each host has reported (``describe_disks``). ``parts``: each host
    writes to its own part, so they may share a disk."""
    for writer, disks in hosts.items():
        for disk in disks:
            if disk.get("writes") and disk.get("wwid"):
                yield from _shared_disk_conflicts(writer, disk, hosts, parts)


def _shared_disk_conflicts(
    writer: str, disk: Object, hosts: Mapping[str, Sequence[Object]], parts: bool
) -> Iterator[str]:
    wwid = printable(str(disk["wwid"]))
    conflict = f"{writer} would overwrite {printable(str(disk['writes']))} ({wwid})"
    for name, disks in hosts.items():
        for other in disks if name != writer else ():
            if other.get("wwid") != disk["wwid"]:
                continue
            if other.get("writes") and not (parts and _same_area(disk, other)):
                yield f"{conflict}, and so is {name}: it is the same disk"
            uses = other.get("uses")
            for use in uses if isinstance(uses, list) else ():
                yield f"{conflict}, and on {name} the same disk is in use: {printable(str(use))}"


def _same_area(disk: Object, other: Object) -> bool:
    return disk.get("area") is not None and disk.get("area") == other.get("area")


def duplicate_machines(boots: Mapping[str, str]) -> Iterator[str]:
    """Messages about hosts that are one machine under several names. ``boots`` are the boot ids
    that they reported ("": none)."""
    names: dict[str, list[str]] = {}
    for name, boot in boots.items():
        if boot:
            names.setdefault(boot, []).append(name)
    for aliases in names.values():
        if len(aliases) > 1:
            hosts = first_of(aliases, MAX_NAMED)
            yield (
                f"{hosts} are one machine under {len(aliases)} names, so its disk is counted once "
                "per name in the kernel's totals"
            )
