"""Several targets at once, with the whole program and the real fio."""

from __future__ import annotations

import csv
import io
import os
import signal
from pathlib import Path

import psutil
import pytest
from program import UNHURRIED, child_processes, events, iopstui, start, survivors, wait_for_fio_io

JOB = ("--job", "vng-randrw", "--set", "direct=0", "--set", "runtime=1", *UNHURRIED)


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / "work" / name).mkdir(parents=True)
    return tmp_path / "work"


def scratch_files(workdir: Path) -> list[Path]:
    return [path for name in ("one", "two") for path in (workdir / name).iterdir()]


def test_a_job_runs_in_two_directories_leaves_nothing_and_replays_the_same(workdir: Path) -> None:
    args = ("run", "one", *JOB, "two", "--size", "4m", "--format", "csv")
    live = iopstui(*args, "--record", "two.iops", cwd=workdir)
    assert live.returncode == 0 and "up to fio's own total" in live.stderr, live.stderr
    assert scratch_files(workdir) == []
    replayed = iopstui("replay", "two.iops", "--format", "csv", cwd=workdir)
    assert replayed.returncode == 0, replayed.stderr
    assert live.stdout == replayed.stdout and list(csv.DictReader(io.StringIO(live.stdout)))
    rows = events(iopstui("replay", "two.iops", "--format", "jsonl", cwd=workdir).stdout)
    assert rows[0]["targets"] == [str(workdir / "one"), str(workdir / "two")]
    report = iopstui("report", "two.iops", cwd=workdir)
    assert f"iopstui run {workdir}/one {workdir}/two --job vng-randrw" in report.stdout


def test_a_sweep_uses_all_directories(workdir: Path) -> None:
    result = iopstui("sweep", "one", "two", "--job", "randread-4k", "--set", "direct=0", "--size",
                     "4m", "--axis", "iodepth=1,2", "--settle", "0", "--measure", "1", *UNHURRIED,
                     cwd=workdir)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert scratch_files(workdir) == []


def test_sigkill_leaves_no_file_in_any_directory(workdir: Path) -> None:
    process = start("run", "one", "two", "--job", "vng-randrw", "--set", "direct=0", "--size",
                    "4m", "--set", "runtime=60", *UNHURRIED, cwd=workdir)  # fmt: skip
    try:
        wait_for_fio_io(process.pid)
        below: list[psutil.Process] = child_processes(process.pid)
        assert len(scratch_files(workdir)) == 2
        os.kill(process.pid, signal.SIGKILL)
        assert survivors(below) == []
        assert scratch_files(workdir) == []
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (("one", "one"), "given twice"),
        (("one", "./one"), "are the same directory"),
        (("one", "file"), "a directory and file a file"),
        (("one", "three"), "does not exist"),
    ],
)
def test_bad_lists_of_targets_are_refused(
    workdir: Path, targets: tuple[str, ...], message: str
) -> None:
    (workdir / "file").write_bytes(b"x")
    result = iopstui("run", *targets, *JOB, cwd=workdir)
    assert result.returncode == 2 and message in result.stderr
    assert result.stdout == "" and scratch_files(workdir) == []
