"""Latencies of a whole recording by time: the heat map of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from iopstui.model.histogram_columns import BinsTotal

HEAT_COLUMNS = 120
HEAT_ROWS_PER_DECADE = 8


@lru_cache(4096)
def _heat_row(key: int) -> int:
    return math.floor(math.log10(max(key, 1)) * HEAT_ROWS_PER_DECADE)


def _heat_rows(bins: Mapping[int, int]) -> dict[int, int]:
    """I/Os by row: a tenth as many as there are buckets."""
    rows: dict[int, int] = {}
    for key, count in bins.items():
        row = _heat_row(key)
        rows[row] = rows.get(row, 0) + count
    return rows


@dataclass
class Heat:
    """Counts of I/Os by time (columns) and latency (rows, ``HEAT_ROWS_PER_DECADE``)."""

    duration: float
    _cells: dict[tuple[int, int], int] = field(default_factory=dict)
    # of a day some 700 intervals make a column: they are added up first
    _now: int = 0
    _added: BinsTotal = field(default_factory=BinsTotal)

    def add(self, t: float, seconds: float, bins: Mapping[int, int]) -> None:
        """The histogram of the interval that ends at ``t``: in every column that it reaches."""
        last = self._column(t)
        first = min(last, self._column(t - seconds) + 1)
        if first == last:
            if last != self._now:
                self._settle()
                self._now = last
            self._added.add(bins)
            return
        rows = _heat_rows(bins)
        for column in range(first, last + 1):
            self._count(column, rows)

    def join(self, later: Heat) -> None:
        """Add what another one of the same duration counted in the intervals that follow."""
        self._settle()
        for (column, row), count in later.cells.items():
            self._count(column, {row: count})

    def _settle(self) -> None:
        added, self._added = self._added, BinsTotal()
        self._count(self._now, _heat_rows(added.bins))

    def _count(self, column: int, rows: Mapping[int, int]) -> None:
        for row, count in rows.items():
            place = column, row
            self._cells[place] = self._cells.get(place, 0) + count

    @property
    def cells(self) -> dict[tuple[int, int], int]:
        """I/Os by column and row."""
        self._settle()
        return self._cells

    def _column(self, t: float) -> int:
        return min(HEAT_COLUMNS - 1, max(0, int(HEAT_COLUMNS * t / self.duration)))

    @property
    def rows(self) -> tuple[int, int]:
        """The lowest and the highest row there are."""
        rows = [row for _, row in self.cells]
        return (min(rows), max(rows)) if rows else (0, 0)
