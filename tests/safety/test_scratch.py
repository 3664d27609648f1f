"""Where a scratch file can't be made, and what is left of a scratch file."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from trees import Tree

from iopstui.errors import UsageError
from iopstui.linux.devices.usage.mounts import MountEntry
from iopstui.safety import journal, leftovers, scratch, tunables
from iopstui.safety.leftovers import clean_up, clean_up_and_report
from iopstui.safety.scratch import (
    Scratch,
    make_scratch,
    make_scratches,
    usable_bytes,
    usable_bytes_for_all,
)

ANOTHER = "Choose a directory you can write to, or a block device: iopstui run TARGET ..."


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "machine").mkdir()
    return Tree(tmp_path / "machine")


def test_a_place_that_takes_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        make_scratch(tmp_path / "none")
    told = f"Cannot create a scratch file in {tmp_path}/none: No such file or directory."
    assert (caught.value.message, caught.value.hint) == (told, ANOTHER)
    with pytest.raises(UsageError) as caught:
        usable_bytes(tmp_path / "none")
    told = f"Cannot determine the free space of {tmp_path}/none: No such file or directory."
    assert (caught.value.message, caught.value.hint) == (told, ANOTHER)


def test_none_is_left_where_one_of_several_can_t_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    with pytest.raises(UsageError):
        make_scratches([one, two])
    assert list(one.iterdir()) == []
    two.mkdir()

    def no_links(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", no_links)
    with pytest.raises(UsageError, match=r"^Cannot create a link in .*one/.iopstui-.*: Operation"):
        make_scratches([one, two])
    assert list(one.iterdir()) == list(two.iterdir()) == []


def test_one_in_each_directory_with_links_to_all(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
    alone = make_scratches(places[:1])
    assert alone.paths == (alone.path,) and alone.parts == ()
    alone.close()
    made = make_scratches(places)
    assert [path.parent for path in made.paths] == places and made.path == made.paths[0]
    assert [os.readlink(made.path / str(n)) for n in range(2)] == [str(p) for p in made.paths]
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in made.paths)
    for path in made.paths:
        (path / "data").write_bytes(b"x" * 100_000)
    blocks = sum((path / "data").stat().st_blocks for path in made.paths)
    links = sum((made.path / str(n)).lstat().st_blocks for n in range(2))
    assert blocks and made.used_bytes() <= (blocks + links) * 512
    assert made.used_bytes() >= blocks * 512
    made.close()
    made.close()
    assert [list(place.iterdir()) for place in places] == [[], []]


def test_a_directory_above_that_was_renamed(tmp_path: Path) -> None:
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    made = make_scratch(place)
    (made.path / "data").write_text("x")
    place.rename(other)
    made.close()
    assert list(other.iterdir()) == []


@contextmanager
def no_more_files() -> Iterator[None]:
    """As if ulimit -n is used up; only descriptors closed within the block may be opened again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    # higher than all open descriptors, so that a closed one is below the limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_it_is_removed_where_no_more_files_may_be_open(tmp_path: Path) -> None:
    made = make_scratch(tmp_path)
    (made.path / "file").touch()
    with no_more_files():
        made.close()
    assert list(tmp_path.iterdir()) == []


def test_none_is_left_where_it_can_be_made_and_not_opened(tmp_path: Path) -> None:
    with no_more_files(), pytest.raises(UsageError, match="Too many open files") as caught:
        make_scratch(tmp_path)
    assert "ulimit -n" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_room_leaves_a_twentieth_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """statvfs(3): f_bavail is for ordinary users; f_bavail and f_blocks are in units of
    f_frsize."""
    for free, room in ((500, (500 - 50) * 4096), (50, 0), (51, 4096), (10, 0)):
        space = SimpleNamespace(f_bavail=free, f_frsize=4096, f_blocks=1000, f_bsize=1, f_bfree=9)
        monkeypatch.setattr(os, "statvfs", lambda path, space=space: space)
        assert usable_bytes(tmp_path) == room


@pytest.mark.parametrize("mib", [5, 20, 1000])
def test_the_largest_file_that_is_planned_does_not_end_its_run(
    mib: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = mib << 8

    def statvfs(path: object) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=free, f_frsize=4096, f_blocks=mib << 8)

    monkeypatch.setattr(os, "statvfs", statvfs)
    planned = usable_bytes_for_all([tmp_path])
    assert 0.92 * (mib << 20) < planned
    # plus a directory, its entries, and the file's indirect blocks
    free -= planned // 4096 + 4
    assert usable_bytes(tmp_path) > 0


def test_directories_of_one_file_system_share_its_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systems = {"a": 1, "b": 1, "c": 2}
    monkeypatch.setattr(scratch, "MIN_SPARE", 0)
    monkeypatch.setattr(scratch, "usable_bytes", lambda path: 30 * systems[path.name])
    stat = lambda path: SimpleNamespace(st_dev=systems[path.name])  # noqa: E731
    monkeypatch.setattr(scratch.os, "stat", stat)
    for names, room in (("a", 30), ("ab", 30), ("ac", 60), ("abc", 45), ("c", 60)):
        assert usable_bytes_for_all([tmp_path / name for name in names]) == room


def left(path: Path) -> None:
    """Write a note of a process that has ended."""
    note = journal.write_note("scratch", {"scratch": str(path)})
    text = note.path.read_text()
    note.path.write_text(text.replace(f'"pid": {os.getpid()}', '"pid": 4194303'))


def test_what_a_crash_left_is_removed_and_said(tree: Tree, tmp_path: Path) -> None:
    path, gone = tmp_path / ".iopstui-xxxxxxxx", tmp_path / ".iopstui-gonegone"
    path.mkdir()
    left(path)
    left(gone)
    lines: list[str] = []
    clean_up_and_report(lines.append, tree.roots)
    assert lines == [f"left by a crash: {path} is removed"]
    assert not path.exists() and clean_up(tree.roots) == ([], [])


@pytest.mark.parametrize(
    "name", ["precious", "x.iopstui-yyyyyyyy", "iopstui-xxxxxxxx", ".iopstui-important"]
)
def test_a_note_does_not_remove_what_is_none_of_ours(tree: Tree, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.mkdir()
    left(path)
    link = tmp_path / ".iopstui-linklink"
    link.symlink_to(path)
    left(link)
    file = tmp_path / ".iopstui-filefile"
    file.write_text("")
    left(file)
    assert clean_up(tree.roots) == ([], [])
    assert path.is_dir() and link.is_symlink() and file.exists()


def test_what_can_t_be_removed_is_said_with_the_command(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".iopstui-a b"
    path.mkdir()
    left(path)
    with monkeypatch.context() as patched:
        patched.setattr(scratch, "_remove", lambda path: None)
        for user, sudo in ((0, ""), (1000, "sudo ")):
            patched.setattr(leftovers.os, "geteuid", lambda user=user: user)
            patched.setattr(journal, "has_notes", lambda: True)
            patched.setattr(tunables, "restore_abandoned", lambda roots: (["d"], ["f"]))
            patched.setattr(scratch, "abandoned_scratches", lambda: iter([Scratch(path, None)]))
            command = f"{sudo}rm -r '{path}'"
            assert clean_up(tree.roots) == (["d"], ["f", f"cannot remove {path}: {command}"])


@pytest.mark.parametrize("below", ["", "/data"])
def test_what_somebody_has_mounted_there_stays(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    path = tmp_path / ".iopstui-xxxxxxxx"
    path.mkdir()
    (path / "file").write_text("precious")
    left(path)
    mount = MountEntry(8, 1, "/home", f"{path}{below}", "ext4", "/dev/sda1")
    with monkeypatch.context() as patched:
        patched.setattr(scratch, "read_own_mounts", lambda roots: (mount,))
        assert clean_up(tree.roots) == (
            [], [f"cannot remove {path}: {path}{below} is mounted there. Unmount it, then: "
                 "iopstui doctor"],
        )  # fmt: skip
        assert (path / "file").exists()
    assert clean_up(tree.roots)[0] == [f"{path} is removed"]


def test_what_is_on_a_dead_mount_stays_and_is_removed_later(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".iopstui-xxxxxxxx"
    path.mkdir()
    left(path)
    where = "/mnt (nfs4 of s:/e)"
    told = f"cannot remove {path}: {where} does not answer. When it does: iopstui doctor"
    with monkeypatch.context() as patched:
        mount = MountEntry(0, 50, "/", "/mnt", "nfs4", "s:/e")
        patched.setattr(scratch, "find_hung_mount", lambda path, roots: mount)
        patched.setattr(Path, "lstat", None)
        assert clean_up(tree.roots) == ([], [told])
        assert scratch.leftover_messages() == [], "told once"
        Scratch(path, None).close()
        assert scratch.leftover_messages() == [told]
    assert path.is_dir()
    assert clean_up(tree.roots) == ([f"{path} is removed"], [])
