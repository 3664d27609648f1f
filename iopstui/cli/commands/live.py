"""`iopstui live`: open the screen."""

from __future__ import annotations

import argparse
from dataclasses import replace

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import (
    EPILOG,
    add_expect,
    add_exports,
    add_plain,
    add_run_options,
    add_theme,
    add_volume,
    refuse_theme,
    run_request,
    with_expectations,
)
from iopstui.cli.terminal import require_for_screen, require_terminal
from iopstui.errors import UsageError

PLAIN = "plain"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--job", metavar="JOB", help="start this job at once (`iopstui jobs` lists them)"
    )
    parser.add_argument("--ramp", metavar="iodepth=LOW..HIGH",
                        help="raise iodepth (or numjobs) of --job step by step, stop where more "
                             "gains nothing, and stay at the best, e.g. iodepth=1..64")  # fmt: skip
    parser.add_argument("--refresh", type=values.refresh, default=0.0, metavar="SECONDS",
                        help="redraw at most this often, up to 60; does not change --interval "
                             "(default: with every sample)")  # fmt: skip
    # a job from the configuration file goes here; unlike --job it does not start by itself
    parser.set_defaults(first_job=None)
    add_theme(parser)
    parser.add_argument("--notify", action="store_true",
                        help="have the terminal notify you (OSC 9) when a run or a sweep ends or a "
                             "finding appears")  # fmt: skip
    add_plain(parser)
    add_expect(parser)
    add_exports(parser)
    add_run_options(parser)
    add_volume(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the screen until the user quits."""
    ramp = None
    if arguments.ramp is not None:
        from iopstui.model.experiment.ramp import parse_ramp

        ramp = parse_ramp(arguments.ramp)
        if not arguments.job or arguments.plain:
            raise UsageError("--ramp changes a job that runs on the screen, so it needs both.",
                             "Name the job with --job, and leave out --plain.")  # fmt: skip
    if arguments.plain:
        return _run_plain(arguments)
    require_terminal()
    require_for_screen(arguments)
    from iopstui.cli.runs.check_files import exporting_sessions
    from iopstui.ui.start import run_screen

    request = with_expectations(run_request(arguments, arguments.job), arguments)
    with exporting_sessions(arguments) as export:
        return run_screen(
            request, arguments.refresh, theme=arguments.theme, first_job=arguments.first_job,
            export=export, ramp=ramp,
        )  # fmt: skip


def _run_plain(arguments: argparse.Namespace) -> int:
    """Without a screen: run a job to its end, or show the disks until Ctrl-C."""
    refuse_theme(arguments)
    request = with_expectations(run_request(arguments, arguments.job), arguments)
    if request.job:
        from iopstui.cli.runs.run_job import run_job

        return run_job(request, PLAIN, arguments)
    if request.expect or request.overrides or request.knobs or request.destroy_data:
        raise UsageError(
            "Without --job, --plain only watches the disks: no job runs that --expect, --set, "
            "--knob or --destroy-data could apply to.",
            "Name a job with --job (`iopstui jobs` lists them).",
        )
    from iopstui.cli.runs.watch_disks import watch

    return watch(replace(request, own_cpus=()), PLAIN, arguments)


COMMAND = Command(
    "live",
    10,
    "the live screen; without TARGET it lists the disks first",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
