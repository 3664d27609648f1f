"""`iopstui limit`: find the highest rate at which a job's latency stays within a bound."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import add_run_options

EPILOG = """\
TARGET is a block device, a file, a directory (a scratch file is made in it and removed), or
nothing (a scratch file in the current directory). A block device is only read unless --destroy-data
repeats its path. The job runs at one rate after another: its I/Os are due at random times (Poisson)
however slow the disk is, while those of a full queue wait for the disk.

exit codes: 0 found within 25 %, 1 the job failed, 2 usage or bad input, 3 refused for safety,
4 no limit found (never kept, no limit reached, or can't tell), 5 something needed is missing,
130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", required=True, metavar="JOB",
                        help="job to run (`iopstui jobs` lists them); needs an asynchronous "
                             "engine")  # fmt: skip
    parser.add_argument("--keep", required=True, metavar="FIGURE<=VALUE",
                        help="bound to keep on a percentile of fio's latency, e.g. "
                             "read.clat.p99<=1ms")  # fmt: skip
    parser.add_argument("--time", type=_time, default=180.0, metavar="SECONDS",
                        help="end after this time at the latest, 30 to 86400 (default: "
                             "180)")  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would run and be written, and exit"
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    add_run_options(parser)


def _time(text: str) -> float:
    return values.seconds(text, 30, 86400)


def run(arguments: argparse.Namespace) -> int:
    from iopstui.features.limit.run import run_limit

    return run_limit(arguments)


COMMAND = Command(
    "limit",
    57,
    "find the highest rate at which a job keeps a latency",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
)
