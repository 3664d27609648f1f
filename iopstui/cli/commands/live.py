"""`iopstui live`: open the screen."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import (
    EPILOG,
    add_expect,
    add_exports,
    add_run_options,
    add_theme,
    run_options,
    with_expectations,
)
from iopstui.cli.terminal import require_for_screen, require_terminal
from iopstui.cli.volume_options import add_volume


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--job", metavar="JOB", help="start this job at once (`iopstui jobs` lists them)"
    )
    parser.add_argument("--refresh", type=values.refresh, default=0.0, metavar="SECONDS",
                        help="redraw at most this often, up to 60; does not change --interval "
                             "(default: with every sample)")  # fmt: skip
    # of the configuration file; no run begins by itself
    parser.set_defaults(first_job=None)
    add_theme(parser)
    add_expect(parser)
    add_exports(parser)
    add_run_options(parser)
    add_volume(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the screen until the user leaves it."""
    require_terminal()
    require_for_screen(arguments)
    from iopstui.cli.runs.exporting import exported
    from iopstui.ui.start import run_screen

    options = with_expectations(run_options(arguments, arguments.job), arguments)
    with exported(options) as export:
        return run_screen(
            options, arguments.refresh, theme=arguments.theme, first_job=arguments.first_job,
            export=export,
        )  # fmt: skip


COMMAND = Command(
    "live",
    10,
    "the live screen; without TARGET it lists the disks first",
    add_arguments,
    run,
    epilog=EPILOG,
    kernel=True,
)
