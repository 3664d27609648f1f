"""Which programs may write: descriptors of every thread, and mappings without descriptor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trees import Tree

from iopstui.linux.devices.usage.openers import MAPPED, OPEN, Writers, file_identity, writers

MAPS = "7f00-7f01 {perms} 00000000 00:06 {inode}                        {path}\n"
PID = str(os.getpid() + 1)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "machine").mkdir()
    made = Tree(tmp_path / "machine")
    made.proc(f"{PID}/comm", "qemu\n")
    return made


def opened(tree: Tree, path: str, flags: str = "0100002", where: str = "") -> None:
    tree.proc(f"{PID}/{where}fdinfo/3", f"flags:\t{flags}\nmnt_id:\t41\n")
    (tree.roots.proc / PID / where / "fd").mkdir(parents=True)
    (tree.roots.proc / PID / where / "fd/3").symlink_to(path)


def test_a_file_under_another_name(tree: Tree, tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_text("")
    os.link(file, other)
    opened(tree, str(other))
    found = Writers(tree.roots)
    assert found.of_file(str(file), {file_identity(file.stat())}) == (f"qemu (pid {PID}) {OPEN}",)
    assert found.of_file(str(file), {((0, 0), 1)}) == ()
    assert writers([], tree.roots, files={file_identity(file.stat())})


@pytest.mark.parametrize("flags", ["0100000", "010000002", "0100000000"])
def test_reading_and_o_path_write_nothing(tree: Tree, tmp_path: Path, flags: str) -> None:
    (tmp_path / "file").write_text("")
    opened(tree, str(tmp_path / "file"), flags)
    assert writers([str(tmp_path / "file")], tree.roots) == ()


def test_a_thread_that_has_descriptors_of_its_own(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    opened(tree, str(tmp_path / "file"), where=f"task/{int(PID) + 1}/")
    assert writers([str(tmp_path / "file")], tree.roots) == (f"qemu (pid {PID}) {OPEN}",)


@pytest.mark.parametrize(
    ("perms", "counts"), [("rw-s", True), ("-w-s", True), ("rwxs", True), ("rw-p", False),
                          ("r--s", False)],
)  # fmt: skip
def test_a_mapping_whose_descriptor_is_closed(
    tree: Tree, tmp_path: Path, perms: str, counts: bool
) -> None:
    file = tmp_path / "a file"
    file.write_text("")
    name = f"{file} (deleted)"
    tree.proc(f"{PID}/maps", MAPS.format(perms=perms, inode=file.stat().st_ino, path=name))
    expected = (f"qemu (pid {PID}) {MAPPED}",) if counts else ()
    # only root may follow map_files; without it, the name decides
    assert writers([str(file)], tree.roots) == expected
    (tree.roots.proc / PID / "map_files").mkdir()
    (tree.roots.proc / PID / "map_files/7f00-7f01").symlink_to(file)
    assert writers([], tree.roots, files={file_identity(file.stat())}) == expected


def test_a_mapping_on_a_server_is_known_by_name_alone(tree: Tree) -> None:
    tree.proc(f"{PID}/maps", MAPS.format(perms="rw-s", inode=5, path="/far/img"))
    tree.proc(f"{PID}/mountinfo", "41 1 0:50 / /far rw - nfs4 server:/far rw\n")
    found = Writers(tree.roots)
    assert found.of_file("/far/img", {((0, 50), 5)}) == (f"qemu (pid {PID}) {MAPPED}",)
    assert found.of_file("/far/other", {((0, 50), 6)}) == ()


def test_a_device_s_node_of_another_name(tree: Tree) -> None:
    """/dev/null is a character device: a block device of the same number is another device."""
    opened(tree, "/dev/null")
    assert writers([], tree.roots, {(1, 3)}) == ()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_kernel_s_nvme_target_writes_without_a_process(
    tree: Tree, tmp_path: Path, enabled: bool
) -> None:
    file = tmp_path / "disk.img"
    file.write_text("")
    (tmp_path / "link").symlink_to(file)
    for number, path in enumerate((tmp_path / "link", Path("/dev/gone"))):
        namespace = f"kernel/config/nvmet/subsystems/nqn.one/namespaces/{number}"
        tree.sys(f"{namespace}/device_path", f"{path}\n")
        tree.sys(f"{namespace}/enable", f"{int(enabled)}\n")
    expected = ("the kernel exports it over NVMe (nvmet, nqn.one)",) if enabled else ()
    found = Writers(tree.roots)
    assert found.of_file(str(file), {file_identity(file.stat())}) == expected
    assert found.of_device(["/dev/gone"], []) == expected
    assert found.of_device(["/dev/other"], []) == ()


def test_an_exported_file_on_a_server_is_known_by_name_alone(tree: Tree, tmp_path: Path) -> None:
    """The file's server may be gone, and then looking at the file would hang."""
    file = tmp_path / "disk.img"
    file.write_text("")
    tree.proc("self/mountinfo", f"41 1 0:40 / {tmp_path} rw - nfs4 server:/srv rw\n")
    namespace = "kernel/config/nvmet/subsystems/nqn.one/namespaces/1"
    tree.sys(f"{namespace}/device_path", f"{file}\n")
    tree.sys(f"{namespace}/enable", "1\n")
    found, files = Writers(tree.roots), {file_identity(file.stat())}
    assert found.of_file(str(file), files)
    assert found.of_device([], [], files) == ()
