"""Check the terminal and packages that a command needs, and print messages."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from iopstui.errors import Interrupted, UsageError

MAX_WIDTH = 1000
"""Limit for the width of lines, whatever COLUMNS says."""


def in_browser() -> bool:
    """Whether a web server shows the screen (`iopstui serve`, textual-serve)."""
    return bool(os.environ.get("TEXTUAL_DRIVER"))


def has_screen() -> bool:
    """Whether the live screen can be shown."""
    if in_browser():
        return True
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    return tty and os.environ.get("TERM", "") not in ("", "dumb")


def require_terminal(
    instead: str = "iopstui run [TARGET] --job JOB --format table|jsonl|csv",
) -> None:
    """Raise UsageError if there is no terminal; ``instead`` is a command that needs none."""
    if in_browser():
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The live screen needs a terminal. Standard input or output is not one.",
            f"Without one: {instead}",
        )
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise UsageError(
            "This terminal (TERM=dumb) cannot position text.",
            f"Set TERM, e.g. TERM=xterm, or use: {instead}",
        )


def require_for_screen(arguments: argparse.Namespace) -> None:
    """Raise Missing if a package that the screen needs is not installed. Also set the screen's
    preferences from ``arguments``; the screen saves changes in the configuration file."""
    from iopstui.linux.process.programs import SCREEN_PACKAGES, require_packages

    require_packages(*SCREEN_PACKAGES)
    from iopstui.cli.config import remember
    from iopstui.ui.core.preferences import PREFERENCES

    PREFERENCES.mouse = arguments.mouse
    PREFERENCES.notify = getattr(arguments, "notify", False)
    if not in_browser():
        PREFERENCES.remember = remember
    PREFERENCES.layout = getattr(arguments, "layout", "")
    PREFERENCES.fleet_layout = getattr(arguments, "fleet_layout", "")


def width() -> int:
    """The width of the terminal in columns; 80 if there is none."""
    with contextlib.suppress(ValueError):
        if (columns := int(os.environ.get("COLUMNS", ""))) > 0:
            return min(columns, MAX_WIDTH)
    # shutil.get_terminal_size does the same, but shutil also imports modules for four kinds of
    # archives
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


def show(text: str) -> None:
    """Write ``text`` to standard output; what the locale's encoding cannot express is replaced."""
    from iopstui.format import replace_unprintable

    sys.stdout.write(replace_unprintable(text, sys.stdout.encoding or "ascii"))
    if not text.endswith("\n"):
        sys.stdout.write("\n")


@contextlib.contextmanager
def exit_on_closed_output(expect: Sequence[str]) -> Iterator[None]:
    """Exit with 0 when the reader closes standard output; not with ``expect``, because 0 would mean
    that the expectations were met."""
    try:
        yield
    except BrokenPipeError as error:
        if not expect:
            raise
        message = "The reader of standard output closed it before --expect was checked."
        raise Interrupted(message) from error


def kill_without_waiting(kill: Callable[[], None]) -> Callable[[], None]:
    """Wrap ``kill``, which a second signal calls: it must not wait for a reader of the output."""

    def asked() -> None:
        from iopstui.safety.streams import drop_stuck

        drop_stuck()
        kill()

    return asked


def print_message(text: str) -> None:
    """Write a line for people to standard error."""
    from iopstui.format import print_sentence
    from iopstui.text import printable

    print_sentence(f"iopstui: {printable(text)}", sys.stderr)
