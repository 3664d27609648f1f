"""Which disks the probe follows, and where a partition lies on its disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iopstui.linux.probe.script import Region
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_int
from iopstui.model.block.device import BlockDevice

MOST = 16


def regions(names: Iterable[str], devices: Mapping[str, BlockDevice], roots: Roots) -> list[Region]:
    """Those of ``names`` that have a device number, a partition with its disk. Where there are more
    than MOST, the first ones."""
    found: dict[str, Region] = {}
    for name in names:
        device = devices.get(name)
        if device is None or device.major < 0:
            continue
        whole = devices.get(device.disk) if device.disk else device
        if whole is None or whole.major < 0:
            continue
        bios = not whole.hctxs
        found.setdefault(whole.name, Region(whole.name, whole.major, whole.minor, bios=bios))
        if whole is device:
            continue
        part = _part(device, whole, roots)
        if part is not None:
            found[name] = part
    return list(found.values())[:MOST]


def _part(device: BlockDevice, whole: BlockDevice, roots: Roots) -> Region | None:
    place = roots.sys / "class/block" / device.name.replace("/", "!")
    first, sectors = read_int(place / "start"), read_int(place / "size")
    if first is None or not sectors:
        return None
    last = first + sectors - 1
    return Region(device.name, whole.major, whole.minor, first, last, not whole.hctxs)
