"""Run jobs with iopstui as a user does; fio logs every I/O of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from jobs import Job

Object = dict[str, Any]
LOG = re.compile(r"(.+)_(clat|lat)\.\d+\.log")
COUNTING = """
import sys, time
while True:
    with open(sys.argv[1]) as stat:
        print(time.time(), stat.read().strip(), "end.", flush=True)
    time.sleep(0.005)
"""
DIRECTIONS = ("read", "write", "trim")


@dataclass(frozen=True, slots=True)
class Io:
    """One I/O of a log: when it ended (seconds of the wall clock) and how long it took. For a
    device's counts ``end_s`` is the latest and ``least_s`` the earliest time of its end."""

    end_s: float
    ns: int
    direction: str
    bytes: int
    least_s: float = 0.0


@dataclass(slots=True)
class Run:
    """The result of one job: iopstui's rows, its verdict on the steady state, and each section's
    logs by kind of latency."""

    job: Job
    rows: list[Object]
    steady: Object
    logs: dict[str, dict[str, list[Io]]] = field(default_factory=dict)


def run(job: Job, fio: str, place: Path, target: str) -> Run:
    """Run the job on ``target``; its files are in ``place``. Raises RuntimeError if the run
    fails."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "job.fio").write_text(job.text(f"{place}/log-"))
    command = [sys.executable, "-m", "iopstui", "run", target, "--job", str(place / "job.fio"),
               "--format", "jsonl", "--record", str(place / "run.iops"), *job.options]  # fmt: skip
    if job.trims:
        command += ["--destroy-data", target]
    environment = os.environ | {
        "PATH": f"{Path(fio).parent}:{os.environ['PATH']}", "XDG_STATE_HOME": str(place / "state"),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }  # fmt: skip
    with (place / "rows").open("w") as rows, (place / "messages").open("w") as messages:
        process = subprocess.Popen(
            command, stdout=rows, stderr=messages, stdin=subprocess.DEVNULL, env=environment
        )
        with _counting(target, place / "counts") if not job.logs else contextlib.nullcontext():
            if job.kill_s:
                _kill_fio(process, place / "rows", job.kill_s)
            process.wait()
    message = (place / "messages").read_text()
    events = [json.loads(line) for line in (place / "rows").read_text().splitlines()]
    rows_with_fio = [e for e in events if e["event"] == "frame" and e["fio"]]
    if not rows_with_fio or (process.returncode and not job.kill_s):
        raise RuntimeError(f"iopstui ended with {process.returncode}: {message}")
    logs = _logs(place) if job.logs else {"device": {"device": _counted(place / "counts")}}
    said = [event for event in events if event["event"] == "steady_state"]
    return Run(job, rows_with_fio, said[-1] if said else {"steady": None}, logs)


@contextlib.contextmanager
def _counting(device: str, path: Path) -> Iterator[None]:
    """Write a device's counters every 5 ms, in a process of its own."""
    stat = f"/sys/block/{Path(device).name}/stat"
    with path.open("w") as file:
        process = subprocess.Popen([sys.executable, "-c", COUNTING, stat], stdout=file)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def _counted(path: Path) -> list[Io]:
    """The reads between any two successive readings of the counters."""
    readings = [line.split() for line in path.read_text().splitlines() if line.endswith(".")]
    ios: list[Io] = []
    for before, now in pairwise(readings):
        count = int(now[1]) - int(before[1])
        size = 512 * (int(now[3]) - int(before[3]))
        end_s, least_s = float(now[0]), float(before[0])
        ios += [Io(end_s, 0, "read", size // count, least_s) for _ in range(count)]
    return ios


def _kill_fio(process: subprocess.Popen[bytes], rows: Path, after_s: float) -> None:
    """Kill fio's main process ``after_s`` seconds after its first figures."""
    while process.poll() is None and '"event":"frame"' not in rows.read_text():
        time.sleep(0.05)
    time.sleep(after_s)
    for pid, name in _descendants(process.pid):
        if name == "fio":
            os.kill(pid, signal.SIGKILL)
            return


def _descendants(parent: int) -> Iterator[tuple[int, str]]:
    """(pid, name) of all processes below one, from the top down."""
    children: dict[int, list[tuple[int, str]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, tail = stat.read_text().rpartition(")")
            pid, _, name = head.partition(" (")
            children.setdefault(int(tail.split()[1]), []).append((int(pid), name))
    waiting = [parent]
    while waiting:
        below = children.get(waiting.pop(0), [])
        yield from below
        waiting += [pid for pid, _ in below]


def _logs(place: Path) -> dict[str, dict[str, list[Io]]]:
    logs: dict[str, dict[str, list[Io]]] = {}
    for path in sorted(place.glob("log-*.log")):
        match = LOG.fullmatch(path.name.removeprefix("log-"))
        if match is not None:
            ios = logs.setdefault(match[1], {}).setdefault(match[2], [])
            for line in path.read_text().splitlines():
                ms, ns, direction, size, *_ = line.split(",")
                ios.append(Io(int(ms) / 1000, int(ns), DIRECTIONS[int(direction)], int(size)))
    for kinds in logs.values():
        for ios in kinds.values():
            ios.sort(key=lambda io: io.end_s)
    return logs
