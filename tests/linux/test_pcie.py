from __future__ import annotations

from pathlib import Path

import pytest
from hardware import nvme_disk
from trees import VIRTUAL, Tree, virtio_disk

from iopstui.linux.devices.health import find_link, parse_speed, parse_width, read_link
from iopstui.model.findings.conditions import Link


def link(tree: Tree, disk: Path) -> Link | None:
    files = find_link(disk, tree.roots)
    return None if files is None else read_link(files)


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("2.5 GT/s PCIe\n", 2.5),
        ("8 GT/s", 8.0),
        ("16.0 GT/s PCIe", 16.0),
        ("Unknown", None),
        ("Unknown speed", None),
        ("0 GT/s", None),
        ("8.0 GT/s PCIe, more", None),
        ("", None),
    ],
)
def test_speeds(text: str, speed: float | None) -> None:
    assert parse_speed(text) == speed


@pytest.mark.parametrize(
    ("text", "width"), [("4\n", 4), ("0", None), ("255", None), ("-1", None), ("x4", None)]
)
def test_widths(text: str, width: int | None) -> None:
    assert parse_width(text) == width


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("current_link_speed", "Unknown"),
        ("max_link_speed", "Unknown"),
        ("current_link_width", "0"),
        ("max_link_width", "255"),
    ],
)
def test_half_a_link_is_none(tree: Tree, name: str, text: str) -> None:
    disk = nvme_disk(tree)
    tree.attributes(disk.parents[2], **{name: text})
    assert link(tree, disk) is None


def test_devices_without_a_link(tree: Tree) -> None:
    assert link(tree, virtio_disk(tree)) is None
    assert link(tree, tree.disk("loop0", VIRTUAL, "7:0")) is None
    # files of this name outside of the devices belong to something else
    for name, text in (("speed", "8.0 GT/s PCIe"), ("width", "4")):
        tree.attributes(tree.roots.sys, **{f"current_link_{name}": text, f"max_link_{name}": text})
    assert link(tree, tree.disk("loop1", VIRTUAL, "7:1")) is None
