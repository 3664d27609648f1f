"""The backing file of a loop device, as the kernel reports it (loop(4), linux/loop.h)."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from collections.abc import Mapping

from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.stack import Backing

_LOOP_GET_STATUS64 = 0x4C05
_STATUS64_BYTES = 232


def read_backings(devices: Mapping[str, BlockDevice], roots: Roots) -> dict[str, Backing]:
    """Backing of each attached loop device, if permissions or the file's name show it."""
    backings = {}
    for device in devices.values():
        if device.backing_file:
            number = device.major, device.minor
            backing = read_backing(str(roots.dev / device.name), number)
            backing = backing or backing_of_file(device.backing_file)
            if backing is not None:
                backings[device.name] = backing
    return backings


def read_backing(node: str, number: tuple[int, int] | None = None) -> Backing | None:
    """The file or device below an attached loop device, even if it was renamed. ``number`` is the
    loop device's: a node of another device is not opened. ``None`` without permission, or if
    nothing is attached."""
    try:
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISBLK(info.st_mode):
            return None
        if number is not None and info.st_rdev != os.makedev(*number):
            return None
        answer = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_STATUS64_BYTES))
    except OSError:
        return None
    finally:
        os.close(fd)
    # struct loop_info64 begins with lo_device, lo_inode and lo_rdevice (huge_encode_dev)
    device, inode, below = struct.unpack_from("=QQQ", answer)
    return Backing(_number(device), inode, _number(below) if below else None)


def backing_of_file(path: str) -> Backing | None:
    """The backing file by its name, which may be another file now."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    number = os.major(info.st_dev), os.minor(info.st_dev)
    block = stat.S_ISBLK(info.st_mode)
    below = (os.major(info.st_rdev), os.minor(info.st_rdev)) if block else None
    return Backing(number, info.st_ino, below)


def _number(device: int) -> tuple[int, int]:
    return (device >> 8) & 0xFFF, (device & 0xFF) | ((device >> 12) & 0xFFF00)
