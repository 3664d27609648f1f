"""The PCIe link that a disk is behind (Documentation/ABI/testing/sysfs-bus-pci)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import parse_int, read_text
from iopstui.model.findings.conditions import Link

_SPEED = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) GT/s(?: PCIe)?")
# PCIE_LNK_WIDTH_UNKNOWN
_NO_WIDTH = 255


@dataclass(frozen=True, slots=True)
class LinkFiles:
    """Files of one PCI device's link. Its maximum speed and width never change."""

    speed: str
    width: str
    speed_most: float
    width_most: int


def parse_speed(text: str) -> float | None:
    """GT/s of "8.0 GT/s PCIe"; None for "Unknown"."""
    match = _SPEED.fullmatch(text.strip())
    return (float(match[1]) or None) if match else None


def parse_width(text: str) -> int | None:
    """Lanes; None for 0 and 255, which a device without a link has."""
    width = parse_int(text.strip())
    return width if width is not None and 0 < width < _NO_WIDTH else None


def find_link(disk: Path, roots: Roots) -> LinkFiles | None:
    """The link of the nearest PCI device above ``disk`` (a real directory in sysfs) that reports
    one; None if its maximum is unknown."""
    top = Path(os.path.realpath(roots.sys)) / "devices"
    for ancestor in disk.parents:
        if top not in ancestor.parents:
            break
        if os.path.isfile(ancestor / "current_link_speed"):
            return _files(ancestor)
    return None


def _files(pci: Path) -> LinkFiles | None:
    speed = parse_speed(read_text(pci / "max_link_speed") or "")
    width = parse_width(read_text(pci / "max_link_width") or "")
    if speed is None or width is None:
        return None
    now = str(pci / "current_link_speed"), str(pci / "current_link_width")
    return LinkFiles(*now, speed, width)


def read_link(files: LinkFiles) -> Link | None:
    """The current state of the link; None unless complete."""
    speed = parse_speed(read_text(files.speed) or "")
    width = parse_width(read_text(files.width) or "")
    if speed is None or width is None:
        return None
    return Link(speed, files.speed_most, width, files.width_most)
