"""`iopstui replay DIR --at TIME`: play a flight recording on the screen."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from iopstui.cli.parser import Parser
from iopstui.errors import UsageError


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--at", metavar="TIME",
                        help="begin there; FILE is the directory of a flight recording: 02:14, "
                             "'yesterday 02:14', '2026-11-27 02:14', 2026-11-27T02:14Z or "
                             "-2h")  # fmt: skip
    parser.allow_times_ago()


def run(arguments: argparse.Namespace) -> int | None:
    """Show the recording; ``None`` if the path is a file."""
    place = Path(arguments.file)
    if not place.is_dir():
        if arguments.at is not None:
            raise UsageError("--at needs the directory of a flight recording.",
                             "For example: iopstui replay /var/lib/iopstui --at 02:14")  # fmt: skip
        return None
    if arguments.format or arguments.plain or arguments.follow:
        raise UsageError(
            "A flight recording is replayed on the screen.",
            f"For its data name one of its files: iopstui replay {place}/...iops --format table",
        )
    from iopstui.cli.options import refuse_theme
    from iopstui.cli.terminal import require_for_screen, require_terminal
    from iopstui.features.flight.flight_replay import FlightReplay
    from iopstui.features.flight.model.times import parse_time

    refuse_theme(arguments)
    at_s = None if arguments.at is None else parse_time(arguments.at, time.time())
    session = FlightReplay(place, at_s, arguments.speed)
    try:
        require_terminal(f"iopstui why {place} --at TIME")
        require_for_screen(arguments)
    except BaseException:
        session.close()
        raise
    from iopstui.cli.options import read_volume_option
    from iopstui.ui.replay import show_session

    return show_session(session, arguments.theme, read_volume_option(arguments))
