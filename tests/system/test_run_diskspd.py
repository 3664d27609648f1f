"""`iopstui run --diskspd` with real fio."""

from __future__ import annotations

from pathlib import Path

import pytest
from program import UNHURRIED, events, iopstui


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.mark.parametrize(
    ("command", "direction"),
    [
        ("diskspd -c200G -w100 -b8K -F4 -r -o128 -W30 -d30 -Sh testfile.dat", "write"),
        ("diskspd -c200G -b4K -F4 -r -o128 -W7200 -d30 -Sh testfile.dat", "read"),
    ],
)
def test_azure_s_commands_run_on_a_scratch_file(command: str, direction: str, here: Path) -> None:
    done = iopstui("run", "--diskspd", command, "--size", "16m", "--set", "ramp_time=0",
                   "--set", "runtime=1", *UNHURRIED, "--format", "jsonl", cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "a scratch file of 16m (--size) replaces testfile.dat" in done.stderr
    assert "numjobs=4" in done.stderr and "iodepth=128" in done.stderr, "the job is shown"
    final = next(row for row in events(done.stdout) if row["event"] == "step_finished")["summary"]
    assert list(final["total"]) == [direction] and final["total"][direction]["iops"] > 0
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("size", [(), ("--size", "32m")])
def test_threads_that_start_apart_stay_within_the_file(size: tuple[str, ...], here: Path) -> None:
    done = iopstui("run", "--diskspd", "diskspd -T4M -c16M -t4 -W0 -d1 -b64K x", *size, *UNHURRIED,
                   "--format", "jsonl", cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    final = next(row for row in events(done.stdout) if row["event"] == "step_finished")["summary"]
    assert final["total"]["read"]["iops"] > 0
    assert list(here.iterdir()) == []


def test_an_existing_file_is_not_overwritten_unasked(here: Path) -> None:
    file = here / "data"
    file.write_bytes(b"x" * (1 << 20))
    done = iopstui("run", "--diskspd", "diskspd -w100 -W0 -d1 data", cwd=here)
    assert done.returncode == 3 and "--destroy-data" in done.stderr
    assert file.read_bytes() == b"x" * (1 << 20)
    read = iopstui("run", "--diskspd", "diskspd -L -W0 -d1 data", cwd=here)
    assert read.returncode == 0, read.stderr
    assert "-L has no equivalent" in read.stderr


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("names no file", ("--diskspd", "diskspd -d5")),
        ("not a known switch", ("--diskspd", "diskspd -q x")),
        ("not allowed with", ("--diskspd", "diskspd x", "--job", "mixed-4k")),
        ("--job or --diskspd or --replay is missing", ()),
    ],
)
def test_bad_input(words: str, arguments: tuple[str, ...], here: Path) -> None:
    done = iopstui("run", *arguments, cwd=here)
    assert done.returncode == 2 and words in done.stderr
    assert list(here.iterdir()) == []
