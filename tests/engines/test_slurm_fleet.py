"""`iopstui fleet slurm` with a real Slurm: its allocations, refusals, and every way to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from conftest import all_idle, wait_for

ROOT = Path(__file__).resolve().parents[2]
IOPSTUI = [sys.executable, "-m", "iopstui"]
JOB = ["--job", "randread-4k", "--size", "4m", "--set"]
ENDS_WITHIN_S = 6.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory for the scratch files of all nodes."""
    found = tmp_path / "scratch"
    found.mkdir()
    return found


def fleet(place: Path, *words: str, runtime: int = 3) -> list[str]:
    return [*IOPSTUI, "fleet", *words[:1], str(place), *JOB, f"runtime={runtime}", *words[1:]]


def run(words: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, **more},
                          timeout=120, check=False)  # fmt: skip


def queue() -> list[str]:
    return run(["squeue", "--noheader", "--format=%i %T"]).stdout.splitlines()


def of(place: Path) -> list[str]:
    """Command lines of fio processes that name the directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "name"]):
        words = process.info["cmdline"] or []
        if process.info["name"] == "fio" and any(str(place) in word for word in words):
            found.append(" ".join(words))
    return found


def merged(text: str) -> dict[str, object]:
    rows = [json.loads(line) for line in text.splitlines()]
    (whole,) = [row for row in rows if row["event"] == "merged"]
    found: dict[str, object] = whole["hosts"] | whole["count"]
    return found


def test_nodes_are_allocated_used_and_released(slurm: Path, place: Path) -> None:
    done = run(fleet(place, "slurm", "--allocate", "-N 3", "--format", "jsonl"))
    assert done.returncode == 0, done.stderr
    whole = merged(done.stdout)
    assert (whole["finished"], whole["exact"]) == (3, 3)
    assert whole["ios"] == whole["fio_ios"]
    assert "Slurm allocation" in done.stderr and "n[1-3]" in done.stderr
    assert not queue() and not [*place.iterdir()]


def test_named_nodes_are_allocated(slurm: Path, place: Path) -> None:
    done = run(fleet(place, "n[2-3]", "--launcher", "slurm", "--format", "jsonl"))
    assert done.returncode == 0, done.stderr
    assert merged(done.stdout)["finished"] == 2
    assert "n[2-3]" in done.stderr and not queue()


def test_the_allocation_around_is_used(slurm: Path, place: Path) -> None:
    done = run(["salloc", "-Q", "-N2", *fleet(place, "slurm", "--format", "jsonl")])
    assert done.returncode == 0, done.stderr
    assert merged(done.stdout)["exact"] == 2 and not queue()


@pytest.mark.parametrize("expect, state", [("iops>=1", "COMPLETED"), ("iops>=100M", "FAILED")])
def test_the_example_script_succeeds_or_fails_as_expected(
    slurm: Path, place: Path, tmp_path: Path, expect: str, state: str
) -> None:
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    program = bin_dir / "iopstui"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m iopstui "$@"\n')
    program.chmod(0o755)
    path = f"{bin_dir}:{os.environ['PATH']}"
    out = tmp_path / "out"
    done = run(["sbatch", "--wait", "--parsable", f"--output={out}", f"--chdir={ROOT}",
                str(ROOT / "docs/examples/fleet.sbatch"), str(place)],
               RUNTIME="3", EXPECT=expect, PATH=path)  # fmt: skip
    shown = run(["scontrol", "show", "job", done.stdout.strip()]).stdout
    assert f"JobState={state}" in shown, out.read_text()
    assert ("ExitCode=4:0" in shown) == (state == "FAILED")
    assert "4 hosts: 4 finished" in out.read_text()


@pytest.mark.parametrize("words, says", [
    (["slurm"], "not inside a Slurm allocation"),
    (["slurm", "--allocate", "-N 2 --constraint nonsense"], "Slurm gives no nodes: "),
    (["slurm", "--allocate", "-N 2 -p nowhere"], "Invalid partition name"),
    (["n[1-2]", "--allocate", "-N 2"], "--allocate is for Slurm"),
    (["slurm", "--launcher", "rsh {host}"], "cannot be combined"),
    (["n77", "--launcher", "slurm"], "Slurm gives no nodes: "),
])  # fmt: skip
def test_what_slurm_cannot_give_is_refused(
    slurm: Path, place: Path, words: list[str], says: str
) -> None:
    done = run(fleet(place, *words, "--format", "table"))
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert not queue()


def test_a_node_outside_of_the_allocation_is_refused(slurm: Path, place: Path) -> None:
    words = fleet(place, "n[1-4]", "--launcher", "slurm", "--format", "table")
    done = run(["salloc", "-Q", "-w", "n1", *words])
    assert done.returncode == 2
    assert "n2, n3, n4: not in Slurm's allocation" in done.stderr


def test_nodes_are_shared_with_other_jobs(slurm: Path, place: Path) -> None:
    with subprocess.Popen(["salloc", "-Q", "-N4", "-n4", "sleep", "30"]) as other:
        wait_for("the other job runs", lambda: any("RUNNING" in row for row in queue()))
        done = run(fleet(place, "slurm", "--allocate", "-N 4 -n 4", "--format", "jsonl"))
        assert done.returncode == 0, done.stderr
        assert merged(done.stdout)["exact"] == 4 and len(queue()) == 1
        other.terminate()
    wait_for("it is gone", lambda: not queue())


def test_a_run_outlives_the_daemon_of_a_node(slurm: Path, place: Path) -> None:
    words = fleet(place, "slurm", "--allocate", "-N 3", "--format", "jsonl", runtime=6)
    with subprocess.Popen(words, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:  # fmt: skip
        wait_for("fio on three nodes", lambda: len([*place.iterdir()]) >= 3)
        os.kill(int((slurm / "n2.pid").read_text()), signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            run(["slurmd", "-N", "n2"])
    assert process.returncode == 0, err
    assert merged(out)["exact"] == 3
    wait_for("nothing is left", lambda: not queue() and not [*place.iterdir()])
    wait_for("all nodes are back", all_idle)


def test_the_place_in_the_queue_is_told_and_nothing_waits_afterwards(
    slurm: Path, place: Path
) -> None:
    with subprocess.Popen(["salloc", "-Q", "-N4", "--exclusive", "sleep", "30"]) as other:
        wait_for("the other job runs", lambda: any("RUNNING" in row for row in queue()))
        words = fleet(place, "slurm", "--allocate", "-N 3", "--format", "table")
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as waits:
            assert waits.stderr is not None
            assert "waits (Resources): number 1 of 1 in partition all" in waits.stderr.readline()
            waits.send_signal(signal.SIGKILL)
        wait_for("it left the queue", lambda: len(queue()) == 1)
        other.terminate()
    wait_for("nobody waits", lambda: not queue())


def cancelled(process: subprocess.Popen[str]) -> None:
    run(["scancel", "--user=root"])


def with_a_node_down(process: subprocess.Popen[str]) -> None:
    run(["scontrol", "update", "nodename=n2", "state=down", "reason=test"])


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()


def interrupted(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def without_salloc(process: subprocess.Popen[str]) -> None:
    for child in psutil.Process(process.pid).children():
        if child.name() == "salloc":
            child.kill()
    process.send_signal(signal.SIGINT)


def without_an_srun(process: subprocess.Popen[str]) -> None:
    child = next(one for one in psutil.Process(process.pid).children() if "n2" in one.cmdline())
    child.kill()
    time.sleep(ENDS_WITHIN_S)
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("end, code", [
    (cancelled, 1), (with_a_node_down, 1), (killed, -9), (interrupted, 130),
    (without_salloc, 130), (without_an_srun, 1),
])  # fmt: skip
def test_nothing_is_left_however_it_ends(
    slurm: Path, place: Path, end: Callable[[subprocess.Popen[str]], None], code: int
) -> None:
    words = fleet(place, "slurm", "--allocate", "-N 3", "--format", "table", runtime=60)
    with subprocess.Popen(words, text=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:  # fmt: skip
        wait_for("fio on three nodes", lambda: len([*place.iterdir()]) >= 3)
        time.sleep(3)
        end(process)
        ended = time.monotonic()
        wait_for("all is gone", lambda: not (queue() or [*place.iterdir()] or of(place)))
        assert time.monotonic() - ended <= ENDS_WITHIN_S
        assert process.wait(timeout=30) == code
    if end is with_a_node_down:
        run(["scontrol", "update", "nodename=n2", "state=resume"])
    wait_for("all nodes are back", all_idle)
