"""`iopstui report`: what one recording or two hold, to be handed on."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("file", nargs="+", metavar="FILE", help="one recording, or two")
    parser.add_argument("-o", "--output", metavar="OUT",
                        help="x.html, x.md, x.csv or x.json (default: Markdown on standard output)",
                        )  # fmt: skip
    parser.add_argument("--format", choices=("html", "md", "csv", "json"),
                        help="if OUT's name does not say it")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """The page, or the data."""
    from iopstui.report.files import report

    return report(arguments.file, arguments.output, arguments.format)


COMMAND = Command(
    "report",
    40,
    "make a page or a data file of one recording, or of two side by side",
    add_arguments,
    run,
)
