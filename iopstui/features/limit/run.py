"""Look for the limit: from its arguments to the exit code."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

from iopstui.cli.options import run_request
from iopstui.cli.terminal import kill_without_waiting, print_message, show, width
from iopstui.errors import EXIT_OK
from iopstui.features.limit.model.answer import FOUND, UNSURE
from iopstui.features.limit.output import limit_json, limit_text
from iopstui.features.limit.runner import LimitRunner
from iopstui.features.limit.setup import command_line, plan_lines, require_whole_seconds, set_up
from iopstui.format import print_line
from iopstui.linux.roots import Roots
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.output.narration import RunProgress
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.safety.signals import StopSignals


def run_limit(arguments: argparse.Namespace) -> int:
    """Run `iopstui limit`. Returns the exit code. The table or JSON goes to stdout, everything else
    to stderr."""
    request = replace(run_request(arguments), job=arguments.job)
    require_whole_seconds(request.interval_s)
    setup = set_up(request, arguments.keep, arguments.time)
    stream = sys.stdout if arguments.dry_run else sys.stderr
    for line in plan_lines(setup):
        print_line(line, stream)
    if arguments.dry_run:
        print_line(f"a rate alone: {command_line(setup)}", stream)
        return EXIT_OK
    clean_up_and_report(print_message, Roots())
    progress = RunProgress(sys.stderr, sys.stdout)
    runner = LimitRunner(setup, progress.handle, progress.write_note)
    StopSignals(runner.loop.stop, kill_without_waiting(runner.loop.kill))
    answer = runner.run()
    outcome = setup, answer, runner.rows, runner.closed, runner.saturated()
    if arguments.json:
        show(json.dumps(limit_json(*outcome), indent=2))
    else:
        show(limit_text(*outcome, width()))
    interrupted = runner.loop.interrupted
    if interrupted:
        print_message("Interrupted: these are the rates measured so far.")
    passed = answer.kind == FOUND or (None if answer.kind == UNSURE else False)
    return Verdict((Check(setup.keep.text, passed, answer.text),), interrupted).exit_code
