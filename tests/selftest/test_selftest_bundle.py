"""Bundles of self-tests: written, read again, and refused if they are damaged."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.features.selftest.evidence import FAIL, FORMAT, Evidence, read_bundle, write_bundle
from iopstui.features.selftest.judge import judge_bundle

BUNDLES = Path(__file__).parents[1] / "fixtures" / "selftest"

FOUND = Evidence(machine={"fio": "fio-3.33"}, log=[[0, 5, 4096]], seconds=3)


def test_a_bundle_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "b.gz"
    write_bundle(FOUND, path)
    assert read_bundle(path) == FOUND
    with pytest.raises(UsageError, match="File exists"):
        write_bundle(FOUND, path)
    with pytest.raises(UsageError, match="No such file"):
        write_bundle(FOUND, tmp_path / "none" / "b.gz")


def packed(value: object) -> bytes:
    return gzip.compress(json.dumps(value).encode(), 1, mtime=0)


@cache
def good() -> dict[str, object]:
    return read_bundle(BUNDLES / "nvme-4-queues.gz").as_object()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a bundle"), (b"text", "Cannot read"), (packed({})[:20], "cut off or damaged"),
        (packed({}), "not a bundle"), (packed([]), "not a bundle"),
        (packed({"format": FORMAT + 1}), "not a bundle"),
        (packed({"format": FORMAT}), "damaged: machine"),
        (packed(FOUND.as_object() | {"log": "x"}), "damaged: log"),
        (packed(FOUND.as_object() | {"iostat": "x"}), "damaged: iostat"),
        (gzip.compress(b"[" * 100_000, mtime=0), "not a bundle"),
        (gzip.compress(b"\xff", mtime=0), "not a bundle"),
    ],
    ids=["empty", "text", "cut", "object", "list", "newer", "nothing", "log", "iostat", "deep",
         "binary"],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "b.gz"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=says):
        read_bundle(path)


@pytest.mark.parametrize("wrong", [
    {"frames": [{}]}, {"log": [[0]]}, {"log": [["a", "b", "c"]]}, {"counters": [[1]]},
    {"queues": {"a": [1]}, "queue_text": {"a": "1"}}, {"vectors": [{}]}, {"fence": {"x": 1}},
    {"restore": {"x": 1}}, {"known_latency": {"x": 1}}, {"job": "[", "stream": "{"},
    {"vector_names": {"x": "nvme0q1"}}, {"queue_text": {"0": "0-99999999999"}},
    {"probe_frames": [{}]}, {"probe_frames": [5]}, {"iostat": [["a", 5, None]] * 9},
    {"frames": [{"disk": {}, "seconds": 1, "own_cpu": "x"}]},
])  # fmt: skip
def test_odd_figures_are_refused_without_a_traceback(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    path = tmp_path / "b.gz"
    path.write_bytes(packed(good() | wrong))
    try:
        checks, _ = judge_bundle(path)
    except UsageError as error:
        assert "damaged" in str(error)
    else:
        assert any(one.verdict == FAIL for one in checks) or "log" not in wrong


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="is not a file"):
        read_bundle(tmp_path / "fifo")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        read_bundle(tmp_path / "none.gz")
