"""File systems whose files are kernel controls, not data (statfs(2), linux/magic.h); and
directories that prevent removal (ioctl_iflags(2))."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from pathlib import Path

_MAGIC = {
    0x9FA0: "proc", 0x62656572: "sysfs", 0x27E0EB: "cgroup", 0x63677270: "cgroup2",
    0x64626720: "debugfs", 0x74726163: "tracefs", 0x73636673: "securityfs",
    0x62656570: "configfs", 0x1CD1: "devpts", 0x19800202: "mqueue", 0x6165676C: "pstore",
    0xDE5E81E4: "efivarfs", 0xCAFE4A11: "bpf", 0x42494E4D: "binfmt_misc", 0xF97CFF8C: "selinuxfs",
    0x43415D53: "smackfs", 0x6E736673: "nsfs", 0x7655821: "resctrl", 0x65735543: "fusectl",
    0x67596969: "rpc_pipefs", 0x6E667364: "nfsd", 0xABBA1974: "xenfs", 0x9FA2: "usbfs",
    0x6C6F6F70: "binder", 0x50495045: "pipefs", 0x534F434B: "sockfs", 0x09041934: "anon_inode",
    0x50494446: "pidfs", 0x62646576: "bdev", 0x187: "autofs", 0x64646178: "dax",
    0x454D444D: "devmem",
}  # fmt: skip
_FS_IOC_GETFLAGS = 0x80086601 if struct.calcsize("P") == 8 else 0x80046601
_IMMUTABLE, _APPEND = 0x10, 0x20
_libc = ctypes.CDLL(None, use_errno=True)


def kernel_file_system(place: Path | int) -> str:
    """The kind of kernel file system below a file (path or descriptor); "" for any other."""
    answer = ctypes.create_string_buffer(512)
    if isinstance(place, int):
        failed = _libc.fstatfs(place, answer)
    else:
        failed = _libc.statfs(os.fsencode(place), answer)
    if failed:
        return ""
    # struct statfs begins with f_type, a long with 32 significant bits
    (kind,) = struct.unpack_from("L", answer)
    return _MAGIC.get(kind & 0xFFFFFFFF, "")


def removal_lock(directory: Path) -> str:
    """The directory flag (chattr(1)) that prevents removing its files, "a" or "i"; "" if none."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        (flags,) = struct.unpack("=I", fcntl.ioctl(fd, _FS_IOC_GETFLAGS, bytes(8))[:4])
    except OSError:
        return ""
    finally:
        os.close(fd)
    return "i" if flags & _IMMUTABLE else "a" if flags & _APPEND else ""
