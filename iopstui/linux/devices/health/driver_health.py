"""Health of a device as the SCSI, md and multipath drivers report it.

Sources: Documentation/scsi/scsi_mid_low_api.rst and drivers/scsi/scsi_sysfs.c (ioerr_cnt,
iotmo_cnt, state), Documentation/ABI/testing/sysfs-fs-ext4, Documentation/admin-guide/md.rst,
drivers/nvme/host/sysfs.c (state).
"""

from __future__ import annotations

import os
import re

from iopstui.linux.devices.health.temperature import USABLE
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import parse_int, read_count, read_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import Array, FileSystemErrors
from iopstui.text import printable

# its files are gone, but it was there when the devices were read
GONE = "gone"
OFFLINE = ("offline", "transport-offline")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,16}")
_ACTION = re.compile(r"[a-z]{1,20}")
_MEMBERS = re.compile(r"([0-9]{1,9})(?: \([0-9]{1,9}\))?")
_MAX_LENGTH = 40


def parse_hex(text: str) -> int | None:
    """A counter of SCSI's, "0x1f"."""
    text = text.strip()
    return int(text, 16) if _HEX.fullmatch(text) else None


def parse_array(action: str, degraded: str, members: str, chunk: str = "") -> Array | None:
    """md/sync_action, md/degraded, md/raid_disks and md/chunk_size. Arrays without redundancy
    (raid0) lack the first two files; ``None`` if no other file is there. During a reshape
    raid_disks has the new number, then the old one: "5 (4)"."""
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
    """The state of a SCSI disk that the kernel sends no commands any more, else ""."""
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
    """The paths of a multipath device: an NVMe head's, or those of dm-multipath; else empty."""
    several = device.kind == "nvme" or device.layer == "dm-multipath"
    return device.slaves if several else ()


def read_lost_paths(device: BlockDevice, roots: Roots) -> tuple[tuple[str, str], ...]:
    """The paths that can't be used now, each with its state ("connecting", "offline"): those whose
    NVMe controller is not live or whose SCSI device is not running. One whose state can't be read
    is taken to work."""
    lost = []
    for name in paths_of(device):
        disk = f"{roots.sys}/class/block/{name.replace('/', '!')}"
        state = printable(read_text(f"{disk}/device/state") or "")[:_MAX_LENGTH]
        if not state and not os.path.exists(disk):
            state = GONE
        if state and state not in USABLE:
            lost.append((name, state))
    return tuple(lost)
