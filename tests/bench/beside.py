"""(a) fio's IOPS beside iopstui against the same job alone, in interleaved runs."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import program
from statistic import interval

Run = Mapping[str, float]


def workloads(place: Path, seconds: int) -> dict[str, tuple[Path, list[str]]]:
    """Job files by name, with the target for iopstui (the file that fio uses, too)."""
    data = place / "bench.dat"
    if not data.exists():
        _lay_out(data)
    common = {"time_based": True, "runtime": seconds, "numjobs": program.CPUS, "bs": "4k",
              "rw": "randread", "group_reporting": True, "norandommap": True}  # fmt: skip
    null = {"ioengine": "null", "size": "1g", "iodepth": 1, **common}
    direct = {"ioengine": "libaio", "direct": 1, "iodepth": 32, "filename": data, **common}
    return {
        "null": (program.job_file(place, "null", null), []),
        "direct": (program.job_file(place, "direct", direct), [str(data)]),
    }


def _lay_out(path: Path) -> None:
    block = os.urandom(1 << 20)
    with path.open("wb") as file:
        for _ in range(256):
            file.write(block)
        os.fsync(file.fileno())


def measure(place: Path, triples: int, seconds: int) -> dict[str, Any]:
    """Ratios of IOPS within each triple of runs: fio beside iopstui to fio alone, and fio with the
    status reports that iopstui requests to fio alone."""
    found: dict[str, Any] = {}
    for name, (job, target) in workloads(place, seconds).items():
        runs: list[Run] = []
        for number in range(triples):
            arms = {
                "alone": partial(alone, place, job),
                "reporting": partial(reporting, place, job),
                "beside": partial(beside, place, job, target),
            }
            order = list(arms) if number % 2 == 0 else list(reversed(arms))
            runs.append({arm: arms[arm]() for arm in order})
        found[name] = _summary(runs)
    return found


def _summary(runs: list[Run]) -> dict[str, Any]:
    def ratio(arm: str, to: str) -> tuple[float, float, float]:
        return interval([one[arm] / one[to] for one in runs])

    return {
        "iops_alone": interval([one["alone"] for one in runs])[0],
        "beside_to_same_command": ratio("beside", "reporting"),
        "beside_to_plain_fio": ratio("beside", "alone"),
        "same_command_to_plain_fio": ratio("reporting", "alone"),
        "runs": [dict(one) for one in runs],
    }


def alone(place: Path, job: Path) -> float:
    """fio as a user would start it."""
    return _fio(place, [program.fio(), "--output-format=json", "--eta=never", str(job)])


def reporting(place: Path, job: Path) -> float:
    """fio with exactly the arguments that iopstui gives it."""
    output = Path("/dev/shm") / f"bench-{os.getpid()}.json"
    command = [
        program.fio(), "--status-interval=1", "--output-format=json+", "--eta=never",
        f"--output={output}", "--readonly", str(job),
    ]  # fmt: skip
    try:
        subprocess.run(command, cwd=place, check=True, capture_output=True)
        return program.iops(program.last_document(output.read_bytes()))
    finally:
        output.unlink(missing_ok=True)


def _fio(place: Path, command: list[str]) -> float:
    done = subprocess.run(command, cwd=place, check=True, capture_output=True)
    return program.iops(program.last_document(done.stdout))


def beside(place: Path, job: Path, target: list[str]) -> float:
    """fio started by the live screen. Its figures come from its output file, which we keep open."""
    terminal = program.live(place, [*target, "--job", str(job)])
    try:
        words = program.measuring(terminal.pid)
        output = next(w for w in words if w.startswith("--output=")).partition("=")[2]
        with open(output, "rb") as file:
            while program.alive(terminal.pid):
                time.sleep(0.1)
            terminal.wait_for(lambda seen: "runs it again" in seen or "rror:" in seen, 120)
            time.sleep(0.2)
            return program.iops(program.last_document(file.read()))
    finally:
        terminal.end()
