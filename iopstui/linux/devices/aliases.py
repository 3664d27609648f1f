"""Other ways to the same bytes: a loop device's backing file, an NVMe character device, overlayfs.

The kernel names an NVMe character device like the block device of the same namespace, and both have
the same parent in sysfs: a controller, or a subsystem with several controllers
(drivers/nvme/host/core.c, nvme_cdev_add; multipath.c)."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.devices.usage.mounts import MountEntry, unescape
from iopstui.linux.devices.usage.openers import File, file_identity
from iopstui.linux.kernel_files import Roots, list_names, read_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.stack import Backing

_LOOP_GET_STATUS64 = 0x4C05
_STATUS64_BYTES = 232


def read_backings(devices: Mapping[str, BlockDevice], roots: Roots) -> dict[str, Backing]:
    """The backing of each attached loop device, if permissions or the file's name let it
    be found."""
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
    number of the loop device: a node of another device is not opened. ``None`` without permission,
    or if nothing is attached."""
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
    """The backing file of a loop device, found by its name; another file may have this name by
    now."""
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


_GENERIC = re.compile(r"ng([0-9]{1,9}n[0-9]{1,9})")
_CONTROLLER = re.compile(r"nvme[0-9]{1,9}")
_NAMESPACE = re.compile(r"nvme([0-9]{1,9}n[0-9]{1,9})")


def namespace_of(roots: Roots, major: int, minor: int) -> str | None:
    """The block device of the namespace whose generic device has this number ("nvme0n1"); ``None``
    if no generic device has this number."""
    place = os.path.realpath(roots.sys / f"dev/char/{major}:{minor}")
    match = _GENERIC.fullmatch(os.path.basename(place))
    if match is None:
        return None
    name = f"nvme{match[1]}"
    return name if os.path.dirname(place) == _parent(roots, name) else None


def generic_of(roots: Roots, name: str) -> str | None:
    """The node of the generic device of the namespace ``name`` ("nvme0n1" -> "/dev/ng0n1");
    ``None`` if ``name`` is not a whole namespace, or has no such device (Linux before 5.13)."""
    place = _generic_directory(roots, name)
    node = roots.dev / place.name if place is not None else None
    return str(node) if node is not None and node.exists() else None


def generic_number(roots: Roots, name: str) -> tuple[int, int] | None:
    """The device number of the namespace's generic device, even if it has no node."""
    place = _generic_directory(roots, name)
    major, _, minor = (read_text(place / "dev") or "" if place is not None else "").partition(":")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def namespaces_of_node(roots: Roots, path: str) -> tuple[str, ...]:
    """The block devices of the namespaces that a node of an NVMe controller (/dev/nvme0) or a
    generic device gives access to, by their names in sysfs."""
    name = os.path.basename(path)
    generic = _GENERIC.fullmatch(name)
    if generic is not None:
        namespace = f"nvme{generic[1]}"
        return (namespace,) if _generic_directory(roots, namespace) is not None else ()
    if not _CONTROLLER.fullmatch(name):
        return ()
    place = roots.sys / "class/nvme" / name
    below = {*list_names(place), *list_names(place / "subsystem")}
    return tuple(sorted(entry for entry in below if _NAMESPACE.fullmatch(entry)))


def _generic_directory(roots: Roots, name: str) -> Path | None:
    match = _NAMESPACE.fullmatch(name)
    if match is None:
        return None
    place = os.path.realpath(roots.sys / f"class/nvme-generic/ng{match[1]}")
    return Path(place) if os.path.dirname(place) == _parent(roots, name) else None


def _parent(roots: Roots, name: str) -> str:
    return os.path.dirname(os.path.realpath(roots.sys / "class/block" / name))


_COLON = re.compile(r"(?<!\\):")
# an overlay's layers may be on overlays; the kernel stacks at most two
_MAX_NESTED = 3


@dataclass(frozen=True, slots=True)
class Overlay:
    """A mount of an overlay: ``root`` of the overlay is at ``mountpoint``; ``layers`` are its
    directories as given to the mount, the upper one first."""

    mountpoint: str
    root: str
    layers: tuple[str, ...]


class Overlays:
    """The overlays among the mounts. Their directories are looked up once, because there may be
    very many files to check."""

    def __init__(self, entries: Iterable[MountEntry]) -> None:
        self._by_mountpoint: dict[str, list[Overlay]] = {}
        self._by_layer: dict[str, list[Overlay]] = {}
        # mount points of other file systems in this process's namespace
        self._other_mountpoints: set[str] = set()
        for entry in entries:
            if entry.fstype != "overlay" and not entry.elsewhere:
                self._other_mountpoints.add(_without_slash(entry.mountpoint))
            if entry.fstype == "overlay":
                layers = tuple(parse_layers(entry.super_options))
                overlay = Overlay(entry.mountpoint, entry.root, layers)
                self._by_mountpoint.setdefault(_without_slash(entry.mountpoint), []).append(overlay)
                for layer in filter(os.path.isabs, layers):
                    self._by_layer.setdefault(_without_slash(os.path.realpath(layer)), []).append(
                        overlay
                    )

    def files(self, path: str) -> set[File]:
        """All identities of the file: its own, in the layers below, and in overlays above."""
        return set(_existing((*self.names_below(path), *self.names_above(path))))

    def names_below(self, path: str, deep: int = _MAX_NESTED) -> Iterator[str]:
        """Possible paths of a file in the layers of its overlays, whether or not they exist."""
        for top, remainder in _ancestors(path) if deep and self._by_mountpoint else ():
            for overlay in self._by_mountpoint.get(top, ()):
                for layer in filter(os.path.isabs, overlay.layers):
                    name = _without_slash(layer) + _without_slash(overlay.root) + remainder
                    yield name
                    yield from self.names_below(name, deep - 1)

    def names_above(self, path: str, deep: int = _MAX_NESTED) -> Iterator[str]:
        """Paths of a layer's file in the overlays built on that layer."""
        for top, remainder in _ancestors(path) if deep and self._by_layer else ():
            for overlay in self._by_layer.get(top, ()):
                root = _without_slash(overlay.root)
                if remainder == root or remainder.startswith(root + "/"):
                    name = _without_slash(overlay.mountpoint) + remainder[len(root) :]
                    yield name
                    yield from self.names_above(name, deep - 1)

    def may_hide(self, path: str, file: File) -> bool:
        """Whether a file may be in an overlay whose upper directory can't be found by its name: the
        name is relative, or of another mount namespace. ``file`` identifies the file."""
        # if not, the path is of another namespace, and mounts above it are unknown
        is_visible = file in _existing([path])
        for top, _ in _ancestors(path):
            if any(not _is_visible(overlay) for overlay in self._by_mountpoint.get(top, ())):
                return True
            if is_visible and top in self._other_mountpoints:
                return False
        return False


def _is_visible(overlay: Overlay) -> bool:
    return all(os.path.isabs(layer) and os.path.isdir(layer) for layer in overlay.layers[:1])


def parse_layers(options: str) -> Iterator[str]:
    """The directories that an overlay's options in mountinfo name, the upper one first."""
    upper: list[str] = []
    lower: list[str] = []
    for option in options.split(","):
        name, _, value = option.partition("=")
        if name == "upperdir":
            upper.append(unescape(value))
        elif name in ("lowerdir", "lowerdir+", "datadir+"):
            lower += _COLON.split(unescape(value))
    for layer in (*upper, *lower):
        if layer:
            yield re.sub(r"\\(.)", r"\1", layer)


def number_of_new_files(entry: MountEntry) -> int:
    """The device number of the file system with an overlay's upper directory, where all its new
    files are made; 0 if there is none, or it is not visible from here."""
    layers = list(parse_layers(entry.super_options)) if entry.fstype == "overlay" else []
    try:
        return os.stat(layers[0]).st_dev if layers and os.path.isabs(layers[0]) else 0
    except OSError:  # the directory is in another mount namespace
        return 0


def layer_numbers(entry: MountEntry) -> set[int]:
    """The device numbers of the file systems with an overlay's layers, as far as they are visible
    from here. Of several layers in one directory, only the first is checked."""
    layers = parse_layers(entry.super_options) if entry.fstype == "overlay" else ()
    places = {
        os.path.dirname(layer): layer for layer in reversed([*layers]) if os.path.isabs(layer)
    }
    numbers = set()
    for layer in places.values():
        try:
            numbers.add(os.stat(layer).st_dev)
        except OSError:  # the layer is in another mount namespace
            continue
    return numbers


def _existing(names: Iterable[str]) -> Iterator[File]:
    for name in names:
        try:
            yield file_identity(os.stat(name))
        except (OSError, ValueError):
            continue


def _ancestors(path: str) -> Iterator[tuple[str, str]]:
    """The path itself and each directory above it up to "" (/), each without the last slash and
    with the rest of the path."""
    top = path
    while top.startswith("/"):
        yield top, path[len(top) :]
        top = top[: top.rfind("/")]
    yield "", path


def _without_slash(path: str) -> str:
    return path.rstrip("/")
