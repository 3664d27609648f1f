"""What the picker says of a device: its facts, who uses it, what it does now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from iopstui import format as f
from iopstui.model.block.device import BlockDevice
from iopstui.model.rates import DiskRates

HEAD = "iopstui: choose what to measure"
MOST_CARRIED = 4
TITLES = ("device", "IOPS", "MiB/s", "util%", "size", "in use", "kind", "model", "scheduler")
RIGHT = frozenset({"IOPS", "MiB/s", "util%", "size"})
LIVE = TITLES[1:4]
Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row that is no device. ``name`` is what is chosen by it."""

    name: str
    words: str

    @property
    def cells(self) -> Cells:
        """Behind its name."""
        return ("", "", "", "", self.words, "", "", "")


SCRATCH = Entry("scratch file", "made here, removed after")
LESSONS = Entry("lessons", "guided experiments, scratch file")
DEMO = Entry("demo", "a recording, played")
DOCTOR = Entry("doctor", "what this machine allows and lacks")


def cells(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> Cells:
    """The columns behind a device's name that don't change by themselves; the live ones empty."""
    size, kind, _, model, scheduler = facts(device)
    return ("", "", "", size, carries(device, devices), kind, model, scheduler)


def live(rates: DiskRates | None) -> Cells:
    """IOPS, MiB/s and util of the last second; empty until there was one."""
    if rates is None:
        return ("", "", "")
    return (f.number(rates.ios_s), f.mib(rates.bytes_s), f.percent(rates.util))


def facts(device: BlockDevice) -> tuple[str, str, str, str, str]:
    """Size, kind, use, model and scheduler of a device, in words."""
    kind = device.kind
    if device.disk:
        kind = f"partition of {device.disk}"
    elif device.slaves:
        kind += f" on {', '.join(device.slaves)}"
    model = device.model or device.backing_file or ""
    scheduler = (device.queue.scheduler if device.queue else None) or ""
    return (f.size(device.size), kind, use(device), model, scheduler)


def use(device: BlockDevice) -> str:
    """Who uses the device, in words; "free" if no user of it can be seen."""
    parts = [f"mounted at {mount.mountpoint}" for mount in device.mounts]
    if device.swap:
        parts.append("swap")
    if device.holders:
        parts.append(f"under {', '.join(device.holders)}")
    if device.read_only:
        parts.append("read-only")
    if not parts and device.partitions:
        return f.counted(len(device.partitions), "partition")
    return ", ".join(parts) or "free"


def carries(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> str:
    """As ``use``; of a disk that is used by what lies on it: what that is."""
    found = list(dict.fromkeys(_carried(device, devices, frozenset())))
    if device.mounts or device.swap or not found:
        return use(device)
    more = ", ..." if len(found) > MOST_CARRIED else ""
    return f"carries {', '.join(found[:MOST_CARRIED])}{more}"


def _carried(
    device: BlockDevice, devices: Mapping[str, BlockDevice], above: frozenset[str]
) -> Iterator[str]:
    """Mount points and swap of everything that lies on it, in its order."""
    for name in (*device.partitions, *device.holders):
        child = devices.get(name)
        if child is None or name in above:
            continue
        yield from (mount.mountpoint for mount in child.mounts)
        if child.swap:
            yield "swap"
        yield from _carried(child, devices, above | {device.name})
