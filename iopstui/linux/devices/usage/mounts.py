"""Mounts in every visible namespace, swap areas, and file systems of kernel controls.

Sources: proc_pid_mountinfo(5), /proc/swaps (proc(5)), /sys/fs/btrfs."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iopstui.linux.kernel_files import Roots, decode, list_names, read_bytes
from iopstui.model.block.device import BlockDevice, Mount

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
    """The kind of kernel file system that a file (path or descriptor) is on; "" for any other."""
    answer = ctypes.create_string_buffer(512)
    if isinstance(place, int):
        failed = _libc.fstatfs(place, answer)
    else:
        failed = _libc.statfs(os.fsencode(place), answer)
    if failed:
        return ""
    # struct statfs begins with f_type, a long of which 32 bits are significant
    (kind,) = struct.unpack_from("L", answer)
    return _MAGIC.get(kind & 0xFFFFFFFF, "")


def removal_lock(directory: Path) -> str:
    """The flag of the directory (chattr(1)) that prevents removing its files, "a" or "i"; "" if
    none is set."""
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


_OCTAL = re.compile(r"\\([0-3][0-7]{2})")


@dataclass(frozen=True, slots=True)
class MountEntry:
    """A line of mountinfo. ``elsewhere``: the mount is only in another mount namespace."""

    major: int
    minor: int
    root: str
    mountpoint: str
    fstype: str
    source: str
    super_options: str = ""
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class MountTable:
    """All mounts and swap areas. ``swaps`` are the paths in /proc/swaps; ``btrfs`` maps a mounted
    btrfs's UUID to the kernel names of its devices."""

    entries: tuple[MountEntry, ...] = ()
    swaps: tuple[str, ...] = ()
    btrfs: Mapping[str, frozenset[str]] = field(default_factory=dict)


def unescape(text: str) -> str:
    r"""Undo the kernel's escapes such as ``\040`` (space, tab, newline, backslash, #)."""

    def one(match: re.Match[str]) -> str:
        return chr(int(match[1], 8))

    # latin-1 would break UTF-8 names; the kernel escapes only ASCII
    return _OCTAL.sub(lambda m: one(m) if int(m[1], 8) < 128 else m[0], text)


def parse_mountinfo(text: str, *, elsewhere: bool = False) -> list[MountEntry]:
    """The lines of a mountinfo file; malformed lines are skipped."""
    entries = []
    for line in text.split("\n"):
        head, separator, right = line.partition(" - ")
        before, after = head.split(" "), right.split(" ")
        if not separator or len(before) < 6 or len(after) < 2:
            continue
        major, _, minor = before[2].partition(":")
        if not (major.isdecimal() and minor.isdecimal()):
            continue
        entries.append(
            MountEntry(
                major=int(major),
                minor=int(minor),
                root=unescape(before[3]),
                mountpoint=unescape(before[4]),
                fstype=unescape(after[0]),
                source=unescape(after[1]),
                super_options=after[2] if len(after) > 2 else "",
                elsewhere=elsewhere,
            )
        )
    return entries


def parse_swaps(text: str) -> tuple[str, ...]:
    """Paths of the swap areas in /proc/swaps."""
    lines = [line.split() for line in text.splitlines()[1:]]
    return tuple(unescape(fields[0]) for fields in lines if fields)


def read_own_mounts(roots: Roots) -> tuple[MountEntry, ...]:
    """The mounts of this process's namespace."""
    return tuple(parse_mountinfo(decode(read_bytes(roots.proc / "self/mountinfo") or b"")))


def distinct_file_systems(mountpoints: Sequence[str], roots: Roots) -> tuple[str, ...]:
    """The mount points, each file system once: later ones of the same file system are left out."""
    if len(mountpoints) < 2:
        return tuple(mountpoints)
    numbers = {entry.mountpoint: (entry.major, entry.minor) for entry in read_own_mounts(roots)}
    first: dict[object, str] = {}
    for mountpoint in mountpoints:
        first.setdefault(numbers.get(mountpoint, mountpoint), mountpoint)
    return tuple(first.values())


def read_mounts(roots: Roots) -> MountTable:
    """All mounts: this process's own first, then those that only other visible mount namespaces
    have."""
    own_mounts = read_own_mounts(roots)
    keys = {(e.major, e.minor, e.source, e.mountpoint) for e in own_mounts}
    foreign_mounts: list[MountEntry] = []
    for text in _other_namespaces(roots):
        for entry in parse_mountinfo(text, elsewhere=True):
            key = (entry.major, entry.minor, entry.source, entry.mountpoint)
            if key not in keys:
                keys.add(key)
                foreign_mounts.append(entry)
    swaps = parse_swaps(decode(read_bytes(roots.proc / "swaps") or b""))
    return MountTable((*own_mounts, *foreign_mounts), swaps, read_btrfs(roots))


def read_btrfs(roots: Roots) -> dict[str, frozenset[str]]:
    """Kernel names of the member devices of every mounted btrfs, by UUID."""
    top = roots.sys / "fs/btrfs"
    members = {uuid: list_names(top / uuid / "devices") for uuid in list_names(top)}
    return {
        uuid: frozenset(name.replace("!", "/") for name in names)
        for uuid, names in members.items()
        if names
    }


def _other_namespaces(roots: Roots) -> Iterator[str]:
    """One mountinfo text per mount namespace other than our own.

    /proc/PID/ns/mnt can be read only with ptrace rights, mountinfo by anybody; without these
    rights, equal texts count as one namespace."""
    keys: set[str | bytes] = set()
    proc = str(roots.proc)
    with contextlib.suppress(FileNotFoundError):
        if own_namespace := _namespace(f"{proc}/self"):
            keys.add(own_namespace)
    for pid in list_names(proc):
        if not pid.isdecimal():
            continue
        process = f"{proc}/{pid}"
        try:
            namespace = _namespace(process)
        except FileNotFoundError:
            # a zombie (ended, not yet reaped by its parent) is in no mount namespace
            if roots.real:
                continue
            namespace = None
        if namespace is not None and namespace in keys:
            continue
        data = read_bytes(f"{process}/mountinfo")
        key: str | bytes = namespace if namespace is not None else data or b""
        if not data or key in keys:
            continue
        keys.add(key)
        yield decode(data)


def _namespace(process: str) -> str | None:
    """The mount namespace of a process; ``None`` without the right to read it. FileNotFoundError if
    it is in none."""
    try:
        return os.readlink(f"{process}/ns/mnt")
    except FileNotFoundError:
        raise
    except OSError:
        return None


def apply_mounts(
    devices: Mapping[str, BlockDevice], table: MountTable, roots: Roots
) -> tuple[dict[str, tuple[Mount, ...]], frozenset[str]]:
    """Mounts by the name of their device, and the names of devices that are swap."""
    finder = DeviceFinder(devices, roots)
    mounts: dict[str, dict[tuple[str, bool], Mount]] = {}
    for entry in table.entries:
        first = finder.of_mount(entry)
        if first is None:
            continue
        for name in _members(first, table):
            device_mounts = mounts.setdefault(name, {})
            key = (entry.mountpoint, entry.elsewhere)
            device_mounts.setdefault(key, Mount(
                entry.mountpoint, entry.fstype, entry.elsewhere,
                "data=journal" in entry.super_options.split(","),
            ))  # fmt: skip
    swaps = {finder.by_path(path) or _device_of_file(path, table, finder) for path in table.swaps}
    return (
        {name: tuple(by_mountpoint.values()) for name, by_mountpoint in mounts.items()},
        frozenset(name for name in swaps if name is not None),
    )


def _device_of_file(path: str, table: MountTable, finder: DeviceFinder) -> str | None:
    """The device of the file system that contains a swap file."""
    on = [
        entry
        for entry in table.entries
        if not entry.elsewhere and f"{path}/".startswith(f"{entry.mountpoint.rstrip('/')}/")
    ]
    deepest = max(on, key=lambda entry: len(entry.mountpoint), default=None)
    return finder.of_mount(deepest) if deepest is not None else None


def _members(name: str, table: MountTable) -> Iterable[str]:
    """The device and the other devices of its btrfs."""
    for names in table.btrfs.values():
        if name in names:
            return sorted(names)
    return (name,)


class DeviceFinder:
    """Finds block devices by number or by the path of a node."""

    def __init__(self, devices: Mapping[str, BlockDevice], roots: Roots) -> None:
        self._numbers = {(d.major, d.minor): d.name for d in devices.values() if d.major >= 0}
        self._paths = {d.path: d.name for d in devices.values()}
        self._paths.update(
            {f"/dev/mapper/{d.dm_name}": d.name for d in devices.values() if d.dm_name}
        )
        self._roots = roots

    def by_number(self, major: int, minor: int) -> str | None:
        return self._numbers.get((major, minor))

    def by_path(self, path: str) -> str | None:
        """The device of the node ``path``, also through symbolic links."""
        if not path.startswith("/dev/"):
            return None
        real = self._roots.dev / path[len("/dev/") :]
        try:
            info = os.stat(real)
        except (OSError, ValueError):
            return self._paths.get(path)
        if stat.S_ISBLK(info.st_mode):
            return self.by_number(os.major(info.st_rdev), os.minor(info.st_rdev))
        return self._paths.get(path)

    def of_mount(self, entry: MountEntry) -> str | None:
        """The device that a mount is on, found by its number, else by its source if that is a
        device."""
        return self.by_number(entry.major, entry.minor) or self.by_path(entry.source)
