"""Which devices share blocks, by device number and in both directions."""

from __future__ import annotations

import pytest

from iopstui.model.block.device import BlockDevice, Mount
from iopstui.model.block.stack import Backing, Stack, backing_files, uses_of_device
from iopstui.model.block.target import DeviceLinks, Target

ROOT = Mount("/", "ext4")
FILE = Backing((8, 1), 12)


def device(name: str, number: tuple[int, int] = (0, 0), **fields: object) -> BlockDevice:
    return BlockDevice(name, f"/dev/{name}", *number, "disk", 1 << 30, **fields)  # type: ignore[arg-type]


def machine(*devices: BlockDevice) -> dict[str, BlockDevice]:
    return {d.name: d for d in devices}


def node(major: int, minor: int) -> Backing:
    return Backing((0, 6), 900, (major, minor))


def test_a_loop_device_on_a_node_of_any_name() -> None:
    devices = machine(
        device("loop0", (7, 0), backing_file="/img", mounts=(ROOT,)),
        device("loop1", (7, 1), backing_file="/srv/node"),
    )
    backings = {"loop0": FILE, "loop1": node(7, 0)}
    assert uses_of_device("loop1", devices, backings) == ("loop0 is mounted at / (ext4)",)
    assert uses_of_device("loop0", devices, backings) == (
        "loop0 is mounted at / (ext4)",
        "loop0 is attached to loop1",
    )
    assert uses_of_device("loop1", devices) == ()
    assert Stack(devices, backings).above("loop0") == ("loop0", "loop1")


def test_the_number_counts_where_the_name_says_something_else() -> None:
    devices = machine(
        device("sda", (8, 0), mounts=(ROOT,)),
        device("sdb", (8, 16)),
        device("loop0", (7, 0), backing_file="/dev/sdb"),
    )
    backings = {"loop0": node(8, 0)}
    assert uses_of_device("loop0", devices, backings) == ("sda is mounted at / (ext4)",)
    assert uses_of_device("sdb", devices, backings) == ()


def test_loop_over_loop_over_a_partition() -> None:
    devices = machine(
        device("loop0", (7, 0), backing_file="/img", partitions=("loop0p1", "loop0p2")),
        device("loop0p1", (259, 0), disk="loop0"),
        device("loop0p2", (259, 1), disk="loop0", mounts=(ROOT,)),
        device("loop1", (7, 1), backing_file="/a"),
        device("loop2", (7, 2), backing_file="/b", partitions=("loop2p1",)),
        device("loop2p1", (259, 2), disk="loop2"),
    )
    backings = {"loop0": FILE, "loop1": node(259, 0), "loop2": node(7, 1)}
    stack = Stack(devices, backings)
    assert stack.below("loop2p1") == ("loop2", "loop1", "loop0p1", "loop0")
    assert stack.above("loop0p1") == ("loop0p1", "loop1", "loop2", "loop2p1")
    # the mounted partition is loop0p2; loop2p1 is above loop0p1
    assert uses_of_device("loop2p1", devices, backings) == ()
    swapping = {**devices, "loop0p1": device("loop0p1", (259, 0), disk="loop0", swap=True)}
    assert uses_of_device("loop2p1", swapping, backings) == ("loop0p1 is in use as swap",)


def test_a_partition_of_a_loop_device_below_which_another_loop_device_is_mounted() -> None:
    devices = machine(
        device("loop0", (7, 0), backing_file="/img", partitions=("loop0p1",)),
        device("loop0p1", (259, 0), disk="loop0"),
        device("loop1", (7, 1), backing_file="/hard link", mounts=(ROOT,)),
    )
    backings = {"loop0": FILE, "loop1": FILE}
    assert uses_of_device("loop0p1", devices, backings) == (
        "loop1 uses the same file, /img",
        "loop1 is mounted at / (ext4)",
    )


def test_loop_devices_of_files_of_one_name() -> None:
    """The first one's file was deleted, another one made."""
    devices = machine(
        device("loop0", (7, 0), backing_file="/img (deleted)"),
        device("loop1", (7, 1), backing_file="/img (deleted)", mounts=(ROOT,)),
    )
    assert uses_of_device("loop0", devices, {"loop0": FILE, "loop1": Backing((8, 1), 13)}) == ()
    assert uses_of_device("loop0", devices, {"loop0": FILE})


@pytest.mark.parametrize(
    ("first", "second", "free"),
    [
        ("LVM", "LVM", True), ("bcache", "bcache", True), ("partition", "partition", True),
        ("device-mapper", "device-mapper", False), ("LVM", "dm-crypt", False),
        ("dm-crypt", "dm-crypt", False), (None, None, False),
    ],
)  # fmt: skip
def test_neighbours_on_one_device(first: str | None, second: str | None, free: bool) -> None:
    """Each LVM volume has blocks of its own; two other device-mapper devices may share blocks."""
    devices = machine(
        device("sda", (8, 0), holders=("dm-0", "dm-1")),
        device("dm-0", (253, 0), slaves=("sda",), layer=first),
        device("dm-1", (253, 1), slaves=("sda",), layer=second, mounts=(ROOT,)),
    )
    found = uses_of_device("dm-0", devices)
    assert ("dm-1 is mounted at / (ext4)" in found) is not free
    assert bool(found) is not free


def test_arrays_of_one_container_share_their_disks() -> None:
    devices = {
        name: BlockDevice(name, f"/dev/{name}", 9, number, "md", 1, slaves=("sda",), mounts=mounts)
        for number, (name, mounts) in enumerate((("md126", ()), ("md127", (ROOT,))))
    }
    devices |= machine(device("sda", (8, 0), holders=("md126", "md127")))
    assert uses_of_device("md126", devices) == ()


def test_files_that_loop_devices_are_made_of() -> None:
    backings = {"loop0": FILE, "loop1": node(7, 0)}
    assert backing_files(("loop0", "loop1", "sda"), backings) == {((8, 1), 12)}


def test_what_is_not_there() -> None:
    stack = Stack({})
    assert (stack.directly_above("x"), stack.directly_below("x"), stack.same_file("x")) == (
        (),
        (),
        [],
    )
    assert (stack.above("x"), stack.below("x"), stack.overlapping("x")) == ((), (), {})
    assert uses_of_device("x", {}) == ()


def partition(number: int, start: int, size: int, **fields: object) -> BlockDevice:
    return BlockDevice(f"sda{number}", f"/dev/sda{number}", 8, number, "partition", size << 20,
                       disk="sda", start=start << 20, **fields)  # type: ignore[arg-type]  # fmt: skip


def disk_with(*partitions: BlockDevice) -> dict[str, BlockDevice]:
    names = tuple(one.name for one in partitions)
    return machine(device("sda", (8, 0), partitions=names), *partitions)


@pytest.mark.parametrize(
    ("start", "size", "apart"),
    [(17, 8, True), (16, 8, False), (1, 16, False), (4, 2, False), (0, 1, True), (0, 2, False),
     (0, 99, False)],
)  # fmt: skip
def test_partitions_that_overlap(start: int, size: int, apart: bool) -> None:
    """The kernel accepts any partition table. The mounted partition covers MiB 1 to 16."""
    devices = disk_with(partition(1, 1, 16, mounts=(ROOT,)), partition(2, start, size))
    assert uses_of_device("sda2", devices) == (() if apart else ("sda1 is mounted at / (ext4)",))


def test_a_partition_of_which_no_place_is_known() -> None:
    unknown = BlockDevice("sda1", "/dev/sda1", 8, 1, "partition", 1 << 20, disk="sda",
                          mounts=(ROOT,))  # fmt: skip
    assert uses_of_device("sda2", disk_with(unknown, partition(2, 0, 99))) == ()


def test_an_extended_partition_is_the_table_of_the_logical_ones() -> None:
    """Linux shows it as two sectors, none of which belongs to a logical partition."""
    extended = BlockDevice("sda2", "/dev/sda2", 8, 2, "partition", 1024, disk="sda", start=8 << 20)
    primary, free = partition(1, 1, 4, mounts=(ROOT,)), partition(6, 32, 4)
    logical = partition(5, 9, 16, mounts=(Mount("/home", "ext4"),))
    devices = disk_with(primary, extended, logical, free)
    assert uses_of_device("sda2", devices) == ("sda5 is mounted at /home (ext4)",)
    assert uses_of_device("sda6", devices) == ()
    # in a GPT the fifth partition is one like the others
    devices = disk_with(primary, partition(2, 8, 1), logical)
    assert uses_of_device("sda2", devices) == ()


def snapshots(*mounted: str, origin: str = "vg-lv", real: str = "vg-lv-real"
              ) -> dict[str, BlockDevice]:  # fmt: skip
    """Two snapshots, stacked as ``lvcreate -s`` does it."""

    def volume(minor: int, dm_name: str, slaves: tuple[str, ...], *holders: str) -> BlockDevice:
        name = f"dm-{minor}"
        return BlockDevice(name, f"/dev/{name}", 253, minor, "dm", 1 << 20, dm_name=dm_name,
                           layer="LVM", slaves=slaves, holders=holders,
                           mounts=(ROOT,) if name in mounted else ())  # fmt: skip

    below = tuple(f"dm-{n}" for n in (1, 3, 5))
    return machine(
        device("sda", (8, 0), holders=(*below, "dm-6")),
        volume(0, origin, ("dm-1",)), volume(1, real, ("sda",), "dm-0", "dm-2", "dm-4"),
        volume(2, "vg-s1", ("dm-1", "dm-3")), volume(3, "vg-s1-cow", ("sda",), "dm-2"),
        volume(4, "vg-s2", ("dm-1", "dm-5")), volume(5, "vg-s2-cow", ("sda",), "dm-4"),
        volume(6, "vg-other", ("sda",)),
    )  # fmt: skip


def test_a_write_to_an_origin_takes_room_of_its_snapshots() -> None:
    assert uses_of_device("dm-0", snapshots()) == ()
    assert uses_of_device("dm-0", snapshots("dm-2")) == ("dm-2 is mounted at / (ext4)",)
    assert uses_of_device("dm-2", snapshots("dm-0", "dm-4")) == ()
    assert uses_of_device("dm-6", snapshots("dm-0", "dm-2", "dm-4")) == ()
    stack = Stack(snapshots())
    assert stack.snapshots("dm-0") == ("dm-2", "dm-4")
    assert stack.snapshots("dm-2") == stack.snapshots("dm-6") == stack.snapshots("sda") == ()


def test_what_lies_on_an_origin_writes_to_it() -> None:
    devices = snapshots("dm-2")
    devices["dm-0"] = BlockDevice("dm-0", "/dev/dm-0", 253, 0, "dm", 1, slaves=("dm-1",),
                                  layer="LVM", dm_name="vg-lv", holders=("dm-9",))  # fmt: skip
    devices["dm-9"] = device("dm-9", (253, 9), slaves=("dm-0",), layer="dm-crypt")
    assert uses_of_device("dm-9", devices) == ("dm-2 is mounted at / (ext4)",)


def test_levels_count_the_layers_above() -> None:
    links = (
        DeviceLinks("loop0", ("dm-1",)), DeviceLinks("dm-1", ("sda", "dm-0")),
        DeviceLinks("dm-0", ("sda", "sdb")), DeviceLinks("sda"), DeviceLinks("sdb"),
    )  # fmt: skip
    tree = ("loop0", "dm-1", "sda", "dm-0", "sdb")
    target = Target("device", "/dev/loop0", "loop0", tree, links=links)
    assert target.levels == {"loop0": 0, "dm-1": 1, "sda": 3, "dm-0": 2, "sdb": 3}
    # a partition is no layer of its own
    part = (DeviceLinks("vda1"), DeviceLinks("vda"))
    assert Target("device", "/dev/vda1", "vda1", ("vda1", "vda"), links=part).levels == {
        "vda1": 0, "vda": 0,
    }  # fmt: skip
