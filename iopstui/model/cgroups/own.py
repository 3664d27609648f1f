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
        rest = {where: _minus(n, self._gone.get(where)) for where, n in totals.items()}
        for (path, disk), counts in totals.items():
            above = nearest_above(path, paths)
            if above is not None and (above, disk) in rest:
                rest[above, disk] = _minus(rest[above, disk], counts)
        found = {}
        for where, counts in rest.items():
            before = self._own.get(where, (0,) * len(counts))
            found[where] = tuple(map(max, before, counts))
        self._last, self._own = dict(totals), found
        return found

    def _note_gone(self, totals: Totals, paths: set[str]) -> None:
        """What a group did before it was removed was told: it is not the work of the one above."""
        for (path, disk), counts in self._last.items():
            now = totals.get((path, disk))
            again = now is not None and any(a < b for a, b in zip(now, counts, strict=True))
            if now is not None and not again:
                continue
            self._own.pop((path, disk), None)
            self._gone.pop((path, disk), None)
            known = {one for one, of in self._last if of == disk}
            if nearest_above(path, known) == nearest_above(path, paths):
                above = (nearest_above(path, paths) or "", disk)
                self._gone[above] = _plus(self._gone.get(above), counts)


def nearest_above(path: str, known: set[str]) -> str | None:
    """The nearest group above that was read."""
    while path not in ("", "/"):
        path = path.rpartition("/")[0] or "/"
        if path in known:
            return path
    return None


def _minus(counts: Counts, others: Counts | None) -> Counts:
    return counts if others is None else tuple(a - b for a, b in zip(counts, others, strict=True))


def _plus(counts: Counts | None, others: Counts) -> Counts:
    return others if counts is None else tuple(a + b for a, b in zip(counts, others, strict=True))
