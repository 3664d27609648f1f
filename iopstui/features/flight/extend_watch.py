"""`iopstui watch --record DIR/`: the flight recorder."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.cli import values
from iopstui.errors import UsageError
from iopstui.features.flight.directory import LOCK
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.session.live import LiveSession


KEEP_S = 7 * 86400.0
MAX_BYTES = 2 << 30
MIN_BYTES = 16 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options, and explain in the help of ``--record`` what a directory means."""
    for action in parser._actions:
        if action.dest == "record":
            action.help = f"{action.help}; DIR/, with a / at its end, is a flight recording"
    parser.add_argument("--keep", type=values.duration, metavar="TIME",
                        help="with --record DIR/: how long to keep what was recorded (default: "
                             "7d)")  # fmt: skip
    parser.add_argument("--worst", type=number, metavar="N",
                        help="list the N worst times of the flight recording in directory "
                             "TARGET with their answers (--format jsonl: as JSON)")  # fmt: skip
    parser.add_argument("--max-size", type=ring_size, metavar="SIZE",
                        help="with --record DIR/: how large it may get, e.g. 500m; the oldest "
                             "hours go first (default: 2g)")  # fmt: skip


def ring_size(text: str) -> int:
    size = values.budget(text)
    if size < MIN_BYTES:
        raise argparse.ArgumentTypeError(f"{text!r} is less than {MIN_BYTES >> 20}m")
    return size


def number(text: str) -> int:
    """The number of times to list."""
    return values.whole_number(text, 1, 1000)


def run(arguments: argparse.Namespace) -> int | None:
    """Record to the directory; ``None`` if --record names no directory."""
    if arguments.worst is not None:
        return _list_worst(arguments)
    place = arguments.record
    sets_ring = arguments.keep is not None or arguments.max_size is not None
    if place is None or not (sets_ring or place.endswith("/") or os.path.isdir(place)):
        if sets_ring:
            raise UsageError("--keep and --max-size are for a directory of recordings.",
                             "Name it: --record DIR/")  # fmt: skip
        return None
    _check(arguments)
    directory = make_directory(Path(place))
    from iopstui.cli.commands import watch
    from iopstui.cli.terminal import print_message
    from iopstui.features.flight.directory import Ring
    from iopstui.features.flight.recorder import FlightRecorder
    from iopstui.recording.recent import remember_recording

    keep_s = KEEP_S if arguments.keep is None else arguments.keep
    ring = Ring(directory, keep_s, arguments.max_size or MAX_BYTES)
    remember_recording(directory)
    recorder = FlightRecorder(ring, print_message)
    arguments.record = None
    try:

        def attach(session: LiveSession, begin_again: Callable[[], None]) -> None:
            # with TARGETs, do not begin again to add other disks
            recorder.attach(session, None if arguments.target else begin_again)

        return watch.run(arguments, attach)
    finally:
        recorder.close()


def _list_worst(arguments: argparse.Namespace) -> int:
    from iopstui.features.flight.history import list_worst

    if len(arguments.target) != 1 or arguments.record is not None:
        raise UsageError("--worst needs the directory of one flight recording.",
                         "For example: iopstui watch /var/lib/iopstui --worst 10")  # fmt: skip
    if arguments.format not in (None, "table", "jsonl"):
        raise UsageError(f"--worst has no format {arguments.format}.",
                         "Use --format jsonl, or leave it out for text.")  # fmt: skip
    return list_worst(Path(arguments.target[0]), arguments.worst, arguments.format == "jsonl")


def _check(arguments: argparse.Namespace) -> None:
    if arguments.before is not None or arguments.after is not None:
        raise UsageError("--record DIR/ records all the time, not only around a trigger.",
                         "Leave out --before and --after.")  # fmt: skip
    if arguments.interval < 1.0:
        raise UsageError("A flight recording has samples of a second or more.",
                         "Leave out --interval, or record to a file.")  # fmt: skip


def make_directory(place: Path) -> Path:
    """The directory; a new one is accessible only to its owner."""
    if place.is_file():
        raise UsageError(f"{printable(str(place))} is a file.", "Name a directory: --record DIR/")
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"Cannot make the directory {printable(str(place))}: {error.strerror}.",
            "Name one in a directory that you can write to: --record ~/flight/",
        ) from error
    with contextlib.suppress(OSError):
        names = set(os.listdir(place)) - {"lost+found"}
        if names and LOCK not in names:
            raise UsageError(
                f"The directory {printable(str(place))} has other files.",
                f"Name a new or an empty one: --record {printable(str(place / 'flight'))}/",
            )
    return place
