"""`iopstui agent`: the program that `iopstui fleet` starts on each host."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command

EPILOG = """\
`iopstui fleet` starts this on each host; you never need to. It opens no port and leaves no process
behind. If it hears nothing from `iopstui fleet` for 5 s, it stops fio, restores settings and
removes files.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments, because all orders come on standard input."""


def run(arguments: argparse.Namespace) -> int:
    """Carry out the orders on standard input."""
    from iopstui.features.fleet.program.agent import serve

    return serve(arguments.line.parse)


COMMAND = Command(
    "agent",
    120,
    "the part of fleet that runs on each host",
    add_arguments,
    run,
    epilog=EPILOG,
    needs_proc=True,
    hidden=True,
)
