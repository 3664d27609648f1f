"""Run one job and print its events on standard output."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iopstui.cli.runs.check_files import exporting_sessions, with_check_files
from iopstui.cli.terminal import exit_on_closed_output, kill_without_waiting, print_message
from iopstui.errors import (
    Interrupted,
    IopstuiError,
    JobFailed,
    UsageError,
    error_for_exit_code,
    session_ended_error,
)
from iopstui.events import Event, Notice, RunReady, StepFinished
from iopstui.fio.inspect import find_fio
from iopstui.format import size
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import private_directory, remove
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target, TargetPath
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.model.sizes import part_bytes
from iopstui.output.narration import Narrator
from iopstui.output.sinks import PLAIN, EventSink, StatusSink, make_sink
from iopstui.output.verdict import VerdictSink
from iopstui.preflight.targets import choose_targets
from iopstui.recording.writer import check_creatable
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.safety.signals import StopSignals
from iopstui.session.fio.fio_run import FIGURES_END_THERE
from iopstui.session.live import LiveSession
from iopstui.session.run_loop import RunLoop
from iopstui.session.run_preparation import StartSignal
from iopstui.session.tick.context import NOBODY
from iopstui.session.tick.outcomes import NEVER_STEADY, outcome_event_text

if TYPE_CHECKING:
    from iopstui.model.experiment.expectation import Expectation


def run_job(request: RunRequest, kind: str, arguments: argparse.Namespace) -> int:
    """Run the job. Returns the exit code. Data goes to stdout as ``kind`` ("table", "jsonl", "csv",
    "influx" or "plain"), everything else to stderr; ``arguments`` name further files (--junit,
    --textfile ...)."""
    title = " on ".join((f"run {request.job}", *request.targets[:1]))
    return with_check_files(arguments, title, lambda: _run_job(request, kind, arguments))


def _run_job(request: RunRequest, kind: str, arguments: argparse.Namespace) -> Verdict:
    find_fio()
    clean_up_and_report(print_message, Roots())
    if request.precondition:
        _preflight(request)
    # keep: the exported file keeps the last figures, because they may be read after the run
    with exporting_sessions(arguments, keep=True) as export:
        # not before the exports are open: an unusable file or port must be reported before hours of
        # writing
        if request.precondition:
            request = run_precondition_job(request)
        session = _new_session(request)
        export(session)
        plain_every_s = arguments.plain_every if kind == PLAIN else 0.0
        verdict_sink = _make_sink(kind, session.target, plain_every_s)
        return _run(request, verdict_sink, session)


def _run(request: RunRequest, verdict_sink: VerdictSink, session: LiveSession) -> Verdict:
    sink: EventSink = verdict_sink
    if request.hold:
        sink = StartGateSink(sink, session)
    with exit_on_closed_output(request.expect):
        finished = run_until_finished(session, request, sink)
    if finished is None:
        raise session_ended_error(session.exit_code)
    checks = [
        Check(judged.expectation, judged.passed, outcome_event_text(judged))
        for judged in verdict_sink.judged
    ]
    error: IopstuiError | None = None
    if finished.error:
        error = error_for_exit_code(finished.exit_code, finished.error, finished.hint)
        return Verdict(tuple(checks), error=error)
    unsteady = bool(request.until_steady) and not session.steady
    if request.until_steady and not finished.interrupted:
        checks.append(Check("steady state", session.steady, NEVER_STEADY if unsteady else ""))
        if unsteady:
            print_message(NEVER_STEADY)
    if verdict_sink.judged and not (finished.interrupted or unsteady):
        from iopstui.experiment.baseline import unchecked_error

        error = unchecked_error(verdict_sink.judged, "To see what it measures: --format jsonl")
    return Verdict(tuple(checks), finished.interrupted, error=error)


def _new_session(request: RunRequest) -> LiveSession:
    devices = read_devices(Roots())
    target, job_target = choose_targets(request.targets, request.job, devices, Roots())
    expected = parse_run_expectations(request, target)
    return LiveSession(target, devices, job_target, request, NOBODY, expectations=expected,
                       announce_writes=True)  # fmt: skip


def parse_run_expectations(request: RunRequest, target: Target) -> tuple[Expectation, ...]:
    """The run's expectations. Raises UsageError."""
    if not request.expect and request.baseline is None:
        return ()  # usually: do not import the checker, which takes as long as twenty modules
    from iopstui.experiment.baseline import job_sections, parse_expectations, with_baseline

    jobs = [job_sections(request.job, request.overrides)] if request.expect else []
    return with_baseline(
        parse_expectations(request.expect, request.tolerance, target, jobs), request.baseline
    )


def _preflight(request: RunRequest) -> None:
    """Refuse a run that cannot work, before the target is written for hours."""
    from iopstui.preflight.job import prepare

    devices = read_devices(Roots())
    check_target(request, devices)
    target, job_target = choose_targets(request.targets, request.job, devices, Roots())
    parse_run_expectations(request, target)
    private = private_directory()
    try:
        prepare(request, job_target, find_fio(), private, devices, Roots()).close()
    finally:
        remove(private)


def _make_sink(kind: str, target: Target, plain_every_s: float) -> VerdictSink:
    data = make_sink(kind, sys.stdout, sys.stderr, target, os.uname().nodename, plain_every_s)
    if kind == PLAIN:
        return VerdictSink(data, sys.stdout)
    return VerdictSink(
        StatusSink(data, sys.stderr, sys.stdout), sys.stdout if kind == "table" else sys.stderr
    )


# Make one run in a session, and pass its events to a sink.


def run_until_finished(
    session: LiveSession, request: RunRequest, sink: EventSink
) -> StepFinished | None:
    """Start the session and its run. Returns the run's end, or ``None`` if the session ended first.
    The session and the sink are closed. The first signal lets fio write its last document."""
    loop = RunLoop(session, sink.handle)
    StopSignals(loop.stop, kill_without_waiting(loop.kill))
    loop.start()
    try:
        finished = loop.run(lambda: session.run_job(request.job, request.overrides))
        loop.close()
    except BrokenPipeError:
        session.close()
        for event in loop.rest():  # report leftovers even if nobody reads the output
            if isinstance(event, Notice) and event.level == "error":
                print_message(event.text)
        raise
    finally:
        session.close()
        sink.close()
    return finished


# --precondition: write the target twice before measuring it.


JOB = "precondition"
PASSES = 2
"""The value of loops= in the job: how many times it writes the target."""


def run_precondition_job(request: RunRequest) -> RunRequest:
    """Run the shipped job "precondition" on the target if ``request`` asks for it, with progress on
    standard error. Returns the request for the run that follows, with the rest of --write-budget.
    Raises UsageError for a target that cannot be preconditioned, and like any run Refused,
    JobFailed or Interrupted."""
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
    # not the budget's count, which may be higher: if others read through the page cache, the kernel
    # counts direct writes twice when they fall back to the cache
    total: Any = finished.summary["total"]
    print_message(f"preconditioned: {size(total['write']['io_bytes'])} written")
    if request.write_budget is None:
        return replace(request, precondition=False)
    remaining = max(0, request.write_budget - session.budget.used)
    return replace(request, precondition=False, write_budget=remaining)


def check_target(
    request: RunRequest, devices: Mapping[str, BlockDevice]
) -> tuple[Target, Target | None]:
    """The target that preconditioning would write, and the job's target. Raises UsageError for a
    target that cannot be preconditioned."""
    target, job_target = choose_targets(request.targets, JOB, devices, Roots())
    if target.kind == kinds.DIRECTORY:
        raise UsageError(
            f"--precondition needs a device or a file. {target.path} is a directory, where "
            "each run creates new scratch files.",
            "Give the device as TARGET and repeat it with --destroy-data.",
        )
    # 0 if the size is unknown, which is reported later
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
    if place.kind == kinds.FILE:
        return os.stat(place.path).st_size
    device = devices.get(place.device or "")
    return device.size or 0 if device is not None else 0


# For `run --hold`: prepare everything, then wait for a line on standard input before starting fio.


class StartGateSink:
    """Passes events on; once the run is ready, a thread waits for a line on standard input."""

    def __init__(self, inner: EventSink, session: LiveSession) -> None:
        self._inner = inner
        self._session = session

    def handle(self, event: Event) -> None:
        self._inner.handle(event)
        if isinstance(event, RunReady):
            print_message("ready: press Enter (a line on standard input) to start fio")
            threading.Thread(target=self._wait_for_line, name="word", daemon=True).start()

    def close(self) -> None:
        self._inner.close()

    def _wait_for_line(self) -> None:
        # not through Python's buffers: a thread that waits in them keeps the process from ending
        if b"\n" in _read_first_line():
            self._session.start_run(StartSignal(time.monotonic_ns()))
        else:
            print_message("standard input ended without a line: nothing started")
            self._session.stop_job()


def _read_first_line() -> bytes:
    """Read standard input up to the end of its first line, or to its end."""
    line = b""
    while b"\n" not in line:
        try:
            data = os.read(0, 4096)
        except OSError:
            break
        if not data:
            break
        line += data
    return line
