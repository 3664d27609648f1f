"""`iopstui selftest` as a user starts it."""

from __future__ import annotations

import gzip
import json
import os
import platform
from pathlib import Path

import pytest
from program import iopstui


def test_it_passes_leaves_no_file_and_reveals_nothing_private(tmp_path: Path) -> None:
    place, bundle = tmp_path / "secret-name", tmp_path / "bundle.gz"
    place.mkdir()
    result = iopstui("selftest", str(place), "-o", str(bundle), "--json", cwd=tmp_path)
    data = json.loads(result.stdout)
    failed = [check for check in data["checks"] if check["result"] == "FAIL"]
    # a busy machine may make iopstui itself look expensive
    assert [check for check in failed if "own CPU" not in check["check"]] == []
    assert result.returncode == bool(failed) and data["result"] == ("FAIL" if failed else "OK")
    names = {check["check"] for check in data["checks"] if check["result"] == "OK"}
    assert {"fio: I/Os", "fio: p50, ns", "clock: wall against monotonic, ms"} <= names
    assert list(place.iterdir()) == []
    text = gzip.decompress(bundle.read_bytes()).decode()
    for private in ("secret-name", str(tmp_path), platform.node() + '"', os.environ.get("HOME")):
        assert not private or private == "/" or private not in text
    reread = iopstui("selftest", "--read", str(bundle), "--json", cwd=tmp_path)
    assert json.loads(reread.stdout)["checks"] == data["checks"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("none",), "is not a directory"), (("--read", "none"), "The file none does not exist"),
        (("--read", "x.gz", "."), "takes neither"),
        (("--read", "x.gz", "-o", "y"), "takes neither"),
        ((".", "-o", "x.gz"), "exists already"), (("--read", "x.gz"), "Cannot read x.gz"),
        ((".", "."), "unexpected argument"), (("",), "is empty"), (("-o", ""), "is empty"),
        (("--read", ""), "is empty"),
    ],
)  # fmt: skip
def test_wrong_command_lines(tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    (tmp_path / "x.gz").write_text("text")
    result = iopstui("selftest", *args, cwd=tmp_path)
    assert result.returncode == 2 and says in result.stderr and not result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["x.gz"]
