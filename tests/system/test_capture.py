"""`iopstui capture` as a user starts it, where nothing can be captured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from program import iopstui


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--pid", "4194304"), "There is no process 4194304"),
        (("--cgroup", "."), "not the directory of a cgroup"),
        (("--cgroup", ""), "--cgroup needs"),
        (("--pid", "1", "--cgroup", "."), "not allowed with"),
        (("-o", "here.fio"), "here.fio exists"), (("-o", "other.fio"), "other.closed.fio exists"),
        (("-o", "none/x.fio"), "There is no directory none"),
        (("--check", "here.fio"), "is not a directory"),
        (("nowhere", "--for", "1s"), "nowhere"), (("--for", "soon"), "is not a time"),
    ],
)  # fmt: skip
def test_wrong_command_lines(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    for name in ("here.fio", "other.closed.fio"):
        (tmp_path / name).write_text("mine")
    done = iopstui("capture", *words, cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr and not done.stdout
    assert sorted(os.listdir(tmp_path)) == ["here.fio", "other.closed.fio"]
    assert (tmp_path / "here.fio").read_text() == "mine"


def test_what_is_on_no_disk_can_t_be_captured(tmp_path: Path) -> None:
    done = iopstui("capture", "/proc", cwd=tmp_path)
    assert done.returncode == 2 and "Nothing to watch at /proc" in done.stderr
