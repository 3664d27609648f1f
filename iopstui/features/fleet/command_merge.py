"""`iopstui merge`: add up the output of many hosts."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import add_format

EPILOG = """\
FILE is a recording or JSON lines (`run --format jsonl`, `fleet --record`, or `merge` itself).
Without FILE, JSON lines of all hosts are read from standard input (lines that srun or mpirun cut
are joined again), e.g.:
  srun -l -N40 iopstui run DIR --job randread-4k --format jsonl | iopstui merge

Rows are seconds of the wall clock. Counts and histograms are added, so percentiles are those of all
I/Os of all hosts. A host without data in a second is missing from it; it never counts as 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="*", metavar="FILE", help="see below")
    parser.add_argument("--label", action="append", default=[], metavar="NAME",
                        help="host name for the first FILE, the second ...; for standard input: "
                             "for lines without a name")  # fmt: skip
    parser.add_argument("--interval", type=values.interval, default=1.0, metavar="SECONDS",
                        help="length of each row's interval, at least that of the samples, 0.25 "
                             "to 60 (default: 1)")  # fmt: skip
    parser.add_argument("--as", dest="name", default="all", metavar="NAME",
                        help="name for these totals when another merge reads them (default: "
                             "all)")  # fmt: skip
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    from iopstui.features.fleet.program.merge_rows import merge_files

    return merge_files(
        arguments.file, arguments.label, arguments.interval, arguments.name, arguments.format
    )


COMMAND = Command(
    "merge",
    36,
    "add up many hosts' results, second by second, from their files",
    add_arguments,
    run,
    epilog=EPILOG,
    minor=True,
)
