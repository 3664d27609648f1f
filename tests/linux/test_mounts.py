from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st
from trees import VIRTUAL, Tree

from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.usage.mounts import (
    distinct_file_systems,
    parse_mountinfo,
    parse_swaps,
    read_mounts,
    unescape,
)
from iopstui.model.block.device import Mount


def escape(text: str) -> str:
    return "".join(f"\\{ord(c):03o}" if c in " \t\n\\#" else c for c in text)


def namespace(tree: Tree, pid: str, inode: int, text: str) -> None:
    tree.proc(f"{pid}/mountinfo", text)
    (tree.roots.proc / pid / "ns").mkdir()
    os.symlink(f"mnt:[{inode}]", tree.roots.proc / pid / "ns/mnt")


def line(device: str, mountpoint: str, fstype: str = "ext4", source: str = "none") -> str:
    return f"27 1 {device} / {mountpoint} rw,relatime shared:1 - {fstype} {source} rw\n"


@given(st.text(st.characters(codec="utf-8")))
def test_escapes_are_undone_exactly(text: str) -> None:
    assert unescape(escape(text)) == text


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    parse_mountinfo(text)
    parse_swaps(text)


def test_mounts_of_one_file_system_count_once(tree: Tree) -> None:
    mounts = (("0:40", "/mnt/a"), ("0:41", "/mnt/b"), ("0:40", "/mnt/again"))
    tree.proc("self/mountinfo", "".join(line(number, place, "nfs4") for number, place in mounts))
    wanted = ["/mnt/again", "/mnt/b", "/mnt/a", "/gone"]
    assert distinct_file_systems(wanted, tree.roots) == ("/mnt/again", "/mnt/b", "/gone")


def test_optional_fields_vary_in_number() -> None:
    text = (
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue\n"
        "37 35 0:21 / /proc rw - proc proc rw\n"
        "a line of something else\n"
        "38 35 x:y / /bad rw - ext4 /dev/sda rw\n"
    )
    first, second = parse_mountinfo(text)
    assert (first.major, first.minor, first.root, first.mountpoint) == (98, 0, "/mnt1", "/mnt2")
    assert (first.fstype, first.source) == ("ext3", "/dev/root")
    assert (second.fstype, second.mountpoint) == ("proc", "/proc")


def test_mounts_of_other_namespaces_are_seen_once_and_marked(tree: Tree) -> None:
    tree.disk("vdb1", VIRTUAL, "254:17")
    own = line("254:0", "/")
    namespace(tree, "self", 1, own)
    namespace(tree, "10", 1, own)
    namespace(tree, "11", 2, own + line("254:17", "/hidden"))
    namespace(tree, "12", 2, own + line("254:17", "/hidden"))
    assert [e.mountpoint for e in read_mounts(tree.roots).entries] == ["/", "/hidden"]
    device = read_devices(tree.roots)["vdb1"]
    assert device.mounts == (Mount("/hidden", "ext4", elsewhere=True),)


def test_namespaces_that_cannot_be_told_apart_are_read_all_the_same(tree: Tree) -> None:
    tree.proc("self/mountinfo", line("254:0", "/"))
    tree.proc("10/mountinfo", line("254:17", "/a"))
    tree.proc("11/mountinfo", line("254:17", "/a"))
    tree.proc("12/mountinfo", line("254:17", "/b"))
    found = [(e.mountpoint, e.elsewhere) for e in read_mounts(tree.roots).entries]
    assert found == [("/", False), ("/a", True), ("/b", True)]


def test_every_device_of_a_mounted_btrfs_is_mounted(tree: Tree) -> None:
    tree.disk("sda", VIRTUAL, "8:0")
    tree.disk("sdb", VIRTUAL, "8:16")
    tree.disk("sdc", VIRTUAL, "8:32")
    tree.proc("self/mountinfo", line("0:35", "/b", "btrfs", "/dev/sda"))
    for name in ("sda", "sdb"):
        tree.sys(f"fs/btrfs/uuid-1/devices/{name}/x", "")
    devices = read_devices(tree.roots)
    assert devices["sda"].mounts == devices["sdb"].mounts == (Mount("/b", "btrfs"),)
    assert devices["sdc"].mounts == ()


def test_a_swap_file_is_on_the_device_of_its_file_system(tree: Tree) -> None:
    for number, name in ((0, "vda"), (16, "vdb"), (32, "vdc")):
        tree.disk(name, VIRTUAL, f"254:{number}")
    mounts = line("254:0", "/") + line("254:16", "/srv") + line("254:32", "/srv2")
    tree.proc("self/mountinfo", mounts)
    for path, swap in (("/swapfile", "vda"), ("/srv/swap", "vdb"), ("/srv2", "vdc")):
        tree.proc("swaps", f"Filename Type\n{path} file 204796 0 -2\n")
        devices = read_devices(tree.roots)
        assert [name for name, device in devices.items() if device.swap] == [swap]


def test_sources_under_dev_mapper(tree: Tree) -> None:
    tree.disk("dm-0", VIRTUAL, "253:0", dm__name="vg-lv")
    tree.proc("self/mountinfo", line("0:40", "/x", "btrfs", "/dev/mapper/vg-lv"))
    tree.proc("swaps", "Filename Type\n/dev/mapper/vg-lv partition 1 0 -2\n")
    device = read_devices(tree.roots)["dm-0"]
    assert device.mounts == (Mount("/x", "btrfs"),)
    assert device.swap


def test_no_proc_at_all(tree: Tree) -> None:
    assert read_mounts(tree.roots).entries == ()
