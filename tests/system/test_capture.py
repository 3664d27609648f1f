"""`iopstui capture` as a user starts it, where nothing can be captured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from program import iopstui


@pytest.mark.parametrize(
    ("args", "says"),
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
def test_wrong_command_lines(tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    for name in ("here.fio", "other.closed.fio"):
        (tmp_path / name).write_text("mine")
    result = iopstui("capture", *args, cwd=tmp_path)
    assert result.returncode == 2 and says in result.stderr and not result.stdout
    assert sorted(os.listdir(tmp_path)) == ["here.fio", "other.closed.fio"]
    assert (tmp_path / "here.fio").read_text() == "mine"


def test_a_path_on_no_disk_cannot_be_captured(tmp_path: Path) -> None:
    result = iopstui("capture", "/proc", cwd=tmp_path)
    assert result.returncode == 2 and "Nothing to watch at /proc" in result.stderr
