from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hardware import multipath_head, scsi_disk
from trees import VIRTUAL, Tree

from iopstui.linux.devices.health import (
    parse_array,
    parse_hex,
    read_errors,
    read_lost_paths,
    read_offline,
    read_queue_depth,
)
from iopstui.linux.devices.sysfs import read_devices
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import Array


def described(tree: Tree, disk: Path) -> BlockDevice:
    return read_devices(tree.roots)[disk.name]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x0\n", 0),
        ("0x1f", 31),
        ("0xFF", 255),
        ("31", None),
        ("0x", None),
        ("0x" + "f" * 99, None),
    ],
)
def test_counters_of_scsi(text: str, number: int | None) -> None:
    assert parse_hex(text) == number


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (("idle\n", "1\n", "2\n"), Array("idle", 1, 2)),
        (("reshape", "0", "5 (4)"), Array("reshape", 0, 5)),
        (("recover", "1", ""), Array("recover", 1, None)),
        (("idle", "0", "0"), Array("idle", 0, None)),
        (("", "", "2"), None),  # raid0
        (("idle", "-1", "2"), None),
        (("\x1b[2J", "1", "2"), None),
    ],
)
def test_arrays(files: tuple[str, str, str], found: Array | None) -> None:
    assert parse_array(*files) == found


def test_an_array_with_chunks() -> None:
    assert parse_array("idle", "0", "3", "65536\n") == Array("idle", 0, 3, 65536)
    assert parse_array("idle", "0", "2", "0\n") == Array("idle", 0, 2)
    # raid0 lacks the files of states that it can't have
    assert parse_array("", "", "2\n", "4096\n") == Array("idle", 0, 2, 4096)


def test_a_scsi_disk(tree: Tree) -> None:
    disk = str(scsi_disk(tree))
    assert read_queue_depth(disk) == 32
    assert read_errors(disk) == (31, 2)


@pytest.mark.parametrize("state", ["running", "blocked", "offline", "transport-offline"])
def test_the_states_in_which_a_scsi_disk_gets_no_commands(tree: Tree, state: str) -> None:
    disk = scsi_disk(tree)
    tree.attributes(disk / "device", state=state)
    assert read_offline(str(disk)) == (state if state.endswith("offline") else "")


def test_an_older_kernel_counts_no_timeouts(tree: Tree) -> None:
    disk = scsi_disk(tree)
    (disk / "device/iotmo_cnt").unlink()
    assert read_errors(str(disk)) == (31, None)


def lost(tree: Tree, name: str) -> tuple[tuple[str, str], ...]:
    return read_lost_paths(read_devices(tree.roots)[name], tree.roots)


def test_a_path_that_vanished_is_gone_and_one_that_says_nothing_works(tree: Tree) -> None:
    device = described(tree, multipath_head(tree))
    path = (tree.roots.sys / "class/block/nvme1c1n1").resolve()
    (path.parent / "state").unlink()
    assert read_lost_paths(device, tree.roots) == ()
    shutil.rmtree(path)
    assert read_lost_paths(device, tree.roots) == (("nvme1c1n1", "gone"),)


@pytest.mark.parametrize("state", ["offline", "transport-offline", "blocked", "deleting (no IO)"])
def test_the_paths_of_dm_multipath(tree: Tree, state: str) -> None:
    paths = [scsi_disk(tree, "sda", "8:0"), scsi_disk(tree, "sdb", "8:16", state=state)]
    above = tree.disk("dm-0", VIRTUAL, "253:0", dm__name="mpatha", dm__uuid="mpath-3600")
    for path in paths:
        tree.stacked(path, above)
    assert lost(tree, "dm-0") == (("sdb", state),)


def test_a_state_is_fit_for_a_terminal(tree: Tree) -> None:
    device = described(tree, multipath_head(tree))
    controller = (tree.roots.sys / "class/block/nvme1c2n1/device").resolve()
    (controller / "state").write_bytes(b"\x1b[2J\xff" + b"x" * 5000)
    assert read_lost_paths(device, tree.roots) == (("nvme1c2n1", "?[2J?" + "x" * 35),)
