"""Skip duplicate lines: a file appended to itself, or a copy of another file.

A frame is known by its host and by what its clocks said, to the microsecond: its time in its
session and its wall clock. Totals of other mergers, and lines that begin and end a run, are known
by all that is in them.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from iopstui.fleet.fleet_events import FLEET, FLEET_OVER

Object = dict[str, Any]
Labelled = tuple[str, Object]
_KNOWN = ("frame", "total", "merged")
_SETTLES = (*_KNOWN, "step_finished", "ended")


class _SessionFrames:
    """The frames of one session of a host's from one ``source``: 16 bytes for each. ``copy``: what
    came of it last had come before."""

    def __init__(self, source: int) -> None:
        self.source = source
        self.copy = False
        self._times = array("d")
        self._walls = array("d")

    def has(self, t: float, wall_ms: float) -> bool:
        place = bisect_left(self._times, t)
        same_time = place < len(self._times) and self._times[place] == t
        return same_time and self._walls[place] == wall_ms

    def add(self, t: float, wall_ms: float) -> None:
        # one that is behind is refused by the merger
        if not self._times or t > self._times[-1]:
            self._times.append(t)
            self._walls.append(wall_ms)


class Deduplicator:
    """Detects repeated lines. ``is_repeat`` returns whether a line is a repetition, and keeps track
    of the stream; ``repeated`` counts the repeated frames and totals of each host."""

    def __init__(self) -> None:
        self.repeated: dict[str, int] = {}
        self._sessions: dict[str, list[_SessionFrames]] = {}
        self._now: dict[tuple[int, str], _SessionFrames] = {}
        self._wholes: dict[str, set[int]] = {}
        self._origins: dict[tuple[int, str], int] = {}

    def is_repeat(self, source: int, name: str, row: Object) -> bool:
        """Whether a line of the ``source``-th stream is a repetition; ``name`` is the host's."""
        kind = row.get("event")
        if kind in ("total", "merged"):
            return self._counted(name, self._is_repeated_row(name, row))
        if kind in (FLEET, FLEET_OVER):
            return self._is_repeated_row(name, row)
        if kind == "session":
            self._begin(source, name)
            return False
        if kind == "frame":
            return self._counted(name, self._frame(source, name, row))
        now = self._now.get((source, name))
        return now is not None and now.copy

    def saw_session(self, name: str) -> bool:
        """Whether a session of this host was seen."""
        return name in self._sessions

    def origin(self, source: int, name: str) -> int:
        """The stream of which ``source`` has a copy as far as this host goes; itself if of none."""
        return self._origins.get((source, name), source)

    def _begin(self, source: int, name: str) -> _SessionFrames:
        frames = self._now[source, name] = _SessionFrames(self.origin(source, name))
        self._sessions.setdefault(name, []).append(frames)
        return frames

    def _frame(self, source: int, name: str, row: Object) -> bool:
        t, wall_ms = row.get("t"), row.get("wall_ms")
        try:
            at = float(t), float(wall_ms)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return False  # the merger refuses it
        now = self._now.get((source, name)) or self._begin(source, name)
        before = next((session for session in self._sessions[name] if session.has(*at)), None)
        now.copy = before is not None
        if before is not None:
            self._origins[source, name] = before.source
        else:
            now.add(*at)
        return before is not None

    def _is_repeated_row(self, name: str, row: Object) -> bool:
        try:
            digest = hash(json.dumps(row))
        except RecursionError:
            return False
        hashes = self._wholes.setdefault(name, set())
        before = digest in hashes
        hashes.add(digest)
        return before

    def _counted(self, name: str, before: bool) -> bool:
        if before:
            self.repeated[name] = self.repeated.get(name, 0) + 1
        return before


def without_repeats(rows: Iterable[Labelled], deduplicator: Deduplicator) -> Iterator[Labelled]:
    """The lines of one stream without those that came before."""
    return (
        labelled for _, labelled, is_repeat in mark_repeats(rows, deduplicator) if not is_repeat
    )


def mark_repeats(
    rows: Iterable[Labelled], deduplicator: Deduplicator
) -> Iterator[tuple[int, Labelled, bool]]:
    """Each line, its place, and whether it came before. What stands between the beginning of a
    host's later session and its first frame is a copy if that is, and waits for it."""
    waiting: dict[str, list[tuple[int, Labelled]]] = {}

    def settled(name: str, is_copy: bool) -> Iterator[tuple[int, Labelled, bool]]:
        for place, labelled in waiting.pop(name, ()):
            yield place, labelled, is_copy

    for place, labelled in enumerate(rows):
        name, row = labelled
        kind = row.get("event")
        later = kind == "session" and deduplicator.saw_session(name)
        is_repeat = deduplicator.is_repeat(0, name, row)
        if later or (name in waiting and kind not in _SETTLES):
            yield from settled(name, False) if later else ()
            waiting.setdefault(name, []).append((place, labelled))
            continue
        # another run: what waits was no copy
        for host in [*waiting] if kind == FLEET and not is_repeat else [name]:
            yield from settled(host, is_repeat and kind in _KNOWN)
        yield place, labelled, is_repeat
    for host in [*waiting]:
        yield from settled(host, False)
