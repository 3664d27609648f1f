"""Counters of each cgroup without the groups below it, from counters that have these in them.

The files are read one after another, so a group may be ahead of the one above it. What a group did
by itself is therefore the most that it was ever seen to have done: nothing is counted twice, and
what is late in one reading is in the next.
"""

from __future__ import annotations

from collections.abc import Mapping

Counts = tuple[int, ...]
Totals = Mapping[tuple[str, str], Counts]
"""By path ("/" is the top) and disk."""


class OwnCounts:
    """Feed it with each reading. All of ``own`` together are the top's counters."""

    def __init__(self) -> None:
        self._last: Totals = {}
        self._own: dict[tuple[str, str], Counts] = {}
        self._gone: dict[tuple[str, str], Counts] = {}

    def feed(self, totals: Totals) -> dict[tuple[str, str], Counts]:
        """What each group of this reading has done by itself so far."""
        paths = {path for path, _ in totals}
        self._note_gone(totals, paths)
        remaining = {key: _subtract(n, self._gone.get(key)) for key, n in totals.items()}
        for (path, disk), counts in totals.items():
            above = nearest_ancestor(path, paths)
            if above is not None and (above, disk) in remaining:
                remaining[above, disk] = _subtract(remaining[above, disk], counts)
        own = {}
        for key, counts in remaining.items():
            before = self._own.get(key, (0,) * len(counts))
            own[key] = tuple(map(max, before, counts))
        self._last, self._own = dict(totals), own
        return own

    def _note_gone(self, totals: Totals, paths: set[str]) -> None:
        """Note what a removed group did, which was counted already, so that it is not added to the
        group above."""
        for (path, disk), counts in self._last.items():
            now = totals.get((path, disk))
            restarted = now is not None and any(a < b for a, b in zip(now, counts, strict=True))
            if now is not None and not restarted:
                continue
            self._own.pop((path, disk), None)
            self._gone.pop((path, disk), None)
            last_paths = {path for path, of in self._last if of == disk}
            if nearest_ancestor(path, last_paths) == nearest_ancestor(path, paths):
                above = (nearest_ancestor(path, paths) or "", disk)
                self._gone[above] = _add(self._gone.get(above), counts)


def nearest_ancestor(path: str, paths: set[str]) -> str | None:
    """The nearest group above that was read."""
    while path not in ("", "/"):
        path = path.rpartition("/")[0] or "/"
        if path in paths:
            return path
    return None


def _subtract(counts: Counts, subtracted: Counts | None) -> Counts:
    return (
        counts
        if subtracted is None
        else tuple(a - b for a, b in zip(counts, subtracted, strict=True))
    )


def _add(counts: Counts | None, added: Counts) -> Counts:
    return added if counts is None else tuple(a + b for a, b in zip(counts, added, strict=True))
