"""The command line: options that commands share, and a file for each command."""

from iopstui.cli.program import main

__all__ = ["main"]
