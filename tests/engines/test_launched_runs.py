"""`... iopstui run --format jsonl | iopstui merge` with real launchers: every I/O is counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = (f"exec {sys.executable} -m iopstui run \"$D\" --job randread-4k --size 4m "
       "--set runtime=6 --format jsonl")  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]


def own(name: str) -> str:
    """A shell command that runs iopstui in a directory of the task's own."""
    return f'D="$PWD/{name}"; mkdir -p "$D"; cd {ROOT}; {RUN}'


@pytest.mark.parametrize("launcher, tasks", [
    (["srun", "-l", "-N4", "sh", "-c", own("$SLURMD_NODENAME")], 4),
    (["mpirun", "--tag-output", "--oversubscribe", "-n", "3", "sh", "-c",
      own("$OMPI_COMM_WORLD_RANK")], 3),
    (["clush", "-R", "exec", "-w", "a[1-3]", own("%h")], 3),
    (["clush", "-L", "-R", "exec", "-w", "a[1-3]", own("%h")], 3),
    (["pdsh", "-R", "exec", "-w", "a[1-3]", "sh", "-c", own("%h")], 3),
], ids=["srun", "mpirun", "clush", "clush-L", "pdsh"])  # fmt: skip
def test_every_io_is_counted(slurm: Path, tmp_path: Path, launcher: list[str], tasks: int) -> None:
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with subprocess.Popen(launcher, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          cwd=tmp_path, env=env) as launched:  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "iopstui", "merge", "--format", "jsonl"],
                              stdin=launched.stdout, capture_output=True, text=True, cwd=ROOT,
                              timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    (whole,) = [row for row in rows if row["event"] == "merged"]
    assert (whole["hosts"]["finished"], whole["count"]["exact"]) == (tasks, tasks), done.stderr
    assert whole["count"]["ios"] == whole["count"]["fio_ios"] > 0
    full = [row for row in rows if row["event"] == "total" and row["hosts"]["counted"] == tasks]
    assert full, "no second has all tasks"
