"""`iopstui fit`: judge whether a disk is good enough for a program."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import add_check_files

EPILOG = """\
DIR is the directory that the program would write to (default: the current one); a scratch file is
made there and removed. PROGRAM is etcd (or k3s), postgresql, sqlite, prometheus, or a file of your
own in ~/.config/iopstui/fits; without one all of them are measured.

exit codes: 0 every published bound is met, 1 a job failed, 2 usage or bad input, 3 refused for
safety, 4 a bound is not met or the answer is "can't tell", 5 something needed is missing, 130
interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="DIR|PROGRAM", help="see below")
    parser.add_argument("--measure", type=values.measure, metavar="SECONDS",
                        help="measured time of each program (default: 22; an interval needs "
                             "20)")  # fmt: skip
    parser.add_argument("--write-budget", type=values.budget, metavar="SIZE",
                        help="stop before more than this is written in total, e.g. "
                             "2g")  # fmt: skip
    parser.add_argument("--record", type=values.new_file, metavar="FILE",
                        help="record all measurements in FILE, which must not "
                             "exist")  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would run and be written, and exit"
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="show all that is known of each program, instead of one line",
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    add_check_files(parser)


def run(arguments: argparse.Namespace) -> int:
    from iopstui.features.fit.run import run_fit

    return run_fit(arguments)


COMMAND = Command(
    "fit",
    56,
    "judge whether a disk is good enough for etcd or a database",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
    minor=True,
)
