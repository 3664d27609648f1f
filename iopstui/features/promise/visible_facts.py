"""Read how the machine and its disks identify themselves: DMI, models, serial numbers, links."""

from __future__ import annotations

import os

from iopstui.features.promise.model.guess import VisibleFacts
from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_text
from iopstui.model.block.device import BlockDevice
from iopstui.text import printable

# on Hyper-V machines outside of Azure the vendor is Microsoft, too
AZURE_ASSET = "7783-7084-3265-9085-8269-3286-77"


def read_visible_facts(device: BlockDevice, roots: Roots) -> VisibleFacts:
    """Read the visible properties of ``device``, without using the network."""
    dmi = roots.sys / "class/dmi/id"
    vendor = read_text(dmi / "sys_vendor") or ""
    asset = read_text(dmi / "chassis_asset_tag") or ""
    if vendor.lower().startswith("microsoft") and asset != AZURE_ASSET:
        vendor = ""
    return VisibleFacts(
        printable(vendor),
        printable(device.model or ""),
        printable(device.serial or ""),
        device.size,
        _azure_link(device, roots),
        printable(read_text(dmi / "product_name") or ""),
    )


def _azure_link(device: BlockDevice, roots: Roots) -> str:
    base = roots.dev / "disk/azure"
    for folder, _, names in os.walk(base):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.basename(os.path.realpath(path)) == os.path.basename(device.path):
                return f"/dev/disk/azure/{printable(os.path.relpath(path, base))}"
    return ""
