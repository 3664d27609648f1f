"""Devices that this machine serves to itself: the files and devices behind them may be in use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trees import VIRTUAL, Tree

from iopstui.linux.devices.signatures import Signatures
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.usage import openers
from iopstui.safety import refusals
from iopstui.safety.refusals import write_reasons

PID = str(os.getpid() + 1)
UUID = "a6b5d0d4-0e3c-4c2e-9a63-3b6f7f3b0a11"
MOUNTED = "25 1 8:0 / /srv rw - ext4 /dev/sda rw\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A machine with sda, which a test may mount, and nbd0, which qemu-nbd serves."""
    monkeypatch.setattr(refusals, "_exclusive_open_errors", lambda *_: iter(()))
    monkeypatch.setattr(refusals, "read_signatures", lambda path: Signatures())
    (tmp_path / "machine").mkdir()
    made = Tree(tmp_path / "machine")
    made.disk("sda", VIRTUAL, "8:0")
    made.disk("nbd0", VIRTUAL, "43:0", pid=PID)
    made.proc(f"{PID}/comm", "qemu-nbd\n")
    return made


def opened(tree: Tree, *paths: str) -> None:
    for number, path in enumerate(paths, 3):
        tree.proc(f"{PID}/fdinfo/{number}", "flags:\t0100002\nmnt_id:\t41\n")
        (tree.roots.proc / PID / "fd").mkdir(exist_ok=True)
        (tree.roots.proc / PID / f"fd/{number}").symlink_to(path)


def reasons(tree: Tree, name: str) -> tuple[str, ...]:
    return write_reasons(name, read_devices(tree.roots), tree.roots).in_use


def test_the_program_that_serves_an_nbd_device_is_no_other_program(tree: Tree) -> None:
    opened(tree, "/dev/nbd0")
    assert reasons(tree, "nbd0") == ()
    tree.sys("class/block/nbd0/pid", str(int(PID) + 1))
    assert any("qemu-nbd" in why for why in reasons(tree, "nbd0"))


def test_a_file_that_an_nbd_device_is_made_of(tree: Tree, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_text("")
    opened(tree, str(image), "/dev/nbd0")
    assert reasons(tree, "nbd0") == ()
    tree.disk("loop0", VIRTUAL, "7:0", loop__backing_file=str(image))
    assert reasons(tree, "nbd0") == (f"nbd0 is made of {image}: loop0 uses it",)


def test_a_partition_of_it(tree: Tree, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_text("")
    opened(tree, str(image), "/dev/nbd0")
    tree.partition(tree.roots.sys / VIRTUAL / "nbd0", 1, "43:1")
    tree.proc("swaps", f"Filename Type\n{image} file 1 0 -2\n")
    assert reasons(tree, "nbd0p1") == (f"nbd0 is made of {image}: it is used as swap",)


def test_a_device_that_nvmet_exports_and_that_is_mounted(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = "kernel/config/nvmet/subsystems/one/namespaces/1"
    for name, text in (("device_path", "/dev/sda"), ("enable", "1"), ("device_uuid", UUID)):
        tree.sys(f"{space}/{name}", f"{text}\n")
    tree.disk("nvme1n1", VIRTUAL, "259:1", uuid=UUID)
    node = os.stat_result((0o60600, 1, 0, 1, 0, 0, 0, 0, 0, 0), {"st_rdev": os.makedev(8, 0)})
    monkeypatch.setattr(openers, "_stat", lambda path: node)
    assert reasons(tree, "nvme1n1") == ()
    tree.proc("self/mountinfo", MOUNTED)
    (why,) = reasons(tree, "nvme1n1")
    assert why.startswith("nvme1n1 is made of /dev/sda: sda is mounted at /srv")


def test_what_is_exported_and_gone(tree: Tree) -> None:
    space = "kernel/config/nvmet/subsystems/one/namespaces/1"
    for name, text in (("device_path", "/dev/none"), ("enable", "1"), ("device_uuid", UUID)):
        tree.sys(f"{space}/{name}", f"{text}\n")
    tree.disk("nvme1n1", VIRTUAL, "259:1", uuid=UUID)
    opened(tree, "/none", "/dev/nbd0")
    assert reasons(tree, "nvme1n1") == reasons(tree, "nbd0") == ()


def test_a_process_that_only_has_its_number(tree: Tree, tmp_path: Path) -> None:
    """In a container, the kernel's process number belongs to another process."""
    image = tmp_path / "image"
    image.write_text("")
    tree.proc("swaps", f"Filename Type\n{image} file 1 0 -2\n")
    opened(tree, str(image))
    assert reasons(tree, "nbd0") == ()


def test_a_file_on_a_server_is_not_looked_at(tree: Tree, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_text("")
    tree.proc("swaps", f"Filename Type\n{image} file 1 0 -2\n")
    opened(tree, str(image), "/dev/nbd0")
    assert reasons(tree, "nbd0")
    tree.proc(f"{PID}/mountinfo", f"41 1 0:40 / {tmp_path} rw - nfs4 server:/srv rw\n")
    assert reasons(tree, "nbd0") == ()


def test_the_thread_that_serves_it_is_of_the_program_that_has_it_open(
    tree: Tree, tmp_path: Path
) -> None:
    """The kernel's number is that of a thread, which a listing of /proc does not show."""
    image = tmp_path / "image"
    image.write_text("")
    opened(tree, str(image), "/dev/nbd0")
    thread = str(int(PID) + 7)
    tree.sys("class/block/nbd0/pid", f"{thread}\n")
    assert any("qemu-nbd" in why for why in reasons(tree, "nbd0"))
    tree.proc(f"{thread}/status", f"Name:\tqemu-nbd\nTgid:\t{PID}\nPid:\t{thread}\n")
    (tree.roots.proc / thread / "fd").symlink_to(tree.roots.proc / PID / "fd")
    assert reasons(tree, "nbd0") == ()
    tree.proc("swaps", f"Filename Type\n{image} file 1 0 -2\n")
    assert reasons(tree, "nbd0") == (f"nbd0 is made of {image}: it is used as swap",)
