"""(c) Time and CPU to the first frame that shows the kernel's figures, beside those to the first
of an empty application of Textual."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import program
from statistic import interval
from terminal import Terminal, cpu_s

MANY = 1200
"""Characters that only a whole picture has."""
RATES = re.compile(r"r_await.*?\n?.*?\b\d+(\.\d+)?\s+\d", re.S)


def measure(place: Path, times: int) -> dict[str, Any]:
    """Each start is a process of its own; the first one, which compiles, is left out."""
    wall, cpu, picker, picker_cpu, above = [], [], [], [], []
    for number in range(times + 1):
        one = _start(program.live(place, ["."]), lambda words: RATES.search(words))
        other = _start(program.live(place, []), lambda words: "quit" in words)
        # its first picture is a screen of blanks
        empty = _start(_empty(place), lambda words: len(words) > MANY, b"\x11")
        if number:
            above.append(one[1] - empty[1])
            wall.append(one[0])
            cpu.append(one[1])
            picker.append(other[0])
            picker_cpu.append(other[1])
    return {
        "seconds": interval(wall), "cpu_s": interval(cpu),
        "picker_seconds": interval(picker), "picker_cpu_s": interval(picker_cpu),
        "above_empty_cpu_s": interval(above),
    }  # fmt: skip


def _empty(place: Path) -> Terminal:
    script = str(Path(__file__).parent / "empty.py")
    return Terminal(
        [sys.executable, script], *program.BIG, cwd=place, env=program.environment(place)
    )


def _start(terminal: Terminal, seen: Any, leave: bytes = b"q") -> tuple[float, float]:
    try:
        return terminal.wait_for(seen), cpu_s(terminal.pid)
    finally:
        terminal.end(leave)
