"""Devices of the self-test: the disk beneath a directory, a loop device, a null_blk.

The kernel detaches the loop device by itself once no process has it open (loop(4))."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from iopstui.errors import JobFailed
from iopstui.features.selftest.evidence import Evidence
from iopstui.fio.fence import Fence
from iopstui.fio.process import FioProcess
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import tied_process
from iopstui.linux.process.private import private_directory
from iopstui.safety.null_block import null_block

# constants from linux/loop.h
LOOP_SET_FD, LOOP_SET_STATUS64, LOOP_CTL_GET_FREE = 0x4C00, 0x4C04, 0x4C82
LO_FLAGS_AUTOCLEAR = 4
_INFO = struct.Struct("=5Q4I64s64s32s2Q")
CONTROL = "/dev/loop-control"
MAX_ATTEMPTS = 8


@contextlib.contextmanager
def read_only_loop(backing: Path) -> Iterator[str]:
    """Yields the path of a read-only loop device for the file. It is detached when the context
    ends, or when this process ends. Raises OSError if it cannot be made."""
    with contextlib.ExitStack() as stack:
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
        stack.callback(os.close, control)
        file = os.open(backing, os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, file)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            path = f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
            device = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, device)
            try:
                fcntl.ioctl(device, LOOP_SET_FD, file)
                break
            except OSError as error:
                # another program may have taken the device in between
                if error.errno != errno.EBUSY or attempt == MAX_ATTEMPTS:
                    raise
        name = os.fsencode(backing)[:63]
        info = _INFO.pack(0, 0, 0, 0, 0, 0, 0, 0, LO_FLAGS_AUTOCLEAR, name, b"", b"", 0, 0)
        fcntl.ioctl(device, LOOP_SET_STATUS64, info)
        yield path


LOOP_BYTES = 32 << 20
TUNABLE = "read_ahead_kb"
LATENCY_NS = 10_000_000
"""Much longer (ns) than fio and the kernel themselves take for an I/O."""
NOT_ROOT = "needs root"


def disk_below(directory: Path) -> str:
    """The name of the disk on which the directory's file system is; "" if there is no such disk."""
    number = os.stat(directory).st_dev
    device_path = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not device_path.exists():
        return ""
    real = device_path.resolve()
    return real.parent.name if (real / "partition").exists() else real.name


def try_restore(evidence: Evidence, scratch: Path) -> None:
    """Run a job that changes a tunable of a loop device, and check whether the value is
    restored."""
    if os.geteuid() != 0:
        evidence.missing["restore"] = NOT_ROOT
        return
    backing = scratch / "loop"
    backing.write_bytes(bytes(LOOP_BYTES))
    try:
        with read_only_loop(backing) as loop:
            evidence.restore = _change_tunable(loop)
    except OSError as error:
        evidence.missing["restore"] = f"no loop device can be set up here ({error.strerror})"


def _change_tunable(loop: str) -> dict[str, object]:
    path = Path("/sys/block", os.path.basename(loop), "queue", TUNABLE)
    before = path.read_text().strip()
    new = "64" if before != "64" else "32"
    during = before
    with tied_process(
        [*IOPSTUI, "run", loop, "--job", "randread-4k", "--set", "runtime=2", "--knob",
         f"{TUNABLE}={new}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        while child.poll() is None:
            now = path.read_text().strip()
            during = now if now != before else during
            time.sleep(0.05)
    return {
        "before": before, "wanted": new, "during": during,
        "after": path.read_text().strip(), "code": child.returncode,
    }  # fmt: skip


def try_known_latency(evidence: Evidence) -> None:
    """Measure a null_blk device that takes a known time for each I/O, if the kernel has the
    module."""
    if os.geteuid() != 0:
        evidence.missing["latency"] = NOT_ROOT
        return
    try:
        with null_block(Roots().sys / "kernel/config", LATENCY_NS) as disk:
            if disk:
                evidence.known_latency = {"expected_ns": LATENCY_NS} | _measure_latency(disk)
            else:
                evidence.missing["latency"] = "the null_blk did not appear below /dev"
    except OSError as error:
        evidence.missing["latency"] = f"no null_blk can be set up here ({error.strerror})"


def _measure_latency(disk: str) -> dict[str, float]:
    """The mean latency and the await of single I/Os on the disk, as iopstui shows them."""
    result = run_command(
        *IOPSTUI, "run", disk, "--job", "randread-4k", "--set", "iodepth=1", "--set", "numjobs=1",
        "--set", "runtime=3", "--format", "jsonl",
    )  # fmt: skip
    ios = clat = await_ms = reads = 0.0
    for line in result.stdout.splitlines():
        row = json.loads(line)
        if row["event"] != "frame" or not row["fio"]:
            continue
        read = row["fio"].get("read") or {}
        if read.get("ios") and read["clat"]["mean"]:
            ios += read["ios"]
            clat += read["ios"] * read["clat"]["mean"]
        counters = row["kernel"]["disks"].get(os.path.basename(disk)) or {}
        if counters.get("reads") and counters["r_await"] is not None:
            reads += counters["reads"]
            await_ms += counters["reads"] * counters["r_await"]
    if not ios or not reads:
        return {}
    return {"clat_ns": clat / ios, "await_ns": 1e6 * await_ms / reads}


# Run the programs that the self-test needs.


IOPSTUI = (sys.executable, "-m", "iopstui")
MAX_S = 120
SHORT_S = 30
POLL_S = 0.5


def run_command(
    *command: str, cwd: Path | None = None, timeout: float = SHORT_S
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, without input. It is killed if this process ends. Raises
    subprocess.TimeoutExpired, or JobFailed if the command cannot be started."""
    try:
        with tied_process(
            command, cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:  # fmt: skip
            out, err = process.communicate(timeout=timeout)
    except OSError as error:
        raise JobFailed(f"Cannot start {command[0]}: {error.strerror}.") from error
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run_guarded_fio(command: Sequence[str], cwd: Path) -> tuple[int, list[str]]:
    """Run fio to its end with its guard, fenced in ``cwd``. Returns the exit code and the messages.
    Raises subprocess.TimeoutExpired."""
    fio = FioProcess(command, private_directory(), Fence(run_directories=(str(cwd),)), cwd=cwd)
    code, deadline, over = 1, time.monotonic() + MAX_S, False
    try:
        while not over:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(list(command), MAX_S)
            select.select(fio.wake_fds, [], [], POLL_S)
            for message in fio.read_guard():
                over = over or message.event in ("over", "gone")
                if message.event == "exited":
                    code = message.numbers[0]
        return code, fio.messages()
    finally:
        fio.close()
