"""NVMe, SCSI and md devices in a ``Tree``, with their sysfs files as in Linux 6.12."""

from __future__ import annotations

from pathlib import Path

from trees import VIRTUAL, Tree

BRIDGE = "devices/pci0000:00"


def nvme_controller(tree: Tree, number: int, pci: str | None = None, **attributes: str) -> Path:
    """A controller behind a PCI device with a PCIe link. Returns its directory."""
    pci = pci or f"{BRIDGE}/0000:00:0{number}.0"
    device = tree.roots.sys / pci
    controller = device / f"nvme/nvme{number}"
    link = {
        "current_link_speed": "8.0 GT/s PCIe",
        "max_link_speed": "16.0 GT/s PCIe",
        "current_link_width": "2",
        "max_link_width": "4",
    }
    tree.attributes(device, **link)
    tree.attributes(controller, **{"state": "live", **attributes})
    (controller / "device").symlink_to(device)
    return controller


def nvme_sensor(tree: Tree, place: Path, now: str = "45850") -> Path:
    """A temperature sensor below a controller or its PCI device. Returns the sensor's directory."""
    tree.attributes(
        place, name="nvme", temp1_input=now, temp1_max="81850", temp1_crit="84850",
        temp1_min="-273150",
    )  # fmt: skip
    return place


def nvme_disk(tree: Tree, number: int = 0, **attributes: str) -> Path:
    controller = nvme_controller(tree, number)
    where = str(controller.relative_to(tree.roots.sys))
    disk = tree.disk(
        f"nvme{number}n1", where, f"259:{number}", **{"alignment_offset": "0", **attributes}
    )
    (disk / "device").symlink_to(controller)
    return disk


def multipath_head(tree: Tree) -> Path:
    """nvme1n1 behind the controllers nvme1 and nvme2; its paths are nvme1c1n1 and nvme1c2n1."""
    subsystem = tree.roots.sys / "devices/virtual/nvme-subsystem/nvme-subsys1"
    head = tree.disk(
        "nvme1n1", str(subsystem.relative_to(tree.roots.sys)), "259:5", alignment_offset="0"
    )
    (head / "device").symlink_to(subsystem)
    for number in (1, 2):
        controller = nvme_controller(tree, number)
        where = str(controller.relative_to(tree.roots.sys))
        path = tree.disk(f"nvme1c{number}n1", where, None, hidden="1", alignment_offset="0")
        (path / "device").symlink_to(controller)
        nvme_sensor(tree, controller / f"hwmon{number}", f"{40 + number}000")
    return head


def scsi_disk(tree: Tree, name: str = "sda", dev: str = "8:0", **attributes: str) -> Path:
    """A disk behind an adapter without a PCIe link; ``attributes`` are those of its SCSI device."""
    host = f"{BRIDGE}/0000:00:1f.0/ata1/host0/target0:0:0/{name}"
    disk = tree.disk(name, f"{host}/block", dev, alignment_offset="0")
    device = tree.roots.sys / host
    known = {"queue_depth": "32", "ioerr_cnt": "0x1f", "iotmo_cnt": "0x2", "state": "running"}
    tree.attributes(device, **{**known, **attributes})
    (disk / "device").symlink_to(device)
    tree.proc("devices", "Block devices:\n  8 sd\n  9 md\n253 device-mapper\n254 virtblk\n")
    return disk


def array(tree: Tree, action: str = "idle", degraded: str = "0", members: str = "3") -> Path:
    return tree.disk(
        "md0", VIRTUAL, "9:0", md__level="raid5", md__sync_action=action, md__degraded=degraded,
        md__raid_disks=members, alignment_offset="0",
    )  # fmt: skip
