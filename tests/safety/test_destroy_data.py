"""--destroy-data applies to the file or device that had the name when the option was read."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from iopstui.errors import Refused
from iopstui.fio.inspect import JobFacts, SectionFiles
from iopstui.linux.kernel_files import Roots
from iopstui.safety.refusals import DestroyPath, bind_paths
from iopstui.safety.write_guard import CheckedJob, WriteGuard


def disk(major: int, minor: int) -> os.stat_result:
    found = SimpleNamespace(st_mode=0o060600, st_rdev=os.makedev(major, minor))
    return cast("os.stat_result", found)


def test_a_device_is_its_number() -> None:
    word = DestroyPath("/dev/link", "/dev/sda", number=(8, 0), diskseq=4)
    assert word.matches("/srv/node", disk(8, 0)) and word.matches("/dev/sda", disk(8, 0), 4)
    assert not word.matches("/dev/sda", disk(8, 16)), "the name is another disk's now"
    assert not word.matches("/dev/sda", disk(8, 0), 5), "another disk has that number now"
    assert not DestroyPath("sda", "/dev/sda", number=(8, 0)).matches("/dev/sda", disk(8, 0))


def test_a_file_is_its_inode(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    (word,) = bind_paths([str(file)])
    assert word.matches(str(file), file.stat())
    kept = file.rename(tmp_path / "kept")
    file.write_text("another one")
    assert bind_paths([str(file)]) == (word,), "read once"
    assert not word.matches(str(file), file.stat())
    assert word.matches(str(kept), kept.stat())


def test_what_is_not_there_yet_goes_by_its_path(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    (word,) = bind_paths([str(tmp_path / "link/new")])
    assert not word.existed
    (real / "new").write_text("")
    assert word.matches(str(real / "new"), (real / "new").stat())
    other = tmp_path / "other"
    other.write_text("")
    assert not word.matches(str(other), other.stat())
    assert not bind_paths(["/a\0b"])[0].existed


def test_a_link_that_flips_after_its_name_was_repeated(tmp_path: Path) -> None:
    one, two, link = tmp_path / "one", tmp_path / "two", tmp_path / "link"
    for file in (one, two):
        file.write_text("precious")
    link.symlink_to(one)
    facts = JobFacts((SectionFiles("a", (str(link),)),), True, ())
    guard = WriteGuard(CheckedJob(facts, (str(link),), tmp_path), (str(link),), Roots())
    guard.check({})
    link.unlink()
    link.symlink_to(two)
    for step in (guard.check, guard.engage):
        with pytest.raises(Refused, match="it is not the file or device that --destroy-data named"):
            step({})
    assert guard.writes == ()


def test_a_file_that_is_replaced_between_two_looks(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    facts = JobFacts((SectionFiles("a", (str(file),)),), True, ())
    guard = WriteGuard(CheckedJob(facts, (str(file),), tmp_path), (str(file),), Roots())
    guard.check({})
    os.rename(file, tmp_path / "kept")
    file.write_text("another one")
    with pytest.raises(Refused, match="was replaced by another file"):
        guard.engage({})
    assert guard.writes == ()
