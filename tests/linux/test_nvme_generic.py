"""Which namespace a generic character device belongs to, and the reverse."""

from __future__ import annotations

from pathlib import Path

import pytest
from hardware import multipath_head, nvme_disk, scsi_disk
from trees import Tree

from iopstui.errors import UsageError
from iopstui.linux.devices import target as targets
from iopstui.linux.devices.aliases import (
    generic_number,
    generic_of,
    namespace_of,
    namespaces_of_node,
)
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.devices.usage.openers import writers


def generic(tree: Tree, disk: Path, number: str) -> Path:
    """The generic device beside a block device, as in Linux 6.12."""
    name = disk.name.replace("nvme", "ng")
    place = disk.parent / name
    tree.attributes(place, dev=number)
    for link in (f"class/nvme-generic/{name}", f"dev/char/{number}"):
        (tree.roots.sys / link).parent.mkdir(parents=True, exist_ok=True)
        (tree.roots.sys / link).symlink_to(place)
    (tree.roots.dev / name).write_bytes(b"")
    return place


@pytest.mark.parametrize("make", [nvme_disk, multipath_head])
def test_a_namespace_and_its_generic_device_find_each_other(tree: Tree, make: object) -> None:
    disk = make(tree)  # type: ignore[operator]
    name = disk.name.replace("nvme", "ng")
    generic(tree, disk, "237:4")
    assert namespace_of(tree.roots, 237, 4) == disk.name
    assert generic_of(tree.roots, disk.name) == str(tree.roots.dev / name)
    assert generic_number(tree.roots, disk.name) == (237, 4)


def test_what_has_no_generic_device(tree: Tree) -> None:
    disk = nvme_disk(tree)
    tree.partition(disk, 1, "259:9")
    scsi_disk(tree)
    for name in ("nvme0n1", "nvme0n1p1", "sda", "nvme0c0n1", "../nvme0n1", "gone", ""):
        assert generic_of(tree.roots, name) is generic_number(tree.roots, name) is None
    place = generic(tree, disk, "237:0")
    assert generic_of(tree.roots, "nvme0n1p1") is None, "a partition is no namespace"
    (tree.roots.dev / "ng0n1").unlink()
    assert generic_of(tree.roots, "nvme0n1") is None, "no node in this container"
    (place / "dev").write_text("no number\n")
    assert generic_number(tree.roots, "nvme0n1") is None
    assert namespace_of(tree.roots, 1, 3) is None


def test_a_device_of_another_controller_with_that_name_is_not_taken_for_it(tree: Tree) -> None:
    disk, other = nvme_disk(tree), nvme_disk(tree, 1)
    place = generic(tree, disk, "237:0")
    place.rename(other.parent / "ng0n1")
    for link in ("class/nvme-generic/ng0n1", "dev/char/237:0"):
        (tree.roots.sys / link).unlink()
        (tree.roots.sys / link).symlink_to(other.parent / "ng0n1")
    assert namespace_of(tree.roots, 237, 0) is None
    assert generic_of(tree.roots, "nvme0n1") is None


def test_it_is_a_target_whose_device_is_the_namespace(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvme_disk(tree)
    devices = read_devices(tree.roots)
    monkeypatch.setattr(targets, "namespace_of", lambda *_: "nvme0n1")
    found = resolve_target("/dev/null", Path("/"), tree.roots, devices)
    assert (found.kind, found.path, found.device) == ("device", "/dev/null", "nvme0n1")
    assert found.passthrough and found.tree == ("nvme0n1",) and found.on_nvme
    for name in ("nvme7n1", None):
        monkeypatch.setattr(targets, "namespace_of", lambda *_, name=name: name)
        with pytest.raises(UsageError, match="character device"):
            resolve_target("/dev/null", Path("/"), tree.roots, devices)


def test_a_program_that_sends_it_commands_uses_the_namespace(tree: Tree) -> None:
    tree.proc("9/comm", "spdk\n")
    tree.proc("9/fdinfo/3", "pos:\t0\nflags:\t0100002\n")
    (tree.roots.proc / "9/fd").mkdir()
    (tree.roots.proc / "9/fd/3").symlink_to("/dev/zero")
    # the number of /dev/zero on Linux (Documentation/admin-guide/devices.txt)
    assert writers([], tree.roots, characters=[(1, 5)]) == ("spdk (pid 9) has it open for writing",)
    assert writers([], tree.roots, numbers=[(1, 5)]) == ()


def test_who_names_a_controller_is_told_its_namespaces(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = nvme_disk(tree)
    head = multipath_head(tree)
    (tree.roots.sys / "class/nvme").mkdir()
    for number in (0, 1):
        place = tree.roots.sys / f"class/nvme/nvme{number}"
        place.mkdir()
        (place / "subsystem").symlink_to(head.parent if number else tree.roots.proc)
        if not number:
            (place / disk.name).symlink_to(disk)
    generic(tree, disk, "237:0")
    assert namespaces_of_node(tree.roots, "/dev/nvme0") == ("nvme0n1",)
    assert namespaces_of_node(tree.roots, "/dev/nvme1") == ("nvme1n1",)
    assert namespaces_of_node(tree.roots, "/dev/ng0n1") == ("nvme0n1",)
    for name in ("/dev/nvme7", "/dev/ng7n1", "/dev/nvme0n1", "/dev/sda", "", "/dev/nvme0x"):
        assert namespaces_of_node(tree.roots, name) == ()
    monkeypatch.setattr(targets, "namespaces_of_node", lambda *_: ("nvme0n1", "nvme0n2"))
    with pytest.raises(UsageError) as caught:
        resolve_target("/dev/null", Path("/"), tree.roots, {})
    assert caught.value.hint == "Name a namespace of it: /dev/nvme0n1, /dev/nvme0n2"
