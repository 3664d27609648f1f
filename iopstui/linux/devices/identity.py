"""Identify a disk reliably: names like sda change with the order of detection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from iopstui.linux.kernel_files import Roots, read_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, FILE, Target
from iopstui.text import printable

_NAMES = ("wwid", "device/wwid", "dm/uuid", "md/uuid", "loop/backing_file")
"""Attributes below /sys/class/block/NAME that hold a WWN or another permanent name."""


def device_identity(device: BlockDevice, roots: Roots) -> str:
    """Permanent identity of a device: its WWN, serial number or UUID, or its device number if it
    has none of these (a virtual disk without a serial number); then its partition number and its
    size."""
    directory = roots.sys / "class/block" / device.name
    identifiers = [text for name in _NAMES if (text := read_text(directory / name))]
    identifiers += [device.serial] if device.serial else []
    names = [printable(text) for text in dict.fromkeys(identifiers)]
    part = read_text(directory / "partition")
    return " ".join(
        [
            *(names or [f"{device.major}:{device.minor}"]),
            *([f"partition {part}"] if part else []),
            f"{device.size} B",
        ]
    )


def target_identity(
    target: Target, devices: Mapping[str, BlockDevice], roots: Roots, creates_files: bool = False
) -> str:
    """The target's paths by inode and device number, and the devices below them by permanent
    identity. ``creates_files``: jobs create files of these names, so their directories stand for
    them."""
    parts = []
    for place in target.places:
        if place.kind == DEVICE:
            parts.append(place.path)
        else:
            path = Path(place.path)
            parts.append(
                f"{path} {_inode(path.parent if creates_files and place.kind == FILE else path)}"
            )
    for name in target.tree:
        if name in devices:
            parts.append(f"{name}={device_identity(devices[name], roots)}")
    return ", ".join(parts)


def _inode(path: Path) -> str:
    try:
        info = path.stat()
    except OSError:
        return "not there"
    return f"{os.major(info.st_dev)}:{os.minor(info.st_dev)}/{info.st_ino}"
