from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from trees import VIRTUAL, Tree, virtio_disk

from iopstui.errors import EXIT_USAGE, UsageError
from iopstui.linux.devices import target
from iopstui.linux.devices.aliases import number_of_new_files
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import (
    LIST_DEVICES,
    device_links,
    device_tree,
    mount_of,
    resolve_target,
    resolve_targets,
    why_no_device,
)
from iopstui.linux.devices.usage.mounts import MountEntry, parse_mountinfo
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.limits import how_to_open
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, DIRECT_LOOP, DIRECTORY, FILE, Target, combine_targets


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "machine").mkdir()
    return Tree(tmp_path / "machine")


@pytest.fixture
def nodes(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Files below the tree's /dev that look like block devices of these numbers."""
    numbers: dict[str, int] = {}
    real = os.stat

    def stat_as_block(path: object, *args: object, **kwargs: object) -> os.stat_result:
        info = real(path, *args, **kwargs)  # type: ignore[call-overload]
        number = numbers.get(os.path.realpath(str(path)))
        if number is None:
            return info  # type: ignore[no-any-return]
        fields = list(info)
        fields[0] = stat.S_IFBLK | 0o660
        return os.stat_result(fields, {"st_rdev": number})

    monkeypatch.setattr(os, "stat", stat_as_block)
    yield numbers


def node(tree: Tree, nodes: dict[str, int], name: str, major: int, minor: int) -> Path:
    path = tree.roots.dev / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    nodes[os.path.realpath(path)] = os.makedev(major, minor)
    return path


def said(error: UsageError) -> tuple[str, str]:
    return error.message, error.hint


def refused(text: str | None, tree: Tree, cwd: Path | None = None) -> UsageError:
    devices = read_devices(tree.roots)
    with pytest.raises(UsageError) as caught:
        resolve_target(text, cwd or tree.base, tree.roots, devices)
    assert caught.value.exit_code == EXIT_USAGE
    return caught.value


def test_a_node_is_found_through_links(tree: Tree, nodes: dict[str, int]) -> None:
    virtio_disk(tree)
    real = node(tree, nodes, "vda", 254, 0)
    link = tree.roots.dev / "disk/by-id/virtio-VBLK4Q"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../vda")
    found = resolve_target(str(link), tree.base, tree.roots, read_devices(tree.roots))
    assert (found.kind, found.path, found.device) == (DEVICE, str(real), "vda")
    assert found.tree == ("vda",)


def test_a_node_of_any_name_goes_by_its_number(tree: Tree, nodes: dict[str, int]) -> None:
    virtio_disk(tree)
    tree.disk("dm-0", VIRTUAL, "253:0", dm__name="lin")
    path = node(tree, nodes, "mapper/lin", 253, 0)
    found = resolve_target(str(path), tree.base, tree.roots, read_devices(tree.roots))
    assert (found.device, found.path) == ("dm-0", str(path))


def test_a_bare_name_means_the_node(tree: Tree, nodes: dict[str, int], tmp_path: Path) -> None:
    virtio_disk(tree)
    path = node(tree, nodes, "vda", 254, 0)
    devices = read_devices(tree.roots)
    assert resolve_target("vda", tmp_path, tree.roots, devices).path == str(path)
    (tmp_path / "vda").write_text("mine")
    found = resolve_target("vda", tmp_path, tree.roots, devices)
    assert (found.kind, found.path) == (FILE, str(tmp_path / "vda"))


def test_looking_needs_no_right_to_read(
    tree: Tree, nodes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    virtio_disk(tree)
    node(tree, nodes, "vda", 254, 0)

    really = os.open

    def denied(path: str | Path, flags: int, *more: int) -> int:
        if str(tree.roots.dev) not in str(path):
            return really(path, flags, *more)
        raise PermissionError(13, "Permission denied")

    devices = read_devices(tree.roots)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", denied)
        message, hint = said(refused("vda", tree))
        found = resolve_target("vda", tree.base, tree.roots, devices, to_read=False)
    assert message == f"Cannot open {tree.roots.dev}/vda for reading: Permission denied."
    assert hint == how_to_open(f"{tree.roots.dev}/vda")
    assert found.device == "vda"


def test_an_empty_device_is_no_target(tree: Tree, nodes: dict[str, int]) -> None:
    tree.disk("loop0", VIRTUAL, "7:0", 0)
    path = node(tree, nodes, "loop0", 7, 0)
    assert said(refused(str(path), tree)) == (
        f"{path} has no size: nothing is attached, or no medium is inserted.", LIST_DEVICES
    )  # fmt: skip


def test_a_node_the_kernel_has_no_device_for(tree: Tree, nodes: dict[str, int]) -> None:
    path = node(tree, nodes, "old", 77, 7)
    assert said(refused(str(path), tree)) == (
        f"{path} is a node of block device 77:7, which the kernel does not have.", LIST_DEVICES
    )  # fmt: skip


def test_a_known_device_without_a_node(tree: Tree) -> None:
    virtio_disk(tree)
    assert said(refused("vda", tree)) == (
        f"The kernel knows vda, but its node {tree.roots.dev}/vda does not exist here.",
        "In a container, pass the device into it (docker run --device ...).",
    )


def test_a_hidden_path_names_its_head(tree: Tree) -> None:
    tree.disk("nvme0n1", VIRTUAL, "259:1")
    tree.disk("nvme0c1n1", VIRTUAL, None, hidden="1")
    known = "nvme0c1n1 is a hidden path without a node."
    devices = read_devices(tree.roots)
    for holders, instead in (
        ((), "its multipath device"), (("nvme0n1",), "nvme0n1"), (("a", "b"), "a or b"),
    ):  # fmt: skip
        devices["nvme0c1n1"] = replace(devices["nvme0c1n1"], holders=holders)
        with pytest.raises(UsageError) as caught:
            resolve_target("nvme0c1n1", tree.base, tree.roots, devices)
        assert said(caught.value) == (known, f"Name {instead} instead.")


def test_a_mistyped_device_is_told_before_fio_makes_a_file(tree: Tree) -> None:
    assert said(refused(str(tree.roots.dev / "vdz"), tree)) == (
        f"{tree.roots.dev}/vdz does not exist.",
        LIST_DEVICES,
    )
    assert not (tree.roots.dev / "vdz").exists()


def test_close_names_are_offered(tree: Tree) -> None:
    virtio_disk(tree)
    tree.disk("vdab", VIRTUAL, "254:16")
    tree.disk("vdac", VIRTUAL, "254:32", 0)
    tree.disk("vdad", VIRTUAL, "254:48", hidden="1")
    roots = replace(tree.roots, dev=Path("/dev"))
    told = "Did you mean {}? List: iopstui devices"
    for name, hint in (
        ("vdaa", told.format("/dev/vda or /dev/vdab")), ("nvme9n1", LIST_DEVICES),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            resolve_target(f"/dev/{name}", tree.base, roots, read_devices(tree.roots))
        assert caught.value.hint == hint


def test_a_disk_that_has_just_gone_is_not_offered_in_its_own_place(tree: Tree) -> None:
    # it is still among the devices, but no longer in /dev
    tree.disk("vdgone", VIRTUAL, "254:16")
    roots = replace(tree.roots, dev=Path("/dev"))
    with pytest.raises(UsageError) as caught:
        resolve_target("/dev/vdgone", tree.base, roots, read_devices(tree.roots))
    assert caught.value.hint == LIST_DEVICES


def test_a_file_fio_left_among_the_devices(tree: Tree) -> None:
    (tree.roots.dev / "vdz").write_text("")
    path = tree.roots.dev / "vdz"
    assert said(refused(str(path), tree)) == (
        f"{path} is a regular file in a device directory. A mistyped fio command leaves such "
        "files.",
        f"Check it, then remove it: rm {path}",
    )


def test_dev_shm_is_a_place_for_files(tree: Tree) -> None:
    (tree.roots.dev / "shm").mkdir()
    path = tree.roots.dev / "shm/data"
    assert "scratch file" in refused(str(path), tree).hint
    path.write_text("")
    devices = read_devices(tree.roots)
    assert resolve_target(str(path), tree.base, tree.roots, devices).kind == FILE


@pytest.mark.parametrize("text", ["", "a\0b"])
def test_no_name_at_all(tree: Tree, text: str) -> None:
    assert said(refused(text, tree)) == (
        "The target's name is empty or contains a NUL byte.", LIST_DEVICES
    )  # fmt: skip


def test_a_missing_file_in_a_directory_that_exists(tree: Tree, tmp_path: Path) -> None:
    assert said(refused("new", tree, tmp_path)) == (
        f"There is no disk new, and {tmp_path}/new does not exist.",
        f"Name the directory {tmp_path} (a scratch file is made in it and removed), or create the "
        "file first.",
    )
    assert said(refused("no/new", tree, tmp_path)) == (
        f"{tmp_path}/no/new does not exist, nor does the directory {tmp_path}/no.", ""
    )  # fmt: skip


def test_a_dangling_link(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    told = refused("link", tree, tmp_path).message
    assert told == f"link is a symbolic link to {tmp_path}/nowhere, which does not exist."


def test_a_link_in_a_circle(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "link")
    told = refused("link", tree, tmp_path).message
    assert told == f"Cannot examine {tmp_path}/link: Too many levels of symbolic links."


def test_kinds_that_cannot_be_targets(tree: Tree, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    told = "{} is {}, not a block device, file or directory."
    pipe = told.format(tmp_path / "pipe", "a named pipe")
    assert said(refused("pipe", tree, tmp_path)) == (pipe, LIST_DEVICES)
    assert refused("/dev/null", tree).message == told.format("/dev/null", "a character device")
    # a socket's path is limited to 108 bytes: bind by a short name
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.getcwd()
        os.chdir(tmp_path)
        try:
            bound.bind("s")
        finally:
            os.chdir(here)
        assert refused("s", tree, tmp_path).message == told.format(tmp_path / "s", "a socket")


def test_control_characters_in_a_name_are_not_repeated(tree: Tree, tmp_path: Path) -> None:
    error = refused("a\x1b[2Jb", tree, tmp_path)
    assert "\x1b" not in error.message + error.hint


def test_what_cannot_be_read(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory also needs the right to search it."""
    (tmp_path / "secret").write_text("")
    (tmp_path / "listed").mkdir()
    tree.proc("self/mountinfo", "2 1 0:25 / / rw - tmpfs tmpfs rw\n")
    lacking = os.R_OK
    monkeypatch.setattr(os, "access", lambda path, right: not right & lacking)
    for name in ("secret", "listed"):
        told = refused(name, tree, tmp_path).message
        assert told == f"Cannot read {tmp_path / name}: permission denied."
        assert resolve_target(name, tmp_path, tree.roots, {}, to_read=False).kind
    lacking = os.X_OK
    assert resolve_target("secret", tmp_path, tree.roots, {}).kind == FILE
    assert "Cannot read" in refused("listed", tree, tmp_path).message


def test_a_share_has_its_source_and_the_options_that_matter(tree: Tree, tmp_path: Path) -> None:
    options = "rw,vers=4.2,rsize=65536,hard,sec=sys,clientaddr=10.0.0.1,nconnect=4"
    number = os.stat(tmp_path).st_dev
    tree.proc(
        "self/mountinfo",
        f"2 1 {os.major(number)}:{os.minor(number)} / {tmp_path} rw - nfs4 srv:/data {options}\n",
    )
    found = resolve_target(str(tmp_path), tmp_path, tree.roots, {})
    assert found.shares == (str(tmp_path),)
    assert found.share == "srv:/data"
    assert found.mount_options == "vers=4.2,rsize=65536,hard,nconnect=4"
    tree.proc("self/mountinfo", f"2 1 0:25 / {tmp_path} rw - tmpfs tmpfs rw,hard\n")
    local = resolve_target(str(tmp_path), tmp_path, tree.roots, {})
    assert (local.shares, local.share, local.mount_options) == ((), "", "")


def place(mountpoint: str, fstype: str, share: str) -> Target:
    return Target(DIRECTORY, mountpoint, None, fstype=fstype, mountpoint=mountpoint, share=share)


def test_of_nfs_and_smb_together_the_first_is_measured() -> None:
    nfs, smb = place("/n", "nfs4", "srv:/data"), place("/s", "cifs", "//srv/data")
    both = combine_targets([smb, nfs, place("/s", "cifs", "//srv/data")])
    assert (both.shares, both.smb_shares, both.share_source) == (("/s",), ("//srv/data",), "smb")
    both = combine_targets([nfs, smb])
    assert (both.shares, both.smb_shares, both.share_source) == (("/n",), (), "nfs")
    assert place("/t", "tmpfs", "").share_source == ""


def test_how_a_closed_device_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert how_to_open("/dev/a b") == (
        "Run iopstui with sudo, or as a member of the group that owns it: ls -lL '/dev/a b'"
    )
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert how_to_open("/dev/vda") == (
        "Even root is refused, so a container's device rules or a security module forbid it. "
        "Run iopstui on the host, or give the container the device (docker run "
        "--device=/dev/vda)"
    )


def test_a_file_tells_its_file_system_and_disk(tree: Tree, tmp_path: Path) -> None:
    device = os.stat(tmp_path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    disk = tree.disk("sda", VIRTUAL, "8:0")
    tree.partition(disk, 1, number)
    tree.proc(
        "self/mountinfo",
        f"1 0 0:99 / / rw - rootfs none rw\n2 1 {number} / {tmp_path} rw - ext4 /dev/sda1 rw\n",
    )
    (tmp_path / "data").write_text("x")
    found = resolve_target("data", tmp_path, tree.roots, read_devices(tree.roots))
    assert (found.kind, found.device, found.tree) == (FILE, "sda1", ("sda1", "sda"))
    assert (found.fstype, found.mountpoint, found.no_device) == ("ext4", str(tmp_path), "")
    found = resolve_target(None, tmp_path, tree.roots, read_devices(tree.roots))
    assert (found.kind, found.path, found.device) == (DIRECTORY, str(tmp_path), "sda1")


def test_btrfs_is_found_by_its_source_with_all_its_disks(tree: Tree, tmp_path: Path) -> None:
    device = os.stat(tmp_path).st_dev
    tree.disk("sda", VIRTUAL, "8:0")
    tree.disk("sdb", VIRTUAL, "8:16")
    for name in ("sda", "sdb"):
        tree.sys(f"fs/btrfs/uuid/devices/{name}/x", "")
    number = f"{os.major(device)}:{os.minor(device)}"
    tree.proc("self/mountinfo", f"2 1 {number} / / rw - btrfs /dev/sdb rw\n")
    found = resolve_target(str(tmp_path), tmp_path, tree.roots, read_devices(tree.roots))
    assert (found.device, found.tree) == ("sdb", ("sdb", "sda"))


def test_a_file_system_in_memory_has_no_device(tree: Tree, tmp_path: Path) -> None:
    tree.proc("self/mountinfo", "2 1 0:25 / / rw - tmpfs tmpfs rw\n")
    found = resolve_target(str(tmp_path), tmp_path, tree.roots, read_devices(tree.roots))
    assert found.device is None and found.tree == ()
    assert found.no_device == "tmpfs keeps files in memory, not on a block device"


_AWAY = "{} files are on another machine, not on a local block device"
_HOST = (
    "{} files are on the host of this virtual machine, and the kernel counts none of their I/Os; "
    "run iopstui there"
)
_PROGRAM = (
    "{} is served by a program, not by a block device; the kernel only knows how many of its "
    "requests wait (/sys/fs/fuse/connections/25/waiting)"
)
_MEMORY = "{} keeps files in memory, not on a block device"
_OWN = "{} spreads files over disks of its own, not on a single block device"


@pytest.mark.parametrize(
    ("fstypes", "why"),
    [
        ("nfs nfs4 cifs smb3 afs lustre", _AWAY),
        ("9p virtiofs", _HOST),
        (
            "ceph",
            "{} files are on a cluster; only root can read what the kernel counts of them "
            "(/sys/kernel/debug/ceph/*/metrics)",
        ),
        ("tmpfs ramfs devtmpfs hugetlbfs", _MEMORY),
        ("zfs bcachefs", _OWN),
        ("fuse fuse.sshfs fuseblk", _PROGRAM),
        ("overlay", "{} stacks other file systems, and the disk below is not visible from here"),
        ("novel", "the {} file system shows no block device"),
    ],
)
def test_every_file_system_gets_a_reason(fstypes: str, why: str) -> None:
    for fstype in fstypes.split():
        entry = parse_mountinfo(f"2 1 0:25 / / rw - {fstype} src rw\n")[0]
        assert why_no_device(entry) == why.format(fstype)
    assert why_no_device(None) == "its mount is not visible"


def test_a_directory_of_an_overlay_is_where_its_new_files_go(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()

    def entry(name: object) -> MountEntry:
        options = f"rw,lowerdir=/lower,upperdir={name},workdir=/w"
        return parse_mountinfo(f"2 1 0:25 / / rw - overlay o {options}\n")[0]

    assert number_of_new_files(entry(upper)) == os.stat(upper).st_dev
    # directories of another mount namespace, or relative names in mount(2)
    assert number_of_new_files(entry(tmp_path / "no")) == number_of_new_files(entry("tests")) == 0

    # not the number of a disk on which these files may be
    tree.disk("dm-0", VIRTUAL, "240:199", dm__name="lin")
    tree.proc("self/mountinfo", f"2 1 0:25 / / rw - overlay o rw,upperdir={upper}\n")
    (tmp_path / "file").write_text("perhaps of the lower directory")
    for number, found in ((os.makedev(240, 199), "dm-0"), (0, None)):
        monkeypatch.setattr(target, "number_of_new_files", lambda _, number=number: number)
        devices = read_devices(tree.roots)
        assert resolve_target(str(tmp_path), tree.base, tree.roots, devices).device == found
        file = str(tmp_path / "file")
        assert resolve_target(file, tree.base, tree.roots, devices).device is None


def test_the_latest_of_stacked_mounts_counts() -> None:
    mounts = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 a rw\n"
        "2 1 8:2 / /mnt rw - ext4 b rw\n"
        "3 1 8:3 / /mnt rw - xfs c rw\n"
        "4 1 8:4 / /mnt/deep rw - xfs d rw\n"
    )

    def source(path: str, number: tuple[int, int]) -> str:
        entry = mount_of(path, os.makedev(*number), mounts)
        assert entry is not None
        return entry.source

    assert source("/mnt/x", (9, 9)) == "c"
    assert source("/mnt/x", (8, 2)) == "b"
    assert source("/mnt/deep/x", (9, 9)) == "d"
    assert source("/mntx", (9, 9)) == "a"


def test_the_tree_goes_down_and_never_round() -> None:
    def device(name: str, **fields: object) -> BlockDevice:
        return BlockDevice(name, f"/dev/{name}", 1, 1, "disk", 1, **fields)  # type: ignore[arg-type]

    devices = {
        d.name: d
        for d in (
            device("dm-0", slaves=("md0",)),
            device("md0", slaves=("sda1", "sdb1")),
            device("sda1", disk="sda"),
            device("sdb1", disk="sdb"),
            device("sda", slaves=("dm-0",)),
            device("sdb"),
        )
    }
    roots = Roots.under(Path("/nonexistent"))
    found = device_tree("dm-0", devices, roots)
    assert found == ("dm-0", "md0", "sda1", "sdb1", "sda", "sdb")
    assert device_tree("none", devices, roots) == ()


def _refused(path: object) -> None:
    raise PermissionError(13, "Permission denied", path)


def test_a_loop_device_goes_on_below_its_file(tree: Tree, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_text("")
    number = os.stat(image).st_dev
    tree.disk("sda", VIRTUAL, f"{os.major(number)}:{os.minor(number)}")
    tree.disk("loop0", VIRTUAL, "7:0", loop__backing_file=str(image))
    devices = read_devices(tree.roots)
    assert device_tree("loop0", devices, tree.roots) == ("loop0", "sda")
    mount = f"2 1 {os.major(number)}:{os.minor(number)} / / rw - {{}} /dev/sda rw\n"
    for state, kind, layer in (
        ("0", "ext4", None), ("1", "ext4", DIRECT_LOOP), ("1", "btrfs", None),
    ):  # fmt: skip
        (tree.roots.sys / "class/block/loop0/loop/dio").write_text(f"{state}\n")
        tree.proc("self/mountinfo", mount.format(kind))
        link = device_links(("loop0",), devices, tree.roots)[0]
        assert (link.below, link.layer) == (("sda",), layer)
    (tree.roots.sys / "class/block/loop0/loop/dio").write_text("1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", _refused)
        link = device_links(("loop0",), devices, tree.roots)[0]
    assert (link.below, link.layer) == ((), None), "in a directory of another user"
    image.unlink()
    assert device_tree("loop0", devices, tree.roots) == ("loop0",)


# -- several


def two_disks(tree: Tree, nodes: dict[str, int]) -> list[str]:
    """A disk with two partitions, and a second disk."""
    first = tree.disk("sda", VIRTUAL, "8:0")
    tree.partition(first, 1, "8:1")
    tree.partition(first, 2, "8:2")
    tree.disk("sdb", VIRTUAL, "8:16")
    numbers = {"sda": 0, "sda1": 1, "sda2": 2, "sdb": 16}
    return [str(node(tree, nodes, name, 8, minor)) for name, minor in numbers.items()]


def all_refused(texts: list[str], tree: Tree, cwd: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        resolve_targets(texts, cwd, tree.roots, read_devices(tree.roots))
    assert caught.value.exit_code == EXIT_USAGE and caught.value.hint
    return caught.value


def test_several_devices_are_one_target(tree: Tree, nodes: dict[str, int]) -> None:
    _, part1, part2, sdb = two_disks(tree, nodes)
    found = resolve_targets([part1, sdb, part2], tree.base, tree.roots, read_devices(tree.roots))
    assert [place.path for place in found.places] == [part1, sdb, part2]
    assert found.opened == ("sda1", "sdb", "sda2") and found.tree == ("sda1", "sda", "sdb", "sda2")


def test_of_none_and_of_one_nothing_changes(tree: Tree, nodes: dict[str, int]) -> None:
    _, part1, *_ = two_disks(tree, nodes)
    devices = read_devices(tree.roots)
    for texts in ([], [part1]):
        one = resolve_target(texts[0] if texts else None, tree.base, tree.roots, devices)
        assert resolve_targets(texts, tree.base, tree.roots, devices) == one


def test_a_device_named_twice_is_refused(tree: Tree, nodes: dict[str, int]) -> None:
    *_, sdb = two_disks(tree, nodes)
    link = tree.base / "link"
    link.symlink_to(sdb)
    twice, same = all_refused([sdb, sdb], tree, tree.base), all_refused(
        [sdb, str(link)], tree, tree.base
    )  # fmt: skip
    assert said(twice) == (f"{sdb} is given twice.", "Give it once.")
    assert said(same) == (f"{sdb} and {link} are the same device.", "Give it once.")


def test_a_disk_and_its_partition_are_refused(tree: Tree, nodes: dict[str, int]) -> None:
    sda, part1, *_ = two_disks(tree, nodes)
    for pair in ([sda, part1], [part1, sda]):
        assert said(all_refused(pair, tree, tree.base)) == (
            "sda1 lies on sda, and both are given. Each I/O would count on both, so no total "
            "would be right.",
            "Give only one of them.",
        )


def test_different_kinds_are_refused(tree: Tree, nodes: dict[str, int]) -> None:
    *_, sdb = two_disks(tree, nodes)
    assert said(all_refused([sdb, str(tree.base)], tree, tree.base)) == (
        f"{sdb} is a device and {tree.base} a directory: targets of different kinds cannot be "
        "mixed, because a job may use a whole device, a file up to its size, and a scratch "
        "file in a directory.",
        "Give only devices, only files, or only directories.",
    )


def test_the_same_file_by_another_name_is_refused(tree: Tree, tmp_path: Path) -> None:
    tree.proc("self/mountinfo", "2 1 0:99 / / rw - tmpfs tmpfs rw\n")
    for name in ("a", "b"):
        (tmp_path / name).write_text("x")
    os.link(tmp_path / "a", tmp_path / "hard")
    assert "same file" in all_refused(["a", "hard"], tree, tmp_path).message
    (tmp_path / "one").mkdir()
    (tmp_path / "other").symlink_to(tmp_path / "one")
    assert "same directory" in all_refused(["one", "other"], tree, tmp_path).message
    found = resolve_targets(["a", "b"], tmp_path, tree.roots, read_devices(tree.roots))
    assert len(found.places) == 2 and found.opened == () and "tmpfs" in found.no_device


def test_a_stale_mount_is_to_be_mounted_again(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(path: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "stat", stale)
    with pytest.raises(UsageError) as told:
        resolve_target("/mnt", tmp_path, tree.roots, {})
    assert told.value.message == "Cannot examine /mnt: Stale file handle."
    assert told.value.hint.endswith("mount it again: umount /mnt")


def test_a_file_that_may_not_be_examined_has_a_disk_that_may(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(UsageError) as told:
        resolve_target("/srv/f", tmp_path, tree.roots, {})
    assert told.value.message == "Cannot examine /srv/f: Permission denied."
    assert "iopstui devices" in told.value.hint
