"""The block devices on which a process has files open or mapped (proc_pid_fd(5),
proc_pid_fdinfo(5), proc_pid_maps(5))."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from iopstui.linux.counters.whole_disks import is_remote
from iopstui.linux.devices.aliases import layer_numbers
from iopstui.linux.devices.target import device_tree
from iopstui.linux.devices.usage.mounts import DeviceFinder, MountEntry, parse_mountinfo, read_btrfs
from iopstui.linux.kernel_files import Roots, decode, list_names, read_bytes
from iopstui.model.answer.use import ELSEWHERE
from iopstui.model.block.device import BlockDevice

MAX_FILES = 2000
MAX_MAPS_BYTES = 64 << 10
"""How much of the mappings is read: the kernel lists the newest ones before the libraries."""
_MAPPING = re.compile(
    rb"^[0-9a-f]+-[0-9a-f]+ [r-]([w-])([x-])([ps]) [0-9a-f]+ ([0-9a-f]+):([0-9a-f]+) (\d+) +(/.*)$",
    re.M,
)
_PROGRAMS = (b"/usr/", b"/lib")
"""Files below these paths are programs and their libraries. They do not count as data; otherwise
every process would have files on the root disk."""
_FLAGS, _MOUNT = (
    re.compile(rb"^flags:\s*([0-7]{1,20})$", re.M),
    re.compile(rb"^mnt_id:\s*(\d+)$", re.M),
)

KnownFiles = dict[tuple[str, str], tuple[str, int]]
"""For each open file its mount and its access mode, by the path below /proc and the file's own
path."""
ByAccess = tuple[frozenset[str], frozenset[str]]
"""Devices of files that are open for reading, and devices of files that are open for writing."""


class OpenDevices:
    """Finds the devices on which processes have files open, from the files' mounts: accessing a
    file could hang if its server is gone. ``known`` are the files of an earlier reading, which are
    not fully read again; ``seen`` are the files of this reading."""

    def __init__(
        self, devices: Mapping[str, BlockDevice], roots: Roots, known: KnownFiles | None = None
    ) -> None:
        self.seen: KnownFiles = {}
        self._known = known or {}
        self._devices, self._roots = devices, roots
        self._finder = DeviceFinder(devices, roots)
        self._btrfs: dict[str, frozenset[str]] | None = None
        self._mounts: dict[str, dict[str, tuple[str, ...]]] = {}
        self._below: dict[tuple[str, ...], frozenset[str]] = {}

    def of_process(self, place: str, mapped: bool = True) -> ByAccess:
        """The names of the devices, with all devices below them, and ELSEWHERE if a server or a
        program has some of the files. ``place`` is the process's directory. ``mapped``: include
        files that it maps; their descriptors may be closed."""
        reads, writes = self._by_access(place, mapped)
        return frozenset().union(*reads), frozenset().union(*writes)

    def sole(self, pid: int, mapped: bool = True) -> ByAccess | None:
        """The devices that are common to all files of a process, with the devices below them: its
        reads or writes go there (empty: nothing in common). ``None`` if its files can't be read."""
        place = f"{self._roots.proc}/{pid}"
        if not os.access(f"{place}/fd", os.R_OK | os.X_OK):
            return None
        reads, writes = self._by_access(place, mapped)
        nothing: frozenset[str] = frozenset()
        return (
            frozenset.intersection(*reads) if reads else nothing,
            frozenset.intersection(*writes) if writes else nothing,
        )

    def _by_access(
        self, place: str, mapped: bool
    ) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        """The devices of each file open for reading, and of each open for writing."""
        files = list(self._files(place, mapped))
        reads, writes = (
            [names for names, access in files if access in (mode, os.O_RDWR)]
            for mode in (os.O_RDONLY, os.O_WRONLY)
        )
        return reads, writes

    def _files(self, place: str, mapped: bool) -> Iterator[tuple[frozenset[str], int]]:
        """The devices of each open file (with all devices below them) and its access mode
        (open(2))."""
        mounts: dict[str, tuple[str, ...]] | None = None
        for name, mount, access in (*self._open(place), *(self._mapped(place) if mapped else ())):
            if name is not None:
                names: tuple[str, ...] = (name,)
            else:
                mounts = self._mounts_of(place) if mounts is None and mount else mounts
                names = (mounts or {}).get(mount, ())
                if names == ELSEWHERE and access in (os.O_RDONLY, os.O_WRONLY):
                    names = (ELSEWHERE[access],)
            if names:
                if names not in self._below:
                    self._below[names] = frozenset(d for name in names for d in self._tree(name))
                yield self._below[names], access

    def _open(self, place: str) -> Iterator[tuple[str | None, str, int]]:
        """For each open file (block device if the file is one, number of its mount, access
        mode)."""
        for number in list_names(f"{place}/fd")[:MAX_FILES]:
            file = f"{place}/fd/{number}"
            try:
                path = os.readlink(file)
            except OSError:
                continue
            is_device = path.startswith("/dev/")
            name = self._finder.by_path(path) if is_device else None
            # skip terminals and /dev/null; deeper paths may be files on a disk mounted below /dev
            is_none = is_device and (path.count("/") == 2 or path.startswith("/dev/pts/"))
            if path[:1] != "/" or (name is None and is_none):
                continue
            info = self._known.get((file, path)) or _file_info(f"{place}/fdinfo/{number}")
            self.seen[file, path] = info
            yield name, *info

    def _mapped(self, place: str) -> Iterator[tuple[str | None, str, int]]:
        """Mapped files, except those with code: for each the block device if the file is one, the
        number of the file system's device, and the access mode."""
        try:
            with open(f"{place}/maps", "rb") as file:
                rows = _MAPPING.findall(file.read(MAX_MAPS_BYTES))
        except OSError:
            return
        code = {row[3:6] for row in rows if row[1] == b"x"}
        found = {
            (path if path.startswith(b"/dev/") else b"", f"{int(major, 16)}:{int(minor, 16)}",
             os.O_RDWR if (write, shared) == (b"w", b"s") else os.O_RDONLY)
            for write, _, shared, major, minor, inode, path in rows
            if (major, minor, inode) not in code and not path.startswith(_PROGRAMS)
        }  # fmt: skip
        for path, number, access in found:
            yield self._finder.by_path(decode(path)), number, access

    def _mounts_of(self, place: str) -> dict[str, tuple[str, ...]]:
        text = decode(read_bytes(f"{place}/mountinfo") or b"")
        if text not in self._mounts:
            self._mounts[text] = dict(self._read_mounts(text))
        return self._mounts[text]

    def _read_mounts(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        for line in text.split("\n"):
            for entry in parse_mountinfo(line):
                found = self._of_overlay(entry) or [self._finder.of_mount(entry)]
                names = tuple(name for one in found if one for name in self._members(one))
                names = names or (ELSEWHERE if is_remote(entry.fstype) else ())
                if names:
                    yield line.partition(" ")[0], names
                    yield f"{entry.major}:{entry.minor}", names

    def _of_overlay(self, entry: MountEntry) -> list[str | None]:
        numbers = layer_numbers(entry)
        return [self._finder.by_number(os.major(one), os.minor(one)) for one in numbers]

    def _members(self, name: str) -> tuple[str, ...]:
        if self._btrfs is None:
            self._btrfs = read_btrfs(self._roots)
        return next((tuple(m) for m in self._btrfs.values() if name in m), (name,))

    def _tree(self, name: str) -> tuple[str, ...]:
        return (name,) if name in ELSEWHERE else device_tree(name, self._devices, self._roots)


def _file_info(fdinfo: str) -> tuple[str, int]:
    """For an open file (number of the mount, access mode); ("", O_RDWR) if unknown. A directory has
    O_RDWR, because files in it may be read and created."""
    text = read_bytes(fdinfo) or b""
    match, mount = _FLAGS.search(text), _MOUNT.search(text)
    flags = int(match[1], 8) if match else os.O_RDWR
    access = os.O_RDWR if flags & (os.O_DIRECTORY | os.O_PATH) else flags & os.O_ACCMODE
    return mount[1].decode() if mount else "", access
