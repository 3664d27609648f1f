"""`iopstui report`: write recordings or fio results as a page or a data file."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import add_expect
from iopstui.features.reports.formats import FORMATS, or_list


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="+", type=values.responsive_path, metavar="FILE",
                        help="recordings, fio's JSON (json, json+), fio's logs (NAME_clat.1.log "
                             "...), or one file of `fleet --record`")  # fmt: skip
    names = or_list(f"x{report_format.suffixes[0]}" for report_format in FORMATS.values())
    parser.add_argument("-o", "--output", type=values.responsive_path, metavar="OUT",
                        help=f"{names} (default: Markdown on standard output)")  # fmt: skip
    parser.add_argument("--format", choices=tuple(FORMATS),
                        help="format (default: by OUT's suffix)")  # fmt: skip
    parser.add_argument("--against", metavar="NAME[,OPTION=VALUE]",
                        help="compare with the limits of a bought volume, e.g. "
                             "aws/gp3,size=500g (not in csv, json and parquet)")  # fmt: skip
    add_expect(parser)
    parser.add_argument("--redact", action="store_true",
                        help="remove names of hosts, users, processes and device-mapper "
                             "devices, addresses, paths, serial numbers")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from iopstui.features.reports.files import report
    from iopstui.features.reports.formats import ReportOptions

    against = None
    if arguments.against is not None:
        from iopstui.cli.options import parse_volume

        against = parse_volume(arguments.against, "--against")
    expected = None
    if arguments.expect or arguments.baseline is not None:
        from iopstui.model.experiment.expectation import parse_tolerance
        from iopstui.output.page.source import Expected

        tolerance = parse_tolerance(arguments.tolerance)
        expected = Expected(arguments.expect, tolerance, arguments.baseline)
    options = ReportOptions(arguments.redact, against)
    return report(arguments.file, arguments.output, arguments.format, options, expected)


COMMAND = Command(
    "report", 40, "make a report from recordings or fio's own results", add_arguments, run
)
