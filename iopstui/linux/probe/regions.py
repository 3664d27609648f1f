"""The disks that the probe follows, and the position of partitions on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from iopstui.linux.counters.procfs import parse_diskstats
from iopstui.linux.kernel_files import Roots, read_bytes, read_int
from iopstui.model.block.device import BlockDevice

MAX_REGIONS = 16


@dataclass(frozen=True, slots=True)
class Region:
    """Sectors ``first`` to ``last`` of the disk with this device number: a partition that is
    counted separately, or the whole disk (0 and ``None``). ``bios``: the disk has no requests of
    its own. ``paths``: major and minor of the hidden disks that carry its requests, instead of its
    own (NVMe multipath; a bio that came to the disk is completed under its path's number).
    ``level`` is the one in Exemplar."""

    name: str
    major: int
    minor: int
    first: int = 0
    last: int | None = None
    bios: bool = False
    paths: tuple[tuple[int, int], ...] = ()
    level: int = 0

    @property
    def devs(self) -> tuple[int, ...]:
        """The kernel's dev_t numbers of the devices that carry its requests (MKDEV of
        include/linux/kdev_t.h)."""
        numbers = self.paths or ((self.major, self.minor),)
        return tuple(sorted(major << 20 | minor for major, minor in numbers))


def regions(names: Iterable[str], devices: Mapping[str, BlockDevice], roots: Roots) -> list[Region]:
    """Regions of those ``names`` that have a device number; with a partition comes its disk. Only
    the first MAX_REGIONS are returned."""
    by_name: dict[str, Region] = {}
    for name in names:
        device = devices.get(name)
        if device is None or device.major < 0:
            continue
        whole_disk = devices.get(device.disk) if device.disk else device
        if whole_disk is None or whole_disk.major < 0:
            continue
        disk = _disk_region(whole_disk, devices, roots)
        by_name.setdefault(whole_disk.name, disk)
        if whole_disk is device:
            continue
        part = _partition_region(device, disk, roots)
        if part is not None:
            by_name[name] = part
    return list(by_name.values())[:MAX_REGIONS]


def _disk_region(disk: BlockDevice, devices: Mapping[str, BlockDevice], roots: Roots) -> Region:
    hidden = [n for n in disk.slaves if n in devices and devices[n].hidden]
    counters_by_name = (
        parse_diskstats(read_bytes(roots.proc / "diskstats") or b"", hidden) if hidden else {}
    )
    # a hidden disk has no file in sysfs with its number
    paths = tuple((counters.major, counters.minor) for counters in counters_by_name.values())
    bios = not disk.hctxs and not paths
    return Region(disk.name, disk.major, disk.minor, bios=bios, paths=paths)


def _partition_region(device: BlockDevice, whole_disk: Region, roots: Roots) -> Region | None:
    place = roots.sys / "class/block" / device.name.replace("/", "!")
    first, sectors = read_int(place / "start"), read_int(place / "size")
    if first is None or not sectors:
        return None
    last = first + sectors - 1
    return replace(whole_disk, name=device.name, first=first, last=last)
