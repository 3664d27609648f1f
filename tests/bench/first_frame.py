"""(c) Time and CPU to the first frame that shows the kernel's figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import program
from statistic import interval
from terminal import cpu_s

RATES = re.compile(r"r_await.*?\n?.*?\b\d+(\.\d+)?\s+\d", re.S)


def measure(place: Path, times: int) -> dict[str, Any]:
    """Each start is a process of its own; the first one, which compiles, is left out."""
    wall, cpu, picker, picker_cpu = [], [], [], []
    for number in range(times + 1):
        one = _start(place, ["."], lambda words: RATES.search(words))
        other = _start(place, [], lambda words: "quit" in words)
        if number:
            wall.append(one[0])
            cpu.append(one[1])
            picker.append(other[0])
            picker_cpu.append(other[1])
    return {
        "seconds": interval(wall), "cpu_s": interval(cpu),
        "picker_seconds": interval(picker), "picker_cpu_s": interval(picker_cpu),
    }  # fmt: skip


def _start(place: Path, arguments: list[str], seen: Any) -> tuple[float, float]:
    terminal = program.live(place, arguments)
    try:
        return terminal.wait_for(seen), cpu_s(terminal.pid)
    finally:
        terminal.end()
