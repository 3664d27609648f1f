"""A token bucket: length of a burst and the time until the next one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """``size`` tokens when full; ``refill`` tokens come in each second (the baseline) and every
    I/O (or byte) takes one; at most ``peak`` leave in a second."""

    size: float
    refill: float
    peak: float

    def lasts_s(self, rate: float | None = None, level: float | None = None) -> float | None:
        """Seconds until it is empty at ``rate`` (default: the peak) from ``level`` tokens
        (default: full); ``None``: never."""
        spent = min(self.peak if rate is None else rate, self.peak) - self.refill
        if spent <= 0:
            return None
        return (self.size if level is None else level) / spent

    def refills_s(self, rate: float = 0.0, level: float = 0.0) -> float | None:
        """Seconds until it is full again while ``rate`` is used; ``None``: never."""
        gained = self.refill - rate
        if gained <= 0:
            return None
        return max(0.0, self.size - level) / gained

    def after(self, level: float, rate: float, seconds: float) -> float:
        """The level after ``seconds`` at ``rate``."""
        return min(self.size, max(0.0, level + (self.refill - rate) * seconds))
