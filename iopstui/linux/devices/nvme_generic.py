"""The NVMe generic character device of a namespace (/dev/ng0n1), for commands past the block layer.

Sources: drivers/nvme/host/core.c (nvme_cdev_add), multipath.c. The kernel names it like the
namespace's block device, with the same parent in sysfs (a controller, or the subsystem of several).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import list_names, read_text

_GENERIC = re.compile(r"ng([0-9]{1,9}n[0-9]{1,9})")
_CONTROLLER = re.compile(r"nvme[0-9]{1,9}")
_NAMESPACE = re.compile(r"nvme([0-9]{1,9}n[0-9]{1,9})")


def namespace_of(roots: Roots, major: int, minor: int) -> str | None:
    """The block device of the namespace whose generic device has this number ("nvme0n1"); ``None``
    if that number is no generic device's."""
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
    """The number of that device, even if it has no node."""
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
