from __future__ import annotations

from dataclasses import replace

from iopstui.model.block.device import BlockDevice, Mount
from iopstui.model.block.stack import uses_of_device


def device(name: str, **fields: object) -> BlockDevice:
    return BlockDevice(name, f"/dev/{name}", 1, 1, "disk", 1 << 30, **fields)  # type: ignore[arg-type]


def machine(*devices: BlockDevice) -> dict[str, BlockDevice]:
    return {d.name: d for d in devices}


ROOT = Mount("/", "ext4")


def test_a_free_disk_is_free() -> None:
    assert uses_of_device("sda", machine(device("sda"), device("sdb", mounts=(ROOT,)))) == ()


def test_a_disk_is_used_by_its_partitions() -> None:
    devices = machine(
        device("sda", partitions=("sda1", "sda2")),
        device("sda1", disk="sda", mounts=(ROOT,)),
        device("sda2", disk="sda", swap=True),
    )
    assert uses_of_device("sda", devices) == (
        "sda1 is mounted at / (ext4)",
        "sda2 is in use as swap",
    )


def test_a_partition_is_not_used_by_its_neighbours() -> None:
    devices = machine(
        device("sda", partitions=("sda1", "sda2")),
        device("sda1", disk="sda", mounts=(ROOT,)),
        device("sda2", disk="sda"),
    )
    assert uses_of_device("sda2", devices) == ()


def test_a_partition_of_a_disk_that_is_a_member_as_a_whole() -> None:
    devices = machine(
        device("sda", partitions=("sda1",), holders=("dm-0",)),
        device("sda1", disk="sda"),
        device("dm-0", layer="dm-multipath", dm_name="mpatha", mounts=(ROOT,)),
    )
    reasons = uses_of_device("sda1", devices)
    assert "sda is part of dm-0 (dm-multipath mpatha)" in reasons
    assert "dm-0 is mounted at / (ext4)" in reasons


def test_a_holder_that_is_not_known_still_counts() -> None:
    assert uses_of_device("sda", machine(device("sda", holders=("drbd0",)))) == (
        "sda is part of drbd0",
    )


def test_a_disk_behind_a_loop_device() -> None:
    disk = device("sda", partitions=("sda1",))
    part = device("sda1", disk="sda", mounts=(ROOT,))
    loop = device("loop0", backing_file="/dev/sda")
    devices = machine(disk, part, loop)
    assert "sda is attached to loop0" in uses_of_device("sda", devices)
    # writing to the loop device writes to the mounted partition
    assert uses_of_device("loop0", devices) == ("sda1 is mounted at / (ext4)",)
    assert uses_of_device("loop0", machine(disk, replace(part, mounts=()), loop)) == ()


def test_two_loop_devices_of_one_file() -> None:
    devices = machine(
        device("loop0", backing_file="/img"),
        device("loop1", backing_file="/img", mounts=(ROOT,)),
        device("loop2", backing_file="/other", mounts=(ROOT,)),
    )
    assert uses_of_device("loop0", devices) == (
        "loop1 uses the same file, /img",
        "loop1 is mounted at / (ext4)",
    )


def test_names_are_made_printable() -> None:
    devices = machine(device("sda", mounts=(Mount("/a\x1b[2J", "ext4"),)))
    assert uses_of_device("sda", devices) == ("sda is mounted at /a?[2J (ext4)",)
