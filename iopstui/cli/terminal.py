"""What a command needs of terminal and packages, and how it says something itself."""

from __future__ import annotations

import os
import sys

from iopstui.errors import UsageError


def has_screen() -> bool:
    """Whether the live screen can be shown."""
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    return tty and os.environ.get("TERM", "") not in ("", "dumb")


def require_terminal(
    instead: str = "iopstui run [TARGET] --job JOB --format table|jsonl|csv",
) -> None:
    """UsageError where there is no screen; ``instead`` does without."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The live screen needs a terminal, and standard input or output is not one.",
            f"Without one: {instead}",
        )
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise UsageError(
            "This terminal (TERM=dumb) can't position text, as the live screen has to.",
            f"Set TERM to what the terminal is, e.g. TERM=xterm, or use: {instead}",
        )


def require_for_screen() -> None:
    """Missing if a package is that the screen needs."""
    from iopstui.linux.process.packages import FOR_THE_SCREEN, require

    require(*FOR_THE_SCREEN)


def require_for_runs() -> None:
    """Missing if a package is that a run needs."""
    from iopstui.linux.process.packages import FOR_RUNS, require

    require(*FOR_RUNS)


def width() -> int:
    """Columns of the terminal; 80 where there is none."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def show(text: str) -> None:
    """To standard output in whatever the locale's encoding can say."""
    from iopstui.format import fit

    sys.stdout.write(fit(text, sys.stdout.encoding or "ascii"))
    if not text.endswith("\n"):
        sys.stdout.write("\n")


def say(text: str) -> None:
    """A line for people, on standard error."""
    from iopstui.format import put
    from iopstui.text import printable

    put(f"iopstui: {printable(text)}", sys.stderr)
