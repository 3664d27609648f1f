"""A disk's own past: the median of its seconds at a similar load."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import log2

from iopstui import format as units
from iopstui.model.figures.disk import DiskRates
from iopstui.model.means import median

MIN_SECONDS = 120
"""Fewer seconds at such a load are no past to compare with."""
MAX_SECONDS = 600
"""Of each load the last so many are kept."""
RECENT_SECONDS = 30
"""The last seconds are what is compared."""
WORTH_SAYING = 2.0

_Load = tuple[int, int, int]


class DiskHistory:
    """Fed with each second of one disk."""

    def __init__(self) -> None:
        self._by_load: dict[_Load, deque[tuple[float, float]]] = {}

    def feed(self, t: float, rates: DiskRates) -> None:
        """Count the second that ended at ``t`` (the session's clock)."""
        ms = _mean_ms(rates)
        if ms is not None:
            load = _load(rates)
            self._by_load.setdefault(load, deque(maxlen=MAX_SECONDS)).append((t, ms))

    def times_usual(self, t: float, now: Sequence[DiskRates]) -> tuple[float, float] | None:
        """(how many times the median at this load these last seconds take, the age in seconds of
        the oldest second that it is of); ``None`` without enough seconds."""
        seconds = [(at, ms) for at, ms in self._by_load.get(_load(now[-1]), ())
                   if at < t - RECENT_SECONDS]  # fmt: skip
        last = [ms for ms in map(_mean_ms, now) if ms is not None]
        if not last or len(seconds) < MIN_SECONDS:
            return None
        usual = median([past for _, past in seconds])
        return (median(last) / usual, t - seconds[0][0]) if usual else None


def usual_text(times: float, age_s: float) -> str:
    """ "6× its median at this load (last 2 h)"; "" if it is not worth saying."""
    if times < WORTH_SAYING:
        return ""
    return f"{times:.0f}× its median at this load (last {units.duration(60 * (age_s // 60))})"


def _load(rates: DiskRates) -> _Load:
    """Requests per second and their size, each to a factor of two, and the share of writes."""
    ios = rates.ios_s or 0.0
    size = (rates.bytes_s or 0.0) / ios if ios else 0.0
    writes = round(2 * (rates.w_s or 0.0) / ios) if ios else 0
    return int(log2(ios + 1)), int(log2(size + 1)), writes


def _mean_ms(rates: DiskRates) -> float | None:
    waited = count = 0.0
    for number, ms in ((rates.r_s, rates.r_await), (rates.w_s, rates.w_await)):
        if number and ms is not None:
            waited, count = waited + number * ms, count + number
    return waited / count if count else None
