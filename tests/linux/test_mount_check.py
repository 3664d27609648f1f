"""The first access to a target, on file systems that do not answer."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.linux import shares
from iopstui.linux.devices.usage.mounts import parse_mountinfo
from iopstui.linux.kernel_files import Roots
from iopstui.linux.shares import (
    find_hung_mount,
    find_hung_paths,
    find_network_mount,
    mount_text,
    require_answer,
)

LIMIT_S = 0.1


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory: statvfs(2) never returns for paths in it."""
    dead = tmp_path / "dead"
    dead.mkdir()
    real = os.statvfs

    def statvfs(path: Path) -> os.statvfs_result:
        if path == dead or dead in path.parents:
            time.sleep(60)
        return real(path)

    monkeypatch.setattr(os, "statvfs", statvfs)
    return dead


def mounted(tmp_path: Path, *mounts: tuple[str, str, str]) -> Roots:
    """Roots whose mount table has these (mount point, type, source), and a disk on /."""
    lines = ["20 1 8:1 / / rw - ext4 /dev/sda1 rw"]
    for number, (where, kind, source) in enumerate(mounts):
        lines.append(f"{30 + number} 20 0:{40 + number} / {where} rw - {kind} {source} rw")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("\n".join(lines) + "\n")
    return Roots.under(tmp_path)


def test_a_server_that_does_not_answer_is_named_within_the_limit(
    hanging: Path, tmp_path: Path
) -> None:
    roots = mounted(tmp_path, (str(hanging), "nfs4", "server:/export"))
    began = time.monotonic()
    with pytest.raises(UsageError) as told:
        require_answer(hanging / "new/file", roots, LIMIT_S)
    assert time.monotonic() - began < 30
    assert told.value.message == (
        f"{hanging} (nfs4 of server:/export) does not answer within 0.1 s, so {hanging}/new/file "
        "can't be used."
    )
    assert told.value.hint.endswith(f"umount -f -l {hanging}")


def test_all_are_asked_at_once_and_an_error_is_an_answer(hanging: Path, tmp_path: Path) -> None:
    others = [tmp_path, tmp_path / "missing", Path("/proc/self/fd/99/x")]
    began = time.monotonic()
    assert find_hung_paths([hanging, *others, *[hanging] * 9], 3.0) == [hanging] * 10
    assert time.monotonic() - began < 27
    assert find_hung_paths([], LIMIT_S) == []


def test_the_process_that_asks_keeps_nothing_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)

    def statvfs(path: Path) -> None:
        (tmp_path / "open").write_text(" ".join(os.listdir("/proc/self/fd")))

    monkeypatch.setattr(os, "statvfs", statvfs)
    assert find_hung_paths([tmp_path], 30) == []
    # the pipe to its parent, the file that this test writes, and the listed directory
    assert len((tmp_path / "open").read_text().split()) <= 3
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_what_is_on_a_disk_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, hanging: Path, tmp_path: Path
) -> None:
    def fork() -> int:
        raise AssertionError

    monkeypatch.setattr(os, "fork", fork)
    roots = mounted(tmp_path, ("/mnt/nfs", "nfs", "server:/export"))
    require_answer(hanging, roots, LIMIT_S)
    assert find_hung_mount(Path("/mnt/nfs-2"), roots) is None


def test_links_lead_to_a_mount_that_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("there/share/below")
    (tmp_path / "there").symlink_to(tmp_path / "real")
    (tmp_path / "real/share/below").mkdir(parents=True)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "up").symlink_to("real/../../")
    share = f"1 0 0:50 / {tmp_path}/real/share rw - fuse.sshfs host:/home rw\n"
    mounts = parse_mountinfo("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + share)
    found = find_network_mount(tmp_path / "data/file", mounts)
    assert found is not None
    assert mount_text(found) == f"{tmp_path}/real/share (fuse.sshfs of host:/home)"
    assert find_network_mount(tmp_path / "up" / tmp_path.name / "./data", mounts) == found
    for local in ("loop/x", "real", "up", "missing/file"):
        assert find_network_mount(tmp_path / local, mounts) is None, local
    # a mount on top hides it
    hidden = [*mounts, *parse_mountinfo(share.replace("fuse.sshfs", "tmpfs"))]
    assert find_network_mount(tmp_path / "data", hidden) is None


def test_a_source_that_says_nothing_is_left_out(tmp_path: Path) -> None:
    (one,) = parse_mountinfo("1 0 0:50 / /a\\040b rw - fuse none rw\n")
    assert mount_text(one) == "/a b (fuse)"
    assert shares.is_network_mount(one)
