"""Private directories: no other user can redirect what is made in them."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iopstui.errors import Missing
from iopstui.fio import process as fio_process
from iopstui.linux.process import private, processes

UID = os.geteuid()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only directories to choose from are below this one."""
    for name in ("runtime", "shm", "tmp"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setattr(private, "SHARED_MEMORY", str(tmp_path / "shm"))
    monkeypatch.setattr(private, "temporary_directory", lambda: str(tmp_path / "tmp"))
    yield tmp_path
    private.remove_all()


def where(here: Path) -> str:
    made = private.private_directory()
    info = made.lstat()
    assert stat.S_ISDIR(info.st_mode) and info.st_uid == UID and not info.st_mode & 0o077
    name = str(made.parent.relative_to(here))
    private.remove(made)
    assert not made.exists()
    return name


def owned_by(monkeypatch: pytest.MonkeyPatch, path: Path, uid: int) -> None:
    """Make ``path`` look as if another user owned it."""
    real_lstat, real_stat = os.lstat, Path.stat

    def told(info: os.stat_result) -> os.stat_result:
        words = list(info)
        words[4] = uid
        return os.stat_result(words)

    def lstat(one: Any, **more: Any) -> os.stat_result:
        info = real_lstat(one, **more)
        return told(info) if str(one) == str(path) else info

    def stat_(one: Path, **more: Any) -> os.stat_result:
        info = real_stat(one, **more)
        return told(info) if one == path else info

    monkeypatch.setattr(os, "lstat", lstat)
    monkeypatch.setattr(Path, "stat", stat_)


def test_the_runtime_directory_is_the_first_choice(here: Path) -> None:
    assert where(here) == "runtime"


def test_the_old_name_is_the_same_function() -> None:
    assert fio_process.private_directory is private.private_directory


@pytest.mark.parametrize("value", ["", "runtime", "./runtime", "/nonexistent/x", "/dev/null"])
def test_a_runtime_directory_that_is_none_is_passed_over(
    value: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    assert where(here) == "shm"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o750, 0o701])
def test_one_that_others_can_enter_is_passed_over(mode: int, here: Path) -> None:
    (here / "runtime").chmod(mode)
    assert where(here) == "shm"


def test_a_link_is_passed_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "link").symlink_to(here / "runtime")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(here / "link"))
    assert where(here) == "shm"


def test_another_user_s_is_passed_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owned_by(monkeypatch, here / "runtime", UID + 4711)
    assert where(here) == "shm"


def test_one_below_another_user_s_is_passed_over(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = here / "home"
    (home / "runtime").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "runtime"))
    assert where(here) == "home/runtime"
    owned_by(monkeypatch, home, UID + 4711)
    assert where(here) == "shm"


def test_shared_memory_is_everybody_s_but_sticky(here: Path) -> None:
    (here / "runtime").rmdir()
    (here / "shm").chmod(0o1777)
    assert where(here) == "shm"
    (here / "shm").chmod(0o777)
    assert where(here) == "tmp"


def test_a_full_place_is_passed_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs

    def full(path: Any) -> os.statvfs_result:
        words = list(real(path))
        if str(path) == str(here / "runtime"):
            words[4] = 0
        return os.statvfs_result(words)

    monkeypatch.setattr(os, "statvfs", full)
    assert where(here) == "shm"


def test_without_any_temporary_directory_memory_is_enough(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(private, "temporary_directory", none)
    (here / "runtime").chmod(0o755)
    assert where(here) == "shm"
    assert private.abandoned_directories() == []


def test_no_place_at_all_is_told_in_a_sentence(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runtime", "shm", "tmp"):
        (here / name).rmdir()
    with pytest.raises(
        Missing, match=r"No usable directory for iopstui's own files.*shm \(No such file"
    ):
        private.private_directory()


def test_a_link_in_it_is_never_followed(here: Path) -> None:
    made = private.private_directory()
    victim = here / "victim"
    victim.write_text("mine")
    (made / "job.fio").symlink_to(victim)
    (made / "stdout").symlink_to(victim)
    assert private.write(made, "job.fio", b"[job]").read_bytes() == b"[job]"
    assert victim.read_text() == "mine"
    with pytest.raises(OSError, match="symbolic link"):
        private.open_private_file(made, "stdout")


def test_a_directory_put_in_its_place_is_not_used(here: Path) -> None:
    made = private.private_directory()
    made.rename(here / "away")
    (here / "trap").mkdir()
    made.symlink_to(here / "trap")
    private.write(made, "job.fio", b"x")
    assert list((here / "trap").iterdir()) == []
    assert (here / "away/job.fio").read_bytes() == b"x"


def test_one_made_by_somebody_else_is_checked_before_it_is_used(here: Path) -> None:
    (here / "open").mkdir(mode=0o755)
    with pytest.raises(Missing, match="belongs to another user or is open to others"):
        private.write(here / "open", "job.fio", b"x")


def test_what_is_no_file_is_not_read(here: Path) -> None:
    made = private.private_directory()
    os.mkfifo(made / "stdout")
    with pytest.raises(OSError, match="not a file"):
        private.open_private_file(made, "stdout")


def test_no_room_is_told_in_a_sentence(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = private.private_directory()

    def full(*words: Any, **more: Any) -> int:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    monkeypatch.setattr(private, "create", full)
    with pytest.raises(Missing, match="Cannot write iopstui's own files") as told:
        private.write(made, "job.fio", b"x")
    assert "ulimit -f" in told.value.hint


def test_abandoned_ones_are_found_and_those_in_use_are_not(here: Path) -> None:
    private.private_directory()
    dead = here / "shm" / "iopstui-1-1-dead"
    strange = here / "shm" / "iopstui-1-1-locked"
    for one in (dead, strange, here / "shm" / "iopstui-else", here / "shm" / "iopstui-x-1-a",
                here / "shm" / "1-1-another"):  # fmt: skip
        one.mkdir()
    # like a directory of another container, whose process number means nothing here
    fd = os.open(strange, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert private.abandoned_directories() == [dead]
    os.close(fd)
    assert set(private.abandoned_directories()) == {dead, strange}


def test_one_whose_process_runs_is_not_abandoned_though_nobody_holds_it(here: Path) -> None:
    pid = os.getpid()
    (here / "shm" / f"iopstui-{pid}-{processes.start_time(pid)}-a").mkdir()
    gone = here / "shm" / f"iopstui-{pid}-7-a"  # another process had the number before
    gone.mkdir()
    assert private.abandoned_directories() == [gone]


@pytest.mark.parametrize(("users", "trusted"), [(0xFFFFFFFF, False), (0xFFFFFFFE, True), (1, True)])
def test_a_stranger_is_only_trusted_where_root_is_one(
    monkeypatch: pytest.MonkeyPatch, users: int, trusted: bool
) -> None:
    """user_namespaces(7): outside of all user namespaces, the map has all users."""
    texts = {"/proc/self/uid_map": f"  0  0  {users}\n", "/proc/sys/kernel/overflowuid": "65534\n"}
    monkeypatch.setattr(Path, "read_text", lambda path: texts[str(path)])
    assert private._trusted_uids() == {0, os.geteuid()} | ({65534} if trusted else set())
