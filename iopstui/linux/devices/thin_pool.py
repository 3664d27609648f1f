"""Whether a thin pool of device-mapper can still be written: the status that dmsetup prints, which
sysfs does not have. Asking for it needs root and writes nothing (linux/dm-ioctl.h)."""

from __future__ import annotations

import fcntl
import os
import struct

from iopstui.linux.roots import Roots

_TABLE_STATUS = 0xC138FD0C
_NO_FLUSH = 1 << 11
"""Flag without which a pool first writes its metadata."""
_HEADER = struct.Struct("=3I3Ii3IQ128s129s7x")
_TARGET = struct.Struct("=QQiI16s")
_SIZE = 4096
STATES = ("out_of_data_space", "ro", "Fail")
"""States in which a pool has no room for data or metadata, or does not work."""


def read_pool_state(dm_name: str, roots: Roots) -> str:
    """One of ``STATES``; "" for a working pool, any other device, or if it cannot be read."""
    name = os.fsencode(dm_name)
    fields = (4, 0, 0, _SIZE, _HEADER.size, 0, 0, _NO_FLUSH, 0, 0, 0, name, b"")
    request = bytearray(_HEADER.pack(*fields).ljust(_SIZE, b"\0"))
    try:
        control = os.open(roots.dev / "mapper/control", os.O_RDWR | os.O_CLOEXEC)
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
