"""`iopstui run --replay` as a user starts it: a trace on a scratch file, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from program import iopstui

HEADER = "fio version 3 iolog"
LENGTHS = (4096, 16384, 512, 65536)


def trace(path: Path, name: str = "x") -> int:
    """Writes one of 40 requests; how many bytes they move."""
    lines = [HEADER, f"0 {name} add", f"0 {name} open"]
    moved = 0
    for number in range(40):
        action, length = ("read", "write")[number % 2], LENGTHS[number % 4]
        lines.append(f"{number * 1000} {name} {action} {number * 65536} {length}")
        moved += length
    path.write_text("\n".join((*lines, f"40000 {name} close", "")))
    return moved


def test_count_and_bytes_are_those_of_the_trace(tmp_path: Path) -> None:
    # whatever file it names: that is not the one
    victim = tmp_path / "victim"
    victim.write_bytes(b"data" * 1024)
    moved = trace(tmp_path / "app.trace", str(victim))
    place = tmp_path / "place"
    place.mkdir()
    words = ("run", "place", "--replay", "app.trace", "--format", "jsonl", "--set", "direct=0")
    done = iopstui(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "20 reads and 20 writes" in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    (end,) = [line for line in lines if line["event"] == "step_finished"]
    found = end["summary"]["rows"][0]["directions"]
    assert (found["read"]["total_ios"], found["write"]["total_ios"]) == (20, 20)
    assert found["read"]["io_bytes"] + found["write"]["io_bytes"] == moved
    assert list(place.iterdir()) == [] and victim.read_bytes() == b"data" * 1024


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("place", "--replay", "none"), "Cannot read none"),
        (("place", "--replay", "bad"), "line 1 is not"),
        (("file", "--replay", "app.trace"), "on a scratch file only"),
        (("--replay", "app.trace"), "on a scratch file only"),
        (("place", "other", "--replay", "app.trace"), "on a scratch file only"),
        (("place", "--replay", "app.trace", "--job", "randread-4k"), "not allowed with"),
        (("place", "--replay", "app.trace", "--until-steady"), "A replay ends with its trace"),
        # of anybody's own job it stays refused
        (("place", "--job", "./own.fio"), "read_iolog= works on the files that a recorded log"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    trace(tmp_path / "app.trace")
    (tmp_path / "bad").write_text("no trace")
    (tmp_path / "own.fio").write_text("[a]\nread_iolog=app.trace\nsize=1m\n")
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    for name in ("place", "other"):
        (tmp_path / name).mkdir()
    done = iopstui("run", *words, cwd=tmp_path)
    assert done.returncode in (2, 3) and says in done.stderr, done.stderr
    assert (tmp_path / "file").read_bytes() == bytes(1 << 20)
    assert list((tmp_path / "place").iterdir()) == []
