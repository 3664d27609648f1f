"""--write-budget with real fio."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from program import UNHURRIED, WITHIN_S, events, iopstui, start, wait_for_fio_io

MIB = 1 << 20
# at this rate the pauses between fio's writes are long enough to sleep
WRITES = ("--job", "randwrite-4k", "--size", "8m", "--set", "rate=10m", "--set", "bs=64k",
          "--set", "clocksource=clock_gettime", "--set", "disk_util=0")  # fmt: skip


def test_a_run_ends_before_it_exceeds_the_budget(workdir: Path) -> None:
    result = iopstui("run", *WRITES, "--set", "runtime=60", "--write-budget", "32m",
                     "--format", "jsonl", cwd=workdir)  # fmt: skip
    assert result.returncode == 1, result.stderr
    end = next(row for row in events(result.stdout) if row["event"] == "step_finished")
    written = end["summary"]["total"]["write"]["io_bytes"]
    assert 4 * MIB < written <= 24 * MIB, "8 MiB of 32 were the scratch file"
    assert "writes at most: 32 MiB (--write-budget)" in result.stderr
    assert "write budget of 32 MiB" in result.stderr and list(workdir.iterdir()) == []


def test_a_sweep_ends_with_complete_points(workdir: Path) -> None:
    # after a stall, a job with rate= writes faster than any budget allows; a job with pauses does
    # not. Without a free CPU, more points are needed to reach the budget
    result = iopstui("sweep", "--job", "randwrite-4k", "--size", "8m", "--set", "bs=64k",
                     "--set", "thinktime=100ms", "--set", "thinktime_blocks=16",
                     "--set", "clocksource=clock_gettime", "--set", "disk_util=0",
                     "--axis", "iodepth=1,2,3,4,5,6,7,8",
                     "--settle", "0", "--measure", "1", "--write-budget", "32m",
                     "--format", "jsonl", cwd=workdir)  # fmt: skip
    assert result.returncode == 1, result.stderr
    rows = events(result.stdout)
    points = [row["point"] for row in rows if row["event"] == "point_finished"]
    assert not any(row["event"] == "point_failed" for row in rows)
    assert points and "write budget of 32 MiB" in result.stderr and list(workdir.iterdir()) == []
    if ended := re.search(r"ended after ([\d.]+) MiB written", result.stderr):
        ended_run = float(ended[1]) * MIB - 8 * MIB - sum(row["ios"] * (64 << 10) for row in points)
        assert ended_run > MIB, "it is no point"


def test_a_reading_job_needs_no_budget_for_its_run(workdir: Path) -> None:
    args = ("run", "--job", "randread-4k", "--size", "8m", "--set", "runtime=1",
            *UNHURRIED)  # fmt: skip
    refused = iopstui(*args, "--write-budget", "4m", cwd=workdir)
    assert refused.returncode == 1 and "new files need 8" in refused.stderr
    result = iopstui(*args, "--write-budget", "9m", cwd=workdir)
    assert result.returncode == 0 and "the jobs only read" in result.stderr, result.stderr
    wrong = iopstui(*args, "--write-budget", "lots", cwd=workdir)
    assert wrong.returncode == 2 and "not a size" in wrong.stderr


SHAPES = """[global]
bs=4k
ioengine=psync
size=1m
stonewall
[twice]
rw=write
loops=2
[more]
rw=randwrite
bs=3k,7k
io_size=3m
numjobs=2
[mixed]
rw=randrw
rwmixread=10
overwrite=1
[checked]
rw=write
verify=crc32c
[paced]
rw=write
rate=1m
time_based
runtime=2
[blocks]
rw=randwrite
bsrange=4k-64k
norandommap
[several]
rw=write
nrfiles=3
"""


def test_the_writes_planned_for_a_job_are_not_exceeded(workdir: Path) -> None:
    job = workdir / "shapes.fio"
    job.write_text(SHAPES)
    result = iopstui(
        "run", str(workdir), "--job", str(job), "--size", "1m", "--format", "jsonl", cwd=workdir
    )
    assert result.returncode == 0, result.stderr
    end = next(row for row in events(result.stdout) if row["event"] == "step_finished")
    written = end["summary"]["total"]["write"]["io_bytes"]
    limit = re.search(
        r"at most: [0-9.]+ MiB of scratch files, then ([0-9.]+) MiB \(", result.stderr
    )
    assert limit is not None, result.stderr
    assert 0.75 * float(limit[1]) * MIB < written <= float(limit[1]) * MIB


@contextlib.contextmanager
def read_through_the_page_cache(file: Path) -> Iterator[None]:
    stop = threading.Event()

    def read() -> None:
        with file.open("rb", buffering=0) as stream:
            while not stop.wait(0.001):
                stream.seek(0)
                stream.read()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        stop.set()
        reader.join()


def test_preconditioning_comes_first_and_counts_as_writes(workdir: Path) -> None:
    disk = workdir / "disk.img"
    disk.write_bytes(bytes(4 * MIB))
    args = ("run", str(disk), "--job", "randread-4k", "--precondition", "--set", "runtime=1",
            *UNHURRIED)  # fmt: skip
    refused = iopstui(*args, cwd=workdir)
    assert refused.returncode == 3 and f"--destroy-data {disk}" in refused.stderr
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        early = iopstui(
            *args, "--destroy-data", str(disk), "--openmetrics-listen", port, cwd=workdir
        )
        assert early.returncode == 2 and "Cannot listen on port" in early.stderr, early.stderr
        assert "to be written" not in early.stderr
    for wrong in (("--set", "nosuch=1"), ("--record", str(workdir)), ("--expect", "nosuch>=1"),
                  ("--write-budget", "7m"),
                  ("--size", "1m", "--write-budget", "1m"),
                  ("--size", "50%", "--write-budget", "3m"),
                  ("--textfile", str(workdir / "none" / "x.prom"))):  # fmt: skip
        early = iopstui(*args, "--destroy-data", str(disk), *wrong, cwd=workdir)
        assert early.returncode == 2 and "to be written" not in early.stderr, early.stderr
    with read_through_the_page_cache(disk):  # then the kernel counts more than fio does
        result = iopstui(*args, "--destroy-data", str(disk), "--write-budget", "32m", "--format",
                         "jsonl", cwd=workdir)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "preconditioned: 8 MiB written" in result.stderr, result.stderr
    assert sum(row["event"] == "step_finished" for row in events(result.stdout)) == 1
    exactly = iopstui(*args, "--destroy-data", str(disk), "--write-budget", "8m", cwd=workdir)
    assert exactly.returncode == 0, exactly.stderr
    elsewhere = iopstui("sweep", str(workdir), "--job", "randread-4k", "--axis", "iodepth=1,2",
                        "--precondition", "--dry-run", cwd=workdir)  # fmt: skip
    assert elsewhere.returncode == 2 and "is a directory" in elsewhere.stderr


@pytest.mark.parametrize("cause", ["ours", "another's"])
def test_an_interrupted_preconditioning_prints_no_figures(workdir: Path, cause: str) -> None:
    disk = workdir / "disk.img"
    with disk.open("wb") as file:
        file.truncate(8 << 30)  # sparse: how much of it is written depends on the time
    program = start("run", str(disk), "--job", "randread-4k", "--precondition", "--destroy-data",
                    str(disk), cwd=workdir)  # fmt: skip
    at_work = wait_for_fio_io(program.pid)
    if cause == "ours":
        program.send_signal(signal.SIGINT)
    else:
        at_work[-1].terminate()
    out, err = program.communicate(timeout=WITHIN_S)
    if cause == "ours":
        assert program.returncode == 130, err
        assert "Interrupted during preconditioning: nothing was measured." in err
    else:
        assert program.returncode == 1 and "one of fio's processes received SIGTERM" in err
    assert "figures" not in err and out == ""
