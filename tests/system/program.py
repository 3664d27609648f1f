"""Running the program as a user does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import psutil
from json_schema import check_line
from warm import Warm

from iopstui.fio.guard import descendants

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 45.0
"""Only a failure waits for it. A run that would end by itself before is no test of that."""
LONG_S = 300.0
"""For a program that runs by itself to its end: a comparison of 24 runs takes a minute and more on
a machine that does other things, too."""
UNHURRIED = ("--set", "thinktime=100000", "--set", "thinktime_blocks=50",
             "--set", "clocksource=clock_gettime")  # fmt: skip
"""For what is not about figures. At full speed fio takes a CPU from the tests beside it, and a
tenth of a second each time to learn how fast the CPU's clock is. Rests are few and long: fio's
short ones, those of rate_iops too, are loops, and that one ends some jobs with an abort."""

MOVED = 64 << 10
"""Bytes: more than fio reads to begin, and less than it does before its first rest."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """The test's own environment: no state of the user's is read or written."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(home / "state"),
        "LC_ALL": "C.UTF-8",
        **more,
    }


# the fences that fio can be behind; the second is had by a kernel that seems to lack Landlock
LANDLOCK, NAMESPACE, NO_FENCE = "landlock", "namespace", "none"
FENCES = (LANDLOCK, NAMESPACE)
_AT_START = ("LC_", "PYTHON")
"""What Python itself looks at when it starts begins so."""
_WITHOUT = {LANDLOCK: [], NAMESPACE: ["no_landlock.py"],
            NO_FENCE: ["no_landlock.py", "--no-namespaces"]}  # fmt: skip


def command(*arguments: str, fence: str = LANDLOCK) -> list[str]:
    program = [sys.executable, "-m", "iopstui", *arguments]
    script, *more = _WITHOUT[fence] or [""]
    filtered = [sys.executable, str(ROOT / "tests" / "helpers" / script), *more]
    return [*filtered, *program] if script else program


def iopstui(*arguments: str, cwd: Path, timeout: float = LONG_S, fence: str = LANDLOCK, **more: str
            ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run to the end; no terminal on any stream."""
    if fence == LANDLOCK and not any(name.startswith(_AT_START) for name in more):
        return _warm().run(arguments, cwd, environment(cwd.parent, **more), timeout)
    return afresh(*arguments, cwd=cwd, timeout=timeout, fence=fence, **more)


@lru_cache(maxsize=1)
def _warm() -> Warm:
    return Warm()


def afresh(*arguments: str, cwd: Path, timeout: float = LONG_S, fence: str = LANDLOCK, **more: str
           ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """As ``iopstui``, by a Python that has read nothing yet."""
    return subprocess.run(
        command(*arguments, fence=fence),
        cwd=cwd,
        env=environment(cwd.parent, **more),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )


def start(*arguments: str, cwd: Path, nohup: bool = False, **more: str) -> subprocess.Popen[str]:
    """In a session of its own, with its output in pipes. ``nohup``: with the signals as they are
    here."""
    if not nohup and not any(name.startswith(_AT_START) for name in more):
        one = _warm().start(arguments, cwd, environment(cwd.parent, **more))
        return cast("subprocess.Popen[str]", one)
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


def all_signals() -> None:
    """Under nohup, or in the background, a test would inherit some ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def events(text: str) -> list[dict[str, Any]]:
    """JSON lines; fails on a line that is none, or is another than the schema says."""
    found = [json.loads(line) for line in text.splitlines()]
    for row in found:
        check_line(row)
    return found


def family(pid: int) -> list[psutil.Process]:
    """All processes below ``pid``."""
    return psutil.Process(pid).children(recursive=True)


def fio_of(pid: int, within: float = WITHIN_S) -> list[psutil.Process]:
    """The measuring fio and its jobs below ``pid``, once they are there."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        # asked many times: ``family`` looks at every process of the machine
        found = [p for p in descendants(pid) if _is_measuring(p)]
        if len(found) >= 2:
            return [psutil.Process(p) for p in found]
        time.sleep(0.05)
    raise AssertionError("fio did not start")


def fio_at_work(pid: int, within: float = WITHIN_S) -> list[psutil.Process]:
    """As ``fio_of``, once a job has moved data: what is ended before has no figures to show."""
    found = fio_of(pid, within)
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if any(_moved(process) >= MOVED for process in found):
            return found
        time.sleep(0.02)
    raise AssertionError("fio did no I/O")


def _moved(process: psutil.Process) -> int:
    """Bytes, as the kernel counts them: direct I/O is among the first two alone."""
    try:
        done = process.io_counters()
    except psutil.Error:
        return 0
    return max(int(done.read_bytes + done.write_bytes), int(done.read_chars + done.write_chars))


def _is_measuring(pid: int) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.startswith(b"--status-interval") for word in line) and b"fio" in line[0]


def gone(processes: list[psutil.Process], within: float = WITHIN_S) -> list[psutil.Process]:
    """Those that still run after ``within`` seconds (zombies do not run)."""
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
