"""Every way to write, on every kind of device in use: refused, and no byte changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from machine import digest, gpt, loop, mapped, mounted, needs, one_partition, sectors, sh
from program import iopstui

MODES = {
    "write": (), "randwrite": (), "rw": (), "randrw": (), "trim": (), "randtrim": (),
    "trimwrite": (), "verify": ("--set", "verify=crc32c"),
}  # fmt: skip


@contextlib.contextmanager
def mounted_partition(node: str, place: Path) -> Iterator[list[str]]:
    part = one_partition(node)
    # otherwise the kernel writes inode tables and bitmaps in the first seconds after the mount
    sh("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", part)
    with mounted(part, place / "mnt", "-o", "no_prefetch_block_bitmaps,noinit_itable"):
        yield [node, part]


@contextlib.contextmanager
def swap_partition(node: str, place: Path) -> Iterator[list[str]]:
    part = one_partition(node)
    sh("mkswap", part)
    sh("swapon", part)
    try:
        yield [node, part]
    finally:
        sh("swapoff", part)


@contextlib.contextmanager
def lvm_member(node: str, place: Path) -> Iterator[list[str]]:
    needs("lvm", modules=("dm-mod",))
    sh("lvm", "pvcreate", "-ff", "-y", node)
    sh("lvm", "vgcreate", "iopstuivg", node)
    sh("lvm", "lvcreate", "-y", "-Zn", "-Wn", "-L8M", "-n", "lv", "iopstuivg")
    try:
        yield [node]
    finally:
        sh("lvm", "vgchange", "-an", "iopstuivg")


@contextlib.contextmanager
def md_member(node: str, place: Path) -> Iterator[list[str]]:
    needs("mdadm", modules=("raid1",))
    sh("mdadm", "--create", "/dev/md127", "--run", "--force", "--level=1", "--raid-devices=1",
       "--assume-clean", node)  # fmt: skip
    try:
        yield [node]
    finally:
        sh("mdadm", "--stop", "/dev/md127")


@contextlib.contextmanager
def crypt_holder(node: str, place: Path) -> Iterator[list[str]]:
    needs("dmsetup", modules=("dm-crypt",))
    key = "00" * 64
    table = f"0 {sectors(node)} crypt aes-xts-plain64 {key} 0 {node} 0"
    with mapped("iopstui-crypt", table, "CRYPT-PLAIN-iopstui"):
        yield [node]


@contextlib.contextmanager
def btrfs_member(node: str, place: Path) -> Iterator[list[str]]:
    needs("mkfs.btrfs")
    with loop(place / "second.img", 128 << 20) as second:
        sh("truncate", "-s", "128M", str(place / "first.img"))
        sh("losetup", "--set-capacity", node)
        sh("mkfs.btrfs", "-q", "-f", "-m", "raid1", "-d", "raid1", node, second)
        sh("btrfs", "device", "scan", node, second)
        with mounted(node, place / "mnt"):
            yield [second, node]


@contextlib.contextmanager
def opened_by_another(node: str, place: Path) -> Iterator[list[str]]:
    """A program that has the device open for writing but not exclusively, like a virtual
    machine."""
    import subprocess
    import sys

    code = "import sys; f = open(sys.argv[1], 'r+b'); print('open', flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", code, node], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert other.stdout is not None and other.stdout.readline()
    try:
        yield [node]
    finally:
        other.communicate("")


@contextlib.contextmanager
def read_only(node: str, place: Path) -> Iterator[list[str]]:
    sh("blockdev", "--setro", node)
    try:
        yield [node]
    finally:
        sh("blockdev", "--setrw", node)


@contextlib.contextmanager
def gpt_unused(node: str, place: Path) -> Iterator[list[str]]:
    gpt(node)
    yield [node]


@contextlib.contextmanager
def blank(node: str, place: Path) -> Iterator[list[str]]:
    yield [node]


Kind = Callable[[str, Path], AbstractContextManager[list[str]]]
IN_USE: list[tuple[Kind, str]] = [
    (mounted_partition, "mounted at"), (swap_partition, "swap"), (lvm_member, "LVM"),
    (md_member, "md127"), (crypt_holder, "crypt"), (btrfs_member, "btrfs"),
    (opened_by_another, "open for writing"), (read_only, "read-only"),
]  # fmt: skip
UNUSED: list[tuple[Kind, str]] = [(gpt_unused, "gpt"), (blank, "seems empty")]


def swapped_out() -> int:
    """Pages swapped out since the machine started."""
    rows = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return next(int(row[1]) for row in rows if row[0] == "pswpout")


def attempt(node: str, mode: str, here: Path, *words: str) -> tuple[int, str]:
    rw = "randwrite" if mode == "verify" else mode
    done = iopstui("run", node, "--job", "randread-4k", "--set", f"rw={rw}", *MODES[mode],
                   "--set", "runtime=1", *words, cwd=here, timeout=120)  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize(("kind", "why"), IN_USE, ids=lambda value: getattr(value, "__name__", ""))
def test_a_device_in_use_is_never_written(kind: Kind, why: str, here: Path) -> None:
    with loop(here / "first.img") as node, kind(node, here) as nodes:
        for target in nodes:
            for mode in MODES:
                before, swapped = digest(target), swapped_out()
                code, said = attempt(target, mode, here, "--destroy-data", target)
                assert code == 3, (target, mode, said)
                assert "in use" in said and why in said and "no override" in said.lower()
                # the kernel itself may write to the swap device
                assert digest(target) == before or swapped_out() > swapped, (target, mode)


@pytest.mark.parametrize(("kind", "why"), UNUSED, ids=lambda value: getattr(value, "__name__", ""))
def test_an_unused_device_needs_the_word(kind: Kind, why: str, here: Path) -> None:
    with loop(here / "first.img") as node, kind(node, here):
        before = digest(node)
        for mode in MODES:
            for words in ((), ("--destroy-data", "/dev/loop"), ("--destroy-data", f"{node}p1")):
                code, said = attempt(node, mode, here, *words)
                assert code == 3, (mode, said)
                assert words or (why in said and f"--destroy-data {node}" in said)
                assert digest(node) == before, mode
        code, said = attempt(node, "randwrite", here, "--destroy-data", node)
        assert code == 0, said
        assert digest(node) != before


@pytest.mark.parametrize("used_first", [True, False])
def test_of_two_devices_none_is_written_if_one_is_in_use(used_first: bool, here: Path) -> None:
    with (
        loop(here / "first.img") as node,
        loop(here / "free.img") as free,
        mounted_partition(node, here),
    ):
        before = digest(node), digest(free)
        both = (node, free) if used_first else (free, node)
        words = [word for one in both for word in ("--destroy-data", one)]
        for mode in MODES:
            code, said = attempt(both[0], mode, here, both[1], *words)
            assert code == 3 and "in use" in said, (mode, said)
            assert (digest(node), digest(free)) == before, mode


def test_each_of_two_devices_needs_the_word(here: Path) -> None:
    with loop(here / "first.img") as first, loop(here / "second.img") as second:
        before = digest(first), digest(second)
        for words in ((), ("--destroy-data", first), ("--destroy-data", second)):
            code, said = attempt(first, "write", here, second, *words)
            assert code == 3, (words, said)
            assert (digest(first), digest(second)) == before, words
        words = ("--destroy-data", second, "--destroy-data", first)
        code, said = attempt(first, "write", here, second, *words)
        assert code == 0, said
        assert digest(first) != before[0] and digest(second) != before[1]
