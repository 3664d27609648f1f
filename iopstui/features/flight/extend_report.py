"""`iopstui report DIR --from TIME --to TIME`: a report of a span of a flight recording."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from iopstui.cli.parser import Parser
from iopstui.errors import UsageError

LENGTH_S = 3600.0


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--from", dest="began", metavar="TIME",
                        help="FILE is the directory of a flight recording: begin there; 02:14, "
                             "'yesterday 02:14', '2026-11-27 02:14', 2026-11-27T02:14Z or -2h "
                             "(default: an hour before the end)")  # fmt: skip
    parser.add_argument("--to", dest="ended", metavar="TIME", help="end there (default: now)")
    parser.allow_times_ago()


def run(arguments: argparse.Namespace) -> int | None:
    """Report the span; ``None`` if the paths are files."""
    names = [name for name in arguments.file if Path(name).is_dir()]
    if not names:
        if arguments.began is not None or arguments.ended is not None:
            raise UsageError(
                "--from and --to need the directory of a flight recording.",
                "For example: iopstui report /var/lib/iopstui --from 02:00 --to 03:00",
            )
        return None
    if len(arguments.file) > 1:
        raise UsageError("A report of a flight recording cannot include other files.",
                         "Name only its directory.")  # fmt: skip
    from iopstui.cli.registry import commands
    from iopstui.features.flight.model.times import parse_time, utc_text
    from iopstui.features.flight.span import extract

    now_s = time.time()
    ended_s = now_s if arguments.ended is None else parse_time(arguments.ended, now_s, "--to")
    began_s = ended_s - LENGTH_S
    if arguments.began is not None:
        began_s = parse_time(arguments.began, now_s, "--from")
    if began_s >= ended_s:
        raise UsageError("--from is not before --to.", f"--to is {utc_text(ended_s)}.")
    with tempfile.TemporaryDirectory(prefix="iopstui-") as directory:
        span = f"{utc_text(began_s)}-{utc_text(ended_s)}".replace(":", "")
        path = Path(directory) / f"{Path(names[0]).resolve().name}-{span}.iops"
        extract(Path(names[0]), began_s, ended_s, path)
        arguments.file, arguments.began, arguments.ended = [str(path)], None, None
        (report,) = commands("report")
        return report.run(arguments)
