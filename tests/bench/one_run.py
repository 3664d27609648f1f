"""(a) again, but within one run of fio: its IOPS while iopstui works, compared with its IOPS while
iopstui and its guard are stopped (SIGSTOP).

Two runs of the same job may differ by more than iopstui costs, for instance if a virtual machine's
CPUs are on one core's threads in the first run and on two cores in the second."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import program
from beside import workloads
from statistic import interval
from terminal import Terminal, children, command_line, own_cpu_s

PHASE_S = 4.0
CATCHES_UP_S = 1.0
"""After a stop, iopstui reads at once what it has missed. This time is not measured."""


def measure(place: Path, phases: int) -> dict[str, Any]:
    """Ratios working / stopped of adjacent phases, by the name of the workload."""
    found = {}
    seconds = int(phases * PHASE_S) + 3
    for name, (job, target) in workloads(place, seconds).items():
        terminal = program.live(place, [*target, "--job", str(job)])
        try:
            rates, left = _phases(terminal, phases)
        finally:
            terminal.end()
        working = [rates[n] for n in range(phases) if _works(n)]
        stopped = [rates[n] for n in range(phases) if not _works(n)]
        ratios = [a / b for a, b in zip(working, stopped, strict=True)]
        found[name] = {
            "ratio": interval(ratios), "cpu_left": interval(left), "working": working,
            "stopped": stopped,
        }  # fmt: skip
    return found


def _works(phase: int) -> bool:
    """Whether iopstui works in this phase: ABBA order, against drift."""
    return phase % 4 in (0, 3)


def _phases(terminal: Terminal, phases: int) -> tuple[list[float], list[float]]:
    """fio's I/Os per second in each phase, from its own reports; and for the phases in which
    iopstui works, the share of the machine's CPU time that it and its guard did not use."""
    words = program.measuring(terminal.pid)
    output = next(w for w in words if w.startswith("--output=")).partition("=")[2]
    bounds, left = [], []
    data = bytearray()
    with open(output, "rb") as file:
        _read_on(file, data, 2.0)
        for phase in range(phases):
            _signal(terminal.pid, signal.SIGCONT if _works(phase) else signal.SIGSTOP)
            bounds.append((time.time() + CATCHES_UP_S, time.time() + PHASE_S))
            used = own_cpu_s(terminal.pid)
            _read_on(file, data, PHASE_S)
            if _works(phase):
                left.append(1 - (own_cpu_s(terminal.pid) - used) / PHASE_S / program.CPUS)
        _signal(terminal.pid, signal.SIGCONT)
    reports = list(_reports(bytes(data)))
    return [_rate([r for r in reports if low <= r[0] <= high]) for low, high in bounds], left


def _read_on(file: BinaryIO, data: bytearray, seconds: float) -> None:
    """Read more of fio's output. iopstui frees the blocks that it has read, which then read as
    zeros."""
    until = time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        data += (file.read() or b"").replace(b"\0", b"")
        time.sleep(min(0.1, until - now))


def _signal(pid: int, number: int) -> None:
    guards = [c for c in children(pid) if command_line(c)[:1] == [sys.executable]]
    for one in (pid, *guards):
        os.kill(one, number)


def _reports(data: bytes) -> Iterator[tuple[float, int]]:
    """Time of day in seconds and I/Os so far, for each of fio's status documents."""
    text = data.decode("utf-8", "replace")
    starts = [n + 1 for n in _finds(text, "\n{\n")]
    if text.startswith("{\n"):
        starts.insert(0, 0)
    for start in starts:
        try:
            document: Mapping[str, Any] = json.JSONDecoder().raw_decode(text[start:])[0]
        except ValueError:
            return
        done = sum(job[way]["total_ios"] for job in document["jobs"] for way in ("read", "write"))
        yield document["timestamp_ms"] / 1000, done


def _finds(text: str, what: str) -> Iterator[int]:
    at = text.find(what)
    while at >= 0:
        yield at
        at = text.find(what, at + 1)


def _rate(reports: list[tuple[float, int]]) -> float:
    if len(reports) < 2:
        raise SystemExit("bench: fio reported too seldom; the machine is too busy")
    (began, first), (ended, last) = reports[0], reports[-1]
    return (last - first) / (ended - began)
