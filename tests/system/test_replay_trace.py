"""`iopstui run --replay` as a user starts it: a trace runs only on a scratch file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from program import iopstui

from iopstui.features.capture import replay
from iopstui.model.experiment.run_request import RunRequest

HEADER = "fio version 3 iolog"
LENGTHS = (4096, 16384, 512, 65536)


def write_trace(path: Path, name: str = "x") -> int:
    """Write a trace of 40 requests and return the bytes they move."""
    lines = [HEADER, f"0 {name} add", f"0 {name} open"]
    moved = 0
    for number in range(40):
        action, length = ("read", "write")[number % 2], LENGTHS[number % 4]
        lines.append(f"{number * 1000} {name} {action} {number * 65536} {length}")
        moved += length
    path.write_text("\n".join((*lines, f"40000 {name} close", "")))
    return moved


def test_ios_and_bytes_equal_those_of_the_trace(tmp_path: Path) -> None:
    # the trace names this file, but must not touch it
    victim = tmp_path / "victim"
    victim.write_bytes(b"data" * 1024)
    moved = write_trace(tmp_path / "app.trace", str(victim))
    place = tmp_path / "place"
    place.mkdir()
    args = ("run", "place", "--replay", "app.trace", "--format", "jsonl", "--set", "direct=0")
    result = iopstui(*args, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "20 reads and 20 writes" in result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    (end,) = [line for line in lines if line["event"] == "step_finished"]
    directions = end["summary"]["rows"][0]["directions"]
    assert (directions["read"]["total_ios"], directions["write"]["total_ios"]) == (20, 20)
    assert directions["read"]["io_bytes"] + directions["write"]["io_bytes"] == moved
    assert list(place.iterdir()) == [] and victim.read_bytes() == b"data" * 1024


def test_the_scratch_file_has_all_that_the_trace_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # fio counts a read beyond the end of a smaller file as done, in 2 us
    path = tmp_path / "app.trace"
    path.write_text(f"{HEADER}\n0 x add\n0 x read {700 << 20} 4096\n")
    sizes: list[str | None] = []

    def run_job(request: RunRequest, *_: object) -> int:
        sizes.append(request.size)
        return 0

    monkeypatch.setattr(replay, "run_job", run_job)
    replay.run_replay(RunRequest(), argparse.Namespace(replay=str(path), format="table"))
    assert sizes == ["701m"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("place", "--replay", "none"), "The file none does not exist"),
        (("place", "--replay", "bad"), "line 1 is not"),
        (("file", "--replay", "app.trace"), "on a scratch file only"),
        (("--replay", "app.trace"), "on a scratch file only"),
        (("place", "other", "--replay", "app.trace"), "on a scratch file only"),
        (("place", "--replay", "app.trace", "--job", "randread-4k"), "not allowed with"),
        (("place", "--replay", "app.trace", "--size", "1m"), "needs a file of 3 MiB"),
        (("place", "--replay", "/dev/zero"), "it is not a file"),
        (("place", "--replay", "endless"), "line 2: not 'time file"),
        (("place", "--replay", "app.trace", "--until-steady"), "A replay ends with its trace"),
        # in a user's own job file read_iolog stays refused
        (("place", "--job", "./own.fio"), "read_iolog= works on the files that a recorded log"),
    ],
)  # fmt: skip
def test_bad_trace_replays_are_refused(tmp_path: Path, args: tuple[str, ...], says: str) -> None:
    write_trace(tmp_path / "app.trace")
    (tmp_path / "bad").write_text("no trace")
    (tmp_path / "endless").write_text(HEADER + "\n0 x read 0" + 4096 * " " + "4096\n")
    (tmp_path / "own.fio").write_text("[a]\nread_iolog=app.trace\nsize=1m\n")
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    for name in ("place", "other"):
        (tmp_path / name).mkdir()
    result = iopstui("run", *args, cwd=tmp_path)
    assert result.returncode in (2, 3) and says in result.stderr, result.stderr
    assert (tmp_path / "file").read_bytes() == bytes(1 << 20)
    assert list((tmp_path / "place").iterdir()) == []
