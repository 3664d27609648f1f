from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import device

from iopstui.model.device import BlockDevice
from iopstui.model.target import Target
from iopstui.session.knob_view import queued_disks

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
