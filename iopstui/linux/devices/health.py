"""Health of a disk as the kernel knows it: SCSI, md and multipath, PCIe link, temperature, thin
pools."""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.kernel_files import Roots, list_names, parse_int, read_count, read_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import (
    POOL_FULL,
    POOL_UNREADABLE,
    Array,
    FileSystemErrors,
    Link,
    Temperature,
)
from iopstui.text import printable

# Health of a device as the SCSI, md and multipath drivers report it.
#
# Sources: Documentation/scsi/scsi_mid_low_api.rst and drivers/scsi/scsi_sysfs.c (ioerr_cnt,
# iotmo_cnt, state), Documentation/ABI/testing/sysfs-fs-ext4, Documentation/admin-guide/md.rst,
# drivers/nvme/host/sysfs.c (state).


# state of a device whose files are gone though it existed when the devices were read
GONE = "gone"
OFFLINE = ("offline", "transport-offline")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,16}")
_ACTION = re.compile(r"[a-z]{1,20}")
_MEMBERS = re.compile(r"([0-9]{1,9})(?: \([0-9]{1,9}\))?")
_MAX_LENGTH = 40


def parse_hex(text: str) -> int | None:
    """Parse a counter of SCSI such as "0x1f"."""
    text = text.strip()
    return int(text, 16) if _HEX.fullmatch(text) else None


def parse_array(action: str, degraded: str, members: str, chunk: str = "") -> Array | None:
    """Parse md/sync_action, md/degraded, md/raid_disks and md/chunk_size. Arrays without redundancy
    (raid0) lack the first two files; ``None`` if the state cannot be read from them. During a
    reshape raid_disks has the new and the old number: "5 (4)"."""
    count, size = _MEMBERS.fullmatch(members.strip()), parse_int(chunk.strip())
    if not action and not degraded and count and size:
        action, degraded = "idle", "0"
    action, missing = action.strip(), parse_int(degraded.strip())
    if missing is None or missing < 0 or not _ACTION.fullmatch(action):
        return None
    return Array(action, missing, (int(count[1]) or None) if count else None, size or None)


def read_array(disk: str) -> Array | None:
    """State of the md array whose directory in sysfs is ``disk``."""
    files = ("sync_action", "degraded", "raid_disks", "chunk_size")
    return parse_array(*(read_text(f"{disk}/md/{file}") or "" for file in files))


def read_queue_depth(disk: str) -> int | None:
    """Maximum number of outstanding commands of a SCSI disk."""
    return read_count(f"{disk}/device/queue_depth") or None


def read_errors(disk: str) -> tuple[int | None, int | None]:
    """Numbers of failed and timed-out commands of a SCSI disk (the latter on newer kernels)."""
    return (
        parse_hex(read_text(f"{disk}/device/ioerr_cnt") or ""),
        parse_hex(read_text(f"{disk}/device/iotmo_cnt") or ""),
    )


def read_offline(disk: str) -> str:
    """The state of a SCSI disk to which the kernel no longer sends commands; "" in any other
    state."""
    state = (read_text(f"{disk}/device/state") or "").strip()
    return state if state in OFFLINE else ""


def read_ext4_errors(device: BlockDevice, roots: Roots, now_s: float) -> FileSystemErrors | None:
    """The newest error on the device or a partition of it; ``now_s`` is the time of day."""
    found = []
    for name in (device.name, *device.partitions):
        place = f"{roots.sys}/fs/ext4/{name.replace('/', '!')}"
        count = read_count(f"{place}/errors_count")
        at = read_count(f"{place}/last_error_time")
        if count and at:
            found.append(FileSystemErrors(name, count, max(0.0, now_s - at)))
    return min(found, key=lambda one: one.age_s, default=None)


def paths_of(device: BlockDevice) -> tuple[str, ...]:
    """The paths of a multipath device: those of an NVMe head, or of dm-multipath; empty for other
    devices."""
    several = device.kind == "nvme" or device.layer == "dm-multipath"
    return device.slaves if several else ()


def read_lost_paths(device: BlockDevice, roots: Roots) -> tuple[tuple[str, str], ...]:
    """The paths that can't be used now, each with its state ("connecting", "offline"): paths whose
    NVMe controller is not live or whose SCSI device is not running. A path with an unreadable state
    counts as working."""
    lost = []
    for name in paths_of(device):
        disk = f"{roots.sys}/class/block/{name.replace('/', '!')}"
        state = printable(read_text(f"{disk}/device/state") or "")[:_MAX_LENGTH]
        if not state and not os.path.exists(disk):
            state = GONE
        if state and state not in USABLE:
            lost.append((name, state))
    return tuple(lost)


# The PCIe link that a disk is behind (Documentation/ABI/testing/sysfs-bus-pci).


_SPEED = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) GT/s(?: PCIe)?")
# PCIE_LNK_WIDTH_UNKNOWN in the kernel
_NO_WIDTH = 255


@dataclass(frozen=True, slots=True)
class LinkFiles:
    """Files of one PCI device's link. Its maximum speed and width never change."""

    speed: str
    width: str
    speed_most: float
    width_most: int


def parse_speed(text: str) -> float | None:
    """Parse a link speed: GT/s of "8.0 GT/s PCIe"; None for "Unknown"."""
    match = _SPEED.fullmatch(text.strip())
    return (float(match[1]) or None) if match else None


def parse_width(text: str) -> int | None:
    """Parse a link width in lanes; None for 0 and 255, which a device without a link has."""
    width = parse_int(text.strip())
    return width if width is not None and 0 < width < _NO_WIDTH else None


def find_link(disk: Path, roots: Roots) -> LinkFiles | None:
    """The link of the nearest PCI device above ``disk`` (a real directory in sysfs) that reports a
    link; None if there is none, or its maximum is unknown."""
    top = Path(os.path.realpath(roots.sys)) / "devices"
    for ancestor in disk.parents:
        if top not in ancestor.parents:
            break
        if os.path.isfile(ancestor / "current_link_speed"):
            return _files(ancestor)
    return None


def _files(pci: Path) -> LinkFiles | None:
    speed = parse_speed(read_text(pci / "max_link_speed") or "")
    width = parse_width(read_text(pci / "max_link_width") or "")
    if speed is None or width is None:
        return None
    now = str(pci / "current_link_speed"), str(pci / "current_link_width")
    return LinkFiles(*now, speed, width)


def read_link(files: LinkFiles) -> Link | None:
    """The current state of the link; None if a part of it is missing."""
    speed = parse_speed(read_text(files.speed) or "")
    width = parse_width(read_text(files.width) or "")
    if speed is None or width is None:
        return None
    return Link(speed, files.speed_most, width, files.width_most)


# Temperature of an NVMe or SATA disk.
#
# Sources: Documentation/hwmon/sysfs-interface.rst, drivers/nvme/host/hwmon.c,
# Documentation/hwmon/drivetemp.rst.
#
# Reading it sends a command to the disk, which a hung disk does not answer; and a SATA disk first
# finishes all queued commands, because this one can't be queued. So it is read rarely, and not at
# all while the disk has a problem.


# seconds between readings: NVMe drives read SMART logs beside their I/O
NVME_INTERVAL_S, OTHER_INTERVAL_S = 10.0, 60.0
# the states of an NVMe controller and a SCSI device that accept commands
USABLE = frozenset({"live", "running"})
_SENSOR = re.compile(r"hwmon[0-9]{1,5}")
# limits for plausible thresholds: one that was never set is 0 or 65535 kelvins; no disk works
# beyond these
_COLDEST, _HOTTEST = -60.0, 200.0


@dataclass(frozen=True, slots=True)
class Sensor:
    """A temperature sensor. ``directory`` has temp1_input; ``state`` is the file with the state of
    the disk or its controller (None: there is none)."""

    directory: str
    state: str | None
    interval_s: float


def parse_degrees(text: str) -> float | None:
    """Convert thousandths to degrees Celsius; None if implausible for a disk."""
    value = parse_int(text.strip())
    degrees = None if value is None else value / 1000
    return degrees if degrees is not None and _COLDEST <= degrees <= _HOTTEST else None


def find_sensors(disk: Path) -> Iterator[Sensor]:
    """Temperature sensors of the whole disk whose sysfs directory is ``disk``: below its SCSI
    device or its NVMe controller, or (older kernels) below the controller's PCI device."""
    return sensors_near(disk / "device")


def sensors_near(device: Path) -> Iterator[Sensor]:
    """Temperature sensors below the sysfs directory of a SCSI device or an NVMe controller."""
    state = device / "state"
    for above in (device, device / "device"):
        for place in (above, above / "hwmon"):
            for name in list_names(place):
                sensor = place / name
                if _SENSOR.fullmatch(name) and os.path.isfile(sensor / "temp1_input"):
                    slow = read_text(sensor / "name") != "nvme"
                    interval = OTHER_INTERVAL_S if slow else NVME_INTERVAL_S
                    yield Sensor(
                        str(sensor), str(state) if os.path.isfile(state) else None, interval
                    )


def read_temperature(sensor: Sensor) -> Temperature | None:
    """Read the current temperature; ``None`` if the disk has a problem, or doesn't report it. May
    block as long as the disk hangs."""
    if sensor.state is not None and read_text(sensor.state) not in USABLE:
        return None
    now = _sensor_degrees(sensor, "temp1_input")
    if now is None:
        return None
    limit = _sensor_degrees(sensor, "temp1_max")
    return Temperature(now, limit if limit is not None and limit > 0 else None)


class Temperatures:
    """The last temperature of each sensor, reused until it must be read again."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[float, Temperature | None]] = {}

    def now(self, sensor: Sensor, t: float) -> Temperature | None:
        """The temperature at ``t``, in seconds of any monotonic clock."""
        last = self._read.get(sensor.directory)
        if last is None or t - last[0] >= sensor.interval_s:
            last = self._read[sensor.directory] = (t, read_temperature(sensor))
        return last[1]


def _sensor_degrees(sensor: Sensor, name: str) -> float | None:
    return parse_degrees(read_text(f"{sensor.directory}/{name}") or "")


_TABLE_STATUS = 0xC138FD0C
_NO_FLUSH = 1 << 11
"""Flag of a status request; without it the pool first writes its metadata."""
_HEADER = struct.Struct("=3I3Ii3IQ128s129s7x")
_TARGET = struct.Struct("=QQiI16s")
_SIZE = 4096
STATES = (POOL_FULL, "ro", "Fail")
"""States in which a pool has no room for data or metadata, or does not work."""


def read_pool_state(dm_name: str, roots: Roots) -> str:
    """One of ``STATES``; "" for a working pool, for any other device, or if the state cannot be
    read; POOL_UNREADABLE if only root may read it."""
    name = os.fsencode(dm_name)
    fields = (4, 0, 0, _SIZE, _HEADER.size, 0, 0, _NO_FLUSH, 0, 0, 0, name, b"")
    request = bytearray(_HEADER.pack(*fields).ljust(_SIZE, b"\0"))
    try:
        control = os.open(roots.dev / "mapper/control", os.O_RDWR | os.O_CLOEXEC)
    except PermissionError:
        return POOL_UNREADABLE
    except OSError:
        return ""
    try:
        fcntl.ioctl(control, _TABLE_STATUS, request)
    except OSError:
        return ""
    finally:
        os.close(control)
    return parse_pool_state(bytes(request))


def parse_pool_state(reply: bytes) -> str:
    """The state in the kernel's reply (a header, then targets with their status), as
    ``read_pool_state`` returns it."""
    data_start, targets = struct.unpack_from("=II", reply, 16)
    if not targets or data_start + _TARGET.size > len(reply):
        return ""
    *_, kind = _TARGET.unpack_from(reply, data_start)
    status = reply[data_start + _TARGET.size :].partition(b"\0")[0].decode("ascii", "replace")
    if kind.rstrip(b"\0") != b"thin-pool":
        return ""
    return next((word for word in status.split() if word in STATES), "")
