"""`iopstui doctor`: check permissions, fio and kernel features on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from iopstui.cli.command import Command
from iopstui.cli.terminal import show, width
from iopstui.errors import EXIT_MISSING, EXIT_OK
from iopstui.preflight.doctor import NEEDED, Check
from iopstui.text import printable, wrapped

LABEL = 24


def report(checks: Sequence[Check], width: int) -> tuple[str, int]:
    """The report and the exit code, which is 5 if something is missing that every measurement
    needs."""
    lines: list[str] = []
    for check in checks:
        head = f"{check.state:<7}{check.name}"
        lines.append(_wrapped(printable(check.message), head, width))
        if check.fix:
            lines.append(_wrapped("→ " + printable(check.fix), "", width))
    missing = any(check.state == NEEDED for check in checks)
    return "\n".join(lines) + "\n", EXIT_MISSING if missing else EXIT_OK


def _wrapped(text: str, head: str, width: int) -> str:
    return f"{head:<{LABEL}}{wrapped(text, LABEL, LABEL, max(width, 60))[LABEL:]}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Report what this machine allows."""
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
