"""Run the programs of the self-test."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from iopstui.errors import JobFailed
from iopstui.fio.fence import Fence
from iopstui.fio.process import FioProcess
from iopstui.linux.process.affinity import tied_process
from iopstui.linux.process.private import private_directory

IOPSTUI = (sys.executable, "-m", "iopstui")
MAX_S = 120
SHORT_S = 30
POLL_S = 0.5


def run_command(
    *command: str, cwd: Path | None = None, timeout: float = SHORT_S
) -> subprocess.CompletedProcess[str]:
    """Run to the end, without input; it ends with this process. Raises subprocess.TimeoutExpired,
    JobFailed if it cannot be started."""
    try:
        with tied_process(
            command, cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:  # fmt: skip
            out, err = process.communicate(timeout=timeout)
    except OSError as error:
        raise JobFailed(f"Cannot start {command[0]}: {error.strerror}.") from error
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run_guarded_fio(command: Sequence[str], cwd: Path) -> tuple[int, list[str]]:
    """Run fio to its end, with its guard, fenced in ``cwd``; its exit code and its messages. Raises
    subprocess.TimeoutExpired."""
    fio = FioProcess(command, private_directory(), Fence(run_directories=(str(cwd),)), cwd=cwd)
    code, deadline, over = 1, time.monotonic() + MAX_S, False
    try:
        while not over:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(list(command), MAX_S)
            select.select(fio.wake_fds, [], [], POLL_S)
            for message in fio.read_guard():
                over = over or message.event in ("over", "gone")
                if message.event == "exited":
                    code = message.numbers[0]
        return code, fio.messages()
    finally:
        fio.close()
