"""The stack of block devices: layers above and below each device, and what uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from iopstui.model.block.device import BlockDevice
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]
# devices of these kinds share the device below, but each writes only to its own part
_SHARING_LAYERS = frozenset({"LVM", "bcache", "dm-raid", "Stratis", "partition"})
# LVM's name for the layer below an origin and its snapshots; a hyphen in a volume's name is doubled
_BELOW_SNAPSHOTS = re.compile(r".*[^-]-real")
# in Linux an extended partition (MBR) has only its first two sectors or 4 KiB, which contain the
# table of the logical partitions; these are numbered from 5
_EXTENDED_BYTES = 4096
_FIRST_LOGICAL = 5


@dataclass(frozen=True, slots=True)
class Backing:
    """The file or block device behind a loop device, identified by numbers: ``device`` (major,
    minor) and ``inode`` are those of the file or node, ``number`` that of the block device
    (``None``: a file)."""

    device: tuple[int, int]
    inode: int
    number: tuple[int, int] | None = None


Backings = Mapping[str, Backing]


class Stack:
    """All block devices of a machine and the layers between them.

    ``backings`` has what is behind loop devices; for a loop device that is not in it, only the
    file's name is known."""

    def __init__(self, devices: Devices, backings: Backings | None = None) -> None:
        self.devices = devices
        self._backings = backings or {}
        self._by_number = {(d.major, d.minor): d.name for d in devices.values() if d.major >= 0}
        self._by_path = {d.path: d.name for d in devices.values()}
        for device in devices.values():
            if device.dm_name:
                self._by_path[f"/dev/mapper/{device.dm_name}"] = device.name
        self._lower = {
            name: lower
            for name, device in devices.items()
            if device.backing_file and (lower := self._backing_device(device)) is not None
        }
        self._loops: dict[str, list[str]] = {}
        for loop, lower in self._lower.items():
            self._loops.setdefault(lower, []).append(loop)

    def loops_on(self, name: str) -> list[str]:
        """The loop devices that are backed by this device."""
        return self._loops.get(name, [])

    def directly_above(self, name: str) -> tuple[str, ...]:
        """Devices directly on top: partitions, holders, loop devices."""
        device = self.devices.get(name)
        if device is None:
            return ()
        return (*device.partitions, *device.holders, *self.loops_on(name))

    def directly_below(self, name: str) -> tuple[str, ...]:
        """Devices directly below: a partition's disk, slaves, a loop device's backing."""
        device = self.devices.get(name)
        if device is None:
            return ()
        disk = (device.disk,) if device.disk else ()
        lower = self._lower.get(name)
        return (*disk, *device.slaves, *((lower,) if lower else ()))

    def above(self, name: str) -> tuple[str, ...]:
        """The device and everything on it, without repeats."""
        return self._followed(name, self.directly_above)

    def below(self, name: str) -> tuple[str, ...]:
        """All devices below this one, the nearest first, without itself."""
        return self._followed(name, self.directly_below)[1:]

    def same_file(self, name: str) -> list[str]:
        """Other loop devices that are backed by the same file."""
        device = self.devices.get(name)
        if device is None or not device.backing_file or name in self._lower:
            return []
        return [
            other.name
            for other in self.devices.values()
            if other.name != name and other.backing_file and self._same_storage(device, other)
        ]

    def overlapping(self, name: str) -> dict[str, str]:
        """Other devices that may use the same blocks as this one, each with the device below both.
        These are devices on the same lower device, unless each has its own blocks there, and loop
        devices backed by the same file."""
        overlaps: dict[str, str] = {}
        related = {*self.above(name), *self.below(name)}
        for current in (name, *self.below(name)):
            for lower in self.directly_below(current):
                for child in self.directly_above(lower):
                    if child in related or self._have_separate_blocks(current, child):
                        continue
                    overlaps.update(
                        {device: lower for device in self.above(child) if device not in related}
                    )
            for twin in self.same_file(current):
                overlaps.update(
                    {device: current for device in self.above(twin) if device not in related}
                )
        return overlaps

    def snapshots(self, name: str) -> tuple[str, ...]:
        """LVM snapshots that copy old blocks before a write through this device replaces them, and
        everything on these snapshots. Each write to the origin takes space in the snapshot, and a
        full snapshot is lost."""
        snapshots: dict[str, None] = {}
        for current in (name, *self.below(name)):
            lower = self.directly_below(current)
            # a snapshot also lies on a second device, which keeps its own blocks
            if len(lower) == 1 and self._is_below_snapshots(lower[0]):
                for child in self.directly_above(lower[0]):
                    snapshots.update(dict.fromkeys(self.above(child) if child != current else ()))
        return tuple(snapshots)

    def _is_below_snapshots(self, name: str) -> bool:
        device = self.devices.get(name)
        if device is None or device.layer != "LVM":
            return False
        return _BELOW_SNAPSHOTS.fullmatch(device.dm_name or "") is not None

    def _have_separate_blocks(self, name: str, other_name: str) -> bool:
        """Whether two devices on the same device never have a block in common."""
        first, second = self.devices.get(name), self.devices.get(other_name)
        if first is None or second is None:
            return False
        if first.disk and second.disk:
            return not _overlap(first, second)
        if first.kind == second.kind == "md":
            return True
        return first.layer in _SHARING_LAYERS and first.layer == second.layer

    def _followed(self, name: str, step: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
        reached: dict[str, None] = {}
        waiting = [name]
        while waiting:
            current = waiting.pop(0)
            if current in self.devices and current not in reached:
                reached[current] = None
                waiting.extend(step(current))
        return tuple(reached)

    def _backing_device(self, loop: BlockDevice) -> str | None:
        backing = self._backings.get(loop.name)
        if backing is not None:
            return self._by_number.get(backing.number) if backing.number else None
        return self._by_path.get(loop.backing_file or "")

    def _same_storage(self, loop: BlockDevice, other: BlockDevice) -> bool:
        first, second = self._backings.get(loop.name), self._backings.get(other.name)
        if first is not None and second is not None:
            return (first.device, first.inode) == (second.device, second.inode)
        return loop.backing_file == other.backing_file


def _overlap(partition: BlockDevice, other: BlockDevice) -> bool:
    """Whether two partitions of a disk have blocks in common, or one contains the other's table."""
    if _is_table_of(partition, other) or _is_table_of(other, partition):
        return True
    if None in (partition.start, other.start):
        return False
    first, second = sorted(
        ((partition.start or 0, partition.size or 0), (other.start or 0, other.size or 0))
    )
    return first[0] + first[1] > second[0]


def _is_table_of(device: BlockDevice, logical: BlockDevice) -> bool:
    if device.size is None or device.size > _EXTENDED_BYTES:
        return False
    return _partition_number(device) < _FIRST_LOGICAL <= _partition_number(logical)


def _partition_number(partition: BlockDevice) -> int:
    """Return a partition's number, the digits at the end of its name; 0 without digits."""
    digits = re.search(r"\d+$", partition.name.removeprefix(partition.disk or ""))
    return int(digits[0]) if digits else 0


def backing_files(names: Iterable[str], backings: Backings) -> set[tuple[tuple[int, int], int]]:
    """The files behind the loop devices among ``names``, each as (device, inode)."""
    files = (backings[name] for name in names if name in backings)
    return {(file.device, file.inode) for file in files if file.number is None}


def uses_of_device(
    name: str, devices: Devices, backings: Backings | None = None
) -> tuple[str, ...]:
    """Every known reason why writing to the device would hit something in use, in words.

    Looks at the device, its partitions and everything stacked on them; at everything below it; and
    at other devices with the same blocks: loop and device-mapper devices that share a device below,
    overlapping partitions, loop devices backed by the same file, LVM snapshots. ``backings``: see
    ``Stack``."""
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
        # a holder that is not among the known devices
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
    """Describe how ``child`` uses the device; nothing for a partition, which alone is no use."""
    device = stack.devices.get(child)
    if child in stack.devices[name].holders:
        yield f"{name} is part of {describe_stacked(device) if device else printable(child)}"
    elif child in stack.loops_on(name):
        yield f"{name} is attached to {child}"
