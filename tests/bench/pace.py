"""(g) The time between the readings of fio and the kernel; (h) whether a slow terminal changes
it."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from statistics import median
from typing import Any

import program
from beside import workloads
from terminal import memory_mib


def skew(place: Path, seconds: int) -> dict[str, Any]:
    """Milliseconds from fio's timestamp to the kernel's reading, in real runs."""
    found = {}
    for name, (job, target) in workloads(place, seconds).items():
        output = program.run(place, "run", *target, "--job", str(job), "--format", "jsonl")
        values = [abs(f["skew_ms"]) for f in program.frames(output) if f.get("skew_ms") is not None]
        found[name] = {"median_ms": median(values), "max_ms": max(values), "frames": len(values)}
    return found


def slow(place: Path, seconds: int) -> list[dict[str, Any]]:
    """A recorded live session in terminals of several speeds: its frames, and the size of the
    recording.
    """
    job, target = workloads(place, seconds)["direct"]
    rows = []
    for name, speed in (("at once", None), ("9600 baud", 960.0), ("stopped", 0.0)):
        recording = place / "slow.iopstui"
        recording.unlink(missing_ok=True)
        terminal = program.live(place, [*target, "--job", str(job), "--record", str(recording)])
        try:
            program.measuring(terminal.pid)
            time.sleep(1.5)
            before, terminal.bytes_per_s = terminal.total, speed
            time.sleep(seconds)
            written, (rss, _) = terminal.total - before, memory_mib(terminal.pid)
            began = time.monotonic()
            terminal.type(b"q")
            left = terminal.end(None if _left(terminal) else b"q")
            rows.append({
                "terminal": name, **_frames(place, recording), "bytes_written": written,
                "rss_mib": rss, "quit_s": time.monotonic() - began, "left_by_itself": left,
                "recording_bytes": recording.stat().st_size,
            })  # fmt: skip
        finally:
            terminal.bytes_per_s = None
    return rows


def _left(terminal: Any) -> bool:
    gone: bool = terminal._gone(10.0)
    return gone


def _frames(place: Path, recording: Path) -> dict[str, Any]:
    shown = program.frames(program.run(place, "replay", str(recording), "--format", "jsonl"))
    times = [f["t"] for f in shown if f.get("fio")]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    return {"frames": len(times), "longest_gap_s": max(gaps), "typical_gap_s": median(gaps)}
