"""Judge a disk for programs: from the arguments to the exit code."""

from __future__ import annotations

import argparse
import json
import sys

from iopstui.cli.runs.check_files import with_check_files
from iopstui.cli.terminal import kill_without_waiting, print_message, show, width
from iopstui.errors import EXIT_OK
from iopstui.features.fit.output import checks_of, fit_json, fit_text
from iopstui.features.fit.runner import FitRunner
from iopstui.features.fit.setup import FitSetup, plan_lines, read_programs, set_up, split_words
from iopstui.format import print_line
from iopstui.linux.roots import Roots
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.experiment.verdict import Verdict
from iopstui.output.status_line import RunProgress
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.safety.signals import StopSignals
from iopstui.text import printable


def run_fit(arguments: argparse.Namespace) -> int:
    """The exit code. The table or JSON on stdout, everything else on stderr."""
    programs = read_programs()
    for problem in programs.problems:
        print_message(problem)
    directory, chosen = split_words(arguments.words, programs)
    request = RunRequest(
        targets=(directory,), write_budget=arguments.write_budget, record=arguments.record
    )
    setup = set_up(directory, chosen, request, arguments.measure)
    for line in plan_lines(setup):
        print_line(line, sys.stdout if arguments.dry_run else sys.stderr)
    if arguments.dry_run:
        return EXIT_OK
    title = f"fit in {printable(setup.target.path)}"
    return with_check_files(arguments, title, lambda: _measure(setup, arguments))


def _measure(setup: FitSetup, arguments: argparse.Namespace) -> Verdict:
    clean_up_and_report(print_message, Roots())
    progress = RunProgress(sys.stderr, sys.stdout)
    runner = FitRunner(setup, progress.handle, progress.write_note)
    StopSignals(runner.loop.stop, kill_without_waiting(runner.loop.kill))
    runner.run()
    target = setup.target
    on = f" ({target.fstype or 'file system'} on {target.device})" if target.device else ""
    place = f"{printable(target.path)}{on}"
    if arguments.json:
        show(json.dumps(fit_json(runner.judgements, target.path), indent=2))
    elif runner.judgements:
        show(fit_text(runner.judgements, place, width(), arguments.details))
    if runner.loop.interrupted:
        count = f"{len(runner.judgements)} of {len(setup.programs)}"
        print_message(f"Interrupted: {count} programs were measured.")
    return Verdict(checks_of(runner.judgements), runner.loop.interrupted)
