"""What a loop device is made of, as the kernel holds it (loop(4), linux/loop.h)."""

from __future__ import annotations

import fcntl
import os
import struct

_LOOP_GET_STATUS64 = 0x4C05
_STATUS64_BYTES = 232


def backing_identity(node: str) -> tuple[int, int] | None:
    """(st_dev, st_ino) of the file below an attached loop device, whatever it is called by now;
    ``None`` if this user may not ask, or the device has none."""
    try:
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_STATUS64_BYTES))
    except OSError:
        return None
    finally:
        os.close(fd)
    # struct loop_info64 begins with lo_device (new_encode_dev) and lo_inode
    device, inode = struct.unpack_from("=QQ", answer)
    major, minor = (device >> 8) & 0xFFF, (device & 0xFF) | ((device >> 12) & 0xFFF00)
    return os.makedev(major, minor), inode
