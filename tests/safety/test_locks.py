"""Messages about who holds a lock, and which right is missing."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from trees import VIRTUAL, Tree

from iopstui.errors import Missing, Refused
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.limits import how_to_open
from iopstui.safety import locks
from iopstui.safety.locks import lock, lock_holder, lock_node, require_rights


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "machine").mkdir()
    return Tree(tmp_path / "machine")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock advances only by sleeping. Returns the times slept."""
    slept: list[float] = []
    monkeypatch.setattr(locks.time, "sleep", slept.append)
    monkeypatch.setattr(locks.time, "monotonic", lambda: sum(slept))
    return slept


def line(fd: int, kind: str = "FLOCK", pid: int = 77) -> str:
    info = os.fstat(fd)
    number = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    return f"1: {kind}  ADVISORY  WRITE {pid} {number} 0 EOF\n"


def test_the_process_that_has_locked_it(tree: Tree, file: int) -> None:
    """proc_locks(5)"""
    other = "another program has locked it"
    assert lock_holder(file, tree.roots) == other, "the list can't be read"
    tree.proc(
        "locks", "1: FLOCK\n" + line(file, "POSIX") + "2: FLOCK  ADVISORY  WRITE 9 0:0:0 0 EOF"
    )
    assert lock_holder(file, tree.roots) == other
    tree.proc("locks", "1: FLOCK\n" + line(file))
    ended = "a job left by an earlier iopstui is being stopped"
    assert lock_holder(file, tree.roots) == ended
    tree.proc("77/comm", "dd\x1b\n")
    tree.proc("77/cmdline", "dd\0if=iopstui\0of=/my/iopstui-copy/x\0")
    assert lock_holder(file, tree.roots) == "dd? (pid 77) has locked it"
    for command in ("/usr/bin/iopstui\0run\0", "python3\0/home/me/iopstui.pyz\0"):
        tree.proc("77/cmdline", command)
        assert lock_holder(file, tree.roots) == "another iopstui (pid 77) runs one on it"


def test_a_lock_that_somebody_has_is_waited_for_a_second(
    tree: Tree, tmp_path: Path, patience: list[float]
) -> None:
    """udev locks a disk for a moment while it looks at it."""
    path = tmp_path / "f"
    path.write_text("")
    first = lock(str(path), tree.roots)
    with pytest.raises(Refused) as caught:
        lock(str(path), tree.roots)
    assert caught.value.message == (
        f"Cannot start a second job on {path}: another program has locked it."
    )
    assert caught.value.hint == (
        "Two jobs at once would disturb each other. Wait, or watch without a job: "
        f"iopstui live {path}"
    )
    assert 1.0 <= sum(patience) < 1.2 and max(patience) < 0.1
    os.close(first)
    os.close(lock(str(path), tree.roots))


def test_partitions_share_their_disk(tree: Tree, tmp_path: Path, patience: list[float]) -> None:
    path = tmp_path / "f"
    path.write_text("")
    held = [lock(str(path), tree.roots, shared=True) for _ in range(2)]
    with pytest.raises(Refused):
        lock(str(path), tree.roots)
    for fd in held:
        assert not os.get_inheritable(fd), "given to children by name alone"
        os.close(fd)


def test_what_is_locked_is_opened_without_waiting_or_harm(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe would wait for its writer, a terminal would become ours, and a child would inherit
    it."""
    opened: list[int] = []
    real = os.open

    def recorded(path: str, flags: int) -> int:
        opened.append(flags)
        return real(path, flags)

    with monkeypatch.context() as patch:
        patch.setattr(locks.os, "open", recorded)
        os.close(lock(str(tmp_path), tree.roots))
        require_rights(str(tmp_path), write=False)
    assert opened == [os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC] * 2


def test_where_no_locks_are_known_nothing_is_locked(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(fd: int, kind: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unknown)
    os.close(lock(str(tmp_path), tree.roots))


def test_which_right_is_missing(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "f")
    for look in (lambda: lock(path, tree.roots), lambda: require_rights(path, write=False)):
        with pytest.raises(Refused) as refused:
            look()
        told = f"Cannot open {path}: No such file or directory."
        assert (refused.value.message, refused.value.hint) == (told, "See: iopstui devices")
    Path(path).write_text("")
    require_rights(path, write=True)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    require_rights(path, write=False)
    says = f"The job needs permission to {{}} {path} (watching without a job works)."
    with pytest.raises(Missing) as missing:
        require_rights(path, write=True)
    hint = f"{how_to_open(path)}. Jobs in a directory work without it."
    assert (missing.value.message, missing.value.hint) == (says.format("write"), hint)

    def denied(*_: object) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    for look in (lambda: lock(path, tree.roots), lambda: require_rights(path, write=True)):
        # only for these lines: cleaning up opens the test's directory, too
        with monkeypatch.context() as patch, pytest.raises(Missing) as missing:
            patch.setattr(os, "open", denied)
            look()
        assert missing.value.message == says.format("read")


def test_a_device_without_a_node_is_locked_in_sysfs(tree: Tree, patience: list[float]) -> None:
    tree.disk("vdb", VIRTUAL, "254:16")
    device = read_devices(tree.roots)["vdb"]
    fd = lock_node(device, tree.roots)
    assert fd is not None
    assert os.readlink(f"/proc/self/fd/{fd}").endswith("/vdb/dev")
    (tree.roots.dev / "vdb").write_text("no node")
    with pytest.raises(Refused, match="Cannot start a second job on"):
        lock_node(device, tree.roots)
    assert sum(patience) > 1
    os.close(fd)
    (tree.roots.sys / "class/block/vdb/dev").unlink()
    assert lock_node(device, tree.roots) is None
