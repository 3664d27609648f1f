"""Skip duplicate lines: a file appended to itself, or a copy of another file.

A frame is identified by its host and its two times to the microsecond: session time and wall clock.
Totals written by another merger, and lines that begin or end a run, are identified by their whole
content."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from iopstui.features.fleet.fleet_events import FLEET, FLEET_OVER

Object = dict[str, Any]
LabelledRow = tuple[str, Object]
_COUNTED_EVENTS = ("frame", "total", "merged")
_DECISIVE_EVENTS = (*_COUNTED_EVENTS, "step_finished", "ended")


class _SessionFrames:
    """The frames of one session of a host in one stream (``source``), 16 bytes each. ``is_copy``:
    its last frame was a repetition."""

    def __init__(self, source: int) -> None:
        self.source = source
        self.is_copy = False
        self._times = array("d")
        self._walls = array("d")

    def contains(self, t: float, wall_ms: float) -> bool:
        index = bisect_left(self._times, t)
        same_time = index < len(self._times) and self._times[index] == t
        return same_time and self._walls[index] == wall_ms

    def add(self, t: float, wall_ms: float) -> None:
        # skip a frame that goes back in time; the merger will refuse it
        if not self._times or t > self._times[-1]:
            self._times.append(t)
            self._walls.append(wall_ms)


class Deduplicator:
    """Detects repeated lines. ``repeat_counts`` are the numbers of repeated frames and totals by
    host."""

    def __init__(self) -> None:
        self.repeat_counts: dict[str, int] = {}
        self._sessions: dict[str, list[_SessionFrames]] = {}
        self._current: dict[tuple[int, str], _SessionFrames] = {}
        self._row_hashes: dict[str, set[int]] = {}
        self._origins: dict[tuple[int, str], int] = {}

    def is_repeat(self, source: int, name: str, row: Object) -> bool:
        """Whether a line of stream number ``source`` is a repetition; also remembers the line.
        ``name`` is the host's name."""
        kind = row.get("event")
        if kind in ("total", "merged"):
            return self._count_repeat(name, self._is_repeated_row(name, row))
        if kind in (FLEET, FLEET_OVER):
            return self._is_repeated_row(name, row)
        if kind == "session":
            self._begin_session(source, name)
            return False
        if kind == "frame":
            return self._count_repeat(name, self._is_repeated_frame(source, name, row))
        current = self._current.get((source, name))
        return current is not None and current.is_copy

    def has_session(self, name: str) -> bool:
        """Whether a session of this host has been seen."""
        return name in self._sessions

    def origin(self, source: int, name: str) -> int:
        """For this host, the stream of which ``source`` is a copy; ``source`` itself if it is not a
        copy."""
        return self._origins.get((source, name), source)

    def _begin_session(self, source: int, name: str) -> _SessionFrames:
        frames = self._current[source, name] = _SessionFrames(self.origin(source, name))
        self._sessions.setdefault(name, []).append(frames)
        return frames

    def _is_repeated_frame(self, source: int, name: str, row: Object) -> bool:
        t, wall_ms = row.get("t"), row.get("wall_ms")
        try:
            clocks = float(t), float(wall_ms)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return False  # the merger will refuse it
        current = self._current.get((source, name)) or self._begin_session(source, name)
        original = next(
            (session for session in self._sessions[name] if session.contains(*clocks)), None
        )
        current.is_copy = original is not None
        if original is not None:
            self._origins[source, name] = original.source
        else:
            current.add(*clocks)
        return original is not None

    def _is_repeated_row(self, name: str, row: Object) -> bool:
        try:
            digest = hash(json.dumps(row))
        except RecursionError:
            return False
        hashes = self._row_hashes.setdefault(name, set())
        is_repeat = digest in hashes
        hashes.add(digest)
        return is_repeat

    def _count_repeat(self, name: str, is_repeat: bool) -> bool:
        if is_repeat:
            self.repeat_counts[name] = self.repeat_counts.get(name, 0) + 1
        return is_repeat


def without_repeats(
    rows: Iterable[LabelledRow], deduplicator: Deduplicator
) -> Iterator[LabelledRow]:
    """The lines of one stream, without those that have come before."""
    return (
        labelled for _, labelled, is_repeat in mark_repeats(rows, deduplicator) if not is_repeat
    )


def mark_repeats(
    rows: Iterable[LabelledRow], deduplicator: Deduplicator
) -> Iterator[tuple[int, LabelledRow, bool]]:
    """Each line with its index, and whether it is a repetition. Lines between the start of a host's
    later session and its first frame are repetitions if that frame is one; they are held back until
    it arrives."""
    waiting: dict[str, list[tuple[int, LabelledRow]]] = {}

    def settled(name: str, is_copy: bool) -> Iterator[tuple[int, LabelledRow, bool]]:
        for index, labelled in waiting.pop(name, ()):
            yield index, labelled, is_copy

    for index, labelled in enumerate(rows):
        name, row = labelled
        kind = row.get("event")
        later_session = kind == "session" and deduplicator.has_session(name)
        is_repeat = deduplicator.is_repeat(0, name, row)
        if later_session or (name in waiting and kind not in _DECISIVE_EVENTS):
            yield from settled(name, False) if later_session else ()
            waiting.setdefault(name, []).append((index, labelled))
            continue
        # another run begins, so the lines that wait were no repetitions
        for host in [*waiting] if kind == FLEET and not is_repeat else [name]:
            yield from settled(host, is_repeat and kind in _COUNTED_EVENTS)
        yield index, labelled, is_repeat
    for host in [*waiting]:
        yield from settled(host, False)
