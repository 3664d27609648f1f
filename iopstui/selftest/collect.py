"""Collect the evidence: run fio and iopstui on scratch files, and read the kernel beside them."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from iopstui import __version__
from iopstui.errors import EXIT_MISSING, JobFailed, UsageError
from iopstui.fio.fence import NONE, Fence, fence_kind, start_fenced
from iopstui.fio.inspect import Fio, find_fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.programs import which
from iopstui.linux.roots import Roots
from iopstui.preflight.kept_scratch import KeptScratch
from iopstui.safety.scratch import supports_direct
from iopstui.selftest import counters, devices
from iopstui.selftest.commands import IOPSTUI, MAX_S, run_command
from iopstui.selftest.evidence import Evidence
from iopstui.selftest.iostat_log import IostatLog

SIZE = 64 << 20
NEEDED_BYTES = 192 << 20
FIO_S = 4
MAX_IOPS = 2000
"""In each direction: each I/O has a row in the evidence."""
RUN_S = 5
PROBE_S = 3
SETTLE_S = 0.4
OWN_LINE = "iopstui: "
NO_DISK = "the directory is not on a block device of its own (tmpfs, overlay, a share ...)"
_LOG = re.compile(r"lat_clat\.\d+\.log")
Say = Callable[[str], None]


def collect(directory: Path, say: Say) -> Evidence:
    """Run everything in scratch files below ``directory``; they are removed whatever happens.
    UsageError without a usable directory, Missing without fio, JobFailed if it fails."""
    began = time.monotonic()
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory.",
                         "Name one on the disk to be tested: iopstui selftest DIR")  # fmt: skip
    free = shutil.disk_usage(directory).free
    if free < NEEDED_BYTES:
        raise UsageError(
            f"{directory} has {free >> 20} MiB free; the self-test needs {NEEDED_BYTES >> 20} MiB.",
            "Name another directory on the disk to be tested: iopstui selftest DIR",
        )
    fio = find_fio()
    found = Evidence(machine=_machine(fio))
    found.disk = devices.disk_below(directory)
    kept = KeptScratch([directory])
    try:
        scratch = kept.scratch.path
        say(f"fio for {FIO_S} s, with a log line for each I/O")
        _log_fio(found, fio, scratch, supports_direct(scratch))
        say(f"iopstui for {RUN_S} s, and the kernel's counters beside it")
        _run_iopstui(found, directory)
        say(f"the kernel probe for {PROBE_S} s, and the kernel's counters beside it")
        _run_probe(found, directory)
        say("queue map, fence, tunables")
        _read_queues(found)
        _try_fence(found, scratch)
        devices.try_restore(found, scratch)
        devices.try_known_latency(found)
    except subprocess.TimeoutExpired as error:
        raise JobFailed(
            f"{Path(error.cmd[0]).name} took more than {error.timeout:g} s and was ended.",
            "Try again when this machine is idle.",
        ) from error
    finally:
        kept.close()
    found.seconds = time.monotonic() - began
    return found


def _machine(fio: Fio) -> dict[str, object]:
    return {
        "iopstui": __version__, "python": platform.python_version(), "fio": fio.banner,
        "kernel": platform.release(), "architecture": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)), "root": os.geteuid() == 0, "fence": fence_kind(),
        "clock_ticks": os.sysconf("SC_CLK_TCK"),
    }  # fmt: skip


def _log_fio(found: Evidence, fio: Fio, scratch: Path, direct: bool) -> None:
    """Run fio itself, as iopstui does, with a log line for each I/O."""
    found.job = (
        f"[selftest]\nrw=randrw\nbs=4k\nsize={SIZE}\nfilename=data\nioengine=psync\n"
        f"direct={int(direct)}\nruntime={FIO_S}\ntime_based\nrate_iops={MAX_IOPS}\nwrite_lat_log=lat\nrandseed=1\n"
    )
    (scratch / "selftest.fio").write_text(found.job)
    done = run_command(
        fio.path, "--status-interval=1", "--output-format=json+", "--eta=never",
        "--output=out.json", "selftest.fio", cwd=scratch, timeout=MAX_S,
    )  # fmt: skip
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise JobFailed(f"fio failed: {words[-1] if words else done.returncode}")
    found.stream = (scratch / "out.json").read_text()
    for path in scratch.glob("lat_clat.*.log"):
        if _LOG.fullmatch(path.name):
            for line in path.read_text().splitlines():
                _, value, direction, size, *_ = line.split(",")
                found.log.append([int(direction), int(value), int(size)])


def _run_iopstui(found: Evidence, directory: Path) -> None:
    """A run of the program itself, in a process of its own, with the counters beside it."""
    with contextlib.ExitStack() as beside:
        if found.disk:
            log = counters.CounterLog(found.disk, counters.read_vector_labels(found.disk))
            log.start()
            iostat = IostatLog(found.disk)
            iostat.begin()
            # also after Ctrl-C
            beside.callback(iostat.finish)
            time.sleep(SETTLE_S)
        done = _run_job(directory, RUN_S)
        if found.disk:
            time.sleep(SETTLE_S)
            found.counters, found.iostat = log.finish(), iostat.finish()
        else:
            found.missing["device"] = NO_DISK
    if not found.iostat:
        found.missing["iostat"] = "iostat is not installed (package sysstat)"
    if done.returncode:
        raise JobFailed(f"iopstui run failed: {_why(done)}")
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if row["event"] == "frame":
            found.frames.append(_figures_of(row, found.disk))


def _run_job(directory: Path, seconds: int, *more: str) -> subprocess.CompletedProcess[str]:
    return run_command(
        *IOPSTUI, "run", str(directory), "--job", "mixed-4k", "--size", str(SIZE), "--set",
        f"runtime={seconds}", "--format", "jsonl", *more, timeout=MAX_S,
    )  # fmt: skip


def _why(done: subprocess.CompletedProcess[str]) -> str:
    """The last thing that a failed iopstui said."""
    said = [line for line in done.stderr.splitlines() if line.startswith(OWN_LINE)]
    return said[-1].removeprefix(OWN_LINE) if said else f"exit code {done.returncode}"


def _run_probe(found: Evidence, directory: Path) -> None:
    """A second run, with the probe: it takes its time from the job."""
    if not found.disk:
        found.missing["probe"] = NO_DISK
        return
    if os.geteuid() != 0:
        found.missing["probe"] = "needs root"
        return
    log = counters.CounterLog(found.disk, ())
    log.start()
    time.sleep(SETTLE_S)
    done = _run_job(directory, PROBE_S, "--probe")
    time.sleep(SETTLE_S)
    found.probe_counters = log.finish()
    if done.returncode == EXIT_MISSING:
        found.missing["probe"] = _why(done).replace(str(directory), "DIR")
        return
    if done.returncode:
        raise JobFailed(f"iopstui run --probe failed: {_why(done)}")
    for line in done.stdout.splitlines():
        row = json.loads(line)
        device = row.get("device") if row["event"] == "frame" else None
        if device and found.disk in device["disks"]:
            sides = device["disks"][found.disk]
            found.probe_frames.append({
                "wall_ms": row["wall_ms"], "seconds": device["seconds"], "age_s": device["age_s"],
                **{side: {key: sides[side][key] for key in ("ios", "mean")}
                   for side in ("read", "write")},
                **{key: device[key] for key in ("missed", "skipped", "lost", "full")},
            })  # fmt: skip


def _figures_of(row: dict[str, object], disk: str) -> dict[str, object]:
    """The figures of a frame that are judged; nothing in them names anything."""
    kernel = row["kernel"]
    assert isinstance(kernel, dict)
    return {
        "t": row["t"], "wall_ms": row["wall_ms"], "seconds": row["seconds"],
        "own_cpu": row["own_cpu"], "disk": kernel["disks"].get(disk), "cpus": kernel["cpus"],
        "irqs": kernel["irqs"],
    }  # fmt: skip


def _read_queues(found: Evidence) -> None:
    device = read_devices(Roots()).get(found.disk) if found.disk else None
    if device is None or not device.hctxs:
        found.missing["queues"] = "the disk has no hardware queues" if found.disk else NO_DISK
        return
    found.queues = {str(one.index): list(one.cpus) for one in device.hctxs}
    found.vectors = [
        {"irq": one.irq, "hctx": one.hctx, "shared": one.shared, "cpus": list(one.effective_cpus)}
        for one in device.irqs
    ]
    found.queue_text = counters.queue_text(found.disk)
    names = counters.interrupt_names()
    for one in device.irqs:
        found.vector_names[str(one.irq)] = names.get(str(one.irq), "")
        path = Path(f"/proc/irq/{one.irq}/effective_affinity_list")
        if path.exists():
            found.affinity[str(one.irq)] = path.read_text().strip()


def _try_fence(found: Evidence, scratch: Path) -> None:
    """Let a fenced program write inside and outside of what it may write."""
    inside, outside = scratch / "inside", scratch / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "file").write_text("unchanged")
    shell = which("sh")
    if fence_kind() == NONE or not shell:
        found.missing["fence"] = "this kernel has neither Landlock nor namespaces for this user"
        return
    script = f"echo x > {inside}/file; echo changed > {outside}/file; echo x > {outside}/new"
    process = start_fenced(Fence(own=(str(inside),)), [shell, "-c", script], cwd=inside)
    process.communicate(timeout=MAX_S)
    found.fence = {
        "kind": fence_kind(),
        "inside": (inside / "file").exists(),
        "outside": (outside / "file").read_text() != "unchanged" or (outside / "new").exists(),
    }
