"""What a machine shows of itself, read from fixture trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees import Tree

from iopstui.features.promise.run import AZURE_ASSET, read_visible_facts
from iopstui.model.block.device import BlockDevice


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def disk(name: str, **more: str) -> BlockDevice:
    return BlockDevice(name, f"/dev/{name}", 8, 0, "disk", 1 << 30, **more)  # type: ignore[arg-type]


def test_microsoft_is_azure_by_its_asset_tag_only(tree: Tree) -> None:
    tree.sys("class/dmi/id/sys_vendor", "Microsoft Corporation\n")
    assert read_visible_facts(disk("sda"), tree.roots).vendor == ""
    tree.sys("class/dmi/id/chassis_asset_tag", AZURE_ASSET + "\n")
    assert read_visible_facts(disk("sda"), tree.roots).vendor == "Microsoft Corporation"


def test_the_link_of_azure(tree: Tree) -> None:
    lun = tree.roots.dev / "disk/azure/scsi1/lun0"
    lun.parent.mkdir(parents=True)
    lun.symlink_to("../../../sdc")
    assert read_visible_facts(disk("sdc"), tree.roots).azure_link == "/dev/disk/azure/scsi1/lun0"
    assert read_visible_facts(disk("sdd"), tree.roots).azure_link == ""


def test_a_machine_that_shows_nothing(tree: Tree) -> None:
    found = read_visible_facts(disk("vda"), tree.roots)
    assert (found.vendor, found.model, found.serial, found.azure_link) == ("", "", "", "")


def test_foreign_text_is_printable(tree: Tree) -> None:
    tree.sys("class/dmi/id/sys_vendor", "Evil\x1b[31m")
    assert "\x1b" not in read_visible_facts(disk("vda"), tree.roots).vendor
