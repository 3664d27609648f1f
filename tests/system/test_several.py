"""Several targets at once, with the whole program and the real fio."""

from __future__ import annotations

import csv
import io
import os
import signal
from pathlib import Path

import psutil
import pytest
from program import UNHURRIED, events, family, fio_at_work, gone, iopstui, start

JOB = ("--job", "vng-randrw", "--set", "direct=0", "--set", "runtime=1", *UNHURRIED)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / "work" / name).mkdir(parents=True)
    return tmp_path / "work"


def left(here: Path) -> list[Path]:
    return [path for name in ("one", "two") for path in (here / name).iterdir()]


def test_a_job_runs_in_two_directories_and_leaves_nothing(here: Path) -> None:
    done = iopstui("run", "one", *JOB, "two", "--size", "4m", "--format", "jsonl", cwd=here)
    assert done.returncode == 0, done.stderr
    rows = events(done.stdout)
    assert rows[0]["targets"] == [str(here / "one"), str(here / "two")]
    assert "up to fio's own total" in done.stderr
    assert left(here) == []


def test_a_recording_of_two_says_the_same_again(here: Path) -> None:
    words = ("run", "one", "two", *JOB, "--size", "4m", "--format", "csv")
    live = iopstui(*words, "--record", "two.iops", cwd=here)
    again = iopstui("replay", "two.iops", "--format", "csv", cwd=here)
    assert live.returncode == again.returncode == 0, live.stderr + again.stderr
    assert live.stdout == again.stdout and list(csv.DictReader(io.StringIO(live.stdout)))
    report = iopstui("report", "two.iops", cwd=here)
    assert f"iopstui run {here}/one {here}/two --job vng-randrw" in report.stdout


def test_a_sweep_uses_all_directories(here: Path) -> None:
    done = iopstui("sweep", "one", "two", "--job", "randread-4k", "--set", "direct=0", "--size",
                   "4m", "--axis", "iodepth=1,2", "--settle", "0", "--measure", "1", *UNHURRIED,
                   cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert left(here) == []


def test_killed_it_leaves_no_file_in_any_directory(here: Path) -> None:
    process = start("run", "one", "two", "--job", "vng-randrw", "--set", "direct=0", "--size",
                    "4m", "--set", "runtime=60", *UNHURRIED, cwd=here)  # fmt: skip
    try:
        fio_at_work(process.pid)
        below: list[psutil.Process] = family(process.pid)
        assert len(left(here)) == 2
        os.kill(process.pid, signal.SIGKILL)
        assert gone(below) == []
        assert left(here) == []
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        (("one", "one"), "given twice"),
        (("one", "./one"), "are the same directory"),
        (("one", "file"), "a directory and file a file"),
        (("one", "three"), "does not exist"),
    ],
)
def test_what_is_no_several_targets(here: Path, targets: tuple[str, ...], told: str) -> None:
    (here / "file").write_bytes(b"x")
    done = iopstui("run", *targets, *JOB, cwd=here)
    assert done.returncode == 2 and told in done.stderr
    assert done.stdout == "" and left(here) == []
