"""Finding programs and making directories as the standard library does."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from iopstui.linux.process import programs


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two directories: in the first ``tool`` can't be executed, ``folder`` is a directory."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "first/folder").mkdir()
    (tmp_path / "second/tool").chmod(0o755)
    found = os.pathsep.join([str(tmp_path / "first"), str(tmp_path / "second"), "nowhere"])
    monkeypatch.setenv("PATH", found)
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize(
    "name", ["tool", "folder", "absent", "second/tool", "./second/tool", "first/tool", "second", ""]
)
def test_a_program_is_found_where_a_shell_finds_it(path: str, name: str) -> None:
    assert programs.which(name) == shutil.which(name)
    assert programs.which(name, path) == shutil.which(name, path=path)


def test_what_is_no_regular_file_is_no_program(path: str, tmp_path: Path) -> None:
    """A FIFO may be executable, but opening it to look inside would wait for ever."""
    os.mkfifo(tmp_path / "first/pipe", 0o755)
    assert programs.which("pipe") is programs.which("first/pipe") is None
    (tmp_path / "second/pipe").symlink_to(tmp_path / "second/tool")
    assert programs.which("pipe") == str(tmp_path / "second/pipe")


def test_a_path_of_its_own_is_searched_instead(path: str, tmp_path: Path) -> None:
    assert programs.which("tool", str(tmp_path / "second")) == str(tmp_path / "second/tool")
    assert programs.which("tool", str(tmp_path / "first")) is None
    assert programs.which("tool", "") is None


def test_without_a_path_it_is_the_system_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    assert programs.which("sh") == shutil.which("sh") is not None


def test_a_new_directory_is_for_this_user_alone(tmp_path: Path) -> None:
    made = {programs.new_directory(tmp_path, "here-") for _ in range(20)}
    assert len(made) == 20
    for one in made:
        assert one.parent == tmp_path and one.name.startswith("here-")
        assert stat.S_IMODE(one.stat().st_mode) == 0o700


def test_a_name_that_is_taken_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x-00000000").symlink_to("elsewhere")
    chances = iter([bytes(4), b"\1\2\3\4"])
    monkeypatch.setattr(os, "urandom", lambda count: next(chances))
    assert programs.new_directory(tmp_path, "x-").name == "x-01020304"


def test_where_no_directory_can_be_made_the_error_says_why(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        programs.new_directory(tmp_path / "absent", "x-")


def test_temporary_files_go_where_python_puts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    assert programs.temporary_directory() == tempfile.gettempdir() == str(tmp_path)
