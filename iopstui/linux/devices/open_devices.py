"""The block devices on which a process has files open (proc_pid_fd(5))."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from iopstui.linux.devices.target import device_tree
from iopstui.linux.devices.usage.mounts import DeviceFinder
from iopstui.linux.devices.usage.openers import open_files
from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice


def devices_of(pid: int, devices: Mapping[str, BlockDevice], roots: Roots) -> frozenset[str] | None:
    """The block devices that a process has open, or has open files on, with all that lies below
    them; ``None`` if its files can't be seen."""
    if not os.access(roots.proc / str(pid) / "fd", os.R_OK | os.X_OK):
        return None
    finder = DeviceFinder(devices, roots)
    numbers = {
        info.st_rdev if stat.S_ISBLK(info.st_mode) else info.st_dev
        for info in open_files(pid, roots)
    }
    names = (finder.by_number(os.major(number), os.minor(number)) for number in numbers)
    return frozenset(
        below for name in names if name is not None for below in device_tree(name, devices, roots)
    )
