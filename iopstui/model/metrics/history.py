"""Bounded history of measurements for charts, with gaps and marks.

A sample describes the interval that ends at ``t`` and lasted ``seconds``. ``None`` is a gap and
stays one. The newest samples are kept as they are; all are also folded into coarser buckets, so a
day fits into a few megabytes that never grow."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import isnan, nan

RAW_SAMPLES = 4096
FOLD_S = 10.0
FOLDED_SAMPLES = 8640
MAX_MARKS = 500
MIN_MARK_SPACING_S = 5.0
"""A job that starts within this time after a mark has no mark of its own."""
MEAN, MAX = "mean", "max"


@dataclass(frozen=True, slots=True)
class HistoryMark:
    """A moment that charts mark with a line. ``t`` is in seconds of the session's clock."""

    t: float
    text: str


@dataclass(frozen=True, slots=True)
class HistoryBand:
    """A span of time that charts show as a band."""

    start: float
    end: float
    text: str


class _Level:
    """A ring of intervals: start, end, and for every series its mean and its maximum (the same
    array if intervals are ``single`` samples)."""

    def __init__(self, series: int, capacity: int, single: bool = False) -> None:
        self._capacity = capacity
        self._first = 0
        self.starts = array("d")
        self.ends = array("d")
        self.means = [array("d") for _ in range(series)]
        self.maxima = self.means if single else [array("d") for _ in range(series)]

    def add(self, start: float, end: float, mean: Sequence[float], top: Sequence[float]) -> None:
        self.starts.append(start)
        self.ends.append(end)
        for column, value in zip(self.means, mean, strict=True):
            column.append(value)
        several = self.maxima is not self.means
        if several:
            for column, value in zip(self.maxima, top, strict=True):
                column.append(value)
        # Cutting off the front of an array copies it, so it is not done for each sample.
        if len(self.starts) >= self._capacity + self._capacity // 8:
            tops = self.maxima if several else ()
            for column in (self.starts, self.ends, *self.means, *tops):
                del column[: -self._capacity]

    @property
    def oldest(self) -> int:
        """Index of the oldest sample that is still part of the ring."""
        return max(0, len(self.starts) - self._capacity)

    def __len__(self) -> int:
        return len(self.starts) - self.oldest


class _Fold:
    """The bucket that is being filled: time-weighted sums and maxima."""

    def __init__(self, series: int) -> None:
        self.start = 0.0
        self.end = 0.0
        self.weight = [0.0] * series
        self.total = [0.0] * series
        self.top = [nan] * series

    def add(self, end: float, seconds: float, values: Sequence[float]) -> None:
        self.end = end
        for index, value in enumerate(values):
            if isnan(value):
                continue
            self.weight[index] += seconds
            self.total[index] += value * seconds
            top = self.top[index]
            self.top[index] = value if isnan(top) or value > top else top

    def means(self) -> list[float]:
        return [
            total / weight if weight else nan
            for total, weight in zip(self.total, self.weight, strict=True)
        ]


class History:
    """The past of a fixed set of series, in order of time. ``add`` drops a sample that is not later
    than the one before. ``window`` returns any span of time as a fixed number of columns."""

    def __init__(
        self,
        names: Sequence[str],
        raw_samples: int = RAW_SAMPLES,
        fold_s: float = FOLD_S,
        folded_samples: int = FOLDED_SAMPLES,
    ) -> None:
        self._index = {name: index for index, name in enumerate(names)}
        self._raw = _Level(len(names), raw_samples, single=True)
        self._folded = _Level(len(names), folded_samples)
        self._fold_s = fold_s
        self._fold: _Fold | None = None
        self._marks: deque[HistoryMark] = deque(maxlen=MAX_MARKS)
        self._bands: deque[HistoryBand] = deque(maxlen=MAX_MARKS)

    def __len__(self) -> int:
        """The number of samples that are kept unfolded."""
        return len(self._raw)

    @property
    def end(self) -> float | None:
        """When the newest sample ended; ``None`` while there is none."""
        return self._raw.ends[-1] if len(self._raw) else None

    def copy(self) -> History:
        """A copy of the current history, unaffected by later additions."""
        return deepcopy(self)

    def add(self, t: float, seconds: float, values: Mapping[str, float | None]) -> None:
        """Add a sample; series that ``values`` lacks have a gap. A sample is ignored if it is not
        newer than the last one, or if ``seconds`` is not above 0."""
        if seconds <= 0 or (self.end is not None and t <= self.end):
            return
        row = [nan] * len(self._index)
        for name, value in values.items():
            if value is not None:
                row[self._index[name]] = float(value)
        # An interval can't begin before the end of the one before.
        start = max(t - seconds, self.end) if self.end is not None else t - seconds
        self._raw.add(start, t, row, row)
        self._fold_in(start, t, row)

    def _fold_in(self, start: float, t: float, row: Sequence[float]) -> None:
        fold = self._fold
        if fold is not None and start >= fold.start + self._fold_s:
            self._folded.add(fold.start, fold.end, fold.means(), fold.top)
            fold = None
        if fold is None:
            fold = self._fold = _Fold(len(self._index))
            fold.start = start
        fold.add(t, t - start, row)

    def mark(self, t: float, text: str) -> None:
        """Remember a moment; when there are too many, the oldest mark is dropped."""
        self._marks.append(HistoryMark(t, text))

    def marks(self, start: float, end: float) -> Iterator[HistoryMark]:
        """The marks in [start, end), oldest first."""
        return (mark for mark in self._marks if start <= mark.t < end)

    def band(self, start: float, end: float, text: str) -> None:
        """Remember a span of time; it replaces the newest one if both begin at the same second."""
        if self._bands and self._bands[-1].start == start:
            self._bands.pop()
        self._bands.append(HistoryBand(start, end, text))

    def bands(self, start: float, end: float) -> Iterator[HistoryBand]:
        """The spans that reach into [start, end), oldest first."""
        return (band for band in self._bands if band.start < end and band.end > start)

    def flagged_columns(
        self, start: float, column_s: float, columns: int
    ) -> list[tuple[int, str | None]]:
        """The columns of a chart that have a mark or a band, in order, with its text. A band has
        its text at its first column and ``None`` at the others."""
        end = start + columns * column_s
        flags: list[tuple[int, str | None]] = [
            (int((mark.t - start) / column_s), mark.text) for mark in self.marks(start, end)
        ]
        for band in self.bands(start, end):
            first = max(0, int((band.start - start) / column_s))
            last = min(columns - 1, int((band.end - start) / column_s))
            flags += [(column, None if column > first else band.text)
                      for column in range(first, last + 1)]  # fmt: skip
        return sorted(flags, key=lambda flag: flag[0])

    def window(
        self, name: str, start: float, column_s: float, columns: int, statistic: str = MEAN
    ) -> list[float | None]:
        """``columns`` values from ``start`` on, each over ``column_s`` seconds.

        A column shows the samples whose middle lies in it (their time-weighted mean, or the
        maximum), or, if it is narrower than a sample, the sample that covers the middle of the
        column. Otherwise it is a gap."""
        values_by_column: list[float | None] = [None] * max(columns, 0)
        level = self._level(start)
        if not len(level) or column_s <= 0:
            return values_by_column
        columns_of = level.maxima if statistic == MAX else level.means
        values, starts, ends = columns_of[self._index[name]], level.starts, level.ends
        count, position = len(starts), max(level.oldest, bisect_left(ends, start))
        for column in range(len(values_by_column)):
            low = start + column * column_s
            high = low + column_s
            middle = (low + high) / 2
            weight = total = 0.0
            top = covering = nan
            index = position
            while index < count and starts[index] < high:
                begin, finish, value = starts[index], ends[index], values[index]
                if not isnan(value):
                    if low <= (begin + finish) / 2 < high:
                        weight += finish - begin
                        total += value * (finish - begin)
                        top = value if isnan(top) or value > top else top
                    if begin <= middle < finish:
                        covering = value
                if finish <= high:
                    position = index + 1
                index += 1
            if weight:
                covering = top if statistic == MAX else total / weight
            values_by_column[column] = None if isnan(covering) else covering
        return values_by_column

    def _level(self, start: float) -> _Level:
        raw, folded = self._raw, self._folded
        if not len(folded) or not len(raw) or raw.starts[raw.oldest] <= start:
            return raw
        older = folded.starts[folded.oldest] < raw.starts[raw.oldest]
        return folded if older else raw
