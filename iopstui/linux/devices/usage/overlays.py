"""Files that overlayfs shows under a second name with another inode (Documentation/filesystems/
overlayfs.rst)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from iopstui.linux.devices.usage.mounts import MountEntry, unescape
from iopstui.linux.devices.usage.openers import File, file_identity

_COLON = re.compile(r"(?<!\\):")
# an overlay's layers may be in overlays; the kernel stacks at most two
_MAX_NESTED = 3


@dataclass(frozen=True, slots=True)
class Overlay:
    """A mount of an overlay: ``root`` of the overlay is at ``mountpoint``; ``layers`` are its
    directories as given to the mount, the upper one first."""

    mountpoint: str
    root: str
    layers: tuple[str, ...]


class Overlays:
    """The overlays among mounts. Their directories are looked up once, because there may be very
    many files to check."""

    def __init__(self, entries: Iterable[MountEntry]) -> None:
        self._by_mountpoint: dict[str, list[Overlay]] = {}
        self._by_layer: dict[str, list[Overlay]] = {}
        # where this process has something else mounted
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
        """The same file under all its numbers: itself, in the layers below, and in overlays
        above."""
        return set(_existing((*self.names_below(path), *self.names_above(path))))

    def names_below(self, path: str, deep: int = _MAX_NESTED) -> Iterator[str]:
        """Possible paths of a file in the layers of its overlays, whether or not it exists
        there."""
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
        """Whether a file may lie in an overlay whose upper directory can't be found by its name:
        the name is relative, or of another mount namespace. ``file`` is the kernel's number of the
        file."""
        # otherwise the path is of another namespace, and mounts above it are unknown
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
    """The device number below an overlay's upper directory, into which all its new files go; 0:
    none, or not visible from here."""
    layers = list(parse_layers(entry.super_options)) if entry.fstype == "overlay" else []
    try:
        return os.stat(layers[0]).st_dev if layers and os.path.isabs(layers[0]) else 0
    except OSError:  # of another mount namespace
        return 0


def layer_numbers(entry: MountEntry) -> set[int]:
    """The device numbers below those layers of an overlay that are visible from here; of several
    layers in one directory, only the first is checked."""
    layers = parse_layers(entry.super_options) if entry.fstype == "overlay" else ()
    places = {
        os.path.dirname(layer): layer for layer in reversed([*layers]) if os.path.isabs(layer)
    }
    numbers = set()
    for layer in places.values():
        try:
            numbers.add(os.stat(layer).st_dev)
        except OSError:  # of another mount namespace
            continue
    return numbers


def _existing(names: Iterable[str]) -> Iterator[File]:
    for name in names:
        try:
            yield file_identity(os.stat(name))
        except (OSError, ValueError):
            continue


def _ancestors(path: str) -> Iterator[tuple[str, str]]:
    """(directory above without the last slash, rest of the path), from the path itself up to ""
    (/)."""
    top = path
    while top.startswith("/"):
        yield top, path[len(top) :]
        top = top[: top.rfind("/")]
    yield "", path


def _without_slash(path: str) -> str:
    return path.rstrip("/")
