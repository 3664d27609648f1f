"""`iopstui doctor`: check permissions, fio and kernel features on this machine."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command
from iopstui.cli.terminal import show, width


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Report what this machine allows."""
    from iopstui.output.pages.doctor import report
    from iopstui.preflight.doctor import examine

    text, code = report(examine(), width())
    show(text)
    return code


COMMAND = Command(
    "doctor",
    110,
    "check permissions, fio and kernel features; clean up after a crash",
    add_arguments,
    run,
    needs_proc=True,
)
