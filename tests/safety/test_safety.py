from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from trees import VIRTUAL, Tree, virtio_disk

from iopstui.errors import EXIT_REFUSED, Refused
from iopstui.linux.devices import aliases
from iopstui.linux.devices.signatures import Signatures
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.usage.openers import hidden_programs_reason, writers
from iopstui.model.block.stack import Backing
from iopstui.model.block.target import DEVICE, DIRECTORY, FILE, Target
from iopstui.safety import refusals as safety
from iopstui.safety.refusals import (
    WriteVerdict,
    check_file_write,
    check_write,
    open_exclusively,
    write_reasons,
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "machine").mkdir()
    return Tree(tmp_path / "machine")


@pytest.fixture
def blank(monkeypatch: pytest.MonkeyPatch) -> dict[str, Signatures]:
    """Opens no device. The test puts each node's signatures into the returned dictionary."""
    carried: dict[str, Signatures] = {}
    monkeypatch.setattr(safety, "_exclusive_open_errors", lambda *_: iter(()))
    monkeypatch.setattr(safety, "read_signatures", lambda path: carried.get(path, Signatures()))
    return carried


def verdict(tree: Tree, name: str) -> WriteVerdict:
    return write_reasons(name, read_devices(tree.roots), tree.roots)


def check(tree: Tree, name: str, word: str | list[str] | None) -> WriteVerdict:
    target = Target(DEVICE, f"/dev/{name}", name)
    return check_write(target, read_devices(tree.roots), tree.roots, word)


def refusal(tree: Tree, name: str, word: str | list[str] | None) -> Refused:
    with pytest.raises(Refused) as caught:
        check(tree, name, word)
    assert caught.value.exit_code == EXIT_REFUSED
    return caught.value


def said(error: Refused) -> tuple[str, str]:
    return error.message, error.hint


WRITE_HINT = (
    "Use a job that only reads (randread-4k), or, if nothing on it is needed, repeat its path: "
    "--destroy-data "
)
NO_OVERRIDE = "There is no override. Choose another device; see: iopstui devices"


def test_a_blank_unused_disk_needs_its_path_twice(
    tree: Tree, blank: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    monkeypatch.setattr(safety, "hidden_programs_reason", lambda roots: "")
    blank_one = "/dev/vdb is a raw device that seems empty; the job would destroy any data on it."
    hint = WRITE_HINT + "/dev/vdb"
    assert said(refusal(tree, "vdb", None)) == (blank_one, hint)
    assert said(refusal(tree, "vdb", [])) == (blank_one, hint)
    monkeypatch.setattr(safety, "hidden_programs_reason", lambda roots: "nobody looked")
    doubt = " Another program may be writing to it: nobody looked."
    assert said(refusal(tree, "vdb", None)) == (blank_one + doubt, hint)
    assert check(tree, "vdb", "/dev/vdb").unseen == "nobody looked"
    assert check(tree, "vdb", "/dev/vdb").blank
    assert check(tree, "vdb", ["/dev/sda", "/dev/vdb"]).blank


@pytest.mark.parametrize("word", ["/dev/vda", "vdb", "/dev/vdb1", "", "/dev/vd", "yes", "dev/vdb"])
def test_another_path_is_refused(tree: Tree, blank: object, word: str) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    shown = word or '""'
    assert said(refusal(tree, "vdb", word)) == (
        f"--destroy-data names {shown}, but the job would write to /dev/vdb.",
        "Repeat the target's exact path: --destroy-data /dev/vdb",
    )
    two = refusal(tree, "vdb", [word, "/dev/other"]).message
    assert two.startswith(f"--destroy-data names {shown} and /dev/other, but ")


def test_a_mounted_partition_has_no_override(tree: Tree, blank: dict[str, Signatures]) -> None:
    disk = virtio_disk(tree)
    tree.partition(disk, 1, "254:1")
    tree.proc("self/mountinfo", "27 1 254:1 / / rw - ext4 /dev/vda1 rw\n")
    blank["/dev/vda"] = Signatures(("a partition table (gpt)",))
    blank["/dev/vda1"] = Signatures(("a file system (ext4)",))
    assert said(refusal(tree, "vda", "/dev/vda")) == (
        "Refusing to write to /dev/vda: it is in use: vda1 is mounted at / (ext4). Also: "
        "partitions vda1; vda carries a partition table (gpt); vda1 carries a file system "
        "(ext4).",
        NO_OVERRIDE,
    )


def test_what_a_disk_carries_is_listed(tree: Tree, blank: dict[str, Signatures]) -> None:
    disk = virtio_disk(tree)
    tree.partition(disk, 1, "254:1")
    blank["/dev/vda1"] = Signatures(("a file system (xfs)",))
    found = verdict(tree, "vda")
    assert found.in_use == ()
    assert found.contents == ("partitions vda1", "vda1 carries a file system (xfs)")
    told = refusal(tree, "vda", None).message
    assert told.startswith(
        "The job would destroy the data on /dev/vda: partitions vda1; vda1 carries a file "
        "system (xfs)."
    )
    assert check(tree, "vda", "/dev/vda").contents


def test_what_cannot_be_read_is_a_reason(tree: Tree, blank: dict[str, Signatures]) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    blank["/dev/vdb"] = Signatures(error="Input/output error")
    found = verdict(tree, "vdb")
    assert found.contents == ("the content of vdb cannot be read (Input/output error)",)
    assert not found.blank and not found.in_use


def test_a_second_device_of_a_mounted_btrfs(tree: Tree, blank: object) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    tree.sys("fs/btrfs/uuid-1/devices/vdb/x", "")
    assert verdict(tree, "vdb").in_use == ("vdb belongs to the mounted btrfs uuid-1",)


def test_bcache_members(tree: Tree, blank: object) -> None:
    backing = tree.disk("vdb", VIRTUAL, "254:16")
    cache = tree.disk("vdc", VIRTUAL, "254:32")
    (backing / "bcache").mkdir()
    top = tree.roots.sys / "fs/bcache/set-1"
    top.mkdir(parents=True)
    (cache / "bcache").mkdir()
    (top / "cache0").symlink_to(cache / "bcache")
    for name in ("vdb", "vdc"):
        assert verdict(tree, name).in_use == (f"{name} is a bcache member",)


def test_the_device_that_is_made_of_bcache_members_is_none(tree: Tree, blank: object) -> None:
    member = tree.disk("sda", VIRTUAL, "8:0")
    top = tree.disk("bcache0", VIRTUAL, "252:0")
    (member / "bcache").mkdir()
    (top / "bcache").symlink_to(member / "bcache")
    tree.stacked(member, top)
    assert verdict(tree, "bcache0").in_use == ()
    assert "sda is a bcache member" in verdict(tree, "sda").in_use


def test_zfs_members_while_zfs_is_loaded(tree: Tree, blank: dict[str, Signatures]) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    blank["/dev/vdb"] = Signatures(("a signature (zfs_member)",), ("zfs_member",))
    assert verdict(tree, "vdb").in_use == ()
    assert verdict(tree, "vdb").contents
    (tree.roots.sys / "module/zfs").mkdir(parents=True)
    member = "vdb is a ZFS pool member, and ZFS is loaded"
    assert verdict(tree, "vdb").in_use == (member,)
    for one in (Signatures((), ("zfs_member",)), Signatures(("a signature (zfs_member)",))):
        blank["/dev/vdb"] = one
        assert verdict(tree, "vdb").in_use == (member,)
    blank["/dev/vdb"] = Signatures(("a file system (xfs)",), ("xfs",))
    assert verdict(tree, "vdb").in_use == ()


def test_read_only_is_refused_even_if_it_became_so_after_the_devices_were_read(
    tree: Tree, blank: object
) -> None:
    disk = tree.disk("vdb", VIRTUAL, "254:16", ro="0")
    devices = read_devices(tree.roots)
    (disk / "ro").write_text("1\n")
    assert write_reasons("vdb", devices, tree.roots).in_use == ("vdb is read-only",)


def test_the_same_lun_through_another_path(tree: Tree, blank: object) -> None:
    for name, dev, wwid in (("sda", "8:0", "naa.5"), ("sdb", "8:16", "naa.5"), ("sdc", "8:32", "")):
        tree.disk(name, VIRTUAL, dev, device__wwid=wwid)
    tree.proc("self/mountinfo", "27 1 8:0 / /srv rw - ext4 /dev/sda rw\n")
    same = "it is the same disk as sda (WWID naa.5): sda is mounted at /srv (ext4)"
    assert verdict(tree, "sdb").in_use == (same,)
    assert verdict(tree, "sdc").in_use == ()
    assert verdict(tree, "sda").in_use == ("sda is mounted at /srv (ext4)",)
    tree.partition(tree.roots.sys / VIRTUAL / "sdb", 1, "8:17")
    assert verdict(tree, "sdb1").in_use == (same,), "a partition is its disk's"
    (tree.roots.sys / VIRTUAL / "sdb/device/wwid").unlink()
    assert verdict(tree, "sdb").in_use == ()
    (tree.roots.sys / VIRTUAL / "sdb/wwid").write_text("naa.5\n")
    assert verdict(tree, "sdb").in_use == (same,)


def test_paths_of_one_multipath_disk_are_no_two_disks(tree: Tree, blank: object) -> None:
    """Neither hidden paths nor paths joined by a device-mapper device count as two disks."""
    tree.proc("self/mountinfo", "27 1 8:0 / /srv rw - ext4 /dev/sda rw\n")
    for name, dev, hidden in (("sda", "8:0", "0"), ("sdb", "8:16", "1"), ("sdc", "8:32", "0")):
        tree.disk(name, VIRTUAL, dev, device__wwid="naa.5", hidden=hidden)
    assert verdict(tree, "sdb").in_use == ("sdb is a path of a multipath device",)
    devices = read_devices(tree.roots)
    for related in ({"slaves": ("sda",)}, {"holders": ("sda",)}):
        one = {**devices, "sdc": replace(devices["sdc"], **related)}  # type: ignore[arg-type]
        reasons = write_reasons("sdc", one, tree.roots).in_use
        assert not any("same disk" in reason for reason in reasons)
    kind = {**devices, "sdc": replace(devices["sdc"], kind="virtio-blk")}
    assert write_reasons("sdc", kind, tree.roots).in_use == ()


def test_a_device_that_is_gone(tree: Tree, blank: object) -> None:
    gone = ("the device no longer exists",)
    assert verdict(tree, "vdz") == WriteVerdict("vdz", in_use=gone)
    assert write_reasons("vdz", {}, tree.roots, path="/dev/x") == WriteVerdict(
        "/dev/x", in_use=gone
    )


def test_a_device_held_by_another(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    devices = read_devices(tree.roots)

    really = os.open

    def busy(path: str | Path, flags: int, *_: object) -> int:
        if str(tree.roots.sys) in str(path):
            return really(path, flags)
        assert flags & os.O_EXCL and not flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT)
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(safety, "read_signatures", lambda path: Signatures())
    held = "it is held exclusively by the kernel or another program"
    with monkeypatch.context() as patch:
        patch.setattr(safety.os, "open", busy)
        assert write_reasons("vdb", devices, tree.roots).in_use == (held,)
        assert write_reasons("vdb", devices, tree.roots, reserved=True).in_use == ()
        with (
            pytest.raises(Refused) as caught,
            open_exclusively("/dev/vdb", devices["vdb"], tree.roots),
        ):
            pytest.fail("held")
    assert said(caught.value) == (f"Refusing to write to /dev/vdb: {held}.", NO_OVERRIDE)


def test_a_node_that_can_t_be_opened(tree: Tree, tmp_path: Path) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    devices = read_devices(tree.roots)
    node = str(tmp_path / "none")
    found = write_reasons("vdb", devices, tree.roots, path=node)
    assert found.in_use == (
        "it cannot be opened to check that it is unused (No such file or directory)",
    )


class Nodes:
    """Device numbers of the open descriptor and of its name, and the disk's sequence number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = self.named = os.makedev(254, 16)
        self.sequence: int | None = 7
        monkeypatch.setattr(safety.os, "fstat", lambda fd: self._info(self.opened))
        monkeypatch.setattr(safety.os, "stat", lambda path: self._info(self.named))
        monkeypatch.setattr(safety, "_ioctl_diskseq", lambda fd: self.sequence)

    @staticmethod
    def _info(number: int) -> os.stat_result:
        return os.stat_result((0,) * 10, {"st_rdev": number})


def test_a_held_device_is_still_the_one_that_was_looked_at(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tree.disk("ida!c0", VIRTUAL, "254:16", diskseq="7")
    device = read_devices(tree.roots)["ida/c0"]
    held = safety.ExclusiveHold(-1, "/dev/ida/c0", device, tree.roots)

    def why() -> str:
        with pytest.raises(Refused) as caught:
            held.verify()
        assert caught.value.hint == "Look again with: iopstui devices"
        return caught.value.message.removeprefix("Refusing to write to /dev/ida/c0: ")

    with monkeypatch.context() as patched:
        nodes = Nodes(patched)
        held.verify()
        for name in ("opened", "named"):
            setattr(nodes, name, os.makedev(254, 17))
            assert why() == "its device node belongs to another device now."
            setattr(nodes, name, os.makedev(254, 16))
        nodes.sequence = 8
        assert why() == "another disk took its name."
        nodes.sequence = None
        held.verify()
        (disk / "diskseq").write_text("8\n")
        assert why() == "another disk took its name."
        safety.ExclusiveHold(-1, "", replace(device, diskseq=None), tree.roots).verify()
    assert why() == "its device node cannot be examined (Bad file descriptor)."


def test_a_node_that_is_something_else(tree: Tree, tmp_path: Path) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    devices = read_devices(tree.roots)
    node = tmp_path / "vdb"
    node.write_text("")
    found = write_reasons("vdb", devices, tree.roots, path=str(node))
    assert found.in_use == (f"{node} is no longer the node of vdb",)
    with pytest.raises(Refused) as caught, open_exclusively(str(node), devices["vdb"], tree.roots):
        pytest.fail("held")
    assert caught.value.message == f"Refusing to write to {node}: it is not a block device."


def test_programs_that_have_it_open_for_writing(tree: Tree) -> None:
    own = os.getpid()
    for pid, node, flags in (
        (str(own + 1), "/dev/vdb", "0100002"),
        (str(own + 2), "/dev/vdb", "0100000"),
        (str(own + 3), "/dev/vdc", "0100002"),
        (str(own), "/dev/vdb", "0100002"),
    ):
        tree.proc(f"{pid}/comm", "qemu\x1b\n")
        tree.proc(f"{pid}/fdinfo/3", f"pos:\t0\nflags:\t{flags}\n")
        (tree.roots.proc / pid / "fd").mkdir()
        (tree.roots.proc / pid / "fd/3").symlink_to(node)
    assert writers(["/dev/vdb"], tree.roots) == (f"qemu? (pid {own + 1}) has it open for writing",)


@pytest.mark.parametrize(
    ("target", "others", "counts"),
    [("sda1", ("sda", "dm-0", "dm-1"), True), ("sda", ("sda1", "dm-0"), True),
     ("dm-0", ("sda1", "sda", "dm-1"), True), ("dm-1", ("dm-0",), True),
     ("sda2", ("sda1", "dm-0", "sdb"), False)],
)  # fmt: skip
def test_programs_that_have_what_lies_below_above_or_beside_it_open(
    tree: Tree, blank: object, target: str, others: tuple[str, ...], counts: bool
) -> None:
    """dm-0 and dm-1 are two device-mapper devices on sda1."""
    disk = tree.disk("sda", VIRTUAL, "8:0")
    part = tree.partition(disk, 1, "8:1")
    tree.partition(disk, 2, "8:2")
    tree.disk("sdb", VIRTUAL, "8:16")
    for number in (0, 1):
        tree.stacked(
            part, tree.disk(f"dm-{number}", VIRTUAL, f"253:{number}", dm__name=f"d{number}")
        )
    process = str(os.getpid() + 1)
    tree.proc(f"{process}/comm", "qemu\n")
    tree.proc(f"{process}/fdinfo/3", "flags:\t0100002\nmnt_id:\t41\n")
    (tree.roots.proc / process / "fd").mkdir()
    link = tree.roots.proc / process / "fd/3"
    for other in others:
        link.unlink(missing_ok=True)
        link.symlink_to(f"/dev/{other}")
        found = verdict(tree, target).in_use
        assert any("open for writing" in why for why in found) is counts, other


def test_start_and_size_of_partitions_tell_which_overlap(tree: Tree, blank: object) -> None:
    disk = tree.disk("sda", VIRTUAL, "8:0", size=99999)
    for number, start in ((1, "2048"), (2, "3071"), (3, "3072")):
        tree.attributes(tree.partition(disk, number, f"8:{number}", size=1024), start=start)
    tree.proc("self/mountinfo", "25 1 8:1 / /srv rw - ext4 /dev/sda1 rw\n")
    assert read_devices(tree.roots)["sda2"].start == 3071 * 512
    assert "sda1 is mounted at /srv" in verdict(tree, "sda2").in_use[0]
    assert verdict(tree, "sda3").in_use == ()


def test_a_loop_device_s_file_below_an_overlay(tree: Tree, tmp_path: Path) -> None:
    """The kernel's number of a file in the overlay differs from that of the file in its layer."""
    upper, merged = tmp_path / "upper", tmp_path / "merged"
    for place in (upper, merged):
        place.mkdir()
        (place / "img").write_text("")
    tree.disk("loop0", VIRTUAL, "7:0", loop__backing_file=f"{merged}/img")
    image = str(upper / "img")
    check_file_write(image, image, read_devices(tree.roots), tree.roots)
    tree.proc("self/mountinfo", f"30 1 0:50 / {merged} rw - overlay overlay rw,lowerdir=/none,"
                                f"upperdir={upper},workdir=/none\n")  # fmt: skip
    with pytest.raises(Refused, match="loop0 uses it"):
        check_file_write(image, image, read_devices(tree.roots), tree.roots)


def test_a_directory_passes_and_a_file_needs_its_path(tree: Tree, tmp_path: Path) -> None:
    assert check_write(Target(DIRECTORY, str(tmp_path), None), {}, tree.roots, None).blank
    path = tmp_path / "data"
    path.write_text("precious")
    target = Target(FILE, str(path), None)
    with pytest.raises(Refused) as caught:
        check_write(target, {}, tree.roots, None)
    told = f"{path} exists; the job would overwrite it."
    assert said(caught.value) == (told, WRITE_HINT + str(path))
    with pytest.raises(Refused, match="names"):
        check_write(target, {}, tree.roots, str(tmp_path / "other"))
    check_write(target, {}, tree.roots, str(path))
    link = tmp_path / "link"
    link.symlink_to(path)
    check_write(target, {}, tree.roots, str(link))
    assert path.read_text() == "precious"


def test_a_new_file_needs_nothing(tree: Tree, tmp_path: Path) -> None:
    check_file_write(str(tmp_path / "new"), None, {}, tree.roots)


def test_a_file_in_use_has_no_override(tree: Tree, tmp_path: Path) -> None:
    image, swap = tmp_path / "image", tmp_path / "swap"
    image.write_text("")
    swap.write_text("")
    other_name = tmp_path / "hard"
    os.link(image, other_name)
    tree.disk("loop0", VIRTUAL, "7:0", loop__backing_file=str(image))
    tree.proc("swaps", f"Filename Type\n{swap} file 1 0 -2\n")
    devices = read_devices(tree.roots)
    made = "loop0 uses it"
    for path, why in ((image, made), (other_name, made), (swap, "it is used as swap")):
        with pytest.raises(Refused) as caught:
            check_file_write(str(path), str(path), devices, tree.roots)
        assert said(caught.value) == (
            f"Refusing to write to {path}: it is in use: {why}.",
            "There is no override. Detach it first (losetup -d, swapoff), end the program that has "
            "it open, or name another file.",
        )


def test_what_a_loop_device_is_made_of_is_asked_of_the_kernel(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """loop(4): LOOP_GET_STATUS64 has the file's device and inode; its name may lead to another file
    by now."""
    image, kept = tmp_path / "image", tmp_path / "kept"
    image.write_text("")
    info = image.stat()
    image.rename(kept)
    image.write_text("")
    tree.disk("loop0", VIRTUAL, "7:0", loop__backing_file=str(image))
    devices = read_devices(tree.roots)
    made_of = Backing((os.major(info.st_dev), os.minor(info.st_dev)), info.st_ino)
    monkeypatch.setattr(aliases, "read_backing", lambda node, number: made_of)
    check_file_write(str(image), str(image), devices, tree.roots)
    with pytest.raises(Refused, match="loop0 uses it"):
        check_file_write(str(kept), str(kept), devices, tree.roots)
    monkeypatch.setattr(aliases, "read_backing", lambda node, number: None)
    with pytest.raises(Refused, match="loop0 uses it"):
        check_file_write(str(image), str(image), devices, tree.roots)


def test_a_device_that_a_server_shows_is_not_asked(tree: Tree, tmp_path: Path) -> None:
    """Its file system may never answer; proc_pid_mountinfo(5) shows which file system that is."""
    process = str(os.getpid() + 1)
    tree.proc(f"{process}/comm", "far\n")
    tree.proc(f"{process}/fdinfo/3", "pos:\t0\nflags:\t0100002\nmnt_id:\t41\n")
    (tree.roots.proc / process / "fd").mkdir()
    (tree.roots.proc / process / "fd/3").symlink_to("/dev/null")
    line = "{} 1 0:50 / /far rw - {} server:/far rw\n"
    for number, kind in (("41", "nfs4"), ("41", "fuse.sshfs")):
        tree.proc(f"{process}/mountinfo", line.format(number, kind))
        assert writers(["/dev/vdb"], tree.roots, frozenset({(1, 3)})) == ()


def test_programs_that_cannot_be_seen_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                               ) -> None:  # fmt: skip
    tree = Tree(tmp_path)
    namespace = tree.roots.proc / "self/ns/pid"
    namespace.parent.mkdir(parents=True)
    namespace.symlink_to("pid:[4026531836]")
    (tree.roots.proc / "10/fd").mkdir(parents=True)
    assert hidden_programs_reason(tree.roots) == ""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "1 programs of other users" in hidden_programs_reason(tree.roots)
    namespace.unlink()
    namespace.symlink_to("pid:[4026532000]")
    assert "container" in hidden_programs_reason(tree.roots)
