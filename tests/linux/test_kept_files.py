"""Files of processes that are kept open: read again, closed when their process ends, limited in
number."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from iopstui.linux.process import process_io
from iopstui.linux.process.process_io import KeptFiles


def open_files(text: str) -> int:
    """The number of this process's descriptors of files with this text in their names."""
    names = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:
            continue  # the descriptor of the listing itself
    return sum(text in name for name in names)


def test_a_kept_file_is_read_anew(tmp_path: Path) -> None:
    place = tmp_path / "7"
    place.mkdir()
    (place / "io").write_text("rchar: 1\n")
    files = KeptFiles(str(tmp_path), "io")
    assert files.read(7) == b"rchar: 1\n"
    (place / "io").write_text("rchar: 22\n")
    assert files.read(7) == b"rchar: 22\n" and open_files(str(tmp_path)) == 1
    files.keep_only({8})
    assert open_files(str(tmp_path)) == 0


def test_a_process_that_has_ended_is_not_read_any_more() -> None:
    files = KeptFiles("/proc", "io")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        assert files.read(process.pid).startswith(b"rchar:")
        process.kill()
        process.wait()
        with pytest.raises(OSError):
            files.read(process.pid)
    assert open_files(f"/{process.pid}/io") == 0


def test_only_so_many_are_kept_and_none_outlives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_io, "MOST", 3)
    for pid in range(5):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "io").write_text(f"rchar: {pid}\n")
    files = KeptFiles(str(tmp_path), "io")
    for _ in range(2):
        assert [files.read(pid) for pid in range(5)] == [b"rchar: %d\n" % n for n in range(5)]
    assert open_files(str(tmp_path)) == 3
    del files
    assert open_files(str(tmp_path)) == 0
