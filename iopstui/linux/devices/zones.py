"""Zones of a zoned block device: their size, the limits on open ones, and how many are in which
condition.

Sources: Documentation/ABI/stable/sysfs-block (zoned, nr_zones, max_open_zones), include/uapi/linux/
blkzoned.h (BLKREPORTZONE, struct blk_zone). Reporting zones only reads."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from iopstui.linux.kernel_files import Roots, read_count, read_text
from iopstui.model.block.device import BlockDevice
from iopstui.text import printable

REPORT_ZONES = 0xC0101282
"""_IOWR(0x12, 130, struct blk_zone_report)"""
_HEAD = struct.Struct("=QII")
_ZONE = struct.Struct("=QQQBBBB4xQ24x")
_ZONES_PER_CALL = 4096
SECTOR = 512
CONDITIONS: Mapping[int, str] = {
    0x0: "without a write pointer", 0x1: "empty", 0x2: "implicitly open", 0x3: "explicitly open",
    0x4: "closed", 0xD: "read-only", 0xE: "full", 0xF: "offline",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Zones:
    """``model`` is "host-managed" or "host-aware"; ``size`` and ``capacity`` (the writable part) of
    a zone are in bytes; ``most_open`` and ``most_active`` are limits (``None``: none, or not
    known); ``conditions`` counts zones by condition, empty with the reason in ``problem``."""

    model: str
    count: int | None
    size: int | None
    most_open: int | None
    most_active: int | None
    capacity: int | None = None
    conditions: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Zone:
    """One zone, in sectors of 512 bytes."""

    start: int
    length: int
    capacity: int
    condition: int


def read_zones(roots: Roots, device: BlockDevice) -> Zones | None:
    """The zones of a device; ``None`` if it has none. Never fails."""
    queue = roots.sys / "class/block" / device.name.replace("/", "!") / "queue"
    model = read_text(queue / "zoned")
    if model in (None, "none"):
        return None
    sectors = read_count(queue / "chunk_sectors")
    zones = Zones(
        model=printable(model or ""),
        count=read_count(queue / "nr_zones"),
        size=sectors * SECTOR if sectors else None,
        most_open=read_count(queue / "max_open_zones") or None,
        most_active=read_count(queue / "max_active_zones") or None,
    )
    return _with_report(zones, device, roots)


def _with_report(zones: Zones, device: BlockDevice, roots: Roots) -> Zones:
    try:
        fd = os.open(roots.dev / device.name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            reported = list(_report(fd, zones.count or 0))
        finally:
            os.close(fd)
    except OSError as error:
        return _with_problem(zones, device, error)
    conditions = Counter(CONDITIONS.get(zone.condition, "unknown") for zone in reported)
    most = max((zone.capacity for zone in reported), default=0)
    return Zones(
        zones.model, zones.count, zones.size, zones.most_open, zones.most_active,
        most * SECTOR or None, dict(conditions),
    )  # fmt: skip


def _with_problem(zones: Zones, device: BlockDevice, error: OSError) -> Zones:
    if error.errno in (errno.EACCES, errno.EPERM):
        why = "The conditions of the zones need root: run with sudo."
    else:
        why = f"Cannot read the zones of {device.path}: {os.strerror(error.errno or 0)}."
    return Zones(
        zones.model, zones.count, zones.size, zones.most_open, zones.most_active, problem=why
    )


def _report(fd: int, count: int) -> Iterator[Zone]:
    """All zones of the device; ``count`` is their number, as the kernel states it."""
    sector = 0
    while count > 0:
        buffer = bytearray(_HEAD.size + _ZONE.size * min(_ZONES_PER_CALL, count))
        _HEAD.pack_into(buffer, 0, sector, min(_ZONES_PER_CALL, count), 0)
        fcntl.ioctl(fd, REPORT_ZONES, buffer)
        zones = parse_zones(bytes(buffer))
        yield from zones
        # stop without progress, or the same zones would be requested for ever
        following = zones[-1].start + zones[-1].length if zones else 0
        if following <= sector:
            return
        sector, count = following, count - len(zones)


def parse_zones(report: bytes) -> list[Zone]:
    """The zones in a report, without zones that it announces but lacks."""
    if len(report) < _HEAD.size:
        return []
    announced, flags = _HEAD.unpack_from(report)[1:]
    count = (len(report) - _HEAD.size) // _ZONE.size
    zones = []
    for number in range(min(announced, count)):
        start, length, _, _, condition, _, _, capacity = _ZONE.unpack_from(
            report, _HEAD.size + number * _ZONE.size
        )
        # without BLK_ZONE_REP_CAPACITY a zone can be written completely
        zones.append(Zone(start, length, capacity if flags & 1 else length, condition))
    return zones
