"""Which one of several like disks became slow for its load, over days of a flight recording. It
judges like model/findings/siblings.py, but by the half hours of a day instead of the ten-second
pieces of five minutes: what lasts for some minutes only (garbage collection, a scrub) hardly shows
in them. Counters are cumulative, so thinned files give the same half hours as whole ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.siblings import (
    MIN_SIBLINGS,
    WORTH_SAYING,
    OddDisk,
    Row,
    Rows,
    Windows,
    groups,
    has_enough,
    level,
    odd_one,
)
from iopstui.model.metrics.frame import Frame

WINDOW_S = 1800.0
LAST_DAYS = 2
"""The last days that can be judged; all of them must agree."""


@dataclass(frozen=True, slots=True)
class SlowedDisk:
    """The disk that became slow. ``odd`` is the judgement of the last day. ``days`` has the days
    that can be compared, in their order, each with the ratio of the disk's request times to its
    siblings'. It has been slow since ``since``."""

    odd: OddDisk
    days: Sequence[tuple[str, float]]
    since: str


class SiblingDays:
    """Finds the one of like disks that became slow: feed the frames of a span, then ``slowed``
    judges them. ``day_of`` returns the day of a time; ``same_since`` returns since when a name has
    meant the same disk. Both times are since the epoch."""

    def __init__(
        self, devices: Mapping[str, BlockDevice], day_of: Callable[[float], str],
        same_since: Mapping[str, float],
    ) -> None:  # fmt: skip
        self._groups = [*groups([*devices.values()])]
        self._names = {name for names, _ in self._groups for name in names}
        self._day_of = day_of
        self._same_since = {name: same_since.get(name, 0.0) for name in self._names}
        self._sums = Windows(WINDOW_S)
        self._days: dict[str, list[tuple[float, dict[str, Row]]]] = {}

    def feed(self, at: float, frame: Frame) -> None:
        """Count a frame that ended at this time."""
        window = self._sums.feed(at, frame, self._names)
        if window is not None:
            self._days.setdefault(self._day_of(window[0]), []).append(window)

    def slowed(self) -> SlowedDisk | None:
        """The disk that is slow on the last days; ``None`` if none is, or nobody can tell."""
        found = [one for names, array in self._groups
                 if (one := self._slowed(names, array)) is not None]  # fmt: skip
        return max(found, key=lambda one: one.odd.times, default=None)

    def _slowed(self, names: Sequence[str], array: str) -> SlowedDisk | None:
        by_day = {day: self._rows(names, windows) for day, windows in self._days.items()}
        last: list[OddDisk] = []
        for rows in reversed(by_day.values()):
            if sum(has_enough(found) for found in rows.values()) <= MIN_SIBLINGS:
                continue  # too little was recorded or done
            odd = odd_one(rows)
            if odd is None or (last and odd.disk != last[0].disk):
                return None
            last.append(odd)
            if len(last) == LAST_DAYS:
                break
        else:
            return None
        disk = last[0].disk
        days = [(day, times) for day, rows in by_day.items()
                if (times := level(disk, rows)) is not None]  # fmt: skip
        since = days[-1][0]
        for day, times in reversed(days):
            if times < exp(WORTH_SAYING):
                break
            since = day
        return SlowedDisk(replace(last[0], array=array), days, since)

    def _rows(self, names: Sequence[str], windows: Sequence[tuple[float, dict[str, Row]]]) -> Rows:
        return {name: [rows.get(name) if began >= self._same_since[name] else None
                       for began, rows in windows] for name in names}  # fmt: skip
