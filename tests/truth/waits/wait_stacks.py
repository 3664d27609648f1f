"""The stacks of block devices for comparing waits. Each is made of devices that a virtual machine
has for this purpose, and is removed afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import devices
import settings
from devices import load, needs, sectors, sh
from io_trace import Device
from scenario import Bench, Recipe

MS = 1_000_000
DATA = 4096  # sectors before an array's data
CHUNK = 128  # sectors


@dataclass(frozen=True)
class Stack:
    """``make`` builds the stack. ``above`` maps a device's sector to the devices above it
    (``None``: remap events show this)."""

    name: str
    make: Recipe
    above: Callable[[Sequence[str], str, int], Sequence[tuple[str, int]]] | None = None


def slow(ms: float, **options: int) -> Recipe:
    """A null_blk disk in memory that takes ``ms`` for each request."""
    return devices.null(completion_nsec=int(ms * MS), memory_backed=1, size=256, **options)


def tagged(below: Recipe) -> Recipe:
    """A scheduler that holds more requests than the disk accepts at once."""
    return settings.queue(below, scheduler="mq-deadline", nr_requests=64)


def array(level: int, *members: Recipe) -> Recipe:
    """An md array without a bitmap."""

    def make(bench: Bench) -> str:
        needs("mdadm")
        load(f"raid{level if level < 4 else 456}")
        nodes = [member(bench) for member in members]
        chunk = [f"--chunk={CHUNK // 2}"] if level != 1 else []
        node = "/dev/md120"
        sh("mdadm", "--create", node, f"--level={level}", f"--raid-devices={len(nodes)}", "--run",
           "--assume-clean", "--metadata=1.2", f"--data-offset={DATA // 2}", "--bitmap=none",
           *chunk, *nodes)  # fmt: skip
        bench.stack.callback(sh, "mdadm", "--stop", node)
        bench.node = node
        return node

    return make


def loop_on(below: Recipe) -> Recipe:
    """A loop device on a device, with direct I/O."""

    def make(bench: Bench) -> str:
        node = sh("losetup", "--find", "--show", "--direct-io=on", below(bench))
        bench.stack.callback(sh, "losetup", "--detach", node)
        bench.node = node
        return node

    return make


def snapshot(below: Recipe) -> Recipe:
    """An LVM volume with a snapshot: the first write to each chunk copies the old data."""

    def make(bench: Bench) -> str:
        needs("lvcreate")
        load("dm_snapshot")
        disk = below(bench)
        lvm = (
            "--config",
            f'devices {{ filter=["a|{disk}|","r|.*|"] use_devicesfile=0 types=["nullb",1] }} '
            "activation { udev_sync=0 udev_rules=0 } backup { backup=0 archive=0 }",
        )
        sh("pvcreate", *lvm, "-qq", "--force", "--yes", disk)
        sh("vgcreate", *lvm, "-qq", "waits", disk)
        bench.stack.callback(sh, "vgremove", *lvm, "-qq", "--force", "--yes", "waits")
        sh("lvcreate", *lvm, "-qq", "--yes", "-Wn", "-Zn", "-L", "64m", "-n", "origin", "waits")
        sh("lvcreate", *lvm, "-qq", "--yes", "-s", "-c", "16k", "-L", "128m", "-n", "copy",
           "waits/origin")  # fmt: skip
        sh("dmsetup", "mknodes")
        bench.node = "/dev/mapper/waits-origin"
        return bench.node

    return make


def encrypted(below: Recipe) -> Recipe:
    """dm-crypt as cryptsetup sets it up, with worker threads."""

    def make(bench: Bench) -> str:
        node = below(bench)
        load("dm_crypt")
        table = f"0 {sectors(node)} crypt aes-xts-plain64 {'00' * 64} 0 {node} 0"
        return devices._map(bench, table, "CRYPT-PLAIN-waits")

    return make


def same_sector(tree: Sequence[str], name: str, sector: int) -> Sequence[tuple[str, int]]:
    """The device above has the same sector numbers."""
    place = tree.index(name)
    return [(tree[place - 1], sector)] if place else []


def stripe(tree: Sequence[str], name: str, sector: int) -> Sequence[tuple[str, int]]:
    """All data sectors of the array that share their parity with a member's sector."""
    if name == tree[0]:
        return []
    data = len(tree) - 2
    number, offset = divmod(sector - DATA, CHUNK)
    return [(tree[0], (number * data + disk) * CHUNK + offset) for disk in range(data)]


STACKS = (
    Stack("ext4 on dm-linear on virtio", devices.ext4(devices.linear(devices.disk("VBLK4Q")))),
    Stack("md raid1", array(1, slow(6), slow(10))),
    Stack("md raid5", array(5, slow(6), slow(6), slow(6)), stripe),
    Stack("loop on loop", loop_on(loop_on(slow(8))), same_sector),
    Stack("LVM volume with a snapshot", snapshot(slow(6)), same_sector),
    Stack("dm-crypt", encrypted(slow(5))),
    Stack("mq-deadline above 4 tags", tagged(slow(6, submit_queues=1, hw_queue_depth=4))),
)


def number_of(name: str) -> Device:
    """The major and minor number of a device."""
    major, minor = Path("/sys/class/block", name, "dev").read_text().split(":")
    return int(major), int(minor)


def name_of(path: str) -> str:
    """The kernel's name of the block device at a path."""
    number = os.stat(path).st_rdev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name


def tree_of(top: str) -> list[str]:
    """A device and all devices below it, nearest first."""
    names = [top]
    for name in names:
        place = Path("/sys/class/block", name)
        below = sorted(path.name for path in place.glob("slaves/*"))
        backing = place / "loop/backing_file"
        if backing.exists() and backing.read_text().startswith("/dev/"):
            below.append(name_of(backing.read_text().strip()))
        names += [path for path in below if path not in names]
    return names
