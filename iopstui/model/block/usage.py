"""Who uses a block device, as far as its description tells (see safety/refusals.py for more)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iopstui.model.block.device import BlockDevice
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]


def usage(name: str, devices: Devices) -> tuple[str, ...]:
    """Every known reason why writing to the device would hit something in use, in words.

    Looks at the device, its partitions and everything stacked on them; at a partition's disk
    as a whole; at what a loop device is made of, and at other loop devices made of the same.
    """
    return tuple(dict.fromkeys(_reasons(name, devices, frozenset())))


def stacked_on(name: str, devices: Devices) -> tuple[str, ...]:
    """The device, its partitions, holders and loop devices, theirs too; without repeats."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        current = waiting.pop(0)
        device = devices.get(current)
        if device is not None and current not in found:
            found.append(current)
            waiting.extend((*device.partitions, *device.holders, *_loops_on(device, devices)))
    return tuple(found)


def describe(device: BlockDevice) -> str:
    """A stacked device's name with what it is: "dm-0 (LVM vg-root)", "md0 (raid1)"."""
    words = " ".join(word for word in (device.layer, device.dm_name) if word)
    return printable(f"{device.name} ({words})" if words else device.name)


def _reasons(name: str, devices: Devices, done: frozenset[str]) -> Iterator[str]:
    device = devices.get(name)
    if device is None or name in done:
        return
    done = done | {name}
    for member in stacked_on(name, devices):
        yield from _direct(devices[member], devices)
    disk = devices.get(device.disk or "")
    if disk is not None:
        yield from _direct(disk, devices)
        for holder in disk.holders:
            yield from _reasons(holder, devices, done)
    if device.backing_file:
        yield from _same_backing(device, devices, done)


def _direct(device: BlockDevice, devices: Devices) -> Iterator[str]:
    for mount in device.mounts:
        where = " in another mount namespace" if mount.elsewhere else ""
        place = printable(mount.mountpoint)
        yield f"{device.name} is mounted at {place} ({printable(mount.fstype)}){where}"
    if device.swap:
        yield f"{device.name} is in use as swap"
    for name in device.holders:
        holder = devices.get(name)
        yield f"{device.name} is part of {describe(holder) if holder else printable(name)}"
    for name in _loops_on(device, devices):
        yield f"{device.name} is attached to {name}"


def _loops_on(device: BlockDevice, devices: Devices) -> list[str]:
    nodes = {device.path}
    if device.dm_name:
        nodes.add(f"/dev/mapper/{device.dm_name}")
    return [other.name for other in devices.values() if other.backing_file in nodes]


def _same_backing(loop: BlockDevice, devices: Devices, done: frozenset[str]) -> Iterator[str]:
    for other in devices.values():
        if other.name == loop.name:
            continue
        if other.backing_file == loop.backing_file:
            yield f"{other.name} is made of the same file, {printable(other.backing_file or '')}"
            for member in stacked_on(other.name, devices):
                yield from _direct(devices[member], devices)
        if loop.name in _loops_on(other, devices):
            own = f"{other.name} is attached to {loop.name}"
            yield from (why for why in _reasons(other.name, devices, done) if why != own)
