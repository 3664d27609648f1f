"""Run one job and print its events on standard output."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from iopstui.cli.runs.check_files import with_check_files
from iopstui.cli.runs.run_session import run_until_finished
from iopstui.cli.runs.session_exports import exporting_sessions
from iopstui.cli.terminal import exit_on_closed_output, print_message
from iopstui.errors import IopstuiError, UsageError, error_for_exit_code, session_ended_error
from iopstui.events import ExpectationChecked
from iopstui.fio.inspect import find_fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.private import private_directory, remove
from iopstui.linux.roots import Roots
from iopstui.model.block.target import Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.output.sinks import PLAIN, EventSink, StatusSink, make_sink
from iopstui.output.verdict import VerdictSink
from iopstui.preflight.targets import choose_targets
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.session.live import LiveSession
from iopstui.session.tick.outcomes import outcome_event_text
from iopstui.session.tick.steady import NEVER_STEADY
from iopstui.session.viewer import NOBODY

if TYPE_CHECKING:
    from iopstui.model.experiment.expectation import Expectation


def run_job(request: RunRequest, kind: str, arguments: argparse.Namespace) -> int:
    """The exit code. Data as ``kind`` ("table", "jsonl", "csv", "influx" or "plain") on stdout,
    everything else on stderr; ``arguments`` name the files beside (--junit, --textfile ...)."""
    title = " on ".join((f"run {request.job}", *request.targets[:1]))
    return with_check_files(arguments, title, lambda: _run_job(request, kind, arguments))


def _run_job(request: RunRequest, kind: str, arguments: argparse.Namespace) -> Verdict:
    find_fio()
    clean_up_and_report(print_message, Roots())
    if request.precondition:
        _preflight(request)
    # the last figures stay in the file: the run may end before they are read
    with exporting_sessions(arguments, keep=True) as export:
        # after the exports: an unusable file or port is reported before hours of writing
        if request.precondition:
            from iopstui.cli.runs.preconditioning import run_precondition_job

            request = run_precondition_job(request)
        session = _new_session(request)
        export(session)
        plain_every_s = arguments.plain_every if kind == PLAIN else 0.0
        verdict_sink = _make_sink(kind, session.target, plain_every_s)
        return _run(request, verdict_sink, session)


def _run(request: RunRequest, verdict_sink: VerdictSink, session: LiveSession) -> Verdict:
    sink: EventSink = verdict_sink
    if request.hold:
        from iopstui.cli.runs.start_gate import StartGateSink

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
    if not (finished.interrupted or unsteady):
        error = _unchecked(verdict_sink.judged)
    return Verdict(tuple(checks), finished.interrupted, error=error)


def _new_session(request: RunRequest) -> LiveSession:
    devices = read_devices(Roots())
    target, job_target = choose_targets(request.targets, request.job, devices, Roots())
    expected = parse_run_expectations(request, target)
    return LiveSession(target, devices, job_target, request, NOBODY, expectations=expected,
                       announce_writes=True)  # fmt: skip


def parse_run_expectations(request: RunRequest, target: Target) -> tuple[Expectation, ...]:
    """What the run must reach. UsageError."""
    if not request.expect and request.baseline is None:
        return ()  # like most runs: loading the checker takes as long as loading twenty modules
    from iopstui.experiment.baseline import with_baseline
    from iopstui.experiment.expectations import job_sections, parse_expectations

    jobs = [job_sections(request.job, request.overrides)] if request.expect else []
    return with_baseline(
        parse_expectations(request.expect, request.tolerance, target, jobs), request.baseline
    )


def _preflight(request: RunRequest) -> None:
    """Refuse what cannot be run, before the target is written for hours."""
    from iopstui.cli.runs.preconditioning import check_target
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


def _unchecked(judged: Sequence[ExpectationChecked]) -> UsageError | None:
    """Why the first of a run's expectations could not be checked, if there is one."""
    for each in judged:
        if each.measured is None:
            return UsageError(
                f"--expect {each.expectation!r} cannot be checked: the run has no such figure.",
                "To see what it measures: --format jsonl",
            )
        if each.passed is None:
            from iopstui.experiment.baseline import coarser_hint

            name = each.expectation.partition(each.op)[0].strip()
            return UsageError(
                f"--expect {each.expectation!r} cannot be checked: {each.why}.",
                f"Run longer, e.g. --set runtime=60{coarser_hint(name)}.",
            )
    return None
