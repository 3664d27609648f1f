"""(i) What the probe costs fio: alternately on and off within one run of fio. Needs root."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

import beside
import program
from statistic import interval

from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import Clock
from iopstui.linux.probe.bpf import why_no_probe
from iopstui.linux.probe.bpf_probe import BpfProbe
from iopstui.linux.probe.regions import regions

ROOTS = Roots()
SETTLE_S, WINDOW_S = 0.5, 2.0


def measure(place: Path, pairs: int) -> dict[str, Any]:
    """Ratios of IOPS with all CPUs busy, and at 10,000 I/Os a second; and the kernel's own count of
    the probe's time."""
    reason = why_no_probe(ROOTS)
    if reason is not None:
        return {"why_not": reason[0]}
    data = place / "bench.dat"
    if not data.exists():
        beside._lay_out(data)
    slow = {"rate_iops": 10_000 // program.CPUS, "iodepth": 4}
    return {
        "busy": _compare(place, data, "busy", (), pairs),
        "slow": _compare(place, data, "slow", tuple(slow.items()), pairs),
    }


def _compare(
    place: Path, data: Path, name: str, options: tuple[tuple[str, object], ...], pairs: int
) -> dict[str, Any]:
    job = program.job_file(place, f"probe-{name}", {
        "time_based": True, "runtime": 600, "numjobs": program.CPUS, "bs": "4k", "rw": "randread",
        "ioengine": "libaio", "direct": 1, "iodepth": 32, "filename": data, **dict(options),
    })  # fmt: skip
    fio = subprocess.Popen([program.fio(), "--output=/dev/null", str(job)], cwd=place)
    try:
        time.sleep(2.0)
        rows = [_pair(data, number % 2 == 0) for number in range(pairs)]
    finally:
        fio.terminate()
        fio.wait()
    return {
        "ratio": interval([on / off for on, off, _, _ in rows]),
        "iops": median(off for _, off, _, _ in rows),
        "busy": median(busy for _, _, busy, _ in rows),
        "run_ns": max(ns for _, _, _, ns in rows),
    }


def _pair(data: Path, on_first: bool) -> tuple[float, float, float, float]:
    """(IOPS with the probe, IOPS without, percent of a CPU for reading, ns of the probe's programs
    per I/O)."""
    off = 0.0 if on_first else _off(data)
    with_probe, busy, run_ns = _on(data)
    return with_probe, off or _off(data), busy, run_ns


def _off(data: Path) -> float:
    time.sleep(SETTLE_S)
    return _iops(data, lambda: None)[0]


def _on(data: Path) -> tuple[float, float, float]:
    followed = regions((_disk(data).name,), read_devices(ROOTS), ROOTS)
    probe = BpfProbe(followed, 1, Clock(), ROOTS)
    try:
        while probe.take() is None:
            time.sleep(0.05)
        time.sleep(SETTLE_S)
        first = probe.take()
        iops, seconds = _iops(data, probe.take)
        last = probe.take()
    finally:
        probe.close()
    if first is None or last is None or first.busy_s is None or last.busy_s is None:
        return iops, 0.0, 0.0
    run_ns = last.run_ns / last.run_ios if last.run_ns and last.run_ios else 0.0
    return iops, 100 * (last.busy_s - first.busy_s) / seconds, run_ns


def _disk(data: Path) -> Path:
    number = data.stat().st_dev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()


def _iops(data: Path, tick: Any) -> tuple[float, float]:
    """(completed requests per second, seconds). ``tick`` reads the probe once in each second."""
    place = _disk(data) / "stat"
    began, before = time.monotonic(), int(place.read_text().split()[0])
    for _ in range(round(WINDOW_S)):
        time.sleep(1.0)
        tick()
    done, seconds = int(place.read_text().split()[0]) - before, time.monotonic() - began
    return done / seconds, seconds
