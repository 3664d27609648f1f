"""`iopstui limit` with a real fio, on scratch files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from program import iopstui, start, wait_for_fio_io

# large blocks, because the rate is fio's maximum: a second of small blocks uses a whole CPU
JOB = "[j]\nioengine=io_uring\nrw=randread\nbs=1m\ndirect=1\nsize=4m\niodepth=4\n"
KEEP = ("--keep", "read.clat.p99<=1ms")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "j.fio").write_text(JOB)
    return tmp_path


def limit(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return iopstui("limit", "work", "--job", str(home / "j.fio"), *args, cwd=home)


def test_a_dry_run_shows_a_command_that_works(home: Path) -> None:
    result = limit(home, *KEEP, "--dry-run")
    assert result.returncode == 0, result.stderr
    command = result.stdout.splitlines()[-1].partition(": ")[2].split()
    assert command[:2] == ["iopstui", "run"] and "rate_process=poisson" in command
    # the same command, only shorter
    run = iopstui(*command[1:], "--set", "runtime=1", cwd=home)
    assert run.returncode == 0, run.stderr
    assert os.listdir(home / "work") == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--keep", "read.clat.p98<=1ms"), "no figure of a whole run is called 'read.clat.p98'"),
        (("--keep", "iops>=5"), "only an upper bound of a percentile"),
        (("--keep", "write.clat.p99<=1ms"), "the job does no writes"),
        (("--keep", "read.clat.p99<=0ms"), "no I/O is that fast"),
        ((*KEEP, "--set", "ioengine=psync"), "waits for each I/O"),
        ((*KEEP, "--time", "1"), "not a number of seconds from 30"),
    ],
)
def test_wrong_command_lines(home: Path, words: tuple[str, ...], text: str) -> None:
    result = limit(home, *words)
    assert result.returncode == 2 and text in result.stderr, result.stderr
    assert "Traceback" not in result.stderr and os.listdir(home / "work") == []


def test_a_job_of_two_sections_has_no_single_rate(home: Path) -> None:
    (home / "j.fio").write_text(JOB + JOB.replace("[j]", "[k]"))
    result = limit(home, *KEEP)
    assert result.returncode == 2 and "has 2 jobs" in result.stderr


@pytest.mark.parametrize(
    ("line", "text", "shown"),
    [("writes:", "Interrupted: the limit was not found.", False),
     (r"[\d,]+/s:", "these are the rates measured so far", True)],
)  # fmt: skip
def test_an_interrupt_shows_what_was_measured_and_leaves_nothing(
    home: Path, line: str, text: str, shown: bool
) -> None:
    process = start("limit", "work", "--job", "j.fio", *KEEP, cwd=home)
    assert process.stderr is not None and process.stdout is not None
    for each in process.stderr:
        if re.match(line, each):
            wait_for_fio_io(process.pid)
            process.send_signal(signal.SIGINT)
            break
    rest, table = process.stderr.read(), process.stdout.read()
    process.wait()
    assert process.returncode == 130, rest
    assert text in rest and ("OVER 1.00 ms" in table and "closed loop" in table) == shown
    assert os.listdir(home / "work") == []
