"""Collect the evidence: run fio and iopstui on scratch files, and read the kernel's counters
meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iopstui import __version__
from iopstui.errors import EXIT_MISSING, JobFailed, UsageError
from iopstui.features.selftest import devices
from iopstui.features.selftest.devices import IOPSTUI, MAX_S, run_command, run_guarded_fio
from iopstui.features.selftest.evidence import Evidence
from iopstui.fio.fence import NONE, Fence, fence_kind, start_fenced
from iopstui.fio.inspect import Fio, find_fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import tied_command
from iopstui.linux.process.programs import which
from iopstui.preflight.staging import SharedScratch
from iopstui.safety.scratch import supports_direct

SIZE = 64 << 20
NEEDED_BYTES = 192 << 20
FIO_S = 4
MAX_IOPS = 2000
"""Limit for the IOPS in each direction, because each I/O gets a row in the evidence."""
RUN_S = 5
PROBE_S = 3
SETTLE_S = 0.4
MESSAGE_PREFIX = "iopstui: "
NO_DISK = "the directory is not on a block device of its own (tmpfs, overlay, a share ...)"
_LOG = re.compile(r"lat_clat\.\d+\.log")
Notify = Callable[[str], None]


def collect(directory: Path, notify: Notify) -> Evidence:
    """Run everything on scratch files below ``directory``, which are always removed. Raises
    UsageError if the directory is not usable, Missing if fio is not installed, JobFailed if fio
    fails."""
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
    evidence = Evidence(machine=_machine(fio))
    evidence.disk = devices.disk_below(directory)
    shared_scratch = SharedScratch([directory])
    try:
        scratch = shared_scratch.scratch.path
        notify(f"fio for {FIO_S} s, with a log line for each I/O")
        _log_fio(evidence, fio, scratch, supports_direct(scratch))
        notify(f"iopstui for {RUN_S} s, and the kernel's counters beside it")
        _run_iopstui(evidence, directory)
        notify(f"the kernel probe for {PROBE_S} s, and the kernel's counters beside it")
        _run_probe(evidence, directory)
        notify("queue map, fence, tunables")
        _read_queues(evidence)
        _try_fence(evidence, scratch)
        devices.try_restore(evidence, scratch)
        devices.try_known_latency(evidence)
    except subprocess.TimeoutExpired as error:
        raise JobFailed(
            f"{Path(error.cmd[0]).name} took more than {error.timeout:g} s and was ended.",
            "Try again when this machine is idle.",
        ) from error
    finally:
        shared_scratch.close()
    evidence.seconds = time.monotonic() - began
    return evidence


def _machine(fio: Fio) -> dict[str, object]:
    return {
        "iopstui": __version__, "python": platform.python_version(), "fio": fio.banner,
        "kernel": platform.release(), "architecture": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)), "root": os.geteuid() == 0, "fence": fence_kind(),
        "clock_ticks": os.sysconf("SC_CLK_TCK"),
    }  # fmt: skip


def _log_fio(evidence: Evidence, fio: Fio, scratch: Path, direct: bool) -> None:
    """Run fio itself, in the same way as iopstui does, with a log of each I/O."""
    evidence.job = (
        f"[selftest]\nrw=randrw\nbs=4k\nsize={SIZE}\nfilename=data\nioengine=psync\n"
        f"direct={int(direct)}\nruntime={FIO_S}\ntime_based\nrate_iops={MAX_IOPS}\nwrite_lat_log=lat\nrandseed=1\n"
    )
    (scratch / "selftest.fio").write_text(evidence.job)
    code, messages = run_guarded_fio(
        [fio.path, "--status-interval=1", "--output-format=json+", "--eta=never",
         "--output=out.json", "selftest.fio"], scratch,
    )  # fmt: skip
    if code:
        raise JobFailed(f"fio failed: {messages[-1] if messages else code}")
    evidence.stream = (scratch / "out.json").read_text()
    for path in scratch.glob("lat_clat.*.log"):
        if _LOG.fullmatch(path.name):
            for line in path.read_text().splitlines():
                _, value, direction, size, *_ = line.split(",")
                evidence.log.append([int(direction), int(value), int(size)])


def _run_iopstui(evidence: Evidence, directory: Path) -> None:
    """Run iopstui in another process, and read the counters meanwhile."""
    with contextlib.ExitStack() as stack:
        if evidence.disk:
            log = CounterLog(evidence.disk, read_vector_labels(evidence.disk))
            log.start()
            iostat = IostatLog(evidence.disk)
            iostat.begin()
            # as a callback, so that it also happens after Ctrl-C
            stack.callback(iostat.finish)
            time.sleep(SETTLE_S)
        result = _run_job(directory, RUN_S)
        if evidence.disk:
            time.sleep(SETTLE_S)
            evidence.counters, evidence.iostat = log.finish(), iostat.finish()
        else:
            evidence.missing["device"] = NO_DISK
    if not evidence.iostat:
        evidence.missing["iostat"] = "iostat is not installed (package sysstat)"
    if result.returncode:
        raise JobFailed(f"iopstui run failed: {_failure_reason(result)}")
    for line in result.stdout.splitlines():
        row = json.loads(line)
        if row["event"] == "frame":
            evidence.frames.append(_figures_of(row, evidence.disk))


def _run_job(directory: Path, seconds: int, *more: str) -> subprocess.CompletedProcess[str]:
    return run_command(
        *IOPSTUI, "run", str(directory), "--job", "mixed-4k", "--size", str(SIZE), "--set",
        f"runtime={seconds}", "--format", "jsonl", *more, timeout=MAX_S,
    )  # fmt: skip


def _failure_reason(result: subprocess.CompletedProcess[str]) -> str:
    """The last message of an iopstui that failed, or its exit code."""
    messages = [line for line in result.stderr.splitlines() if line.startswith(MESSAGE_PREFIX)]
    return (
        messages[-1].removeprefix(MESSAGE_PREFIX) if messages else f"exit code {result.returncode}"
    )


def _run_probe(evidence: Evidence, directory: Path) -> None:
    """Make a second run, with the probe. It is separate, because the probe takes time from the
    job."""
    if not evidence.disk:
        evidence.missing["probe"] = NO_DISK
        return
    if os.geteuid() != 0:
        evidence.missing["probe"] = "needs root"
        return
    log = CounterLog(evidence.disk, ())
    log.start()
    time.sleep(SETTLE_S)
    result = _run_job(directory, PROBE_S, "--probe")
    time.sleep(SETTLE_S)
    evidence.probe_counters = log.finish()
    if result.returncode == EXIT_MISSING:
        evidence.missing["probe"] = _failure_reason(result).replace(str(directory), "DIR")
        return
    if result.returncode:
        raise JobFailed(f"iopstui run --probe failed: {_failure_reason(result)}")
    for line in result.stdout.splitlines():
        row = json.loads(line)
        device = row.get("device") if row["event"] == "frame" else None
        if device and evidence.disk in device["disks"]:
            sides = device["disks"][evidence.disk]
            evidence.probe_frames.append({
                "wall_ms": row["wall_ms"], "seconds": device["seconds"], "age_s": device["age_s"],
                **{side: {key: sides[side][key] for key in ("ios", "mean")}
                   for side in ("read", "write")},
                **{key: device[key] for key in ("missed", "skipped", "lost", "full")},
            })  # fmt: skip


def _figures_of(row: dict[str, object], disk: str) -> dict[str, object]:
    """The figures of a frame that are judged. They contain no names."""
    kernel = row["kernel"]
    assert isinstance(kernel, dict)
    return {
        "t": row["t"], "wall_ms": row["wall_ms"], "seconds": row["seconds"],
        "own_cpu": row["own_cpu"], "disk": kernel["disks"].get(disk), "cpus": kernel["cpus"],
        "irqs": kernel["irqs"],
    }  # fmt: skip


def _read_queues(evidence: Evidence) -> None:
    device = read_devices(Roots()).get(evidence.disk) if evidence.disk else None
    if device is None or not device.hctxs:
        evidence.missing["queues"] = "the disk has no hardware queues" if evidence.disk else NO_DISK
        return
    evidence.queues = {str(hctx.index): list(hctx.cpus) for hctx in device.hctxs}
    evidence.vectors = [
        {
            "irq": vector.irq,
            "hctx": vector.hctx,
            "shared": vector.shared,
            "cpus": list(vector.effective_cpus),
        }
        for vector in device.irqs
    ]
    evidence.queue_text = queue_text(evidence.disk)
    names = interrupt_names()
    for vector in device.irqs:
        evidence.vector_names[str(vector.irq)] = names.get(str(vector.irq), "")
        path = Path(f"/proc/irq/{vector.irq}/effective_affinity_list")
        if path.exists():
            evidence.affinity[str(vector.irq)] = path.read_text().strip()


def _try_fence(evidence: Evidence, scratch: Path) -> None:
    """Let a fenced program try to write to its own files and to others."""
    inside, outside = scratch / "inside", scratch / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "file").write_text("unchanged")
    shell = which("sh")
    if fence_kind() == NONE or not shell:
        evidence.missing["fence"] = "this kernel has neither Landlock nor namespaces for this user"
        return
    script = f"echo x > {inside}/file; echo changed > {outside}/file; echo x > {outside}/new"
    process = start_fenced(Fence(run_directories=(str(inside),)), [shell, "-c", script], cwd=inside)
    process.communicate(timeout=MAX_S)
    evidence.fence = {
        "kind": fence_kind(),
        "inside": (inside / "file").exists(),
        "outside": (outside / "file").read_text() != "unchanged" or (outside / "new").exists(),
    }


# Read the kernel's counters repeatedly, with separate code, as the reference for the self-test.
#
# Nothing here uses the parsers in iopstui/linux, because the self-test checks those.


INTERVAL_S = 0.05


class CounterLog(threading.Thread):
    """Polls the lines for a disk (/proc/diskstats), the BLOCK softirq (/proc/softirqs) and the
    disk's interrupts (/proc/interrupts). ``rows`` are tuples (wall clock in ms, name, line)."""

    def __init__(self, disk: str, vectors: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self._disk, self._vectors = disk, vectors
        self._stop_requested = threading.Event()
        self.rows: list[tuple[float, str, str]] = []

    def run(self) -> None:
        """Poll until ``finish`` is called."""
        while True:
            is_last = self._stop_requested.wait(INTERVAL_S)
            self._read()
            if is_last:
                return

    def finish(self) -> list[list[Any]]:
        """Stop after one more reading. Returns the rows."""
        self._stop_requested.set()
        self.join()
        return [list(row) for row in self.rows]

    def _read(self) -> None:
        for line in Path("/proc/diskstats").read_text().splitlines():
            if line.split()[2] == self._disk:
                self.rows.append((_now_ms(), "diskstats", line.strip()))
        for line in Path("/proc/softirqs").read_text().splitlines():
            if line.split()[0] == "BLOCK:":
                self.rows.append((_now_ms(), "softirqs", line.strip()))
        if self._vectors:
            for line in Path("/proc/interrupts").read_text().splitlines():
                if line.split()[0] in self._vectors:
                    self.rows.append((_now_ms(), "interrupts", line.strip()))


def _now_ms() -> float:
    return time.time() * 1000


def read_vector_labels(disk: str) -> tuple[str, ...]:
    """The labels ("35:") of the disk's interrupts in /proc/interrupts, from msi_irqs of its device
    or of a parent; empty if there are none."""
    directory = Path("/sys/block", disk, "device").resolve()
    while directory != Path("/sys") and directory != directory.parent:
        if (directory / "msi_irqs").is_dir():
            return tuple(f"{entry.name}:" for entry in (directory / "msi_irqs").iterdir())
        directory = directory.parent
    return ()


def queue_text(disk: str) -> dict[str, str]:
    """The CPU lists of the disk's hardware queues, as in sysfs, by queue."""
    cpus_by_queue = {}
    for path in Path("/sys/block", disk, "mq").glob("*/cpu_list"):
        cpus_by_queue[path.parent.name] = path.read_text().strip()
    return cpus_by_queue


def interrupt_names() -> dict[str, str]:
    """The last words of the lines in /proc/interrupts ("virtio3-req.0"), by number."""
    names = {}
    for line in Path("/proc/interrupts").read_text().splitlines()[1:]:
        number, _, rest = line.strip().partition(":")
        if number.isdecimal() and rest.split():
            names[number] = rest.split()[-1]
    return names


# If sysstat is installed, run iostat beside a run, as a second opinion on the same disk.


WAIT_S = 5.0


class IostatLog(threading.Thread):
    """Runs ``iostat -x``, which prints a report each second. ``rows`` are tuples (wall clock in ms
    at which it was printed, "head" or "row", line). The first report, which covers the time since
    boot, is left out (-y)."""

    def __init__(self, disk: str) -> None:
        super().__init__(daemon=True)
        self.rows: list[list[object]] = []
        self._disk = disk
        self._process: subprocess.Popen[str] | None = None
        if program := which("iostat"):
            self._process = subprocess.Popen(
                tied_command([program, "-dxky", disk, "1"]), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip

    def run(self) -> None:
        """Read its reports until ``finish`` is called."""
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            columns = line.split()
            if columns and columns[0] in ("Device", "Device:", self._disk):
                kind = "row" if columns[0] == self._disk else "head"
                self.rows.append([time.time() * 1000, kind, " ".join(columns)])

    def begin(self) -> None:
        """Start iostat, if it is installed."""
        if self._process is not None:
            self.start()

    def finish(self) -> list[list[object]]:
        """End iostat, and return its rows; empty if it is not installed. May be called again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.join(WAIT_S)
        return list(self.rows)
