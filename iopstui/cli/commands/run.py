"""`iopstui run`: run a job without a screen."""

from __future__ import annotations

import argparse
from dataclasses import replace
from types import ModuleType

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import (
    EPILOG,
    add_check_files,
    add_expect,
    add_exports,
    add_format,
    add_precondition,
    add_run_options,
    add_volume,
    run_request,
    with_expectations,
)
from iopstui.discovery import feature_modules
from iopstui.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--job", metavar="JOB",
                        help="a shipped job (see `iopstui jobs`) or any fio job file")  # fmt: skip
    for other in _job_sources():
        other.add_argument(source)
    parser.add_argument("--until-steady", type=values.duration, nargs="?", const=60.0,
                        metavar="ROUND",
                        help="stop when five rounds (1m each by default) are steady by SNIA's "
                             "rule; after 25 rounds (or --set runtime=) give up with exit code "
                             "4")  # fmt: skip
    add_precondition(parser)
    add_format(parser)
    add_expect(parser)
    add_check_files(parser)
    add_exports(parser)
    parser.add_argument("--hold", action="store_true",
                        help="prepare everything, then start fio when a line arrives on "
                             "standard input (to start several machines together)")  # fmt: skip
    parser.add_argument("--io-log", action="store_true",
                        help="list the slowest I/Os from fio's own log of each I/O, without root; "
                             "needs 150 bytes of memory per I/O")  # fmt: skip
    add_run_options(parser)
    parser.add_argument("--part", type=values.target_part, metavar="K/N",
                        help="use only part K of N equal parts of each TARGET (a file or device), "
                             "e.g. 2/4, on one of several machines")  # fmt: skip
    add_volume(parser)


def _job_sources() -> list[ModuleType]:
    """The modules that can make a job in place of --job, in the order of the help."""
    return sorted(feature_modules("job_source"), key=lambda source: source.OPTION)


def run(arguments: argparse.Namespace) -> int:
    # if --diskspd or --replay is given, --job is only the configuration file's default: ignore it
    source = next(
        (other for other in _job_sources() if getattr(arguments, other.OPTION) is not None), None
    )
    job = arguments.job if source is None else None
    request = with_expectations(run_request(arguments, job), arguments)
    if request.precondition and arguments.hold:
        raise UsageError("--hold waits to start fio together with other machines, but "
                         "--precondition takes a different time on each.",
                         "Run the job `precondition` first, without --hold.")  # fmt: skip
    request = replace(request, hold=arguments.hold, io_log=arguments.io_log)
    if source is not None:
        code: int = source.run(request, arguments)
        return code
    from iopstui.cli.runs.run_job import run_job

    return run_job(request, arguments.format, arguments)


COMMAND = Command(
    "run",
    20,
    "run a job without a screen: table, JSON lines or CSV",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
