"""(c) Time and CPU time to the first complete frame with the kernel's figures, compared with an
empty Textual application; CPU time to the first line of a run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import program
from statistic import interval
from terminal import Terminal, cpu_s

LAID_OUT = 64 << 20
MANY = 1200
"""A picture with more characters than this is complete."""
RATES = re.compile(r"r_await.*?\n?.*?\b\d+(\.\d+)?\s+\d", re.S)
Condition = Callable[[str], object]


def measure(place: Path, times: int) -> dict[str, Any]:
    """Each start is a new process; the first start, which compiles, is left out."""
    found: dict[str, list[float]] = {}
    file = place / "first.dat"
    file.write_bytes(os.urandom(LAID_OUT))
    for number in range(times + 1):
        one = _start(program.live(place, ["."]), RATES.search)
        other = _start(program.live(place, []), lambda w: "UTIL" in w)
        # the first picture of the application is empty
        empty = _start(_empty(place), lambda w: len(w) > MANY, b"\x11")
        on_file, in_directory = _first_line(place, file), _first_line(place, place)
        if number:
            for name, value in {
                "line_file_cpu_s": on_file, "line_directory_cpu_s": in_directory,
                "seconds": one[0], "cpu_s": one[1], "picker_seconds": other[0],
                "picker_cpu_s": other[1], "above_empty_cpu_s": one[1] - empty[1],
                "picker_above_empty_cpu_s": other[1] - empty[1],
            }.items():  # fmt: skip
                found.setdefault(name, []).append(value)
    return {name: interval(values) for name, values in found.items()}


def _first_line(place: Path, target: Path) -> float:
    """CPU time of `iopstui run` until its first line with fio's figures."""
    words = program.iopstui(
        "run", str(target), "--job", "randread-4k", "--format", "jsonl", "--set", "runtime=30",
        "--set", f"size={LAID_OUT}",
    )  # fmt: skip
    with subprocess.Popen(words, cwd=place, env=program.environment(place), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:  # fmt: skip
        assert process.stdout is not None
        used = next(
            (cpu_s(process.pid) for line in process.stdout if json.loads(line).get("fio")), None
        )
        process.send_signal(signal.SIGINT)
        process.communicate()
    if used is None:
        raise RuntimeError(f"{' '.join(words)}: no line of fio's figures")
    return used


def _empty(place: Path) -> Terminal:
    script = str(Path(__file__).parent / "empty.py")
    return Terminal(
        [sys.executable, script], *program.BIG, cwd=place, env=program.environment(place)
    )


def _start(terminal: Terminal, whole: Condition, leave: bytes = b"q") -> tuple[float, float]:
    """Seconds, and CPU seconds, until the frame is complete."""
    try:
        seconds = terminal.wait_for(whole)
        return seconds, terminal.cpu_at(whole)
    finally:
        terminal.end(leave)
