from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import VIRTUAL, Tree, virtio_disk

from iopstui.format import replace_unprintable
from iopstui.linux.devices.sysfs import read_devices
from iopstui.model.block.device import BlockDevice, Hctx, Mount
from iopstui.output.pages.devices import (
    devices_json,
    devices_table,
    format_hctxs,
)
from iopstui.text import printable


@pytest.fixture
def devices(tmp_path: Path) -> dict[str, BlockDevice]:
    tree = Tree(tmp_path)
    disk = virtio_disk(tree)
    tree.partition(disk, 1, "254:1")
    tree.disk("loop0", VIRTUAL, "7:0", 0)
    tree.disk("nvme0c1n1", VIRTUAL, None, hidden="1")
    tree.proc("self/mountinfo", "27 1 254:1 / / rw - ext4 /dev/vda1 rw\n")
    return read_devices(tree.roots)


def row(table: str, name: str) -> list[str]:
    return next(line.split() for line in table.splitlines() if line.split()[0] == name)


def test_the_table_has_a_row_for_each_device_in_use(devices: dict[str, BlockDevice]) -> None:
    table = devices_table(devices, 100)
    assert table.splitlines()[0].split() == [
        *("NAME", "SIZE", "TYPE", "MODEL", "SCHED", "RQ_AFF", "HCTX>CPUS", "IRQ", "IN", "USE")
    ]
    assert row(table, "vda") == [
        *("vda", "1", "GiB", "virtio-blk", "–", "none", "1", "4:", "0", "1", "2", "3", "34-37"),
        "partitions",
    ]
    assert row(table, "vda1") == ["vda1", "512", "KiB", "partition", "/"]
    assert "loop0" not in table and "nvme0c1n1" not in table
    everything = devices_table(devices, 100, all=True)
    assert "loop0" in everything and "nvme0c1n1" in everything


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(devices: dict[str, BlockDevice], width: int) -> None:
    long = replace(
        devices["vda"],
        name="vdb",
        model="M" * 200,
        mounts=tuple(Mount(f"/very/long/{i}", "ext4") for i in range(30)),
        hctxs=tuple(Hctx(i, (i * 1000,), 1, 0) for i in range(64)),
    )
    table = devices_table({**devices, "vdb": long}, width)
    assert max(map(len, table.splitlines())) <= width
    assert replace_unprintable(table, "ascii").isascii()


def test_80_columns_are_enough_for_use_and_queues(devices: dict[str, BlockDevice]) -> None:
    device = replace(devices["vda"], name="nvme10n1", model="A long model name of a vendor")
    table = devices_table({**devices, "nvme10n1": device}, 80)
    assert "partitions" in table and "4: 0 1 2 3" in table and "34-37" in table


def test_no_devices() -> None:
    assert devices_table({}, 80) == "No block devices found.\n"
    assert devices_json({}) == {"schema": 1, "devices": []}


def test_control_characters_are_removed(devices: dict[str, BlockDevice]) -> None:
    bad = replace(devices["vda"], model="\x1b]0;x\x07\u202e", mounts=(Mount("/a\nb\x9b", "ext4"),))
    table = devices_table({"vda": bad}, 200)
    assert all(char == "\n" or char.isprintable() for char in table)
    assert len(table.splitlines()) == 2


def test_json_has_queues_with_cpus_tags_and_interrupts(devices: dict[str, BlockDevice]) -> None:
    document = json.loads(json.dumps(devices_json(devices)))
    by_name = {device["name"]: device for device in document["devices"]}
    assert by_name["vda"]["hctxs"][1] == {
        "index": 1,
        "cpus": [1],
        "nr_tags": 128,
        "nr_reserved_tags": 0,
        "irqs": [35],
    }
    assert by_name["vda"]["irqs"][0]["name"] == "virtio5-config"
    assert by_name["vda"]["queue"]["rq_affinity"] == 1
    assert by_name["vda"]["in_use"] is True
    assert by_name["vda"]["in_use_by"] == ["vda1 is mounted at / (ext4)"]
    assert by_name["vda1"]["mounts"] == [
        {"mountpoint": "/", "fstype": "ext4", "elsewhere": False, "journals_data": False}
    ]
    assert by_name["loop0"]["in_use"] is False and by_name["loop0"]["queue"] is None
    assert by_name["nvme0c1n1"]["major"] is None


def test_many_queues_are_summarized() -> None:
    def queues(*cpus: tuple[int, ...]) -> tuple[Hctx, ...]:
        return tuple(Hctx(i, c, None, None) for i, c in enumerate(cpus))

    assert format_hctxs(()) == "–"
    assert format_hctxs(queues((0, 1), (2, 3))) == "2: 0-1 2-3"
    assert format_hctxs(queues(*((n,) for n in range(64)))) == "64: 1 CPU each"
    assert format_hctxs(queues(*((n, n + 64) for n in range(64)))) == "64: 2 CPUs each"
    assert format_hctxs(queues(*((n,) for n in range(63)), (63, 64))) == "64: 1-2 CPUs each"
    assert format_hctxs(queues(*((n,) for n in range(64)), tuple(range(64)))) == "65: overlapping"


@given(st.text())
def test_printable_text_is_unchanged_and_the_rest_removed(text: str) -> None:
    text_shown = printable(text)
    assert text_shown.isprintable() and printable(text_shown) == text_shown
    if text.isprintable() and " ".join(text.split()) == text:
        assert text_shown == text
