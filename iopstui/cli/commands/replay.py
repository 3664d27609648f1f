"""`iopstui replay`: a recording, on the screen or as data."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import add_theme
from iopstui.cli.terminal import require_for_screen, require_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", metavar="FILE",
                        help='made with --record or key R; "demo" comes with iopstui')  # fmt: skip
    parser.add_argument("--speed", type=values.speed, default=1.0, metavar="X",
                        help="seconds of the recording per second, 0.1 to 1000 (default: 1)",
                        )  # fmt: skip
    add_theme(parser)
    parser.add_argument("--format", choices=values.FORMATS,
                        help="write everything to standard output at once, without a screen",
                        )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Play a recording on the screen, or write it as data."""
    if arguments.format:
        from iopstui.output.replay import replay_headless

        return replay_headless(arguments.file, arguments.format)
    require_terminal("iopstui replay FILE --format table|jsonl|csv")
    require_for_screen()
    from iopstui.ui.replay import run_replay

    return run_replay(arguments.file, arguments.speed, arguments.theme)


COMMAND = Command(
    "replay",
    30,
    "play a recording on the live screen, or write it as data",
    add_arguments,
    run,
)
