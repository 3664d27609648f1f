"""`iopstui fields`: list the fields of a frame."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command
from iopstui.cli.terminal import show, width
from iopstui.errors import EXIT_OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("table", "json", "schema"), default="table",
                        help="output format; schema: a JSON Schema of everything written as "
                             "JSON")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from iopstui.model.metrics import fields

    if arguments.format == "schema":
        from iopstui.output.schema import schema_text

        show(schema_text())
    else:
        show(fields.fields_json() if arguments.format == "json" else fields.fields_table(width()))
    return EXIT_OK


COMMAND = Command(
    "fields",
    100,
    "list every field of the JSON lines: unit, source, meaning",
    add_arguments,
    run,
    without_directory=True,
    minor=True,
)
