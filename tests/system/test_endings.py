"""No matter how a run ends, no fio keeps running and no file is left."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from program import (
    UNHURRIED,
    WITHIN_S,
    child_processes,
    command,
    environment,
    events,
    start,
    survivors,
    wait_for_fio_io,
)

JOB = ("run", "--job", "mixed-4k", "--set", "runtime=60", "--size", "16m", *UNHURRIED)


SIGNALS = [signal.SIGINT, signal.SIGRTMIN + 2]
"""Two of STOP_SIGNALS; test_screen_endings.py tests all."""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_run_with_its_summary(number: int, workdir: Path) -> None:
    process = start(*JOB, cwd=workdir)
    wait_for_fio_io(process.pid)
    below = child_processes(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert survivors(below) == []
    assert list(workdir.iterdir()) == []
    assert "fio's final figures" in out and "up to fio's own total" in out


def test_sigkill_ends_all_children(workdir: Path) -> None:
    process = start(*JOB, cwd=workdir)
    wait_for_fio_io(process.pid)
    below = child_processes(process.pid)
    process.kill()
    process.communicate(timeout=WITHIN_S)
    assert survivors(below) == []
    assert list(workdir.iterdir()) == []


def test_a_run_fails_if_fio_s_main_process_is_killed(workdir: Path) -> None:
    process = start(*JOB, "--format", "jsonl", cwd=workdir)
    fio = wait_for_fio_io(process.pid)
    main = min(fio, key=lambda p: p.create_time())
    assert process.stdout is not None
    while not json.loads(process.stdout.readline()).get("fio"):
        pass
    main.kill()
    out, err = process.communicate(timeout=WITHIN_S)
    assert survivors(fio) == []
    assert process.returncode == 1
    assert "killed" in err
    rows = events(out)
    assert rows[-1]["event"] in ("step_finished", "ended")
    finished = next(row for row in rows if row["event"] == "step_finished")
    assert finished["summary"]["final"] is False, "it is fio's last report, and not its final one"
    assert "fio's last report before it was killed" in err and "Not verified: fio was" in err
    assert list(workdir.iterdir()) == []


def test_a_run_fails_if_a_job_process_is_killed(workdir: Path) -> None:
    process = start(*JOB, cwd=workdir)
    fio = wait_for_fio_io(process.pid)
    # before its jobs start, fio itself is the youngest process
    assert process.stdout is not None
    process.stdout.readline()
    max(fio, key=lambda p: p.create_time()).kill()
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 1
    assert "killed" in err


@pytest.mark.parametrize("select", [min, max], ids=["main", "job"])
def test_a_run_cut_short_by_a_signal_to_fio_fails(select: Any, workdir: Path) -> None:
    process = start(*JOB, cwd=workdir)
    fio = wait_for_fio_io(process.pid)
    # fio's jobs ignore a signal before they have started
    assert process.stdout is not None
    process.stdout.readline()
    select(fio, key=lambda p: p.create_time()).terminate()
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 1
    assert "cut short: one of fio's processes received SIGTERM" in err
    assert "fio's final figures" in out and "up to fio's own total" in out
    assert survivors(fio) == []


def guard_of(pid: int) -> psutil.Process:
    guards = [
        p for p in child_processes(pid) if any(w.endswith("fio/guard.py") for w in p.cmdline())
    ]
    return guards[0]


def test_fio_ends_with_iopstui_though_its_guard_is_stopped(workdir: Path) -> None:
    process = start(*JOB, cwd=workdir)
    wait_for_fio_io(process.pid)
    below = child_processes(process.pid)
    guard_of(process.pid).suspend()
    process.kill()
    process.communicate(timeout=WITHIN_S)
    assert survivors(below) == []
    assert list(workdir.iterdir()) == []


def test_a_stopped_fio_ends_with_its_guard(workdir: Path) -> None:
    process = start(*JOB, cwd=workdir)
    fio = wait_for_fio_io(process.pid)
    min(fio, key=lambda p: p.create_time()).suspend()
    guard_of(process.pid).kill()
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 1, err
    assert survivors(fio) == []


def test_a_stopped_iopstui_does_not_disturb_fio(workdir: Path) -> None:
    process = start(
        "run", "--job", "mixed-4k", "--set", "runtime=5", "--size", "16m", *UNHURRIED,
        "--format", "jsonl", cwd=workdir,
    )  # fmt: skip
    wait_for_fio_io(process.pid)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=3)
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, err
    lines = events(out)
    final = next(line for line in lines if line["event"] == "step_finished")["summary"]
    directions = final["rows"][0]["directions"]
    # if fio had waited, this would take three seconds more
    assert all(4900 <= part["runtime_ms"] < 7900 for part in directions.values())
    counted_ios = sum(line["fio"]["total"]["ios"] for line in lines
                      if line["event"] == "frame" and line["fio"])  # fmt: skip
    assert counted_ios == sum(part["total_ios"] for part in directions.values())


def test_a_closed_standard_output_ends_the_run(workdir: Path) -> None:
    read_fd, write_fd = os.pipe()
    process = subprocess.Popen(
        command(*JOB), cwd=workdir, env=environment(workdir.parent), stdin=subprocess.DEVNULL,
        stdout=write_fd, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    os.close(write_fd)
    with os.fdopen(read_fd) as stdout:
        fio = wait_for_fio_io(process.pid)
        stdout.readline()
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0
    assert survivors(fio) == []
    assert "Traceback" not in err and "iopstui:" not in err
    assert list(workdir.iterdir()) == []


SWEEP = ("sweep", ".", "--job", "randread-4k", "--axis", "iodepth=1,2", "--size", "16m",
         *UNHURRIED)  # fmt: skip
COMPARE = ("compare", ".", "--job", "randread-4k", "--variant", "iodepth=1", "--variant",
           "iodepth=2", "--size", "16m", *UNHURRIED)  # fmt: skip
LESSON = ("lesson", "--plain", "1", ".")


@pytest.mark.parametrize(
    ("args", "number"),
    [
        (SWEEP, signal.SIGTERM), (COMPARE, signal.SIGALRM), (LESSON, signal.SIGQUIT),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(int(value)),
)  # fmt: skip
def test_a_signal_ends_a_command_of_several_runs(
    args: tuple[str, ...], number: int, workdir: Path
) -> None:
    process = start(*args, cwd=workdir)
    wait_for_fio_io(process.pid)
    below = child_processes(process.pid)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert survivors(below) == []
    assert list(workdir.iterdir()) == []


def test_a_reader_that_does_not_read_delays_no_end(workdir: Path) -> None:
    reads, writes = os.pipe()
    os.write(writes, b"x" * fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096))
    process = subprocess.Popen(
        command(*JOB, "--format", "jsonl"), stdin=subprocess.DEVNULL, stdout=writes, stderr=writes,
        cwd=workdir, env=environment(workdir.parent),
    )  # fmt: skip
    wait_for_fio_io(process.pid)
    below = child_processes(process.pid)
    process.terminate()
    process.wait(WITHIN_S)
    os.close(reads)
    os.close(writes)
    assert process.returncode == 130
    assert survivors(below) == [] and list(workdir.iterdir()) == []
