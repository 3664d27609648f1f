"""Capture the workload of a disk, write fio jobs that imitate it, and compare a job with it."""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from iopstui.cli.terminal import print_message, show, width
from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    Interrupted,
    JobFailed,
    Missing,
    UsageError,
)
from iopstui.features.capture.kernel.bpf_capture import CaptureUnusable
from iopstui.features.capture.kernel.workload_capture import POLL_S, ProcessFilter, WorkloadCapture
from iopstui.features.capture.model.job import job_text
from iopstui.features.capture.model.phases import Distance, Phase, Phases, distances
from iopstui.features.capture.model.trace import TraceBuffer, trace_lines
from iopstui.features.capture.model.workload import CLOSED, OPEN, Workload
from iopstui.format import duration
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import tied_process
from iopstui.linux.probe.regions import Region, regions
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.model.block.target import Target
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.preflight.targets import choose_watch_target
from iopstui.safety.output_files import write_whole
from iopstui.safety.signals import handling_stop_signals
from iopstui.text import safe_text

MIN_SPAN_S = 1.0
_CHECK_INTERVAL_S = 1.0
_SUFFIX = ".fio"


class _Stop:
    """A handler of stop signals; ``requested`` says whether one has come."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self, number: int) -> None:
        self.requested = True


def capture(arguments: argparse.Namespace) -> int:
    """Capture as the arguments say. Returns the exit code."""
    from iopstui.features.capture.output import workload_json, workload_text

    files = _job_paths(arguments.output)
    trace = TraceBuffer() if _wants_trace(arguments) else None
    _check_choice(arguments)
    stop = _Stop()
    with handling_stop_signals(stop):
        phases, disk_counted, reason = _capture_disk(arguments, stop, trace)
        workload = phases.combined
        if not workload.ios:
            raise JobFailed(
                f"No request was seen on {workload.device} in {duration(workload.seconds)}.",
                _no_requests_hint(arguments),
            )
        job_files = _write_jobs(workload, phases.all, files)
        if trace is not None and arguments.trace is not None:
            _write_trace(trace, Path(arguments.trace))
        comparison = None
        if arguments.check is not None and not reason:
            loop, directory = arguments.loop, Path(arguments.check)
            print_message(f"running the {loop}-loop job in {directory} and capturing it")
            comparison = replay_and_compare(
                workload, phases.all, loop, directory, lambda: stop.requested
            )
    if arguments.json:
        import json

        show(json.dumps(workload_json(workload, disk_counted, comparison, phases.all), indent=2))
    else:
        show(workload_text(workload, disk_counted, comparison, job_files, width(), phases.all))
    if reason:
        print_message(reason)
        return EXIT_INTERRUPTED if stop.requested else EXIT_JOB_FAILED
    checks = [Check(distance.name, distance.is_close is not False) for distance in comparison or ()]
    return Verdict(tuple(checks)).exit_code


def _capture_disk(
    arguments: argparse.Namespace, stop: _Stop, trace: TraceBuffer | None
) -> tuple[Phases, int | None, str]:
    """Return the captured phases, how many requests the disk counted in the same time, and why the
    capture ended early ("" if it did not)."""
    texts = [arguments.target] if arguments.target is not None else []
    target = choose_watch_target(texts, read_devices(Roots()), Roots())
    regions, layer = disk_regions(target)
    process_filter = ProcessFilter(tuple(arguments.pid), arguments.cgroup or "")
    name = ", ".join(region.name for region in regions)
    workload_capture = start_capture(name, regions, process_filter, trace)
    try:
        length = f"for {duration(arguments.length)}" if arguments.length else "until Ctrl-C"
        print_message(f"capturing requests of {layer}, {length}")
        deadline = time.monotonic() + arguments.length if arguments.length else None
        phases, reason = _capture_phases(workload_capture, deadline, arguments.phases, stop)
        if reason and arguments.length is None and stop.requested:
            reason = ""
        return phases, workload_capture.disk_counted(), reason
    finally:
        workload_capture.close()


def _capture_phases(
    workload_capture: WorkloadCapture, deadline: float | None, span_s: float | None, stop: _Stop
) -> tuple[Phases, str]:
    """Capture in spans of ``span_s`` until ``deadline``. Returns the phases, and the reason if it
    ended early, or ""."""
    phases, reason, span_end = Phases(), "", None
    while True:
        if span_s is not None:
            span_end = (time.monotonic() if span_end is None else span_end) + span_s
        last = span_end is None or (deadline is not None and deadline <= span_end)
        reason = poll_until(
            workload_capture, deadline if last else span_end, lambda: stop.requested
        )
        phases.add(workload_capture.cut())
        if reason or last:
            return phases, reason


def poll_until(
    workload_capture: WorkloadCapture, deadline: float | None, stop: Callable[[], bool]
) -> str:
    """Capture until ``deadline`` (monotonic seconds). Returns the reason if it ended early, or
    ""."""
    next_check_s = time.monotonic() + _CHECK_INTERVAL_S
    while True:
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return ""
        if stop():
            return "Interrupted: what was captured until then is kept."
        if now >= next_check_s:
            next_check_s = now + _CHECK_INTERVAL_S
            if workload_capture.gone():
                return "The disk has vanished: what was captured until then is kept."
        time.sleep(POLL_S if deadline is None else min(POLL_S, max(0.0, deadline - now)))
        workload_capture.poll()


def _check_choice(arguments: argparse.Namespace) -> None:
    for pid in arguments.pid:
        if not os.path.isdir(f"/proc/{pid}"):
            raise UsageError(f"There is no process {pid}.", "ps -e lists them.")
    if arguments.cgroup and not os.path.isfile(os.path.join(arguments.cgroup, "cgroup.procs")):
        raise UsageError(f"{arguments.cgroup} is not the directory of a cgroup.",
                         "systemd-cgls shows them; they are below /sys/fs/cgroup.")  # fmt: skip
    if arguments.phases is not None and arguments.phases < MIN_SPAN_S:
        raise UsageError(f"--phases needs at least {duration(MIN_SPAN_S)}: a shorter span says "
                         "little.")  # fmt: skip
    if arguments.loop != OPEN and arguments.check is None:
        raise UsageError("--loop chooses the job that --check runs.",
                         "Add --check DIR. -o writes both jobs.")  # fmt: skip
    if arguments.check is not None and not os.path.isdir(arguments.check):
        raise UsageError(f"{arguments.check} is not a directory: --check makes scratch files "
                         "in it.",
                         "Name one on the disk to be compared.")  # fmt: skip


def _no_requests_hint(arguments: argparse.Namespace) -> str:
    if arguments.pid:
        return ("What it writes through the page cache is written by the kernel later: use "
                "--cgroup, or no --pid.")  # fmt: skip
    if arguments.cgroup:
        return "Does anything run in it? cat " + os.path.join(arguments.cgroup, "cgroup.procs")
    return "Is the application busy? Reads from the page cache do not reach the disk."


def _job_paths(output: str | None) -> dict[str, Path]:
    """The paths of the job files by loop (open, closed). Raises UsageError if one of them exists,
    or if its directory does not."""
    if output is None:
        return {}
    first = Path(output)
    stem = first.name.removesuffix(_SUFFIX)
    paths = {OPEN: first, CLOSED: first.with_name(f"{stem}.closed{_SUFFIX}")}
    for path in paths.values():
        _check_new(path)
    return paths


def _wants_trace(arguments: argparse.Namespace) -> bool:
    if arguments.trace is None:
        return False
    _check_new(Path(arguments.trace))
    return True


def _check_new(path: Path) -> None:
    if path.exists():
        raise UsageError(f"{path} exists, and is not overwritten.", "Choose another name.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no directory {path.parent}.", f"mkdir -p {path.parent}")


def _write_trace(buffer: TraceBuffer, path: Path) -> None:
    trace = buffer.trace()
    lines = (f"{line}\n".encode("ascii") for line in trace_lines(trace))
    try:
        write_whole(path, lambda file: file.writelines(lines))
    except OSError as error:
        raise JobFailed(f"Cannot write {path}: {error.strerror}.") from error
    message = f"{len(trace.requests):,} requests written to {path}"
    if trace.discards:
        message += f", without {trace.discards:,} discards (fio discards on devices only)"
    if buffer.dropped:
        message += f"; {buffer.dropped:,} more did not fit"
    print_message(f"{message}. Replay: iopstui run DIR --replay {path}")


def _write_jobs(
    workload: Workload, phases: Sequence[Phase], files: dict[str, Path]
) -> list[tuple[str, Path]]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime())
    job_files = []
    for loop, path in files.items():
        try:
            text = safe_text(job_text(workload, loop, when, phases)).encode()
            write_whole(path, partial(_write_bytes, text))
        except ValueError as error:
            print_message(f"No job was written: there are {error}.")
            return []
        except OSError as error:
            raise JobFailed(f"Cannot write {path}: {error.strerror}.") from error
        job_files.append((loop, path))
    return job_files


def _write_bytes(data: bytes, file: BinaryIO) -> None:
    file.write(data)


# Run the job of a captured workload on scratch files, capture that as well, and compare the two.


_IOPSTUI = (sys.executable, "-m", "iopstui")


def replay_and_compare(
    captured: Workload, phases: Sequence[Phase], loop: str, directory: Path,
    stop: Callable[[], bool],
) -> list[Distance]:  # fmt: skip
    """Run the job in ``directory``. Returns how far its requests differ from the captured ones.
    Raises JobFailed if the job fails, Interrupted if ``stop`` returns True."""
    private = private_directory()
    try:
        job = write_text(private, "captured.fio", job_text(captured, loop, "", phases))
        return distances(captured, _capture_run(job, directory, stop), loop)
    finally:
        remove(private)


def _capture_run(job: Path, directory: Path, stop: Callable[[], bool]) -> Workload:
    target = choose_watch_target([str(directory)], read_devices(Roots()), Roots())
    regions, _ = disk_regions(target)
    command = [*_IOPSTUI, "run", str(directory), "--job", str(job), "--format", "jsonl"]
    with tied_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        workload_capture = start_capture(", ".join(region.name for region in regions), regions,
                                         ProcessFilter((child.pid,)))  # fmt: skip
        try:
            return _capture_job(child, workload_capture, stop)
        finally:
            workload_capture.close()


def _capture_job(
    child: subprocess.Popen[str], workload_capture: WorkloadCapture, stop: Callable[[], bool]
) -> Workload:
    """Capture the job from its start to its end, except the time in which it creates its files."""
    assert child.stdout is not None and child.stderr is not None
    lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    stderr: list[str] = []
    threading.Thread(target=_queue_lines, args=(child.stdout, lines), daemon=True).start()
    threading.Thread(target=lambda: stderr.extend(child.stderr or ()), daemon=True).start()
    job_started = False
    while True:
        if stop():
            raise Interrupted("Interrupted: the job was not compared.")
        for line in _queued_lines(lines):
            if line is None:
                reason = (
                    stderr[-1].strip().removeprefix("iopstui: ") if stderr else "no reason given"
                )
                raise JobFailed(f"The captured job did not run: {reason}")
            kind = line.get("event")
            if kind == "step_started" and "--create_only=1" not in line["command"]:
                workload_capture.begin()
                job_started = True
            elif kind == "step_finished" and line["exit_code"]:
                raise JobFailed(f"The captured job did not run: {line['error']}")
            elif kind == "step_finished" and job_started:
                return workload_capture.result(active=True)
        time.sleep(POLL_S)
        workload_capture.poll()


def _queue_lines(stream: IO[str], lines: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    for line in stream:
        lines.put(json.loads(line))
    lines.put(None)


def _queued_lines(
    lines: queue.SimpleQueue[dict[str, Any] | None],
) -> Iterator[dict[str, Any] | None]:
    while not lines.empty():
        yield lines.get()


# Find the disks of a capture, and start it.


def disk_regions(target: Target) -> tuple[list[Region], str]:
    """The disks whose requests a capture of this target follows, and a sentence about the layer.
    Raises UsageError if there are no such disks."""
    devices, roots = read_devices(Roots()), Roots()
    names = [name for name in target.devices_below if name in devices]
    disks = [region for region in regions(names, devices, roots) if region.name in names]
    if not disks:
        raise UsageError(f"No block device below {target.path} can be captured.",
                         "iopstui devices lists them.")  # fmt: skip
    layers = {disk.bios for disk in disks}
    if len(layers) > 1:
        raise UsageError("A stacked device and a disk cannot be captured together.",
                         "Capture one of them: iopstui devices")  # fmt: skip
    lower_devices = [name for name in target.tree if name not in names]
    disk_names = ", ".join(disk.name for disk in disks)
    if disks[0].bios:
        on = (
            f"; {', '.join(lower_devices)} below may see other sizes and another order"
            if lower_devices
            else ""
        )
        return (
            disks,
            f"{disk_names}: as they are sent to this layer, before it maps or splits them{on}",
        )
    return disks, f"{disk_names}: as they are sent to the disk, after merging and splitting"


def start_capture(
    name: str, disks: Sequence[Region], choice: ProcessFilter, trace: TraceBuffer | None = None
) -> WorkloadCapture:
    """Start a capture. Raises Missing with the command to install a missing program."""
    try:
        return WorkloadCapture(name, disks, choice, Roots(), trace)
    except CaptureUnusable as error:
        root = os.geteuid() != 0
        raise Missing(
            f"The capture cannot work here: {error}.",
            "sudo iopstui capture ..." if root else "iopstui doctor shows what this kernel has.",
        ) from error
