"""The load of the machine's disks and memory, and the disks with I/O."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping

from iopstui.errors import UsageError
from iopstui.linux.counters.procfs import parse_diskstats
from iopstui.linux.devices.target import LIST_DEVICES, device_tree
from iopstui.linux.kernel_files import Roots, read_bytes
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target, TargetPath, combine_targets
from iopstui.model.figures.disk import DiskRates, disk_rates
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
    """The counters of all disks. UsageError if /proc has none."""
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


class DiskLoads:
    """Reads /proc/diskstats on request and returns rates since the previous call."""

    def __init__(
        self, roots: Roots | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file = (roots or Roots()).proc / "diskstats"
        self._clock = clock
        self._before = parse_diskstats(b"")
        self._at = 0.0

    def __call__(self, names: Collection[str] | None = None) -> Mapping[str, DiskRates]:
        """Rates by kernel name, of all devices or of these ``names``; empty at the first call, or
        if the file can't be read. A device that is new, that was not asked for before, or that has
        another number than before, has no rates yet."""
        now, counters = self._clock(), parse_diskstats(read_bytes(self._file) or b"", names)
        seconds, before = now - self._at, self._before
        self._at, self._before = now, counters
        rates_by_name = {
            name: disk_rates(current, before[name], seconds)
            for name, current in counters.items()
            if name in before
        }
        return {name: rates for name, rates in rates_by_name.items() if rates is not None}


# Amount of memory in the machine (/proc/meminfo).


_TOTAL = re.compile(rb"^MemTotal:\s+(\d+) kB$", re.MULTILINE)


_AVAILABLE = re.compile(rb"^MemAvailable:\s+(\d+) kB$", re.MULTILINE)


def parse_memory(text: bytes) -> int | None:
    """MemTotal in bytes; ``None`` if it is missing."""
    match = _TOTAL.search(text)
    return int(match[1]) << 10 if match else None


def read_memory(roots: Roots) -> int | None:
    """The machine's memory in bytes; ``None`` if it can't be read."""
    return parse_memory(read_bytes(str(roots.proc / "meminfo")) or b"")


def read_available(roots: Roots) -> int | None:
    """Bytes that programs may still take without swapping; ``None`` if that can't be read."""
    match = _AVAILABLE.search(read_bytes(str(roots.proc / "meminfo")) or b"")
    return int(match[1]) << 10 if match else None
