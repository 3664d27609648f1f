from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import device

from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target, together
from iopstui.safety.tunable_states import common_schedulers, queued_disks

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
        # the disk under a loop device's file is not what was named
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
    target = together([Target("device", f"/dev/{t[0]}", t[0], t) for t in trees])
    assert [disk.name for disk in queued_disks(target, DEVICES)] == ["loop0", "sdb", "vda"]


def test_only_schedulers_that_all_disks_have_are_offered() -> None:
    first = device(schedulers=("none", "bfq", "kyber"))
    second = device(name="sdb", schedulers=("kyber", "none"))
    assert common_schedulers([first, second]) == ("none", "kyber")
    assert common_schedulers([]) == ()
