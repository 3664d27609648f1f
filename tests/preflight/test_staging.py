"""New files of a job that names its own: where they are made, and where they are moved to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.fio.inspect import SectionFiles
from iopstui.fio.job_text import escape_path, join_paths, split_paths
from iopstui.model.fio import jobfile
from iopstui.preflight.staging import Staging
from iopstui.safety.scratch import make_scratch


def made(tmp_path: Path, text: str, *sections: tuple[str, ...]) -> Staging:
    files = [SectionFiles(str(index), paths) for index, paths in enumerate(sections)]
    return Staging(text, files, tmp_path)


def places(staging: Staging) -> list[str]:
    """The files or directories of the staged job, section by section."""
    return [job.options.get("filename") or job.options["directory"]
            for job in jobfile.effective_sections(staging.text)]  # fmt: skip


def test_directories_of_existing_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "old").write_text("old")
    text = "[a]\nfilename=theirs/old\n[b]\nfilename=theirs/old:new\n[c]\ndirectory=theirs\n"
    staging = made(tmp_path, text, ("theirs/old",), ("theirs/old", "new"), ("theirs/old",))
    assert os.listdir(tmp_path / "theirs") == ["old"]
    alone, both, generated = places(staging)
    assert alone == str(tmp_path / "theirs/old") and generated == str(tmp_path / "theirs")
    link, new = split_paths(both)
    assert os.path.realpath(link) == str(tmp_path / "theirs/old")
    assert [one.path for one in staging.directories] == [Path(new).parent]
    staging.close()
    assert os.listdir(tmp_path) == ["theirs"] and not os.path.lexists(link)


def test_filename_of_global_beside_a_directory(tmp_path: Path) -> None:
    """For fio, directory= does not replace filename=: the file is the one of [global]."""
    (tmp_path / "d").mkdir()
    staging = made(tmp_path, "[global]\nfilename=x\n[a]\ndirectory=d\n", ("x",))
    (staged,) = places(staging)
    Path(staged).write_text("new")
    assert staging.publish() == []
    staging.close()
    assert (tmp_path / "x").read_text() == "new" and os.listdir(tmp_path / "d") == []


def test_a_directory_that_is_renamed_meanwhile(tmp_path: Path) -> None:
    """The new file is moved into the renamed directory; another one that takes its old name gets
    nothing."""
    (tmp_path / "d").mkdir()
    (tmp_path / "other").mkdir()
    staging = made(tmp_path, "[a]\nfilename=d/x\n", ("d/x",))
    Path(places(staging)[0]).write_text("new")
    (tmp_path / "d").rename(tmp_path / "moved")
    (tmp_path / "d").symlink_to("other")
    assert staging.publish() == []
    staging.close()
    assert os.listdir(tmp_path / "other") == []
    assert os.listdir(tmp_path / "moved") == ["x"]
    assert (tmp_path / "moved" / "x").read_text() == "new"


def test_a_name_taken_meanwhile_is_left(tmp_path: Path) -> None:
    staging = made(tmp_path, "[a]\nfilename=x\n", ("x",))
    Path(places(staging)[0]).write_text("new")
    (tmp_path / "x").write_text("theirs")
    (said,) = staging.publish()
    staging.close()
    assert "another program" in said and (tmp_path / "x").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["x"]


def test_a_path_as_fio_takes_it() -> None:
    assert escape_path("/a\\b:c") == "/a\\b\\:c"
    assert join_paths(["/a:b", "/c\\"]) == "/a\\:b:/c\\"
    assert split_paths("/a\\:b:/c\\:d:") == ["/a:b", "/c:d"]
    for paths in (["/a\\:b"], ["/a\\", "/b"]):
        with pytest.raises(UsageError, match="backslash"):
            join_paths(paths)


def test_a_scratch_directory_is_removed_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    scratch = make_scratch(tmp_path / "d")
    (scratch.path / "a.0.0").write_text("x")
    (tmp_path / "d").rename(tmp_path / "moved")
    scratch.close()
    scratch.close()
    assert os.listdir(tmp_path / "moved") == []
