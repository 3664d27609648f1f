"""Processes that end with their parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from iopstui.linux.own_threads import tied_command, tied_process

ROOT = Path(__file__).resolve().parents[2]
PARENT = f"""
import subprocess, sys, time
sys.path.insert(0, {str(ROOT)!r})
from iopstui.linux.own_threads import tied_command
child = subprocess.Popen(tied_command([sys.executable, "-c", "import time; time.sleep(60)"]))
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_killed_parent_takes_its_child_with_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    assert psutil.wait_procs([child], timeout=30)[1] == []


def test_without_its_parent_nothing_is_started() -> None:
    command = tied_command(["/bin/true"])
    command[5] = "1"
    assert subprocess.run(command, check=False).returncode == 143


def test_a_process_has_time_to_undo_its_changes(tmp_path: Path) -> None:
    undone = tmp_path / "undone"
    script = f"trap 'echo > {undone}; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    with pytest.raises(KeyboardInterrupt), tied_process(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        raise KeyboardInterrupt
    assert process.returncode == 3 and undone.exists()
