"""What the kernel exports to other machines; the LIO texts are from Linux 6.12."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trees import VIRTUAL, Tree

from iopstui.linux.devices.usage.openers import (
    Writers,
    exports_served_here,
    file_identity,
    read_exports,
)

CORE = "kernel/config/target/core"
INFO = (
    "Status: ACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384\n"
    "        TCM FILEIO ID: 0        File: {}  Size: 50331648  Mode: O_DSYNC Async: 0\n"
)
NVME = "kernel/config/nvmet/subsystems/nqn.one/namespaces/1"
UUID = "a6b5d0d4-0e3c-4c2e-9a63-3b6f7f3b0a11"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "machine").mkdir()
    return Tree(tmp_path / "machine")


def fileio(tree: Tree, path: str, enable: str = "1") -> None:
    tree.sys(f"{CORE}/fileio_91/store/info", INFO.format(path))
    tree.sys(f"{CORE}/fileio_91/store/enable", f"{enable}\n")


def test_lio_s_fileio_writes_without_a_process(tree: Tree, tmp_path: Path) -> None:
    image = tmp_path / "a  Size: disk.img"
    image.write_text("")
    fileio(tree, str(image))
    tree.sys(f"{CORE}/iblock_0/claimed/info", "iBlock device: loop0  UDEV PATH: /dev/loop0\n")
    tree.sys(f"{CORE}/iblock_0/claimed/enable", "1\n")
    tree.sys(f"{CORE}/alua/lu_gps", "")
    assert [one.path for one in read_exports(tree.roots)] == [str(image)]
    (who,) = Writers(tree.roots).of_file(str(image), {file_identity(image.stat())})
    assert "exports it over SCSI (LIO fileio, store)" in who


@pytest.mark.parametrize("enable", ["0", ""])
def test_a_store_that_is_switched_off_writes_nothing(tree: Tree, enable: str) -> None:
    fileio(tree, "/dev/null", enable)
    assert list(read_exports(tree.roots)) == []


def test_the_nvme_device_of_an_export_of_this_machine(tree: Tree) -> None:
    for name, text in (("device_path", "/dev/sda"), ("enable", "1"), ("device_uuid", UUID)):
        tree.sys(f"{NVME}/{name}", f"{text}\n")
    tree.disk("nvme1n1", VIRTUAL, "259:1", uuid=UUID)
    tree.disk("nvme2n1", VIRTUAL, "259:2", uuid=UUID.replace("a", "b"))
    tree.disk("nvme3n1", VIRTUAL, "259:3")
    assert [one.path for one in exports_served_here("nvme1n1", tree.roots)] == ["/dev/sda"]
    assert list(exports_served_here("nvme2n1", tree.roots)) == []
    assert list(exports_served_here("nvme3n1", tree.roots)) == []


def loopback(tree: Tree, address: str) -> None:
    group = "kernel/config/target/loopback/naa.5001405000000091/tpgt_1"
    tree.sys(f"{group}/address", f"{address}\n")
    lun = tree.roots.sys / group / "lun/lun_0"
    lun.mkdir(parents=True)
    (lun / "link").symlink_to(tree.roots.sys / CORE / "fileio_91/store")
    (lun / "alua_tg_pt_gp").write_text("")


@pytest.mark.parametrize(("address", "same"), [("2:0:1", True), ("3:0:1", False)])
def test_the_scsi_disk_of_a_store_of_this_machine(tree: Tree, address: str, same: bool) -> None:
    fileio(tree, "/dev/sda")
    loopback(tree, address)
    disk = tree.disk("sdc", "devices/virtual/target2:0:1/2:0:1:0/block", "8:32")
    (disk / "device").symlink_to(disk.parents[1])
    assert os.path.basename(os.path.realpath(disk / "device")) == "2:0:1:0"
    assert [one.path for one in exports_served_here("sdc", tree.roots)] == (
        ["/dev/sda"] if same else []
    )
