"""`iopstui why DIR --at TIME`: the answer at an earlier time, from a flight recording."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from iopstui.cli.parser import Parser
from iopstui.errors import UsageError

LENGTH_S = 60.0
NOW_S = 10.0


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--at", metavar="TIME",
                        help="answer for that time, from the flight recording in the directory "
                             "WHAT: 02:14, 'yesterday 02:14', '2026-11-27 02:14', "
                             "2026-11-27T02:14Z or -2h; one minute of it, or --for")  # fmt: skip
    parser.allow_times_ago()
    parser.set_defaults(length=None)


def run(arguments: argparse.Namespace) -> int | None:
    """Answer for that time; ``None`` without ``--at``."""
    if arguments.at is None:
        arguments.length = NOW_S if arguments.length is None else arguments.length
        return None
    if arguments.what is None:
        raise UsageError("--at needs the directory of a flight recording.",
                         "For example: iopstui why /var/lib/iopstui --at 02:14; to make one: "
                         "iopstui watch --record DIR/")  # fmt: skip
    from iopstui.features.flight.model.times import parse_time
    from iopstui.features.flight.past_answer import why_then

    at_s = parse_time(arguments.at, time.time())
    length_s = LENGTH_S if arguments.length is None else arguments.length
    return why_then(Path(arguments.what), at_s, length_s, arguments.json)
