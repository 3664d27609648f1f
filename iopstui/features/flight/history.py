"""Search a whole flight recording, reading only its answers and highest seconds, not its
samples."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iopstui import events
from iopstui import format as units
from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_OK, IopstuiError, UsageError
from iopstui.features.flight.directory import (
    HOUR_S,
    StoredFile,
    no_recording,
    stored_files,
    unread_part,
)
from iopstui.features.flight.model.bad_times import BadTime, bad_times, stretches
from iopstui.features.flight.model.times import local_text, utc_text
from iopstui.format import print_line
from iopstui.model.answer.answer import Answer
from iopstui.model.block.device import BlockDevice
from iopstui.model.rates import median
from iopstui.recording.reader import Recording, RecordingTooShort
from iopstui.recording.records import Peaks, RecordedDevices
from iopstui.text import printable

MOST = 10


@dataclass
class History:
    """What happened, by seconds since the epoch. ``unreadable`` are messages about files that were
    skipped or read only in part."""

    answers: list[tuple[float, Answer | None]] = field(default_factory=list)
    peaks: list[tuple[float, Peaks]] = field(default_factory=list)
    seconds: float = 0.0
    unreadable: list[str] = field(default_factory=list)
    devices: dict[str, BlockDevice] = field(default_factory=dict)

    def worst(self, most: int = MOST) -> list[BadTime]:
        return bad_times(stretches(self.answers), self.peaks, most)


def read_history(place: Path, began_s: float = 0.0, ended_s: float = float("inf")) -> History:
    """Read the answers and peaks of this time."""
    history = History()
    files = stored_files(place)
    for file in files:
        if file.name.began_s <= ended_s and file.latest_s >= began_s:
            try:
                # ignore a file that was removed meanwhile, or whose writer was killed before the
                # first sample
                with contextlib.suppress(FileNotFoundError, RecordingTooShort):
                    _read(file, history, began_s, ended_s, is_last=file is files[-1])
            except IopstuiError as error:
                history.unreadable.append(f"{file.path.name}: {error.message}")
    return history


def _read(
    file: StoredFile, history: History, began_s: float, ended_s: float, is_last: bool
) -> None:
    with Recording(file.path) as recording:
        recording.pass_over("Use")
        base_s = recording.header.started_ms / 1e3
        index = recording.index()
        if base_s + index.end < began_s:
            return
        # samples from before the file's time are only there for subtraction
        began_t = max(0.0, file.name.began_s - base_s)
        history.seconds += index.end - began_t
        if text := unread_part(file, recording.damage, is_last):
            history.unreadable.append(text)
        for _, record in index.events:
            at = base_s + max(record.t, began_t)
            if not began_s <= at <= ended_s and not isinstance(record.value, RecordedDevices):
                continue
            match record.value:
                case events.AnswerGiven():
                    answer = record.value.answer
                    is_hole = answer.rule == events.UNREADABLE
                    history.answers.append((at, None if is_hole else answer))
                case Peaks():
                    history.peaks.append((at, record.value))
                case RecordedDevices():
                    history.devices |= {device.name: device for device in record.value.devices}
        history.answers.append((min(base_s + index.end, ended_s), None))


# `iopstui watch DIR --worst 10`: list the worst times of a flight recording, with their answers.


def list_worst(place: Path, most: int, as_json: bool) -> int:
    """Print the worst times, worst first. Raises UsageError if nothing is recorded."""
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


# How long requests usually take at this hour, from other days in a flight recording.


DAY_S = 86400.0
MAX_DAYS = 14
MIN_DAYS, MIN_MINUTES = 2, 10
"""With fewer days, or fewer minutes of a day, nothing counts as usual."""


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual time of requests: the median over minutes of each minute's slowest second, on
    ``days`` other days."""

    ms: float
    days: int


def usual_at(
    place: Path, moment_s: float, is_same: Callable[[str, BlockDevice | None, float], bool] | None
    = None,
) -> dict[str, Usual]:  # fmt: skip
    """The usual times by disk, from the hour around ``moment_s`` on earlier days. A day on which
    the name meant another disk does not count: ``is_same`` returns that for the name, the recorded
    device and the time."""
    by_disk: dict[str, list[list[float]]] = defaultdict(list)
    for day in range(1, MAX_DAYS + 1):
        middle_s = moment_s - day * DAY_S
        history = read_history(place, middle_s - HOUR_S / 2, middle_s + HOUR_S / 2)
        for name, minutes in longest_by_minute(history.peaks).items():
            if is_same is not None and not is_same(name, history.devices.get(name), middle_s):
                continue
            if len(minutes) >= MIN_MINUTES:
                by_disk[name].append(minutes)
    return {
        name: Usual(median([ms for minutes in days for ms in minutes]), len(days))
        for name, days in by_disk.items()
        if len(days) >= MIN_DAYS
    }


def longest_by_minute(peaks: Sequence[tuple[float, Peaks]]) -> dict[str, list[float]]:
    """The slowest second of each minute by disk. A thinned file gives the same as the original."""
    longest: dict[str, dict[int, float]] = defaultdict(dict)
    for at, one in peaks:
        for name, peak in one.disks.items():
            if peak.ms is not None:
                minute = int(at // 60)
                longest[name][minute] = max(peak.ms, longest[name].get(minute, 0.0))
    return {name: [*minutes.values()] for name, minutes in longest.items()}
