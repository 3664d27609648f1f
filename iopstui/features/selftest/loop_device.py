"""A loop device that the kernel detaches by itself once no process has it open (loop(4))."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

# linux/loop.h
LOOP_SET_FD, LOOP_SET_STATUS64, LOOP_CTL_GET_FREE = 0x4C00, 0x4C04, 0x4C82
LO_FLAGS_AUTOCLEAR = 4
_INFO = struct.Struct("=5Q4I64s64s32s2Q")
CONTROL = "/dev/loop-control"
MAX_ATTEMPTS = 8


@contextlib.contextmanager
def read_only_loop(backing: Path) -> Iterator[str]:
    """The path of a read-only loop device over the file; detached when the block is left, or when
    this process ends. OSError where none can be had."""
    with contextlib.ExitStack() as stack:
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
        stack.callback(os.close, control)
        file = os.open(backing, os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, file)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            path = f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
            device = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, device)
            try:
                fcntl.ioctl(device, LOOP_SET_FD, file)
                break
            except OSError as error:
                # another program was faster
                if error.errno != errno.EBUSY or attempt == MAX_ATTEMPTS:
                    raise
        name = os.fsencode(backing)[:63]
        info = _INFO.pack(0, 0, 0, 0, 0, 0, 0, 0, LO_FLAGS_AUTOCLEAR, name, b"", b"", 0, 0)
        fcntl.ioctl(device, LOOP_SET_STATUS64, info)
        yield path
