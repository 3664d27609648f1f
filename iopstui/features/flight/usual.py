"""How long requests take at this hour on other days, by a flight recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.features.flight.history import read_history
from iopstui.model.block.device import BlockDevice
from iopstui.model.means import median
from iopstui.recording.records import Peaks

DAY_S, HOUR_S = 86400.0, 3600.0
MAX_DAYS = 14
MIN_DAYS, MIN_MINUTES = 2, 10
"""Fewer days, or fewer minutes of a day, are no habit."""


@dataclass(frozen=True, slots=True)
class Usual:
    """The median of the slowest second of a minute, over ``days`` other days."""

    ms: float
    days: int


def usual_at(
    place: Path, moment_s: float, is_same: Callable[[str, BlockDevice | None, float], bool] | None
    = None,
) -> dict[str, Usual]:  # fmt: skip
    """By disk; the hour around ``moment_s`` on the days before it. A day does not count for a disk
    that was another one then: ``is_same`` of its name, what was recorded of it, and when."""
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
    """The slowest second of each minute, by disk, however finely they are recorded."""
    longest: dict[str, dict[int, float]] = defaultdict(dict)
    for at, one in peaks:
        for name, peak in one.disks.items():
            if peak.ms is not None:
                minute = int(at // 60)
                longest[name][minute] = max(peak.ms, longest[name].get(minute, 0.0))
    return {name: [*minutes.values()] for name, minutes in longest.items()}
