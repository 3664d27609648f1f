"""Run a sweep or a comparison: from its options to the exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from iopstui.cli.runs.check_files import CheckCollector, check_files
from iopstui.cli.runs.preconditioning import check_target, run_precondition_job
from iopstui.cli.terminal import exit_on_closed_output, kill_without_waiting, print_message
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, EXIT_VERDICT, UsageError
from iopstui.events import PointFinished
from iopstui.experiment.progress import ProgressFile
from iopstui.experiment.runner import ExperimentRunner
from iopstui.experiment.setup import ExperimentSetup, dry_run_lines, length_text, writes_text
from iopstui.experiment.start import (
    check_record,
    expectations_at_every_point,
    experiment_session,
    load_progress,
    set_up,
)
from iopstui.format import counted, print_line
from iopstui.model.experiment.load_curve import measured_points
from iopstui.model.experiment.plan import CONFIRM_FROM_POINTS, Plan
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.experiment.sensitivity import planned_sensitivity
from iopstui.output.experiment.sinks import ReportedExperiment, experiment_sink
from iopstui.safety.signals import StopSignals
from iopstui.session.tick.outcomes import outcome_text


def run_experiment(request: RunRequest, plan: Plan, arguments: argparse.Namespace) -> int:
    """The exit code. Its progress is kept, so that it can be resumed after an interruption."""
    if arguments.dry_run:
        return _run_experiment(request, plan, arguments, CheckCollector())
    kind = "compare" if plan.variants else "sweep"
    title = " on ".join((f"{kind} {plan.jobs[0]}", *request.targets[:1]))
    with check_files(arguments, title) as checks:
        checks.exit_code = _run_experiment(request, plan, arguments, checks)
        return checks.exit_code


def _run_experiment(
    request: RunRequest, plan: Plan, arguments: argparse.Namespace, checks: CheckCollector
) -> int:
    if not arguments.dry_run:
        confirm(plan, arguments.yes)
    spread = getattr(arguments, "spread", None)
    setup = replace(set_up(request, plan, print_message), spread=spread)
    expected = expectations_at_every_point(request, setup)
    progress = load_progress(
        setup, request, expected, print_message, Path(arguments.state) if arguments.state else None,
        arguments.fresh, arguments.dry_run,
    )  # fmt: skip
    setup = setup.resumed(progress)
    needs_precondition = request.precondition and not (progress is not None and progress.points)
    if arguments.dry_run:
        setup = replace(setup, write_budget=request.write_budget)
        return _dry_run(request, setup, progress, needs_precondition)
    if needs_precondition:
        request = run_precondition_job(request)
    setup = replace(setup, write_budget=request.write_budget)
    print_line(writes_text(setup), sys.stderr)
    if setup.plan.variants:
        print_line(planned_sensitivity(setup.plan, setup.spread), sys.stderr)
    sink = experiment_sink(setup.plan, arguments.format, os.uname().nodename, setup.target,
                           sys.stdout, sys.stderr)  # fmt: skip
    reporter = ReportedExperiment(sink, sys.stderr, sys.stdout)
    runner = ExperimentRunner(
        experiment_session(setup, request, progress, print_message), setup.plan,
        setup.job_target, setup.conditions, reporter.handle, progress, expected,
    )  # fmt: skip
    StopSignals(runner.stop, kill_without_waiting(runner.kill))
    with exit_on_closed_output(request.expect):
        try:
            runner.run()
        finally:
            reporter.end()
    return _conclude(runner, sink.points, checks)


def _conclude(
    runner: ExperimentRunner, points: Sequence[PointFinished], checks: CheckCollector
) -> int:
    """The exit code of an experiment that has ended. Its progress is kept if it was interrupted."""
    if runner.interrupted:
        print_message(_interrupted_text(runner))
        return EXIT_INTERRUPTED
    if runner.progress is not None:
        runner.progress.remove()
    plan = runner.plan
    points = points if plan.variants else measured_points(plan, points)
    for event in points:
        for outcome in event.outcomes:
            checks.add(
                f"{event.label}: {outcome.expectation.text}", outcome.passed, outcome_text(outcome)
            )
    if runner.failed:
        checks.add("all points", False, f"{counted(len(runner.failed), 'run')} failed")
        print_message(f"{counted(len(runner.failed), 'run')} of {plan.points} failed; the others "
            "were measured")  # fmt: skip
        return EXIT_JOB_FAILED
    return _exit_code(points)


def _dry_run(
    request: RunRequest,
    setup: ExperimentSetup,
    progress: ProgressFile | None,
    precondition: bool,
) -> int:
    """Print what would be done; the exit code."""
    check_record(request, progress)
    if precondition:
        target_path = check_target(request, setup.devices)[0].path
        print_line(f"first: writes {target_path} twice (--precondition)", sys.stdout)
    for line in dry_run_lines(setup, progress):
        print_line(line, sys.stdout)
    return EXIT_OK


def _interrupted_text(runner: ExperimentRunner) -> str:
    progress = runner.progress
    noun = runner.plan.unit
    if progress is not None and progress.points:
        measured = f"{len(progress.points)} of {counted(runner.plan.points, noun)}"
        return (f"interrupted: {measured} kept in {progress.path}; run the same command to "
                "continue")  # fmt: skip
    return f"interrupted before the first {noun} was measured; nothing is kept"


def _exit_code(points: Sequence[PointFinished]) -> int:
    """The exit code of a whole experiment: were its expectations met at every point?"""
    outcomes = [outcome for event in points for outcome in event.outcomes]
    for outcome in outcomes:
        if outcome.measured is None:
            raise UsageError(f"--expect {outcome.expectation.text!r} cannot be checked: the "
                             "points have no such figure.")  # fmt: skip
    return EXIT_OK if all(outcome.passed for outcome in outcomes) else EXIT_VERDICT


def confirm(plan: Plan, yes: bool) -> None:
    """Ask before a very long experiment. UsageError if the answer is no."""
    if plan.points < CONFIRM_FROM_POINTS or yes:
        return
    question = f"{length_text(plan)}. "
    if sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write(question + "Start it? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
        raise UsageError("Not started.")
    raise UsageError(question + "This experiment takes very long and needs confirmation.",
                     "Add --yes. To see the plan: --dry-run.")  # fmt: skip
