"""The kernel keeps fio from writing anywhere else, whatever it tries (Landlock)."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from iopstui.sources.fio_guard import landlock_abi
from iopstui.sources.fio_process import FioProcess, abandoned_directories, private_directory

pytestmark = pytest.mark.skipif(landlock_abi() == 0, reason="this kernel has no Landlock")

TRY = """
import os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        print("wrote", path)
    except OSError as error:
        print("denied", path, error.strerror)
"""


def attempt(tmp_path: Path, paths: list[Path], grants: list[str]) -> dict[str, str]:
    private = private_directory()
    command = [sys.executable, "-c", TRY, *map(str, paths)]
    process = FioProcess(command, private, tmp_path / "scratch", grants=grants)
    over = False
    while not over:
        over = any(one.word in ("over", "gone") for one in process.read_guard())
        time.sleep(0.01)
    said = process.messages()
    process.close()
    assert not private.exists()
    return {line.split()[1]: line.split()[0] for line in said if len(line.split()) > 1}


def test_only_what_is_granted_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "made").mkdir()
    for name in ("granted", "other"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    info, place = (tmp_path / "granted").stat(), (tmp_path / "made").stat()
    grants = [
        f"w:{info.st_dev}:{info.st_ino}:{tmp_path / 'granted'}",
        f"d:{place.st_dev}:{place.st_ino}:{tmp_path / 'made'}",
    ]
    names = ["granted", "other", "link", "new", "made/new", "scratch/new"]
    answers = attempt(tmp_path, [tmp_path / name for name in names], grants)
    assert [answers[str(tmp_path / name)] for name in names] == [
        "wrote", "denied", "denied", "denied", "wrote", "wrote",
    ]  # fmt: skip


def test_another_file_in_the_place_of_the_granted_one(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    file = tmp_path / "f"
    file.write_text("x")
    info = file.stat()
    file.rename(tmp_path / "kept")
    file.write_text("another")
    answers = attempt(tmp_path, [file], [f"w:{info.st_dev}:{info.st_ino}:{file}"])
    assert str(file) not in answers
    assert file.read_text() == "another"


def test_private_directories_of_the_living_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own = private_directory()
    dead = tmp_path / f"iopstui-{os.getpid()}-1-abc"
    dead.mkdir()
    (tmp_path / "iopstui-abc").mkdir()
    (tmp_path / "iopstui-1-2-link").symlink_to(own)
    found = [path for path in abandoned_directories() if path.parent == tmp_path]
    assert found == [dead]
