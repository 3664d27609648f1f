"""The doctor's findings as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from iopstui.errors import EXIT_MISSING, EXIT_OK
from iopstui.preflight.doctor import NEEDED, Check
from iopstui.text import printable

LABEL = 24


def report(checks: Sequence[Check], width: int) -> tuple[str, int]:
    """The report and the exit code: 5 if something is missing without which nothing can be
    measured."""
    lines: list[str] = []
    for check in checks:
        head = f"{check.state:<7}{check.name}"
        lines += _wrapped(printable(check.message), head, width)
        if check.fix:
            lines += _wrapped("→ " + printable(check.fix), "", width)
    missing = any(check.state == NEEDED for check in checks)
    return "\n".join(lines) + "\n", EXIT_MISSING if missing else EXIT_OK


def _wrapped(text: str, head: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 60),
        initial_indent=f"{head:<{LABEL}}",
        subsequent_indent=" " * LABEL,
        break_on_hyphens=False,
    )
