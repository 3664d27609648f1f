"""Which disks the probe follows, which bin has which latencies, and why there is no probe."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import Tree

from iopstui.linux.probe.bins import (
    DIRECTION_AT,
    REGION_AT,
    bucket_middle,
    counts_by_disk,
    midpoint,
)
from iopstui.linux.probe.bpf import ONLY_ROOT, why_no_probe
from iopstui.linux.probe.regions import Region, regions
from iopstui.model.block.device import BlockDevice, Hctx
from iopstui.model.histogram import bucket_key


def fio_index(latency: int) -> int:
    """The index in fio's histogram (stat.c, plat_val_to_idx, with 6 bits)."""
    msb = latency.bit_length() - 1
    if msb <= 6:
        return latency
    return ((msb - 5) << 6) + ((latency >> (msb - 6)) & 63)


@given(st.integers(0, 1 << 47))
def test_a_bucket_s_number_is_that_of_fio(latency: int) -> None:
    assert midpoint(fio_index(latency), 6) == bucket_key(latency)


def test_what_a_partition_does_its_disk_does_too() -> None:
    followed = (Region("vda", 254, 0), Region("vda1", 254, 0, 2048, 4095), Region("sda", 8, 0))
    counts = {100: 3, 1 << REGION_AT | 100: 4, 2 << REGION_AT | 1 << DIRECTION_AT | 50: 5}
    none = {"read": {}, "write": {}, "discard": {}}
    assert counts_by_disk(followed, counts, bucket_middle) == {
        "vda": {**none, "read": {100: 7}}, "vda1": {**none, "read": {100: 4}},
        "sda": {**none, "write": {50: 5}},
    }  # fmt: skip


def test_what_is_in_its_way_is_said(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_no_probe(tree.roots) == (ONLY_ROOT, "sudo iopstui ...")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert why_no_probe(tree.roots) is None
    tree.sys("kernel/security/lockdown", "none integrity [confidentiality]")
    assert "locked down" in (why_no_probe(tree.roots) or ("",))[0]
    tree.sys("kernel/security/lockdown", "[none] integrity confidentiality")
    assert why_no_probe(tree.roots) is None


def disk(name: str, minor: int, **changes: object) -> BlockDevice:
    return BlockDevice(name, f"/dev/{name}", 254, minor, "virtio-blk", 1 << 30, **changes)  # type: ignore[arg-type]


def test_a_partition_is_looked_at_on_its_disk(tree: Tree) -> None:
    queue = (Hctx(0, (0,), 128, 0),)
    devices = {
        "vda": disk("vda", 0, hctxs=queue),
        "vda1": disk("vda1", 1, disk="vda", hctxs=queue),
        "dm-0": disk("dm-0", 5),
        "hidden": BlockDevice("hidden", "", -1, -1, "nvme", None),
    }
    tree.sys("class/block/vda1/start", "2048")
    tree.sys("class/block/vda1/size", "2048")
    found = regions(("dm-0", "vda1", "vda", "hidden", "gone"), devices, tree.roots)
    assert found[:2] == [Region("dm-0", 254, 5, bios=True), Region("vda", 254, 0)]
    assert found[2:] == [Region("vda1", 254, 0, 2048, 4095)]
    assert found[1].devs == (254 << 20,)


def test_a_disk_of_several_paths_is_looked_at_on_all_of_them(tree: Tree) -> None:
    queue = (Hctx(0, (0,), 128, 0),)
    hidden = {
        name: BlockDevice(name, "", -1, -1, "nvme", None, hidden=True, hctxs=queue)
        for name in ("nvme1c1n1", "nvme1c2n1")
    }
    devices = {
        "nvme1n1": disk("nvme1n1", 1, slaves=("nvme1c1n1", "nvme1c2n1")),
        "nvme1n1p1": disk("nvme1n1p1", 2, disk="nvme1n1"),
        **hidden,
    }
    row = "0 0 0 0 0 0 0 0 0 0 0"
    tree.proc("diskstats", f" 259 0 nvme1c2n1 {row}\n 259 1 nvme1n1 {row}\n"
                           f" 259 3 nvme1c1n1 {row}\n")  # fmt: skip
    tree.sys("class/block/nvme1n1p1/start", "2048")
    tree.sys("class/block/nvme1n1p1/size", "2048")
    whole, part = regions(("nvme1n1", "nvme1c1n1", "nvme1n1p1"), devices, tree.roots)
    assert whole.devs == part.devs == (259 << 20, 259 << 20 | 3) and not whole.bios
