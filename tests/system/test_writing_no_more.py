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
from program import UNHURRIED, WITHIN_S, events, fio_at_work, iopstui, start

MIB = 1 << 20
# what is between two of fio's writes at that rate is long enough for it to sleep
WRITES = ("--job", "randwrite-4k", "--size", "8m", "--set", "rate=10m", "--set", "bs=64k",
          "--set", "clocksource=clock_gettime")  # fmt: skip


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
    words = ("run", "--job", "randread-4k", "--size", "8m", "--set", "runtime=1",
             *UNHURRIED)  # fmt: skip
    refused = iopstui(*words, "--write-budget", "4m", cwd=here)
    assert refused.returncode == 1 and "new files need 8" in refused.stderr
    done = iopstui(*words, "--write-budget", "9m", cwd=here)
    assert done.returncode == 0 and "the jobs only read" in done.stderr, done.stderr
    wrong = iopstui(*words, "--write-budget", "lots", cwd=here)
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


def test_what_a_job_says_of_itself_is_not_exceeded(here: Path) -> None:
    job = here / "shapes.fio"
    job.write_text(SHAPES)
    done = iopstui(
        "run", str(here), "--job", str(job), "--size", "1m", "--format", "jsonl", cwd=here
    )
    assert done.returncode == 0, done.stderr
    end = next(row for row in events(done.stdout) if row["event"] == "step_finished")
    written = end["summary"]["total"]["write"]["io_bytes"]
    said = re.search(r"at most: [0-9.]+ MiB of scratch files, then ([0-9.]+) MiB \(", done.stderr)
    assert said is not None, done.stderr
    assert 0.75 * float(said[1]) * MIB < written <= float(said[1]) * MIB


@contextlib.contextmanager
def read_through_the_page_cache(file: Path) -> Iterator[None]:
    over = threading.Event()

    def read() -> None:
        with file.open("rb", buffering=0) as opened:
            while not over.wait(0.001):
                opened.seek(0)
                opened.read()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join()


def test_preconditioning_comes_first_and_counts(here: Path) -> None:
    disk = here / "disk.img"
    disk.write_bytes(bytes(4 * MIB))
    words = ("run", str(disk), "--job", "randread-4k", "--precondition", "--set", "runtime=1",
             *UNHURRIED)  # fmt: skip
    refused = iopstui(*words, cwd=here)
    assert refused.returncode == 3 and f"--destroy-data {disk}" in refused.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        early = iopstui(*words, "--destroy-data", str(disk), "--openmetrics-listen", port, cwd=here)
        assert early.returncode == 2 and "Cannot listen on port" in early.stderr, early.stderr
        assert "to be written" not in early.stderr
    for wrong in (("--set", "nosuch=1"), ("--record", str(here)), ("--expect", "nosuch>=1"),
                  ("--write-budget", "7m"),
                  ("--size", "1m", "--write-budget", "1m"),
                  ("--size", "50%", "--write-budget", "3m"),
                  ("--textfile", str(here / "none" / "x.prom"))):  # fmt: skip
        early = iopstui(*words, "--destroy-data", str(disk), *wrong, cwd=here)
        assert early.returncode == 2 and "to be written" not in early.stderr, early.stderr
    with read_through_the_page_cache(disk):  # the kernel counts more than fio then
        done = iopstui(*words, "--destroy-data", str(disk), "--write-budget", "32m", "--format",
                       "jsonl", cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "preconditioned: 8 MiB written" in done.stderr, done.stderr
    assert sum(row["event"] == "step_finished" for row in events(done.stdout)) == 1
    exactly = iopstui(*words, "--destroy-data", str(disk), "--write-budget", "8m", cwd=here)
    assert exactly.returncode == 0, exactly.stderr
    elsewhere = iopstui("sweep", str(here), "--job", "randread-4k", "--axis", "iodepth=1,2",
                        "--precondition", "--dry-run", cwd=here)  # fmt: skip
    assert elsewhere.returncode == 2 and "is a directory" in elsewhere.stderr


@pytest.mark.parametrize("whose", ["ours", "another's"])
def test_an_interrupted_preconditioning_has_no_figures_to_speak_of(here: Path, whose: str) -> None:
    disk = here / "disk.img"
    with disk.open("wb") as file:
        file.truncate(8 << 30)  # sparse: as much of it is written as there is time for
    program = start("run", str(disk), "--job", "randread-4k", "--precondition", "--destroy-data",
                    str(disk), cwd=here)  # fmt: skip
    at_work = fio_at_work(program.pid)
    if whose == "ours":
        program.send_signal(signal.SIGINT)
    else:
        at_work[-1].terminate()
    out, err = program.communicate(timeout=WITHIN_S)
    if whose == "ours":
        assert program.returncode == 130, err
        assert "Interrupted during preconditioning: nothing was measured." in err
    else:
        assert program.returncode == 1 and "one of fio's processes received SIGTERM" in err
    assert "figures" not in err and out == ""
