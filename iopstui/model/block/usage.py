"""Uses of a block device that can be seen from its description (safety/refusals.py finds more)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iopstui.model.block.device import BlockDevice
from iopstui.model.block.stack import Backings, Stack
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]


def uses_of_device(
    name: str, devices: Devices, backings: Backings | None = None
) -> tuple[str, ...]:
    """Every known reason why writing to the device would hit something in use, in words.

    Looks at the device, its partitions and everything stacked on them; at everything below it;
    and at what else has the same blocks: loop devices and device-mapper devices on what lies
    below it, overlapping partitions, loop devices made of the same file, LVM snapshots.
    ``backings``: see ``Stack``."""
    if name not in devices:
        return ()
    return tuple(dict.fromkeys(_find_uses(name, Stack(devices, backings))))


def describe_stacked(device: BlockDevice) -> str:
    """Name and kind of a stacked device: "dm-0 (LVM vg-root)", "md0 (raid1)"."""
    kind = " ".join(word for word in (device.layer, device.dm_name) if word)
    return printable(f"{device.name} ({kind})" if kind else device.name)


def _find_uses(name: str, stack: Stack) -> Iterator[str]:
    for member in stack.above(name):
        yield from _direct_uses(stack.devices[member])
        for child in stack.directly_above(member):
            yield from _describe_use_by(member, child, stack)
    for member in stack.below(name):
        yield from _direct_uses(stack.devices[member])
    for overlapping, lower in stack.overlapping(name).items():
        if overlapping in stack.directly_above(lower):
            yield from _describe_use_by(lower, overlapping, stack)
        elif overlapping in stack.same_file(lower):
            file = printable(stack.devices[lower].backing_file or "")
            yield f"{overlapping} uses the same file, {file}"
        yield from _direct_uses(stack.devices[overlapping])
        for child in stack.directly_above(overlapping):
            yield from _describe_use_by(overlapping, child, stack)
    for overlapping in stack.snapshots(name):
        yield from _direct_uses(stack.devices[overlapping])
        for child in stack.directly_above(overlapping):
            yield from _describe_use_by(overlapping, child, stack)
    for lower in stack.below(name):
        # a holder that has no description
        for holder in stack.devices[lower].holders:
            if holder not in stack.devices:
                yield f"{lower} is part of {printable(holder)}"


def _direct_uses(device: BlockDevice) -> Iterator[str]:
    for mount in device.mounts:
        location = " in another mount namespace" if mount.elsewhere else ""
        place = printable(mount.mountpoint)
        yield f"{device.name} is mounted at {place} ({printable(mount.fstype)}){location}"
    if device.swap:
        yield f"{device.name} is in use as swap"


def _describe_use_by(name: str, child: str, stack: Stack) -> Iterator[str]:
    """Describe that ``child`` on the device has it in use; a partition alone has not."""
    device = stack.devices.get(child)
    if child in stack.devices[name].holders:
        yield f"{name} is part of {describe_stacked(device) if device else printable(child)}"
    elif child in stack.loops_on(name):
        yield f"{name} is attached to {child}"
