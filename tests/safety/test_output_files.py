"""An output file appears only when it is complete."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from iopstui.cli import program
from iopstui.errors import EXIT_MISSING, EXIT_OK, EXIT_VERDICT, note_incomplete
from iopstui.safety import output_files
from iopstui.safety.output_files import write_whole


def write_part(file: BinaryIO) -> None:
    file.write(b"part")
    file.flush()
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_leaves_nothing(overwrite: bool, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "x", write_part, overwrite)
    assert list(tmp_path.iterdir()) == []
    write_whole(tmp_path / "x", lambda file: file.write(b"whole"), overwrite)
    assert (tmp_path / "x").read_bytes() == b"whole"


def test_an_existing_file_stays(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "x", lambda file: file.write(b"new"))
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "x", write_part, overwrite=True)
    assert (tmp_path / "x").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_one_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    def write(file: BinaryIO) -> None:
        (tmp_path / "x").write_bytes(b"of another")

    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "x", write)
    assert (tmp_path / "x").read_bytes() == b"of another"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*names: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(output_files.os, "link", refuse)
    write_whole(tmp_path / "x", lambda file: file.write(b"whole"))
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "x", lambda file: file.write(b"new"))


@pytest.mark.parametrize(("code", "ended"), [(EXIT_OK, EXIT_MISSING), (EXIT_VERDICT, EXIT_VERDICT)])
def test_the_program_ends_with_5_where_nothing_but_its_recording_failed(
    code: int, ended: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> int:
        note_incomplete("the recording is incomplete: a.iops: No space left on device")
        return code

    monkeypatch.setattr(program, "_main", run)
    assert program.main(["run"]) == ended
    err = capsys.readouterr().err
    assert err == "iopstui: the recording is incomplete: a.iops: No space left on device\n"
    monkeypatch.setattr(program, "_main", lambda *_: EXIT_OK)
    assert program.main(["run"]) == EXIT_OK and capsys.readouterr().err == ""
