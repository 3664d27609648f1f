"""`iopstui watch DIR --worst 10`: the worst times of a flight recording, with their answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from iopstui import format as units
from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_OK, UsageError
from iopstui.features.flight.directory import no_recording, stored_files
from iopstui.features.flight.history import read_history
from iopstui.features.flight.model.bad_times import BadTime
from iopstui.features.flight.model.times import local_text, utc_text
from iopstui.format import print_line
from iopstui.text import printable


def list_worst(place: Path, most: int, as_json: bool) -> int:
    """Print them, the worst first. UsageError where nothing is recorded."""
    if not stored_files(place):
        raise no_recording(place)
    history = read_history(place)
    for text in history.unreadable:
        print_message(text)
    if not history.seconds and history.unreadable:
        raise UsageError(f"No file of {printable(str(place))} can be read.",
                         "Name another flight recording.")  # fmt: skip
    times = history.worst(most)
    if as_json:
        for one in times:
            print_line(json.dumps(_json(one)), sys.stdout)
        return EXIT_OK
    for one in times:
        print_line(f"{local_text(one.began_s)} for {units.duration(max(1.0, one.seconds))}: "
                   f"{printable(one.text)}", sys.stdout)  # fmt: skip
    seconds = history.seconds
    recorded = f"{units.duration(seconds if seconds < 60 else 60 * (seconds // 60))} recorded"
    if not times:
        print_line(f"Nothing waited for a disk in {recorded}.", sys.stdout)
    else:
        first = local_text(times[0].began_s)[:16]
        print_message(
            f"{recorded}; for one of them: iopstui why {printable(str(place))} --at '{first}'"
        )
    return EXIT_OK


def _json(one: BadTime) -> dict[str, object]:
    return {"began": utc_text(one.began_s), "seconds": round(one.seconds, 1), "state": one.state,
            "text": one.text, "times_usual": round(one.times, 1) or None}  # fmt: skip
