"""`iopstui fields`: the field registry."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command
from iopstui.cli.terminal import show, width
from iopstui.errors import EXIT_OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(arguments: argparse.Namespace) -> int:
    """Print the field registry."""
    from iopstui.model.metrics import fields

    show(fields.fields_json() if arguments.format == "json" else fields.fields_table(width()))
    return EXIT_OK


COMMAND = Command(
    "fields",
    100,
    "every field of the JSON lines: unit, source, meaning",
    add_arguments,
    run,
    anywhere=True,
)
