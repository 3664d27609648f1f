"""--write-budget with real fio."""

from __future__ import annotations

from pathlib import Path

import pytest
from program import events, iopstui

MIB = 1 << 20
WRITES = ("--job", "randwrite-4k", "--size", "8m", "--set", "rate=10m")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def test_a_run_ends_before_it_is_used(here: Path) -> None:
    done = iopstui("run", *WRITES, "--set", "runtime=60", "--write-budget", "32m",
                   "--format", "jsonl", cwd=here)  # fmt: skip
    assert done.returncode == 1, done.stderr
    end = next(row for row in events(done.stdout) if row["event"] == "step_finished")
    written = end["summary"]["total"]["write"]["io_bytes"]
    assert 4 * MIB < written <= 24 * MIB, "8 MiB of 32 were the scratch file"
    assert "writes at most: 32 MiB (--write-budget)" in done.stderr
    assert "write budget of 32 MiB" in done.stderr and list(here.iterdir()) == []


def test_a_sweep_ends_with_whole_points(here: Path) -> None:
    done = iopstui("sweep", *WRITES, "--axis", "iodepth=1,2,4,8,16", "--settle", "0",
                   "--measure", "1", "--write-budget", "40m", "--format", "jsonl",
                   cwd=here)  # fmt: skip
    assert done.returncode == 1, done.stderr
    rows = events(done.stdout)
    points = [row for row in rows if row["event"] == "point_finished"]
    assert 1 <= len(points) <= 4 and all(row["point"]["seconds"] > 0.9 for row in points)
    assert not any(row["event"] == "point_failed" for row in rows)
    assert "write budget of 40 MiB" in done.stderr and list(here.iterdir()) == []


def test_what_only_reads_needs_none(here: Path) -> None:
    words = ("run", "--job", "randread-4k", "--size", "8m", "--set", "runtime=1")
    refused = iopstui(*words, "--write-budget", "4m", cwd=here)
    assert refused.returncode == 1 and "scratch files take 8" in refused.stderr
    done = iopstui(*words, "--write-budget", "9m", cwd=here)
    assert done.returncode == 0 and "the jobs only read" in done.stderr, done.stderr
    wrong = iopstui(*words, "--write-budget", "lots", cwd=here)
    assert wrong.returncode == 2 and "not a size" in wrong.stderr
