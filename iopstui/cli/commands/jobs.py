"""`iopstui jobs`: list and explain the shipped jobs."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command
from iopstui.cli.terminal import show, width
from iopstui.errors import EXIT_OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("--format", choices=("table", "json"), default="table",
                        help="output format (default: table)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """List the shipped jobs, or explain one of them."""
    import json

    from iopstui.fio.library import find_shipped, shipped_jobs
    from iopstui.output.pages.jobs import explain, jobs_json, jobs_table

    if arguments.name:
        job = find_shipped(arguments.name)
        text = json.dumps(jobs_json([job])[0], indent=2) if arguments.format == "json" else explain(
            job, width()
        )  # fmt: skip
    elif arguments.format == "json":
        text = json.dumps(jobs_json(shipped_jobs()), indent=2)
    else:
        text = jobs_table(shipped_jobs(), width())
    show(text)
    return EXIT_OK


COMMAND = Command(
    "jobs",
    90,
    "list the shipped jobs, or explain job NAME",
    add_arguments,
    run,
    without_directory=True,
)
