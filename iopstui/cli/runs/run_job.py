"""Run one job and print its events on standard output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from iopstui.cli.runs.check_files import CheckCollector, check_files
from iopstui.cli.runs.run_session import run_until_finished
from iopstui.cli.runs.session_exports import exporting_sessions
from iopstui.cli.terminal import exit_on_closed_output, print_message
from iopstui.errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_VERDICT,
    UsageError,
    error_for_exit_code,
    session_ended_error,
)
from iopstui.events import StepFinished
from iopstui.fio.inspect import find_fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.private import private_directory, remove
from iopstui.linux.roots import Roots
from iopstui.model.block.target import Target
from iopstui.model.experiment.options import RunOptions
from iopstui.output.sinks import PLAIN, EventSink, StatusSink, make_sink
from iopstui.output.verdict import VerdictSink
from iopstui.preflight.targets import choose_targets
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.session.live import LiveSession
from iopstui.session.new_session import new_session
from iopstui.session.tick.outcomes import outcome_event_text
from iopstui.session.tick.steady import NEVER_STEADY

if TYPE_CHECKING:
    from iopstui.model.experiment.expectation import Expectation


def run_job(job: str, options: RunOptions, kind: str, plain_every_s: float = 0.0) -> int:
    """The exit code. Data as ``kind`` ("table", "jsonl", "csv", "influx" or "plain") on stdout,
    everything else on stderr. ``plain_every_s`` is the time between plain status lines."""
    title = " on ".join((f"run {job}", *options.targets[:1]))
    with check_files(options.junit, options.summary, title) as checks:
        checks.exit_code = _run_job(job, options, kind, checks, plain_every_s)
        return checks.exit_code


def _run_job(
    job: str, options: RunOptions, kind: str, checks: CheckCollector, plain_every_s: float
) -> int:
    find_fio()
    clean_up_and_report(print_message, Roots())
    if options.precondition:
        _preflight(job, options)
    # the last figures stay in the file: the run may end before they are read
    with exporting_sessions(options, keep=True) as export:
        # after the exports: an unusable file or port is reported before hours of writing
        if options.precondition:
            from iopstui.cli.runs.preconditioning import run_precondition_job

            options = run_precondition_job(options)
        session = _new_session(job, options)
        export(session)
        verdict_sink = _make_sink(kind, session.target, plain_every_s)
        return _run(job, options, verdict_sink, session, checks)


def _run(
    job: str, options: RunOptions, verdict_sink: VerdictSink, session: LiveSession,
    checks: CheckCollector,
) -> int:  # fmt: skip
    sink: EventSink = verdict_sink
    if options.hold:
        from iopstui.cli.runs.start_gate import StartGateSink

        sink = StartGateSink(sink, session)
    with exit_on_closed_output(options.expect):
        finished = run_until_finished(session, job, options.overrides, sink)
    code = _run_exit_code(finished, session.exit_code)
    for judged in verdict_sink.judged:
        checks.add(judged.expectation, judged.passed, outcome_event_text(judged))
    if code != EXIT_OK:
        return code
    if options.until_steady:
        checks.add("steady state", session.steady, "" if session.steady else NEVER_STEADY)
    if options.until_steady and not session.steady:
        print_message(NEVER_STEADY)
        return EXIT_VERDICT
    return _expectations_exit_code(verdict_sink)


def _new_session(job: str, options: RunOptions) -> LiveSession:
    devices = read_devices(Roots())
    target, job_target = choose_targets(options.targets, job, devices, Roots())
    expected = _parse_expectations(job, options, target)
    return new_session(options, target, job_target, devices, expected, idle_frames=False,
                       announce_writes=True)  # fmt: skip


def _parse_expectations(job: str, options: RunOptions, target: Target) -> tuple[Expectation, ...]:
    if not options.expect and options.baseline is None:
        return ()  # like most runs: loading the checker takes as long as loading twenty modules
    from iopstui.experiment.baseline import with_baseline
    from iopstui.experiment.expectations import job_sections, parse_expectations

    jobs = [job_sections(job, options.overrides)] if options.expect else []
    return with_baseline(
        parse_expectations(options.expect, options.tolerance, target, jobs), options.baseline
    )


def _preflight(job: str, options: RunOptions) -> None:
    """Refuse what cannot be run, before the target is written for hours. Arguments as
    ``run_job``."""
    from iopstui.cli.runs.preconditioning import check_target
    from iopstui.preflight.job import prepare
    from iopstui.preflight.job_request import JobRequest

    devices = read_devices(Roots())
    check_target(options, devices)
    target, job_target = choose_targets(options.targets, job, devices, Roots())
    _parse_expectations(job, options, target)
    request = JobRequest(job, options.overrides, options.size, options.destroy_data,
                         options.bind, no_fence=options.no_fence,
                         part=options.part, io_log=options.io_log)  # fmt: skip
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


def _expectations_exit_code(sink: VerdictSink) -> int:
    """The exit code of a whole run: were its expectations met?"""
    for judged in sink.judged:
        if judged.measured is None:
            raise UsageError(
                f"--expect {judged.expectation!r} cannot be checked: the run has no such figure.",
                "To see what it measures: --format jsonl",
            )
        if judged.passed is None:
            from iopstui.experiment.baseline import coarser_hint

            name = judged.expectation.partition(judged.op)[0].strip()
            raise UsageError(
                f"--expect {judged.expectation!r} cannot be checked: {judged.why}.",
                f"Run longer, e.g. --set runtime=60{coarser_hint(name)}.",
            )
    return EXIT_OK if all(judged.passed for judged in sink.judged) else EXIT_VERDICT


def _run_exit_code(finished: StepFinished | None, exit_code: int) -> int:
    if finished is None:
        raise session_ended_error(exit_code)
    if finished.error:
        raise error_for_exit_code(finished.exit_code, finished.error, finished.hint)
    return EXIT_INTERRUPTED if finished.interrupted else EXIT_OK
