"""Stacks of block devices: what is in use in each of them, and what a job may write to.

Each layering is a context manager that yields a ``Layers``. ``used`` has every device and file
through which a job would reach something in use, ``free`` has those that nothing uses."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from machine import (
    MIB,
    SIZE,
    attached,
    gpt,
    loop,
    mapped,
    mounted,
    needs,
    one_partition,
    settled,
    sh,
)
from machine import sectors as size_of

LARGE = 320 * MIB
"""For file systems that refuse to be small (XFS 300 MiB, a btrfs of several devices 109 MiB)."""
VG = "iopstuivg"


@dataclass
class Layers:
    """Names of devices and files, each with its path."""

    used: dict[str, str] = field(default_factory=dict)
    free: dict[str, str] = field(default_factory=dict)


@dataclass
class Build:
    """Tools to make a layering; everything is undone in reverse order."""

    here: Path
    stack: ExitStack

    def disk(self, name: str = "a", size: int = SIZE) -> str:
        """A loop device on ``here/NAME.img``."""
        return self.stack.enter_context(loop(self.here / f"{name}.img", size))

    def file(self, name: str = "a") -> str:
        return str(self.here / f"{name}.img")

    def attach(self, path: str, *more: str) -> str:
        return self.stack.enter_context(attached(path, *more))

    def mount(self, device: str, *more: str, name: str = "mnt") -> Path:
        """Mount it read-only, so that the kernel does not write by itself."""
        return self.stack.enter_context(mounted(device, self.here / name, "-o", "ro", *more))

    def ext4(self, device: str, name: str = "mnt") -> Path:
        sh("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=0", device)
        return self.mount(device, name=name)

    def later(self, *words: str) -> None:
        """Register a command that undoes something."""
        self.stack.callback(sh, *words, check=False)

    def dm(self, name: str, table: str, uuid: str = "") -> str:
        self.stack.enter_context(mapped(name, table, uuid))
        return dm_node(name)

    def open_by_another(self, path: str) -> None:
        """Start a program that has the path open for writing, like a virtual machine its disk."""
        code = "import sys; f = open(sys.argv[1], 'r+b'); print(1, flush=True); sys.stdin.read()"
        other = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)  # fmt: skip
        assert other.stdout is not None and other.stdout.readline()
        self.stack.callback(other.communicate, "")


def dm_node(name: str) -> str:
    """The node /dev/dm-N of a device-mapper name, which the kernel itself makes."""
    for file in Path("/sys/block").glob("dm-*/dm/name"):
        if file.read_text().strip() == name:
            return f"/dev/{file.parents[1].name}"
    raise AssertionError(f"no device-mapper device {name}")


def lv(name: str) -> str:
    return dm_node(f"{VG}-{name}")


# small machines have no udev, so nothing here waits for it
WITHOUT_UDEV = "activation { udev_sync=0 udev_rules=0 } devices { use_devicesfile=0 }"


def lvm(command: str, *words: str) -> None:
    sh("lvm", command, "--config", WITHOUT_UDEV, "-y", *words)


def volume_group(build: Build, *members: str) -> None:
    needs("lvm", "dmsetup", modules=("dm-mod",))
    lvm("vgcreate", "-ff", VG, *members)
    build.later("lvm", "vgremove", "--config", WITHOUT_UDEV, "-ff", "-y", VG)


def lvcreate(name: str, *words: str, size: str = "8M") -> str:
    lvm("lvcreate", "-Wn", "-L", size, "-n", name, *words, VG)
    return lv(name)


# -- LVM


def lvm_linear(build: Build) -> Layers:
    a = build.disk()
    volume_group(build, a)
    one, two = lvcreate("one"), lvcreate("two")
    build.ext4(one)
    return Layers({"PV": a, "file of the PV": build.file(), "mounted LV": one}, {"other LV": two})


def lvm_nothing_mounted(build: Build) -> Layers:
    a = build.disk()
    volume_group(build, a)
    return Layers({"PV": a, "file of the PV": build.file()}, {"LV": lvcreate("one")})


def lvm_inactive(build: Build) -> Layers:
    a = build.disk()
    volume_group(build, a)
    lvcreate("one")
    lvm("vgchange", "-an", VG)
    return Layers(free={"PV": a})


def lvm_striped(build: Build) -> Layers:
    a, b = build.disk("a"), build.disk("b")
    volume_group(build, a, b)
    build.ext4(one := lvcreate("one", "-i2"))
    return Layers({"first PV": a, "second PV": b, "LV": one, "file of the second": build.file("b")})


def lvm_on_partition(build: Build) -> Layers:
    needs("lvm", modules=("dm-mod",))
    part = one_partition(a := build.disk())
    volume_group(build, part)
    build.ext4(one := lvcreate("one"))
    return Layers({"disk": a, "PV": part, "LV": one}, {"other LV": lvcreate("two")})


def lvm_swap(build: Build) -> Layers:
    volume_group(build, a := build.disk())
    one, two = lvcreate("one"), lvcreate("two")
    sh("mkswap", one)
    sh("swapon", one)
    build.later("swapoff", one)
    return Layers({"PV": a, "swap LV": one}, {"other LV": two})


def lvm_open(build: Build) -> Layers:
    volume_group(build, a := build.disk())
    one, two = lvcreate("one"), lvcreate("two")
    build.open_by_another(one)
    return Layers({"PV": a, "opened LV": one}, {"other LV": two})


def lvm_loop_on_lv(build: Build) -> Layers:
    volume_group(build, a := build.disk())
    one, two = lvcreate("one"), lvcreate("two")
    build.ext4(upper := build.attach(one))
    return Layers({"PV": a, "LV": one, "loop on the LV": upper}, {"other LV": two})


def lvm_snapshot_mounted(build: Build) -> Layers:
    """A write to the origin copies the old block to the snapshot, and breaks a full one."""
    needs("lvm", modules=("dm-snapshot",))
    volume_group(build, a := build.disk())
    origin = lvcreate("origin")
    sh("mkfs.ext4", "-q", "-O", "^has_journal", origin)
    snap = _snapshot("snap")
    build.mount(snap)
    return Layers({"PV": a, "snapshot": snap, "origin": origin, "below both": lv("origin-real"),
                   "changed blocks": lv("snap-cow")})  # fmt: skip


def _snapshot(name: str) -> str:
    lvm("lvcreate", "-s", "-L", "12M", "-n", name, f"{VG}/origin")
    return lv(name)


def lvm_origin_mounted(build: Build) -> Layers:
    needs("lvm", modules=("dm-snapshot",))
    volume_group(build, a := build.disk())
    build.ext4(origin := lvcreate("origin"))
    snap = _snapshot("snap")
    return Layers({"PV": a, "origin": origin, "below both": lv("origin-real"),
                   "changed blocks": lv("snap-cow")}, {"snapshot": snap})  # fmt: skip


def lvm_two_snapshots(build: Build) -> Layers:
    """Neither snapshot has the other's blocks."""
    needs("lvm", modules=("dm-snapshot",))
    volume_group(build, a := build.disk())
    origin = lvcreate("origin")
    sh("mkfs.ext4", "-q", "-O", "^has_journal", origin)
    one, two = _snapshot("snap"), _snapshot("snap2")
    build.mount(one)
    return Layers({"PV": a, "origin": origin, "mounted": one}, {"other snapshot": two})


def _thin_pool(build: Build) -> str:
    needs("lvm", "thin_check", modules=("dm-thin-pool",))
    volume_group(build, a := build.disk())
    lvm("lvcreate", "--type", "thin-pool", "-L", "24M", "-n", "pool", VG)
    return a


def _thin(name: str) -> str:
    lvm("lvcreate", "-Wn", "-V", "16M", "--thinpool", "pool", "-n", name, VG)
    return lv(name)


def lvm_thin(build: Build) -> Layers:
    a = _thin_pool(build)
    one, two = _thin("one"), _thin("two")
    build.ext4(one)
    return Layers({"PV": a, "thin volume": one, "data of the pool": lv("pool_tdata"),
                   "metadata": lv("pool_tmeta"), "pool": lv("pool-tpool")},
                  {"other thin volume": two})  # fmt: skip


def lvm_thin_snapshot(build: Build) -> Layers:
    a = _thin_pool(build)
    build.ext4(one := _thin("one"))
    lvm("lvcreate", "-s", "-kn", "-n", "copy", f"{VG}/one")
    return Layers({"PV": a, "thin volume": one, "data of the pool": lv("pool_tdata")},
                  {"its snapshot": lv("copy")})  # fmt: skip


def lvm_raid1(build: Build) -> Layers:
    needs("lvm", modules=("dm-raid", "raid1"))
    a, b = build.disk("a"), build.disk("b")
    volume_group(build, a, b)
    one = lvcreate("one", "--type", "raid1", "-m1", "--nosync")
    build.ext4(one)
    return Layers({"first PV": a, "second PV": b, "LV": one, "image": lv("one_rimage_1"),
                   "metadata": lv("one_rmeta_0"), "file": build.file("b")})  # fmt: skip


def lvm_cache(build: Build) -> Layers:
    needs("lvm", "cache_check", modules=("dm-cache", "dm-cache-smq"))
    a, b = build.disk("a"), build.disk("b")
    volume_group(build, a, b)
    lvm("lvcreate", "-Wn", "-L", "16M", "-n", "one", VG, a)
    lvm("lvcreate", "--type", "cache", "-L", "16M", "-n", "quick", f"{VG}/one", b)
    build.ext4(one := lv("one"))
    return Layers({"slow PV": a, "quick PV": b, "LV": one, "slow part": lv("one_corig")})


# -- md


def md(build: Build, level: str, *members: str, devices: int = 0, more: tuple[str, ...] = (),
       node: str = "/dev/md127") -> str:  # fmt: skip
    needs("mdadm", modules=(f"raid{level}" if level != "5" else "raid456",))
    sh("mdadm", "--create", node, "--run", "--force", f"--level={level}", "--assume-clean",
       f"--raid-devices={devices or len(members)}", *more, *members)  # fmt: skip
    build.later("mdadm", "--stop", node)
    return node


def md_raid1_mounted(build: Build) -> Layers:
    array = md(build, "1", a := build.disk("a"), b := build.disk("b"))
    build.ext4(array)
    return Layers({"array": array, "first": a, "second": b, "file of the second": build.file("b")})


def md_raid1_unused(build: Build) -> Layers:
    array = md(build, "1", a := build.disk("a"), b := build.disk("b"))
    return Layers({"first": a, "second": b}, {"array": array})


def md_metadata_at_the_end(build: Build) -> Layers:
    """A member looks like the file system itself, because the array's metadata is at its end."""
    array = md(build, "1", a := build.disk("a"), b := build.disk("b"), more=("--metadata=1.0",))
    build.ext4(array)
    return Layers({"array": array, "first": a, "second": b})


def md_raid5(build: Build) -> Layers:
    members = [build.disk(name) for name in "abc"]
    array = md(build, "5", *members)
    build.ext4(array)
    return Layers({"array": array, **{f"member {n}": one for n, one in enumerate(members)}})


def md_raid0_on_partitions(build: Build) -> Layers:
    disks = [build.disk(name) for name in "ab"]
    parts = [one_partition(one) for one in disks]
    array = md(build, "0", *parts)
    return Layers({"disk": disks[0], "partition": parts[0], "other": parts[1]}, {"array": array})


def md_partition_mounted(build: Build) -> Layers:
    array = md(build, "1", a := build.disk("a"), build.disk("b"))
    part = one_partition(array)
    build.ext4(part)
    return Layers({"array": array, "partition": part, "member": a})


def md_failed_member(build: Build) -> Layers:
    array = md(build, "1", a := build.disk("a"), b := build.disk("b"))
    build.ext4(array)
    sh("mdadm", array, "--fail", b)
    return Layers({"array": array, "good": a, "failed, still in it": b})


def md_removed_member(build: Build) -> Layers:
    array = md(build, "1", a := build.disk("a"), b := build.disk("b"))
    build.ext4(array)
    sh("mdadm", array, "--fail", b)
    sh("mdadm", array, "--remove", b)
    return Layers({"array": array, "good": a}, {"removed": b})


def md_spare(build: Build) -> Layers:
    members = [build.disk(name) for name in "abc"]
    array = md(build, "1", *members, devices=2, more=("--spare-devices=1",))
    return Layers({"member": members[0], "spare": members[2]}, {"array": array})


def md_stopped(build: Build) -> Layers:
    array = md(build, "1", a := build.disk("a"), b := build.disk("b"))
    sh("mdadm", "--stop", array)
    return Layers(free={"first": a, "second": b})


def md_below_lvm(build: Build) -> Layers:
    array = md(build, "1", a := build.disk("a"), b := build.disk("b"))
    volume_group(build, array)
    one, two = lvcreate("one"), lvcreate("two")
    build.ext4(one)
    return Layers({"member": a, "other member": b, "array": array, "LV": one}, {"other LV": two})


def md_on_lvm(build: Build) -> Layers:
    volume_group(build, a := build.disk())
    one, two, three = (lvcreate(name, size="12M") for name in ("one", "two", "three"))
    array = md(build, "1", one, two)
    build.ext4(array)
    return Layers({"PV": a, "first LV": one, "second LV": two, "array": array},
                  {"third LV": three})  # fmt: skip


# -- crypt and other targets of device-mapper


def crypt(build: Build, below: str, name: str = "iopstui-crypt") -> str:
    needs("dmsetup", modules=("dm-crypt",))
    table = f"0 {size_of(below)} crypt aes-xts-plain64 {'00' * 64} 0 {below} 0"
    return build.dm(name, table, f"CRYPT-PLAIN-{name}")


def crypt_mounted(build: Build) -> Layers:
    top = crypt(build, a := build.disk())
    build.ext4(top)
    return Layers({"disk": a, "crypt": top, "file of the disk": build.file()})


def crypt_unused(build: Build) -> Layers:
    top = crypt(build, a := build.disk())
    return Layers({"disk": a}, {"crypt": top})


def crypt_twice(build: Build) -> Layers:
    """Two crypt mappings of the same sectors."""
    a = build.disk()
    one, two = crypt(build, a, "iopstui-one"), crypt(build, a, "iopstui-two")
    build.ext4(one)
    return Layers({"disk": a, "mounted": one, "the other": two})


def luks(build: Build) -> Layers:
    needs("cryptsetup", modules=("dm-crypt",))
    a = build.disk(size=64 * MIB)
    words = ("--batch-mode", "--key-file=-", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000")
    sh("cryptsetup", "luksFormat", *words, a, stdin="secret")
    closed = build.disk("closed", size=64 * MIB)
    sh("cryptsetup", "luksFormat", *words, closed, stdin="secret")
    sh("cryptsetup", "open", "--key-file=-", a, "iopstui-luks", stdin="secret")
    build.later("cryptsetup", "close", "iopstui-luks")
    build.ext4(top := dm_node("iopstui-luks"))
    return Layers({"disk": a, "opened": top}, {"closed": closed})


def lvm_on_crypt_on_partition(build: Build) -> Layers:
    needs("lvm", modules=("dm-crypt",))
    part = one_partition(a := build.disk())
    volume_group(build, top := crypt(build, part))
    one, two = lvcreate("one"), lvcreate("two")
    build.ext4(one)
    return Layers({"disk": a, "partition": part, "crypt": top, "LV": one}, {"other LV": two})


def dm_same_sectors(build: Build) -> Layers:
    a = build.disk()
    table = f"0 32768 linear {a} 2048"
    one, two = build.dm("iopstui-one", table), build.dm("iopstui-two", table)
    build.ext4(one)
    return Layers({"disk": a, "mounted": one, "the other": two})


def dm_snapshot_without_lvm(build: Build) -> Layers:
    needs("dmsetup", modules=("dm-snapshot",))
    a, cow = build.disk("a"), build.disk("cow")
    sh("mkfs.ext4", "-q", "-O", "^has_journal", a)
    size = size_of(a)
    origin = build.dm("iopstui-origin", f"0 {size} snapshot-origin {a}")
    snap = build.dm("iopstui-snap", f"0 {size} snapshot {a} {cow} N 8")
    build.mount(snap)
    return Layers({"disk": a, "changed blocks": cow, "origin": origin, "snapshot": snap})


def dm_thin_on_an_external_origin(build: Build) -> Layers:
    needs("dmsetup", modules=("dm-thin-pool",))
    data, meta, base = build.disk("data"), build.disk("meta", 4 * MIB), build.disk("base")
    sh("mkfs.ext4", "-q", "-O", "^has_journal", base)
    sh("dd", "if=/dev/zero", f"of={meta}", "bs=4k", "count=1", "conv=fsync")
    pool = build.dm("iopstui-pool", f"0 {size_of(data)} thin-pool {meta} {data} 128 0")
    sh("dmsetup", "message", "iopstui-pool", "0", "create_thin 0")
    thin = build.dm("iopstui-thin", f"0 {size_of(base)} thin {pool} 0 {base}")
    build.mount(thin)
    return Layers({"origin": base, "data": data, "metadata": meta, "pool": pool, "thin": thin})


def dm_partition(build: Build) -> Layers:
    """Partitions of a multipath disk, as kpartx makes them."""
    top = build.dm("iopstui-disk", f"0 {SIZE // 512} linear {build.disk()} 0")
    one = build.dm("iopstui-disk1", f"0 32768 linear {top} 2048", "part1-iopstui-disk")
    two = build.dm("iopstui-disk2", f"0 32768 linear {top} 40960", "part2-iopstui-disk")
    build.ext4(one)
    return Layers({"disk": top, "partition": one}, {"other partition": two})


def dm_over_loop_over_a_file_on_a_mounted_disk(build: Build) -> Layers:
    a = build.disk(size=96 * MIB)
    sh("mkfs.ext4", "-q", "-O", "^has_journal", a)
    place = build.stack.enter_context(mounted(a, build.here / "lower"))
    image, other = place / "image", place / "other"
    for file in (image, other):
        with file.open("wb") as new:
            new.truncate(24 * MIB)
    inner = build.attach(str(image))
    top = build.dm("iopstui-top", f"0 {size_of(inner)} linear {inner} 0")
    build.ext4(top)
    return Layers({"disk": a, "file of the disk": build.file(), "image": str(image),
                   "loop": inner, "dm": top}, {"other file": str(other)})  # fmt: skip


def integrity(build: Build) -> Layers:
    needs("integritysetup", modules=("dm-integrity",))
    a = build.disk()
    sh("integritysetup", "format", "--batch-mode", "--no-wipe", a)
    sh("integritysetup", "open", a, "iopstui-integrity")
    build.later("integritysetup", "close", "iopstui-integrity")
    build.open_by_another(top := dm_node("iopstui-integrity"))
    return Layers({"disk": a, "dm": top})


# -- file systems


def btrfs_one(build: Build) -> Layers:
    needs("mkfs.btrfs", modules=("btrfs",))
    sh("mkfs.btrfs", "-q", "-f", a := build.disk(size=LARGE))
    build.mount(a)
    return Layers({"disk": a, "file": build.file()})


def _btrfs(build: Build, *names: str) -> list[str]:
    needs("mkfs.btrfs", modules=("btrfs",))
    disks = [build.disk(name, LARGE) for name in names]
    sh("mkfs.btrfs", "-q", "-f", "-m", "raid1", "-d", "raid1", *disks)
    sh("btrfs", "device", "scan", *disks)
    return disks


def btrfs_raid1(build: Build) -> Layers:
    a, b, c = _btrfs(build, *"abc")
    build.mount(b)
    return Layers({"first": a, "second": b, "third": c, "file of the third": build.file("c")})


def btrfs_unmounted(build: Build) -> Layers:
    a, b = _btrfs(build, *"ab")
    return Layers(free={"first": a, "second": b})


def btrfs_on_partitions(build: Build) -> Layers:
    needs("mkfs.btrfs", modules=("btrfs",))
    disks = [build.disk(name, LARGE) for name in "ab"]
    parts = [one_partition(one, LARGE) for one in disks]
    sh("mkfs.btrfs", "-q", "-f", "-m", "raid1", "-d", "raid1", *parts)
    sh("btrfs", "device", "scan", *parts)
    build.mount(parts[0])
    return Layers({"disk": disks[0], "other disk": disks[1], "other partition": parts[1]})


def btrfs_device_removed(build: Build) -> Layers:
    a, b, c = _btrfs(build, *"abc")
    place = build.stack.enter_context(mounted(a, build.here / "mnt"))
    sh("btrfs", "device", "remove", c, str(place))
    return Layers({"first": a, "second": b}, {"removed": c})


def btrfs_seed(build: Build) -> Layers:
    """A btrfs on a read-only seed device, to which a second device was added."""
    needs("mkfs.btrfs", modules=("btrfs",))
    a, b = build.disk("a", LARGE), build.disk("b", LARGE)
    sh("mkfs.btrfs", "-q", "-f", a)
    sh("btrfstune", "-S", "1", a)
    place = build.stack.enter_context(mounted(a, build.here / "mnt"))
    sh("btrfs", "device", "add", "-f", b, str(place))
    return Layers({"seed": a, "added": b})


def btrfs_image(build: Build) -> Layers:
    """The st_dev of a file on btrfs is no block device's number."""
    needs("mkfs.btrfs", modules=("btrfs",))
    sh("mkfs.btrfs", "-q", "-f", a := build.disk(size=LARGE))
    place = build.stack.enter_context(mounted(a, build.here / "mnt"))
    sh("btrfs", "subvolume", "create", str(place / "sub"))
    image = place / "sub/image"
    with image.open("wb") as file:
        file.truncate(24 * MIB)
    build.ext4(top := build.attach(str(image)), "inner")
    again = build.stack.enter_context(mounted(a, build.here / "again", "-o", "subvol=sub"))
    with (place / "other").open("wb") as file:
        file.truncate(8 * MIB)
    return Layers({"disk": a, "image": str(image), "by another mount": str(again / "image"),
                   "loop": top}, {"other file": str(place / "other")})  # fmt: skip


def xfs(build: Build) -> Layers:
    needs("mkfs.xfs", modules=("xfs",))
    sh("mkfs.xfs", "-q", "-f", a := build.disk(size=LARGE))
    build.mount(a, "-o", "norecovery")
    return Layers({"disk": a, "file": build.file()})


def xfs_external_log(build: Build) -> Layers:
    needs("mkfs.xfs", modules=("xfs",))
    a, log, real = build.disk("a", LARGE), build.disk("log", LARGE), build.disk("rt", LARGE)
    sh("mkfs.xfs", "-q", "-f", "-l", f"logdev={log}", "-r", f"rtdev={real}", a)
    twin = build.attach(build.file("log"))
    build.mount(a, "-o", f"norecovery,logdev={log},rtdev={real}")
    return Layers({"disk": a, "log": log, "file of the log": build.file("log"),
                   "other loop on the log": twin, "realtime": real})  # fmt: skip


def ext4_external_journal(build: Build) -> Layers:
    a, journal = build.disk("a"), build.disk("journal")
    sh("mke2fs", "-q", "-F", "-b", "4096", "-O", "journal_dev", journal)
    sh("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0", "-J",
       f"device={journal}", a)  # fmt: skip
    build.mount(a)
    return Layers({"disk": a, "journal": journal, "file of the journal": build.file("journal")})


def fuse_image(build: Build) -> Layers:
    """The program that serves the file system has the image open."""
    needs("fuse2fs", modules=("fuse",))
    a = build.disk()
    sh("mkfs.ext4", "-q", "-F", a)
    image = build.here / "fuse.img"
    with image.open("wb") as file:
        file.truncate(SIZE)
    sh("mkfs.ext4", "-q", "-F", str(image))
    twin = build.attach(str(image))
    (build.here / "fuse").mkdir()
    sh("fuse2fs", str(image), str(build.here / "fuse"))
    build.later("umount", str(build.here / "fuse"))
    (build.here / "served").mkdir()
    sh("fuse2fs", a, str(build.here / "served"))
    build.later("umount", str(build.here / "served"))
    return Layers({"image": str(image), "loop on the image": twin, "disk": a,
                   "file of the disk": build.file()})  # fmt: skip


def file_on_fuse(build: Build) -> Layers:
    """A loop device on a file that a program serves."""
    needs("fuse2fs", modules=("fuse",))
    image = build.here / "fuse.img"
    with image.open("wb") as file:
        file.truncate(96 * MIB)
    sh("mkfs.ext4", "-q", "-F", str(image))
    place = build.here / "fuse"
    place.mkdir()
    sh("fuse2fs", str(image), str(place))
    build.later("umount", str(place))
    for name in ("inner", "other"):
        (place / name).write_bytes(bytes(16 * MIB))
    build.ext4(top := build.attach(str(place / "inner")))
    return Layers({"image": str(image), "inner file": str(place / "inner"), "loop": top},
                  {"other file": str(place / "other")})  # fmt: skip


def hugetlbfs(build: Build) -> Layers:
    """A file on hugetlbfs that a program has mapped, like a virtual machine its memory."""
    build.later("sysctl", "-q", "vm.nr_hugepages=0")
    sh("sysctl", "-q", "vm.nr_hugepages=4")
    place = build.here / "huge"
    place.mkdir()
    sh("mount", "-t", "hugetlbfs", "none", str(place))
    build.later("umount", str(place))
    code = ("import mmap, os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
            "os.ftruncate(fd, 2 << 20); m = mmap.mmap(fd, 2 << 20); os.close(fd)\n"
            "print(1, flush=True); sys.stdin.read()")  # fmt: skip
    other = subprocess.Popen([sys.executable, "-c", code, str(place / "memory")],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert other.stdout is not None and other.stdout.readline()
    build.stack.callback(other.communicate, "")
    return Layers({"memory of another": str(place / "memory")})


# -- swap and partitions


def swap_partition(build: Build) -> Layers:
    part = one_partition(a := build.disk())
    sh("mkswap", part)
    sh("swapon", part)
    build.later("swapoff", part)
    return Layers({"disk": a, "partition": part})


def swap_file(build: Build) -> Layers:
    sh("mkfs.ext4", "-q", "-F", a := build.disk(size=96 * MIB))
    place = build.stack.enter_context(mounted(a, build.here / "mnt"))
    for name in ("swap", "other"):
        (place / name).write_bytes(bytes(16 * MIB))
    (place / "swap").chmod(0o600)
    sh("mkswap", str(place / "swap"))
    sh("swapon", str(place / "swap"))
    build.later("swapoff", str(place / "swap"))
    os.link(place / "swap", place / "linked")
    used = {"disk": a, "file": str(place / "swap"), "by another name": str(place / "linked")}
    return Layers(used, {"other file": str(place / "other")})


def table(node: str, entries: list[tuple[int, int, int]], at: int = 0) -> None:
    """An MBR with ``entries`` of (type, first sector, sectors), in the sector ``at``."""
    rows = b"".join(struct.pack("<B3sB3sII", 0, b"\0" * 3, kind, b"\0" * 3, first, count)
                    for kind, first, count in entries)  # fmt: skip
    with open(node, "r+b") as disk:
        disk.seek(at * 512 + 446)
        disk.write(rows.ljust(64, b"\0") + b"\x55\xaa")


def two_partitions(build: Build) -> Layers:
    a = build.disk()
    table(a, [(0x83, 2048, 32768), (0x83, 40960, 32768)])
    sh("blockdev", "--rereadpt", a)
    build.ext4(f"{a}p1")
    return Layers({"disk": a, "mounted": f"{a}p1"}, {"other partition": f"{a}p2"})


def overlapping_partitions(build: Build) -> Layers:
    """The kernel accepts any partition table."""
    a = build.disk()
    table(a, [(0x83, 2048, 32768), (0x83, 4096, 32768), (0x83, 65536, 16384)])
    sh("blockdev", "--rereadpt", a)
    build.ext4(f"{a}p1")
    return Layers({"disk": a, "mounted": f"{a}p1", "overlapping": f"{a}p2"},
                  {"third partition": f"{a}p3"})  # fmt: skip


def extended_partition(build: Build) -> Layers:
    """The first sectors of the extended partition are the table of the logical ones."""
    a = build.disk()
    table(a, [(0x83, 2048, 16384), (0x05, 20480, 65536)])
    table(a, [(0x83, 2048, 16384)], at=20480)
    sh("blockdev", "--rereadpt", a)
    build.ext4(f"{a}p5")
    return Layers({"disk": a, "extended": f"{a}p2", "logical": f"{a}p5"},
                  {"primary": f"{a}p1"})  # fmt: skip


def loop_partition_of_the_same_file(build: Build) -> Layers:
    a = build.disk()
    part = one_partition(a)
    twin = build.attach(build.file())
    build.ext4(part)
    return Layers({"disk": a, "mounted": part, "other loop": twin, "its partition": f"{twin}p1",
                   "file": build.file()})  # fmt: skip


def gpt_only(build: Build) -> Layers:
    gpt(a := build.disk())
    return Layers(free={"disk": a})


def write(path: Path | str, text: str) -> None:
    Path(path).write_text(text)


def disks(pattern: str) -> set[str]:
    """Kernel names of these disks, without the hidden paths of NVMe multipath."""
    return {one.name for one in Path("/sys/block").glob(pattern)
            if (one / "hidden").read_text().strip() == "0"}  # fmt: skip


def new_disk(pattern: str, before: set[str]) -> str:
    settled(lambda: disks(pattern) - before)
    (new,) = disks(pattern) - before
    return new


# -- bcache


def bcache(build: Build, mount: bool) -> tuple[str, str, str]:
    needs("make-bcache", modules=("bcache",))
    back, cache = build.disk("back"), build.disk("cache", 128 * MIB)
    sh("make-bcache", "--bucket", "64k", "-B", back, "-C", cache)
    before = disks("bcache*")
    for node in (cache, back):
        write("/sys/fs/bcache/register", node)
    top = Path("/sys/block", new_disk("bcache*", before))
    sets = list(Path("/sys/fs/bcache").glob("*-*"))

    def stop() -> None:
        (top / "bcache/stop").write_text("1")
        for one in sets:
            with contextlib.suppress(OSError):
                (one / "stop").write_text("1")

    build.stack.callback(stop)
    if mount:
        build.ext4(f"/dev/{top.name}")
    settled(lambda: Path("/dev", top.name).exists())
    return back, cache, f"/dev/{top.name}"


def bcache_mounted(build: Build) -> Layers:
    back, cache, top = bcache(build, True)
    return Layers({"backing": back, "cache": cache, "bcache": top, "file": build.file("back")})


def bcache_unused(build: Build) -> Layers:
    back, cache, top = bcache(build, False)
    return Layers({"backing": back, "cache": cache}, {"bcache": top})


# -- users inside the kernel


CONFIG = Path("/sys/kernel/config")


def _mount_config() -> None:
    """Mount configfs, which sets up the kernel's targets; machines without systemd don't mount
    it."""
    if not os.path.ismount(CONFIG):
        sh("mount", "-t", "configfs", "none", str(CONFIG))


def _nvmet(build: Build, path: str) -> str:
    """Export ``path`` to this machine itself. Returns the NVMe device."""
    needs("modprobe", modules=("nvmet", "nvme-loop"))
    _mount_config()
    top, port = CONFIG / "nvmet/subsystems/iopstui", CONFIG / "nvmet/ports/91"
    top.mkdir()
    build.stack.callback(top.rmdir)
    write(top / "attr_allow_any_host", "1")
    space = top / "namespaces/1"
    space.mkdir()
    build.stack.callback(space.rmdir)
    write(space / "device_path", path)
    write(space / "enable", "1")
    build.stack.callback(write, space / "enable", "0")
    port.mkdir()
    build.stack.callback(port.rmdir)
    write(port / "addr_trtype", "loop")
    os.symlink(top, port / "subsystems/iopstui")
    build.stack.callback(os.unlink, port / "subsystems/iopstui")
    before = disks("nvme*n*")
    write("/dev/nvme-fabrics", "transport=loop,nqn=iopstui")
    build.stack.callback(_disconnect)
    return f"/dev/{new_disk('nvme*n*', before)}"


def _disconnect() -> None:
    for controller in Path("/sys/class/nvme").glob("nvme*"):
        if (controller / "transport").read_text().strip() == "loop":
            write(controller / "delete_controller", "1")


def nvmet_device(build: Build) -> Layers:
    a = build.disk()
    far = _nvmet(build, a)
    build.ext4(far)
    return Layers({"exported": a, "file below": build.file(), "mounted by its client": far})


def nvmet_mounted_below(build: Build) -> Layers:
    """nvmet claims nothing: what it exports can be mounted here at the same time."""
    a = build.disk()
    far = _nvmet(build, a)
    build.ext4(a)
    return Layers({"exported": a, "the client's device": far})


def nvmet_unused(build: Build) -> Layers:
    a = build.disk()
    return Layers({"exported": a}, {"the client's device": _nvmet(build, a)})


def nvmet_file(build: Build) -> Layers:
    # in memory, because the kernel exports a file on overlayfs with a size of 0
    place = build.stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
    image = Path(place, "exported.img")
    with image.open("wb") as file:
        file.truncate(SIZE)
    far = _nvmet(build, str(image))
    return Layers({"exported file": str(image)}, {"the client's device": far})


def _lio(build: Build, kind: str, control: str) -> str:
    """A LUN of the kernel's SCSI target on this machine. Returns the SCSI disk."""
    needs("modprobe", modules=("target-core-mod", f"target-core-{kind}", "tcm-loop"))
    _mount_config()
    top = CONFIG / "target/core" / ("fileio_91" if kind == "file" else "iblock_91")
    top.mkdir(parents=True)
    build.stack.callback(top.rmdir)
    store = top / "iopstui"
    store.mkdir()
    build.stack.callback(store.rmdir)
    write(store / "control", control)
    write(store / "enable", "1")
    naa = CONFIG / "target/loopback/naa.5001405000000091"
    naa.mkdir(parents=True)
    build.stack.callback(naa.rmdir)
    group = naa / "tpgt_1"
    group.mkdir()
    build.stack.callback(group.rmdir)
    write(group / "nexus", "naa.5001405000000092")
    build.stack.callback(write, group / "nexus", "NULL")
    before = disks("sd*")
    lun = group / "lun/lun_0"
    lun.mkdir()
    build.stack.callback(lun.rmdir)
    os.symlink(store, lun / "iopstui")
    build.stack.callback(os.unlink, lun / "iopstui")
    return f"/dev/{new_disk('sd*', before)}"


def lio_fileio_on_a_device(build: Build) -> Layers:
    a = build.disk()
    _lio(build, "file", f"fd_dev_name={a},fd_dev_size={SIZE}")
    return Layers({"exported": a, "file below": build.file()})


def lio_fileio_mounted_below(build: Build) -> Layers:
    a = build.disk()
    far = _lio(build, "file", f"fd_dev_name={a},fd_dev_size={SIZE}")
    build.ext4(a)
    return Layers({"exported": a, "the client's device": far})


def lio_fileio_on_a_file(build: Build) -> Layers:
    image = build.here / "exported.img"
    with image.open("wb") as file:
        file.truncate(SIZE)
    far = _lio(build, "file", f"fd_dev_name={image},fd_dev_size={SIZE}")
    return Layers({"exported file": str(image)}, {"the client's device": far})


def lio_iblock(build: Build) -> Layers:
    a = build.disk()
    far = _lio(build, "iblock", f"udev_path={a}")
    return Layers({"exported": a, "file below": build.file()}, {"the client's device": far})


def _nbd(build: Build, path: str) -> str:
    needs("qemu-nbd", modules=("nbd",))
    sh("qemu-nbd", "--format=raw", "--connect=/dev/nbd0", path)
    build.later("qemu-nbd", "--disconnect", "/dev/nbd0")
    settled(lambda: Path("/sys/block/nbd0/pid").exists() and size_of("/dev/nbd0"))
    return "/dev/nbd0"


def nbd_unused(build: Build) -> Layers:
    """The program that serves the nbd device has the disk open: the loop device and its file are in
    use."""
    a = build.disk()
    return Layers({"served": a, "file below": build.file()}, {"nbd": _nbd(build, a)})


def nbd_mounted(build: Build) -> Layers:
    image = build.here / "served.img"
    with image.open("wb") as file:
        file.truncate(SIZE)
    node = _nbd(build, str(image))
    build.ext4(node)
    return Layers({"served file": str(image), "nbd": node})


def nbd_mounted_below(build: Build) -> Layers:
    a = build.disk()
    node = _nbd(build, a)
    build.ext4(a)
    return Layers({"served": a, "nbd": node})


def zram_writeback(build: Build) -> Layers:
    needs("modprobe", modules=("zram",))
    a = build.disk()
    number = Path("/sys/class/zram-control/hot_add").read_text().strip()
    build.stack.callback(write, "/sys/class/zram-control/hot_remove", number)
    block = Path(f"/sys/block/zram{number}")
    if not (block / "backing_dev").exists():
        needs("a kernel with CONFIG_ZRAM_WRITEBACK")
    write(block / "backing_dev", a)
    write(block / "disksize", "16M")
    return Layers({"backing": a}, {"zram": f"/dev/zram{number}"})


Layering = Callable[[Build], Layers]
ALL: tuple[Layering, ...] = (
    lvm_linear, lvm_nothing_mounted, lvm_inactive, lvm_striped, lvm_on_partition, lvm_swap,
    lvm_open, lvm_loop_on_lv, lvm_snapshot_mounted, lvm_origin_mounted, lvm_two_snapshots,
    lvm_thin, lvm_thin_snapshot, lvm_raid1, lvm_cache,
    md_raid1_mounted, md_raid1_unused, md_metadata_at_the_end, md_raid5, md_raid0_on_partitions,
    md_partition_mounted, md_failed_member, md_removed_member, md_spare, md_stopped, md_below_lvm,
    md_on_lvm,
    crypt_mounted, crypt_unused, crypt_twice, luks, lvm_on_crypt_on_partition, integrity,
    dm_same_sectors, dm_snapshot_without_lvm, dm_thin_on_an_external_origin, dm_partition,
    dm_over_loop_over_a_file_on_a_mounted_disk,
    btrfs_one, btrfs_raid1, btrfs_unmounted, btrfs_on_partitions, btrfs_device_removed, btrfs_seed,
    btrfs_image, xfs, xfs_external_log, ext4_external_journal, fuse_image, file_on_fuse, hugetlbfs,
    swap_partition, swap_file, two_partitions, overlapping_partitions, extended_partition,
    loop_partition_of_the_same_file, gpt_only,
    bcache_mounted, bcache_unused,
    nvmet_device, nvmet_mounted_below, nvmet_unused, nvmet_file, lio_fileio_on_a_device,
    lio_fileio_mounted_below, lio_fileio_on_a_file, lio_iblock, nbd_unused, nbd_mounted,
    nbd_mounted_below, zram_writeback,
)  # fmt: skip


@contextlib.contextmanager
def built(layering: Layering, here: Path) -> Iterator[Layers]:
    with ExitStack() as stack:
        yield layering(Build(here, stack))
