"""Paths of cgroups by their numbers, as the kernel gives them to BPF programs (kernfs ids)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from pathlib import Path

from iopstui.linux.roots import Roots

# version 2 alone, beside version 1, and the hierarchy of version 1 that counts I/O
MOUNTS = ("fs/cgroup", "fs/cgroup/unified", "fs/cgroup/blkio")
# struct file_handle with a kernfs id (exportfs.h, FILEID_KERNFS; Linux 5.5)
_HANDLE = struct.Struct("=IiQ")
_FILEID_KERNFS = 0xFE
_MAX_CACHED = 4096


class CgroupPaths:
    """Looks up and remembers paths; "" for a group that is gone or that nobody may see."""

    def __init__(self, roots: Roots) -> None:
        self._places = [roots.sys / mount for mount in MOUNTS]
        self._paths: dict[int, str] = {}
        self._mounts: list[tuple[Path, int]] | None = None
        self._libc: ctypes.CDLL | None = None

    def path(self, number: int) -> str:
        """The path below the mount point: "/system.slice/x.service"; "/" for the root."""
        path = self._paths.get(number)
        if path is None:
            if len(self._paths) >= _MAX_CACHED:
                self._paths.clear()
            path = self._paths[number] = self._look_up(number)
        return path

    def close(self) -> None:
        """Close the mount points. Idempotent."""
        mounts, self._mounts = self._mounts or [], None
        for _, fd in mounts:
            with contextlib.suppress(OSError):
                os.close(fd)

    def _look_up(self, number: int) -> str:
        if self._mounts is None:
            self._mounts = list(_open_directories(self._places))
        for place, mount in self._mounts:
            fd = self._open(mount, number)
            if fd < 0:
                continue
            try:
                path = os.readlink(f"/proc/self/fd/{fd}")
            except OSError:
                continue
            finally:
                os.close(fd)
            # one of another hierarchy, or one that was removed meanwhile
            top = os.path.realpath(place)
            if path == top or path.startswith(f"{top}/"):
                return path[len(top) :] or "/"
        return ""

    def _open(self, mount: int, number: int) -> int:
        if self._libc is None:
            self._libc = ctypes.CDLL(None, use_errno=True)
        handle = ctypes.create_string_buffer(_HANDLE.pack(8, _FILEID_KERNFS, number))
        try:
            flags = os.O_PATH | os.O_CLOEXEC
            return int(self._libc.open_by_handle_at(mount, handle, flags))
        except AttributeError:  # a C library without it
            return -1


def _open_directories(places: list[Path]) -> list[tuple[Path, int]]:
    directories = []
    for place in places:
        with contextlib.suppress(OSError):
            directories.append((place, os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)))
    return directories
