"""Extends `iopstui replay FILE` to recordings of many hosts."""

from __future__ import annotations

import argparse
from pathlib import Path

from iopstui.cli.options import refuse_theme
from iopstui.cli.terminal import require_for_screen, require_terminal
from iopstui.errors import UsageError
from iopstui.recording.recent import is_fleet
from iopstui.text import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options."""


def run(arguments: argparse.Namespace) -> int | None:
    """Play a recording of many hosts on the screen. Returns ``None`` for another kind of file."""
    if arguments.follow or not is_fleet(Path(arguments.file)):
        return None
    refuse_theme(arguments)
    name = printable(arguments.file)
    if arguments.volume:
        raise UsageError("--volume is for the recording of one machine.", "Leave it out.")
    if arguments.format:
        raise UsageError(
            "Use `iopstui merge` to add up the lines of many hosts.",
            f"iopstui merge {name} --format {arguments.format}",
        )
    require_terminal(f"iopstui merge {name}")
    require_for_screen(arguments)
    from iopstui.features.fleet.program.screen import show_recording

    return show_recording(Path(arguments.file), arguments.speed, arguments.theme)
