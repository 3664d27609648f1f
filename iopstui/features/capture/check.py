"""Run a captured workload's job on scratch files, capture it the same way, and compare both."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from iopstui.errors import Interrupted, JobFailed
from iopstui.features.capture.disks import disk_regions, start_capture
from iopstui.features.capture.kernel.workload_capture import POLL_S, ProcessFilter, WorkloadCapture
from iopstui.features.capture.model.fidelity import Distance, distances
from iopstui.features.capture.model.job import job_text
from iopstui.features.capture.model.phases import Phase
from iopstui.features.capture.model.workload import Workload
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.affinity import tied_process
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.linux.roots import Roots
from iopstui.preflight.targets import choose_watch_target

_IOPSTUI = (sys.executable, "-m", "iopstui")


def replay_and_compare(
    captured: Workload, phases: Sequence[Phase], loop: str, directory: Path,
    stop: Callable[[], bool],
) -> list[Distance]:  # fmt: skip
    """The distances between what was captured and its job in ``directory``. Raises JobFailed if
    the job fails, Interrupted if ``stop`` returns True."""
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
    """What the job does from its start to its end, without the making of its files."""
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
