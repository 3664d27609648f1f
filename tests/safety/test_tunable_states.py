from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from evidence_frames import device
from trees import Tree, virtio_disk

from iopstui.linux.devices.sysfs import read_devices
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target, combine_targets
from iopstui.safety.tunables import TunableState, common_schedulers, queued_disks, tunable_states

DISK = device(name="vda")
DEVICES = {
    one.name: one
    for one in (
        DISK,
        replace(DISK, name="vda1", kind="partition", disk="vda"),
        device(name="sdb"),
        device(name="loop0", kind="loop"),
        BlockDevice("dm-0", "/dev/dm-0", 253, 0, "dm", 1),
        BlockDevice("md0", "/dev/md0", 9, 0, "md", 1),
    )
}


@pytest.mark.parametrize(
    ("tree", "turned"),
    [
        (("vda",), ["vda"]),
        (("vda1", "vda"), ["vda"]),
        (("dm-0", "vda1", "vda"), ["vda"]),
        (("md0", "vda", "sdb"), ["vda", "sdb"]),
        # the disk below a loop device's file is not what the user named
        (("loop0", "vda1", "vda"), ["loop0"]),
        (("dm-0", "loop0", "vda"), ["loop0"]),
        (("dm-0",), []),
        (("gone", "vda"), ["vda"]),
        ((), []),
    ],
)
def test_the_disks_whose_knobs_are_turned(tree: tuple[str, ...], turned: list[str]) -> None:
    target = Target("device", "/dev/x", tree[0] if tree else None, tree)
    assert [disk.name for disk in queued_disks(target, DEVICES)] == turned


def test_each_of_several_targets_has_its_own_disks() -> None:
    trees = (("loop0", "vda1", "vda"), ("sdb",), ("dm-0", "vda1", "vda"))
    target = combine_targets([Target("device", f"/dev/{t[0]}", t[0], t) for t in trees])
    assert [disk.name for disk in queued_disks(target, DEVICES)] == ["loop0", "sdb", "vda"]


def test_only_schedulers_that_all_disks_have_are_offered() -> None:
    first = device(schedulers=("none", "bfq", "kyber"))
    second = device(name="sdb", schedulers=("kyber", "none"))
    assert common_schedulers([first, second]) == ("none", "kyber")
    assert common_schedulers([]) == ()


def states(tree: Tree, *names: str) -> dict[str, TunableState]:
    """The tunables of these disks, which are in one tree."""
    devices = read_devices(tree.roots)
    target = combine_targets([Target("device", f"/dev/{one}", one, (one,)) for one in names])
    return {state.name: state for state in tunable_states(target, devices, tree.roots)}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Two disks that differ in one tunable; CPU 0 to 3."""
    tree = Tree(tmp_path)
    (tree.roots.sys / "block").mkdir()
    tree.sys("devices/system/cpu/online", "0-3\n")
    for name, number, affinity in (("vda", "254:0", "1"), ("vdb", "254:16", "2")):
        disk = virtio_disk(tree, name, dev=number) if name == "vda" else tree.disk(
            name, "devices/virtual/block", number, queue__rq_affinity=affinity,
            queue__scheduler="[bfq] none",
        )  # fmt: skip
        (tree.roots.sys / "block" / name).symlink_to(disk)
    tree.hctx(tree.roots.sys / "block/vdb", 0, "0-3")
    for irq in range(33, 38):
        tree.proc(f"irq/{irq}/smp_affinity_list", f"0-{irq - 33}\n")
        tree.proc(f"irq/{irq}/effective_affinity_list", f"{max(0, irq - 34)}\n")
    return tree


EACH = "every CPU has a hardware queue and an interrupt of its own"


def test_a_tunable_says_what_it_is_and_what_it_takes(tree: Tree) -> None:
    found = states(tree, "vda")
    assert found["nr_requests"] == TunableState(
        name="nr_requests", meaning="requests each queue may hold (at least 4)", now="256",
        values=(), allowed="a whole number from 4 up",
    )  # fmt: skip
    wbt = found["wbt_lat_usec"]
    assert (wbt.now, wbt.allowed) == ("-1", "a whole number from -1 up (µs)")
    assert (found["scheduler"].now, found["scheduler"].allowed) == (
        "none", "none, mq-deadline, kyber, bfq"
    )  # fmt: skip
    affinity = found["rq_affinity"]
    assert (affinity.values, affinity.allowed) == (("0", "1", "2"), "0, 1, 2")
    assert (affinity.now, affinity.idle, affinity.by_disk) == ("1", f"vda: {EACH}", ())
    assert "read_ahead_kb" not in found, "the disk does not have it"


def test_interrupts_are_tunables_too(tree: Tree) -> None:
    found = states(tree, "vda")
    assert found["irq/33"] == TunableState(
        name="irq/33", now="0-0", values=(), allowed="a CPU list such as 0-3,8",
        meaning="the CPUs that interrupt 33 (virtio5-config, no single queue) may go to",
    )  # fmt: skip
    meaning = "the CPUs that interrupt 35 (virtio5-req.1, hctx 1) may go to"
    assert (found["irq/35"].now, found["irq/35"].meaning) == ("0-2", meaning)


def test_of_several_disks_each_has_its_value(tree: Tree) -> None:
    found = states(tree, "vda", "vdb")
    affinity = found["rq_affinity"]
    assert (affinity.now, affinity.by_disk) == ("1", (("vda", "1"), ("vdb", "2")))
    assert affinity.idle == "", "it can move something on one of them"
    assert found["scheduler"].values == ("none", "bfq")
    assert found["nr_requests"].by_disk == (), "one disk has it"


def test_what_can_not_be_changed_says_why_and_how(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tree.roots.sys / "block/vdb/queue/rq_affinity"
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != refusing)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = states(tree, "vda", "vdb")
    affinity = found["rq_affinity"]
    assert affinity.refused == "Changing rq_affinity of vdb needs root."
    assert affinity.hint == f"Run iopstui with sudo, or: echo VALUE | sudo tee {refusing}"
    assert (found["scheduler"].refused, found["scheduler"].hint) == ("", "")
