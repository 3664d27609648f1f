"""Resolve the user's target to a block device, file or directory, and the disk below it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.linux.counters.whole_disks import REMOTE
from iopstui.linux.devices.aliases import namespace_of, namespaces_of_node, number_of_new_files
from iopstui.linux.devices.usage.mounts import (
    DeviceFinder,
    MountEntry,
    kernel_file_system,
    read_btrfs,
    read_own_mounts,
)
from iopstui.linux.kernel_files import Roots, read_int
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import (
    DEVICE,
    DIRECT_LOOP,
    DIRECTORY,
    FILE,
    DeviceLinks,
    Target,
    combine_targets,
)
from iopstui.model.findings.accounts import MOVE_DATA
from iopstui.text import printable

Devices = Mapping[str, BlockDevice]


class NoSuchFile(UsageError):
    """Error: the target does not exist, but its ``directory`` does, so a job could create files
    there."""

    def __init__(self, message: str, directory: Path) -> None:
        super().__init__(
            message,
            f"Name the directory {printable(directory)} (a scratch file is made in it and "
            "removed), or create the file first.",
        )
        self.directory = directory


class MixedKinds(UsageError):
    """Error: the targets are of different kinds. ``kinds`` describes two of them; ``targets`` are
    all targets."""

    def __init__(self, kinds: str, targets: Sequence[Target]) -> None:
        super().__init__(
            f"{kinds}: targets of different kinds cannot be mixed, because a job may use a "
            "whole device, a file up to its size, and a scratch file in a directory.",
            "Give only devices, only files, or only directories.",
        )
        self.kinds = kinds
        self.targets = targets


LIST_DEVICES = "List: iopstui devices"
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
_ON_HOST = (
    "files are on the host of this virtual machine, and the kernel counts none of their I/Os; run "
    "iopstui there"
)
_NOT_COUNTED = {
    "9p": f"9p {_ON_HOST}",
    "virtiofs": f"virtiofs {_ON_HOST}",
    "ceph": "ceph files are on a cluster; only root can read what the kernel counts of them "
    "(/sys/kernel/debug/ceph/*/metrics)",
}
"""File systems without any figures; each with another place to look for them."""
_OPTIONS = frozenset({
    "vers", "rsize", "wsize", "nconnect", "proto", "hard", "soft", "softerr", "timeo", "sync",
    "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "noac", "lookupcache", "cache",
    "fsc", "multichannel", "max_channels", "msize",
})  # fmt: skip
"""Mount options of network file systems that affect speed or hanging."""
_WRONG_KINDS = (
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def resolve_target(
    text: str | None, cwd: Path, roots: Roots, devices: Devices, *, to_read: bool = True
) -> Target:
    """Resolve the target ``text``; None means the directory ``cwd``.

    The result's ``path`` is absolute with every symbolic link followed. A bare kernel name ("vda")
    that is not a file in ``cwd`` means its node under /dev. Raises UsageError for a path that does
    not exist, cannot be read, or cannot be a target. With ``to_read`` False (only the kernel's
    counters are read, no job runs) no read permission is needed."""
    if text is None:
        text = str(cwd)
    if not text or "\0" in text:
        raise UsageError("The target's name is empty or contains a NUL byte.", LIST_DEVICES)
    path, info = _resolve_path(text, cwd, roots, devices)
    if stat.S_ISBLK(info.st_mode):
        return _device_target(path, info, roots, devices, to_read)
    if stat.S_ISCHR(info.st_mode):
        name = namespace_of(roots, os.major(info.st_rdev), os.minor(info.st_rdev))
        if name is not None and name in devices:
            return _generic_target(path, name, roots, devices, to_read)
    _check_usable(path, info, roots)
    if to_read:
        _check_rights(path, info)
    return _file_target(path, info, roots, devices)


def _resolve_path(
    text: str, cwd: Path, roots: Roots, devices: Devices
) -> tuple[Path, os.stat_result]:
    """The absolute path without symbolic links, and its stat; the path must exist."""
    path = cwd / text
    info = _stat(path)
    if info is None:
        path = _device_node(text, path, roots, devices)
        info = _stat(path)
    if info is None:
        raise UsageError(
            f"The kernel knows {printable(text)}, but its node {printable(path)} does not exist "
            "here.",
            "In a container, pass the device into it (docker run --device ...).",
        )
    real_path = Path(os.path.realpath(path))
    real_info = _stat(real_path)
    if real_info is None or not os.path.samestat(info, real_info):
        raise UsageError(
            f"{printable(text)} leads to {printable(real_path)}, which is a different file. The "
            "file was deleted or is being renamed.",
            "Give the path of an existing file.",
        )
    return real_path, info


def resolve_targets(
    texts: Sequence[str], cwd: Path, roots: Roots, devices: Devices, *, to_read: bool = True
) -> Target:
    """Resolve all ``texts`` to one target that every job uses in full; with none or one, as
    ``resolve_target`` does.

    Raises UsageError also for combinations without a meaning: different kinds, the same thing twice
    (under any path), one device on another."""
    if len(texts) < 2:
        only = texts[0] if texts else None
        return resolve_target(only, cwd, roots, devices, to_read=to_read)
    targets = [resolve_target(text, cwd, roots, devices, to_read=to_read) for text in texts]
    _check_kinds(texts, targets)
    _check_distinct(texts, targets)
    target = combine_targets(targets)
    if target.nested is not None:
        top, below = target.nested
        raise UsageError(
            f"{printable(top)} lies on {printable(below)}, and both are given. Each I/O would "
            "count on both, so no total would be right.",
            "Give only one of them.",
        )
    return target


def _check_kinds(texts: Sequence[str], targets: Sequence[Target]) -> None:
    first = targets[0]
    for text, target in zip(texts, targets, strict=True):
        if target.kind != first.kind:
            kinds = f"{printable(texts[0])} is a {first.kind} and {printable(text)} a {target.kind}"
            raise MixedKinds(kinds, targets)


def _check_distinct(texts: Sequence[str], targets: Sequence[Target]) -> None:
    """Raise UsageError if two targets are the same: fio would silently open it twice."""
    texts_seen: dict[object, str] = {}
    for text, target in zip(texts, targets, strict=True):
        key = target.device if target.kind == DEVICE else _identity(target.path)
        if key in texts_seen:
            if texts_seen[key] == text:
                raise UsageError(f"{printable(text)} is given twice.", "Give it once.")
            raise UsageError(
                f"{printable(texts_seen[key])} and {printable(text)} are the same {target.kind}.",
                "Give it once.",
            )
        texts_seen[key] = text


def _identity(path: str) -> object:
    info = os.stat(path)
    return info.st_dev, info.st_ino


def device_tree(name: str, devices: Devices, roots: Roots) -> tuple[str, ...]:
    """``name`` and all devices below it, nearest first, without repeats.

    Below a device are a partition's disk, the slaves of dm, md and multipath, and the device that
    holds a loop device's backing file."""
    tree: list[str] = []
    waiting = [name]
    while waiting:
        current = waiting.pop(0)
        device = devices.get(current)
        if device is None or current in tree:
            continue
        tree.append(current)
        waiting.extend(_lower_devices(device, devices, roots))
    return tuple(tree)


def device_links(tree: Sequence[str], devices: Devices, roots: Roots) -> tuple[DeviceLinks, ...]:
    """The devices directly below each device of ``tree``; for a partition, the devices below its
    disk."""
    links = []
    for name in tree:
        disk = devices.get(devices[name].disk or "", devices[name])
        below = tuple(lower for lower in _lower_devices(disk, devices, roots) if lower in devices)
        layer = disk.layer or (DIRECT_LOOP if _is_direct_loop(disk, roots) else None)
        links.append(DeviceLinks(name, below, layer))
    return tuple(links)


def _is_direct_loop(device: BlockDevice, roots: Roots) -> bool:
    """Whether a loop device reads from the disk what is read from it, and no more. A file system
    that compresses files reads all of a compressed extent."""
    dio = roots.sys / "class/block" / device.name / "loop/dio"
    if device.kind != "loop" or read_int(dio) != 1 or not device.backing_file:
        return False
    place = _stat_and_mount(device.backing_file, roots)
    mount = place[1] if place is not None else None
    return mount is not None and mount.fstype not in MOVE_DATA


def device_of_path(path: str, roots: Roots, devices: Devices) -> str | None:
    """The block device that a file is on, or that a node stands for; None if unknown."""
    place = _stat_and_mount(path, roots)
    if place is None:
        return None
    info, entry = place
    finder = DeviceFinder(devices, roots)
    if stat.S_ISBLK(info.st_mode):
        return finder.by_number(os.major(info.st_rdev), os.minor(info.st_rdev))
    return _device_of(info.st_dev, entry, finder)


def _stat_and_mount(path: str, roots: Roots) -> tuple[os.stat_result, MountEntry | None] | None:
    """What stat(2) says of a path, and the mount that it is on; None if it cannot be looked at."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return info, mount_of(os.path.realpath(path), info.st_dev, read_own_mounts(roots))


def mount_of(
    path: str, st_dev: int, mounts: tuple[MountEntry, ...] | list[MountEntry]
) -> MountEntry | None:
    """The mount that contains ``path`` (absolute, without symbolic links).

    This is the longest mount point above it; of several equal ones the latest. A mount of the
    device ``st_dev`` is preferred, because a mount can be hidden under a later one."""
    above = [entry for entry in mounts if _is_under(path, entry.mountpoint)]
    same_device = [e for e in above if (e.major, e.minor) == (os.major(st_dev), os.minor(st_dev))]
    best: MountEntry | None = None
    for entry in same_device or above:
        if best is None or len(entry.mountpoint) >= len(best.mountpoint):
            best = entry
    return best


def why_no_device(entry: MountEntry | None) -> str:
    """Why a file system shows no block device, in words."""
    if entry is None:
        return "its mount is not visible"
    kind = printable(entry.fstype)
    if kind in _IN_MEMORY:
        return f"{kind} keeps files in memory, not on a block device"
    if kind in _NOT_COUNTED:
        return _NOT_COUNTED[kind]
    if kind in REMOTE:
        return f"{kind} files are on another machine, not on a local block device"
    if kind == "overlay":
        return "overlay stacks other file systems, and the disk below is not visible from here"
    if kind in ("zfs", "bcachefs"):
        return f"{kind} spreads files over disks of its own, not on a single block device"
    if kind.startswith("fuse"):
        return (
            f"{kind} is served by a program, not by a block device; the kernel only knows how many "
            f"of its requests wait (/sys/fs/fuse/connections/{entry.minor}/waiting)"
        )
    return f"the {kind} file system shows no block device"


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = error.strerror or str(error)
        hint = ""
        if error.errno == errno.EACCES:
            hint = "Name the disk that it is on (iopstui devices), or run as root."
        if error.errno == errno.ESTALE:
            hint = (
                "The server has removed it, or serves another file system there now. Unmount it "
                f"and mount it again: umount {printable(path)}"
            )
        raise UsageError(f"Cannot examine {printable(path)}: {why}.", hint) from error


def _device_node(text: str, path: Path, roots: Roots, devices: Devices) -> Path:
    """The node of a device that is named without /dev/. UsageError with the reason if there is
    none."""
    device = devices.get(text)
    if device is not None and device.hidden:
        heads = " or ".join(device.holders) or "its multipath device"
        raise UsageError(
            f"{printable(text)} is a hidden path without a node.", f"Name {heads} instead."
        )
    if device is not None:
        return roots.dev / device.name
    is_link = os.path.islink(path)
    path = Path(os.path.realpath(path))
    if _is_device_path(path, roots):
        # fio would silently create a regular file with that name
        raise UsageError(f"{printable(path)} does not exist.", _suggestion(path, devices))
    if is_link:
        raise UsageError(
            f"{printable(text)} is a symbolic link to {printable(path)}, which does not exist.",
            "Create that file, or name it instead of the link.",
        )
    if os.path.isdir(path.parent):
        no_disk = "" if "/" in text else f"There is no disk {printable(text)}, and "
        raise NoSuchFile(f"{no_disk}{printable(path)} does not exist.", path.parent)
    raise UsageError(
        f"{printable(path)} does not exist, nor does the directory {printable(path.parent)}."
    )


def _suggestion(mistyped: Path, devices: Devices) -> str:
    # a disk that has just gone may still be among the devices
    paths = [
        d.path for d in devices.values() if not d.hidden and d.size and d.path != str(mistyped)
    ]
    import difflib

    close = difflib.get_close_matches(str(mistyped), paths, n=3, cutoff=0.75)
    if not close:
        return LIST_DEVICES
    return f"Did you mean {' or '.join(printable(path) for path in close)}? {LIST_DEVICES}"


def _is_device_path(path: Path, roots: Roots) -> bool:
    """True for paths under /dev, where an ordinary file is a mistake, except in /dev/shm."""
    return roots.dev in path.parents and roots.dev / "shm" not in path.parents


def _device_target(
    path: Path, info: os.stat_result, roots: Roots, devices: Devices, to_read: bool
) -> Target:
    finder = DeviceFinder(devices, roots)
    name = finder.by_number(os.major(info.st_rdev), os.minor(info.st_rdev))
    if name is None:
        number = f"{os.major(info.st_rdev)}:{os.minor(info.st_rdev)}"
        raise UsageError(
            f"{printable(path)} is a node of block device {number}, which the kernel does not "
            "have.",
            LIST_DEVICES,
        )
    if devices[name].size == 0:
        raise UsageError(
            f"{printable(path)} has no size: nothing is attached, or no medium is inserted.",
            LIST_DEVICES,
        )
    if to_read:
        _check_readable(path)
    tree = device_tree(name, devices, roots)
    links = device_links(tree, devices, roots)
    return Target(DEVICE, str(path), name, tree, links=links)


def _generic_target(path: Path, name: str, roots: Roots, devices: Devices, to_read: bool) -> Target:
    if to_read:
        _check_readable(path)
    tree = device_tree(name, devices, roots)
    links = device_links(tree, devices, roots)
    return Target(DEVICE, str(path), name, tree, links=links, passthrough=True)


def _check_readable(path: Path) -> None:
    from iopstui.linux.process.limits import PERMISSION_ERRNOS, how_to_open, open_error

    error = open_error(str(path))
    if error is not None:
        raise UsageError(
            f"Cannot open {printable(path)} for reading: {error.strerror}.",
            how_to_open(str(path)) if error.errno in PERMISSION_ERRNOS else LIST_DEVICES,
        )


def _check_rights(path: Path, info: os.stat_result) -> None:
    right = os.R_OK | (os.X_OK if stat.S_ISDIR(info.st_mode) else 0)
    if not os.access(path, right):
        raise UsageError(f"Cannot read {printable(path)}: permission denied.")


def _file_target(path: Path, info: os.stat_result, roots: Roots, devices: Devices) -> Target:
    kind = DIRECTORY if stat.S_ISDIR(info.st_mode) else FILE
    entry = mount_of(str(path), info.st_dev, read_own_mounts(roots))
    finder = DeviceFinder(devices, roots)
    name = _device_of(info.st_dev, entry, finder)
    if name is None and entry is not None and kind == DIRECTORY:
        number = number_of_new_files(entry)
        name = finder.by_number(os.major(number), os.minor(number)) if number else None
    tree = _file_tree(name, devices, roots)
    remote = entry if entry is not None and entry.fstype in REMOTE else None
    return Target(
        kind=kind,
        path=str(path),
        device=name,
        tree=tree,
        no_device="" if name else why_no_device(entry),
        fstype=printable(entry.fstype) if entry else None,
        mountpoint=entry.mountpoint if entry else None,
        also=tuple(n for n in _with_btrfs_members(name, roots)[1:] if n in devices) if name else (),
        links=device_links(tree, devices, roots),
        share=printable(remote.source) if remote else "",
        mount_options=printable(_relevant_options(remote.super_options)) if remote else "",
    )


def _relevant_options(options: str) -> str:
    relevant = (option for option in options.split(",") if option.partition("=")[0] in _OPTIONS)
    return ",".join(relevant)


def _check_usable(path: Path, info: os.stat_result, roots: Roots) -> None:
    for test, description in _WRONG_KINDS:
        if test(info.st_mode):
            namespaces = namespaces_of_node(roots, str(path))
            raise UsageError(
                f"{printable(path)} is {description}, not a block device, file or directory.",
                f"Name a namespace of it: {', '.join(f'/dev/{name}' for name in namespaces)}"
                if namespaces else LIST_DEVICES,
            )  # fmt: skip
    kind = "" if stat.S_ISDIR(info.st_mode) else kernel_file_system(path)
    if kind:
        raise UsageError(
            f"{printable(path)} is a control file of the kernel ({kind}), not data.", LIST_DEVICES
        )
    if not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode):
        raise UsageError(f"{printable(path)} is neither a block device, file nor directory.",
                         LIST_DEVICES)  # fmt: skip
    if stat.S_ISREG(info.st_mode) and _is_device_path(path, roots):
        raise UsageError(
            f"{printable(path)} is a regular file in a device directory. A mistyped fio command "
            "leaves such files.",
            f"Check it, then remove it: rm {printable(path)}",
        )


def _device_of(st_dev: int, entry: MountEntry | None, finder: DeviceFinder) -> str | None:
    """Find the device by the file's own device number; if that is anonymous (btrfs), by the mount's
    source."""
    name = finder.by_number(os.major(st_dev), os.minor(st_dev))
    if name is None and entry is not None:
        name = finder.of_mount(entry)
    return name


def _file_tree(name: str | None, devices: Devices, roots: Roots) -> tuple[str, ...]:
    """The device tree of a file; on btrfs also the trees of the other devices of its file
    system."""
    if name is None:
        return ()
    trees = (device_tree(member, devices, roots) for member in _with_btrfs_members(name, roots))
    return tuple(dict.fromkeys(device for tree in trees for device in tree))


def _with_btrfs_members(name: str, roots: Roots) -> list[str]:
    """The device, then the other devices of its mounted btrfs."""
    groups = (names for names in read_btrfs(roots).values() if name in names)
    return [name, *(other for names in groups for other in sorted(names) if other != name)]


def _lower_devices(device: BlockDevice, devices: Devices, roots: Roots) -> Iterator[str]:
    if device.disk:
        yield device.disk
    yield from device.slaves
    if device.backing_file:
        below = device_of_path(device.backing_file, roots, devices)
        if below is not None:
            yield from _with_btrfs_members(below, roots)


def _is_under(path: str, mountpoint: str) -> bool:
    return path == mountpoint or path.startswith(mountpoint.rstrip("/") + "/")
