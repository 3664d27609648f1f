"""`iopstui selftest` as a user starts it."""

from __future__ import annotations

import gzip
import json
import os
import platform
from pathlib import Path

import pytest
from program import iopstui


def test_it_passes_here_leaves_nothing_and_tells_nothing_private(tmp_path: Path) -> None:
    place, bundle = tmp_path / "secret-name", tmp_path / "bundle.gz"
    place.mkdir()
    done = iopstui("selftest", str(place), "-o", str(bundle), "--json", cwd=tmp_path)
    data = json.loads(done.stdout)
    failed = [one for one in data["checks"] if one["result"] == "FAIL"]
    # a busy machine may make iopstui itself look expensive
    assert [one for one in failed if "own CPU" not in one["check"]] == []
    assert done.returncode == bool(failed) and data["result"] == ("FAIL" if failed else "OK")
    names = {one["check"] for one in data["checks"] if one["result"] == "OK"}
    assert {"fio: I/Os", "fio: p50, ns", "clock: wall against monotonic, ms"} <= names
    assert list(place.iterdir()) == []
    text = gzip.decompress(bundle.read_bytes()).decode()
    for private in ("secret-name", str(tmp_path), platform.node() + '"', os.environ.get("HOME")):
        assert not private or private == "/" or private not in text
    again = iopstui("selftest", "--read", str(bundle), "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["checks"] == data["checks"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("none",), "is not a directory"), (("--read", "none"), "Cannot read none"),
        (("--read", "x.gz", "."), "takes neither"),
        (("--read", "x.gz", "-o", "y"), "takes neither"),
        ((".", "-o", "x.gz"), "exists already"), (("--read", "x.gz"), "Cannot read x.gz"),
        ((".", "."), "unexpected argument"), (("",), "is empty"), (("-o", ""), "is empty"),
        (("--read", ""), "is empty"),
    ],
)  # fmt: skip
def test_wrong_command_lines(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    (tmp_path / "x.gz").write_text("text")
    done = iopstui("selftest", *words, cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr and not done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["x.gz"]
