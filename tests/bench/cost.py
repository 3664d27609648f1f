"""(b) CPU time and output of the live screen in a real pseudo-terminal, beside similar programs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import program
from program import BIG, LARGEST, SMALL
from terminal import Terminal, memory_mib, own_cpu_s

WARM_S = 6.0
SETTINGS = ["--set", "runtime=600"]
HEAT_MAP = "iopstui 160x45, job, 1 Hz, heat map instead of latency lines"
PEERS = {
    "btop (2 s)": ["btop"],
    "htop (1 s)": ["htop", "-d", "10"],
    "s-tui (2 s)": ["s-tui"],
    "glances (1 s)": ["glances", "-t", "1"],
    "iostat -x 1": ["iostat", "-x", "1"],
}


def measure(place: Path, seconds: float) -> list[dict[str, Any]]:
    """One row for each program: percent of one CPU, bytes per second, resident memory."""
    found = _together(
        [("iopstui 160x45, no job, 1 Hz", program.live(place, ["."], BIG), True),
         ("iopstui 80x24, no job, 1 Hz", program.live(place, ["."], SMALL), True),
         *[(name, _peer(place, argv), False) for name, argv in PEERS.items()
           if shutil.which(argv[0])]],
        seconds,
    )  # fmt: skip
    job = [".", "--job", "mixed-4k", *SETTINGS]
    for name, size, more in (
        ("iopstui 160x45, job, 1 Hz", BIG, []),
        ("iopstui 200x50, job, 1 Hz", LARGEST, []),
        ("iopstui 160x45, job, 2 Hz", BIG, ["--interval", "0.5"]),
        ("iopstui 160x45, job, sampled at 2 Hz, painted at 0.5 Hz", BIG,
         ["--interval", "0.5", "--refresh", "2"]),
        (HEAT_MAP, BIG, []),
        ("iopstui 80x24, job, 1 Hz", SMALL, []),
    ):  # fmt: skip
        terminal = program.live(place, [*job, *more], size)
        program.measuring(terminal.pid, 120.0)  # on a slow disk laying out the file takes long
        if name == HEAT_MAP:
            terminal.type(b"h")
        found += _together([(name, terminal, True)], seconds)
    return found


def _peer(place: Path, argv: Sequence[str]) -> Terminal:
    return Terminal(argv, *BIG, cwd=place, env={"HOME": str(place)})


def _together(
    programs: Sequence[tuple[str, Terminal, bool]], seconds: float
) -> list[dict[str, Any]]:
    """Measure these programs over the same seconds."""
    try:
        time.sleep(WARM_S)
        before = [_now(terminal) for _, terminal, _ in programs]
        time.sleep(seconds)
        rows = []
        for (name, terminal, own), (at, cpu, written) in zip(programs, before, strict=True):
            now, used, total = _now(terminal)
            rows.append({
                "program": name,
                "cpu_percent": 100 * (used - cpu) / (now - at),
                "bytes_per_s": (total - written) / (now - at),
                "rss_mib": memory_mib(terminal.pid)[0],
                "own": own,
            })  # fmt: skip
        return rows
    finally:
        for _, terminal, _ in programs:
            terminal.end()


def _now(terminal: Terminal) -> tuple[float, float, int]:
    return time.monotonic(), own_cpu_s(terminal.pid), terminal.total
