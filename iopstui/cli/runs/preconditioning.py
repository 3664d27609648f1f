"""--precondition: write the target twice before measuring it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iopstui.cli.runs.run_session import run_until_finished
from iopstui.cli.terminal import print_message
from iopstui.errors import Interrupted, JobFailed, UsageError, error_for_exit_code
from iopstui.format import size
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.roots import Roots
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target, TargetPath
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio.sizes import part_bytes
from iopstui.output.narration import Narrator
from iopstui.output.sinks import StatusSink
from iopstui.preflight.targets import choose_targets
from iopstui.recording.writer import check_creatable
from iopstui.session.fio.fio_run import FIGURES_END_THERE
from iopstui.session.live import LiveSession
from iopstui.session.viewer import NOBODY

JOB = "precondition"
PASSES = 2
"""Its loops=."""


def run_precondition_job(request: RunRequest) -> RunRequest:
    """Run the shipped job "precondition" on the target if ``request`` asks for it, with progress
    on standard error. Returns the request for the run that follows, with the rest of
    --write-budget. Raises UsageError for a target that cannot be preconditioned; Refused, JobFailed
    and Interrupted as any run."""
    if not request.precondition:
        return request
    devices = read_devices(Roots())
    target, job_target = check_target(request, devices)
    if request.record:
        check_creatable(Path(request.record))
    plain = RunRequest(
        JOB, targets=request.targets, size=request.size, part=request.part,
        destroy_data=request.destroy_data,
        write_budget=request.write_budget, own_cpus=request.own_cpus, nice=request.nice,
    )  # fmt: skip
    print_message(f"preconditioning: writing {target.path} twice before the measurement")
    session = LiveSession(target, devices, job_target, plain, NOBODY, announce_writes=True)
    narrator = Narrator(sys.stderr, measured=False)
    finished = run_until_finished(session, plain, StatusSink(narrator, sys.stderr))
    if finished is None:
        raise JobFailed("Preconditioning ended early; see the message above.")
    if finished.error:
        raise error_for_exit_code(
            finished.exit_code, finished.error.removesuffix(FIGURES_END_THERE), finished.hint
        )
    if finished.interrupted:
        raise Interrupted("Interrupted during preconditioning: nothing was measured.")
    # the budget's own figure may be more: writes past a page cache that somebody reads through are
    # counted by the kernel again where they had to go into it
    total: Any = finished.summary["total"]
    print_message(f"preconditioned: {size(total['write']['io_bytes'])} written")
    if request.write_budget is None:
        return replace(request, precondition=False)
    remaining = max(0, request.write_budget - session.budget.used)
    return replace(request, precondition=False, write_budget=remaining)


def check_target(
    request: RunRequest, devices: Mapping[str, BlockDevice]
) -> tuple[Target, Target | None]:
    """Return what would be written, and the job's inputs. UsageError for a target that cannot be
    preconditioned."""
    target, job_target = choose_targets(request.targets, JOB, devices, Roots())
    if target.kind == kinds.DIRECTORY:
        raise UsageError(
            f"--precondition needs a device or a file. {target.path} is a directory, where "
            "each run creates new scratch files.",
            "Give the device as TARGET and repeat it with --destroy-data.",
        )
    # 0: unknown, and reported later
    sizes = (part_bytes(request.size or "100%", _size(place, devices)) for place in target.places)
    needed = PASSES * sum(n or 0 for n in sizes)
    if request.write_budget is not None and needed > request.write_budget:
        raise UsageError(
            f"--precondition writes {size(needed)}, and --write-budget allows "
            f"{size(request.write_budget)}.",
            "Give a larger --write-budget.",
        )
    return target, job_target


def _size(place: TargetPath, devices: Mapping[str, BlockDevice]) -> int:
    """Return the size in bytes."""
    if place.kind == kinds.FILE:
        return os.stat(place.path).st_size
    device = devices.get(place.device or "")
    return device.size or 0 if device is not None else 0
