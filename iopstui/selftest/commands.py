"""Run the programs of the self-test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from iopstui.errors import JobFailed

IOPSTUI = (sys.executable, "-m", "iopstui")
MAX_S = 120
SHORT_S = 30


def run_command(
    *command: str, cwd: Path | None = None, timeout: float = SHORT_S
) -> subprocess.CompletedProcess[str]:
    """Run to the end, without input. Raises subprocess.TimeoutExpired, JobFailed if it cannot be
    started."""
    try:
        return subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=timeout, check=False,
        )  # fmt: skip
    except OSError as error:
        raise JobFailed(f"Cannot start {command[0]}: {error.strerror}.") from error
