"""Run a sweep or a comparison: from its options to the exit code."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from iopstui.cli.runs.check_files import with_check_files
from iopstui.cli.runs.run_job import check_target, run_precondition_job
from iopstui.cli.terminal import exit_on_closed_output, kill_without_waiting, print_message
from iopstui.errors import UsageError
from iopstui.experiment.progress import ProgressFile
from iopstui.experiment.runner import ExperimentRunner
from iopstui.experiment.setup import (
    ExperimentSetup,
    check_record,
    dry_run_lines,
    expectations_at_every_point,
    experiment_session,
    length_text,
    load_progress,
    set_up,
    writes_text,
)
from iopstui.format import counted, print_line, print_sentence
from iopstui.model.experiment.comparison import planned_sensitivity
from iopstui.model.experiment.plan import CONFIRM_FROM_POINTS, Plan
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.experiment.verdict import Verdict
from iopstui.output.experiment.sinks import ReportedExperiment, experiment_sink
from iopstui.safety.signals import StopSignals


def run_experiment(request: RunRequest, plan: Plan, arguments: argparse.Namespace) -> int:
    """Run the experiment. Returns the exit code. Its progress is kept, so that it can be resumed
    after an interruption."""
    title = " on ".join((f"{plan.name or plan.kind} {plan.jobs[0]}", *request.targets[:1]))
    if arguments.dry_run:
        return _run_experiment(request, plan, arguments).exit_code
    return with_check_files(arguments, title, lambda: _run_experiment(request, plan, arguments))


def _run_experiment(request: RunRequest, plan: Plan, arguments: argparse.Namespace) -> Verdict:
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
    print_sentence(writes_text(setup), sys.stderr)
    if setup.plan.variants:
        print_sentence(planned_sensitivity(setup.plan, setup.spread), sys.stderr)
    sink = experiment_sink(setup.plan, arguments.format, os.uname().nodename, setup.target,
                           sys.stdout, sys.stderr)  # fmt: skip
    reporter = ReportedExperiment(sink, sys.stderr, sys.stdout)
    runner = ExperimentRunner(
        experiment_session(setup, request, progress, print_message), setup.plan,
        setup.job_target, setup.conditions, reporter.handle, progress, expected,
    )  # fmt: skip
    StopSignals(runner.loop.stop, kill_without_waiting(runner.loop.kill))
    with exit_on_closed_output(request.expect):
        try:
            runner.run()
        finally:
            reporter.end()
    return _conclude(runner)


def _conclude(runner: ExperimentRunner) -> Verdict:
    """The verdict of an experiment that has ended. Keeps its saved progress only if it was
    interrupted."""
    if runner.interrupted:
        print_message(_interrupted_text(runner))
        return runner.verdict()
    if runner.progress is not None:
        runner.progress.remove()
    points = runner.points
    if points.failed:
        print_message(failed_text(len(points.failed), runner.plan.points, points.ended_early))
    return runner.verdict()


def failed_text(failed: int, runs: int, ended_early: bool) -> str:
    """A sentence that says how many runs failed, and whether all others were measured."""
    if failed == runs:
        return f"{'the run' if runs == 1 else f'all {runs} runs'} failed: nothing was measured"
    others = "not all others" if ended_early else "the others"
    return f"{counted(failed, 'run')} of {runs} failed; {others} were measured"


def _dry_run(
    request: RunRequest, setup: ExperimentSetup, progress: ProgressFile | None, precondition: bool
) -> Verdict:
    check_record(request, progress)
    if precondition:
        target_path = check_target(request, setup.devices)[0].path
        print_line(f"first: writes {target_path} twice (--precondition)", sys.stdout)
    for line in dry_run_lines(setup, progress):
        print_line(line, sys.stdout)
    return Verdict()


def _interrupted_text(runner: ExperimentRunner) -> str:
    progress = runner.progress
    noun = runner.plan.unit
    if progress is not None and progress.points:
        measured = f"{len(progress.points)} of {counted(runner.plan.points, noun)}"
        return (f"interrupted: {measured} kept in {progress.path}; run the same command to "
                "continue")  # fmt: skip
    return f"interrupted before the first {noun} was measured; nothing is kept"


def confirm(plan: Plan, yes: bool) -> None:
    """Ask before a very long experiment. Raises UsageError if the answer is no."""
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
