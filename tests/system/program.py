"""Running the program as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import psutil
from json_schema import check_line
from warm import WarmStarter

from iopstui.fio.guard import descendants

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 45.0
"""Longest wait of a test, reached only on failure. A run that a test stops must last longer."""
LONG_S = 300.0
"""Timeout of a command that ends by itself: 24 runs take over a minute on a busy machine."""
UNHURRIED = ("--set", "thinktime=100000", "--set", "thinktime_blocks=50",
             "--set", "clocksource=clock_gettime", "--set", "disk_util=0")  # fmt: skip
"""Options for tests that do not check figures. At full speed fio takes a CPU from parallel tests
and 0.1 s to calibrate the CPU clock, and for ``disk_util``, which iopstui does not read, it looks
through all block devices of the machine (0.1 s for 200). Pauses are few and long, because fio
busy-waits in short ones (also in those of rate_iops, which besides aborts some jobs)."""

MOVED = 64 << 10
"""Bytes: more than fio reads at startup, less than it moves before its first pause."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """Environment of a test, which reads and writes no state of the user."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(home / "state"),
        "LC_ALL": "C.UTF-8",
        **more,
    }


# sandboxes of fio; the second is used where the kernel seems to lack Landlock
LANDLOCK, NAMESPACE, NO_FENCE = "landlock", "namespace", "none"
FENCES = (LANDLOCK, NAMESPACE)
_AT_START = ("LC_", "PYTHON")
"""Prefixes of the environment variables that Python reads at startup."""
_WITHOUT = {LANDLOCK: [], NAMESPACE: ["no_landlock.py"],
            NO_FENCE: ["no_landlock.py", "--no-namespaces"]}  # fmt: skip


def command(*arguments: str, fence: str = LANDLOCK) -> list[str]:
    program = [sys.executable, "-m", "iopstui", *arguments]
    script, *more = _WITHOUT[fence] or [""]
    filtered = [sys.executable, str(ROOT / "tests" / "helpers" / script), *more]
    return [*filtered, *program] if script else program


def iopstui(*arguments: str, cwd: Path, timeout: float = LONG_S, fence: str = LANDLOCK, **more: str
            ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run the command to its end, without a terminal on any stream."""
    if fence == LANDLOCK and not any(name.startswith(_AT_START) for name in more):
        return _warm().run(arguments, cwd, environment(cwd.parent, **more), timeout)
    return run_in_new_python(*arguments, cwd=cwd, timeout=timeout, fence=fence, **more)


@lru_cache(maxsize=1)
def _warm() -> WarmStarter:
    return WarmStarter()


def run_in_new_python(*arguments: str, cwd: Path, timeout: float = LONG_S, fence: str = LANDLOCK,
                      **more: str) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Like ``iopstui``, in a new Python process that has imported nothing yet."""
    return subprocess.run(
        command(*arguments, fence=fence),
        cwd=cwd,
        env=environment(cwd.parent, **more),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )


def start(*arguments: str, cwd: Path, nohup: bool = False, script: str = "", **more: str
          ) -> subprocess.Popen[str]:  # fmt: skip
    """Start the command in its own session with its output in pipes. ``nohup``: it inherits the
    signal handling of this process. ``script``: another one that calls the program."""
    if not nohup and not any(name.startswith(_AT_START) for name in more):
        process = _warm().start(arguments, cwd, environment(cwd.parent, **more), script)
        return cast("subprocess.Popen[str]", process)
    return subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        env=environment(cwd.parent, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def events(text: str) -> list[dict[str, Any]]:
    """Parse JSON lines; fail on a line that is not JSON or does not match the schema."""
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        check_line(row)
    return rows


def child_processes(pid: int) -> list[psutil.Process]:
    """All processes below ``pid``."""
    return psutil.Process(pid).children(recursive=True)


def wait_for_fio(pid: int, within: float = WITHIN_S) -> list[psutil.Process]:
    """Wait for the measuring fio and its jobs below ``pid`` and return them."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        # polled often: ``child_processes`` would scan every process of the machine
        pids = [p for p in descendants(pid) if _is_measuring(p)]
        if len(pids) >= 2:
            return [psutil.Process(p) for p in pids]
        time.sleep(0.05)
    raise AssertionError("fio did not start")


def wait_for_fio_io(pid: int, within: float = WITHIN_S) -> list[psutil.Process]:
    """Like ``wait_for_fio``, but wait until a job has moved data: earlier there are no figures."""
    processes = wait_for_fio(pid, within)
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if any(_moved(process) >= MOVED for process in processes):
            return processes
        time.sleep(0.02)
    raise AssertionError("fio did no I/O")


def _moved(process: psutil.Process) -> int:
    """Bytes moved, by the kernel's count; only read_bytes and write_bytes include direct I/O."""
    try:
        counters = process.io_counters()
    except psutil.Error:
        return 0
    return max(
        int(counters.read_bytes + counters.write_bytes),
        int(counters.read_chars + counters.write_chars),
    )


def _is_measuring(pid: int) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.startswith(b"--status-interval") for word in line) and b"fio" in line[0]


def survivors(processes: list[psutil.Process], within: float = WITHIN_S) -> list[psutil.Process]:
    """Processes that still run after at most ``within`` seconds (zombies do not run)."""
    deadline = time.monotonic() + within
    alive = processes
    while alive and time.monotonic() < deadline:
        alive = [p for p in alive if _runs(p)]
        time.sleep(0.02)
    return alive


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
