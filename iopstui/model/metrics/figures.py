"""A figure over many frames: a run's IOPS, its p99, a device's await. Means of means are wrong, so
every figure is computed from sums: counts and seconds, latency sums and samples, histogram bins. A
figure is named by its path in model/metrics/fields.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iopstui.model import histogram
from iopstui.model.figures.figure import BY_PERCENTILE, MAX, OF_BINS, WAIT, Figure
from iopstui.model.metrics.frame import FINAL, NO_FIO, PARTIAL, UNCOUNTED, Frame
from iopstui.model.metrics.frame_figures import owners_of, row_at

LATENCIES = ("slat", "clat", "lat")


def is_measurable(path: Sequence[str]) -> bool:
    """True if a whole run has one figure for the field at ``path`` (concrete, no ``*``)."""
    row = row_at(tuple(path))
    return row is not None and (row.is_of_run or row.name in OF_BINS)


def has_idle_end(frame: Frame) -> bool:
    """Whether the frame's kernel interval has an idle end: a run's last interval goes on until
    fio's last document, and nothing runs while fio writes its logs. Such a frame counts only if a
    run has no other."""
    has_ended = NO_FIO in frame.flags and frame.fio_age_s is not None
    return has_ended or {FINAL, PARTIAL} <= frame.flags


class Meter:
    """Computes one figure from many frames. ``add`` returns the frame's own value. Frames of fio's
    ramp and around a handover are left out. ``value`` is ``None`` if nothing was measured."""

    def __init__(self, path: Sequence[str]) -> None:
        if not is_measurable(path):
            raise ValueError(f"no figure of a whole run: {'.'.join(path)}")
        self.path = tuple(path)
        row = self._row()
        self._by_bins, self._by_readings = row.name in OF_BINS, row.join is not None
        self._sum = 0.0
        self._weight = 0.0
        self.bins: dict[int, int] = {}
        self._max: int | None = None

    def _row(self) -> Figure:
        # looked up each time: a meter is passed between processes, and a row can't be
        row = row_at(self.path)
        assert row is not None
        return row

    def add(self, frame: Frame) -> float | None:
        """Count one frame; return its own value (``None``: it has none)."""
        if self._by_readings:
            owners = owners_of(frame, self.path)
            return self._add_reading(self._row().value(owners[0]) if owners else None)
        idle = self.path[0] != "fio" and has_idle_end(frame)
        if UNCOUNTED & frame.flags or (idle and self._weight):
            return None
        return self._count(frame)

    def _count(self, frame: Frame) -> float | None:
        owners, row = owners_of(frame, self.path), self._row()
        if not owners or (self.path[0] == WAIT and owners[0].stalled):
            return None
        if self._by_bins:
            return self._add_bins(owners[0])
        if row.keys:
            held, weight = row.value(owners[0]).get(self.path[-1]), frame.seconds
            parts = (held * weight, weight) if held is not None and weight else None
        else:
            parts = row.parts(*owners)
        if parts is None:
            return None
        self._sum += parts[0] / row.scale
        self._weight += parts[1]
        value: float = parts[0] / parts[1] / row.scale
        return value

    def join(self, meter: Meter) -> None:
        """Add the counts of another meter of the same figure."""
        self._sum += meter._sum
        self._weight += meter._weight
        self.bins = histogram.merge((self.bins, meter.bins))
        self._max = max(self._max or 0, meter._max or 0) or None

    @property
    def percent(self) -> float | None:
        """The percentage of a percentile: 99.0 for a p99; ``None`` for other figures."""
        return BY_PERCENTILE.get(self.path[-1]) if self._by_bins else None

    @property
    def value(self) -> float | None:
        """The figure over all frames so far, in the unit of its field."""
        if self._by_bins:
            if self.path[-1] == MAX:
                return self._max
            percent = BY_PERCENTILE[self.path[-1]]
            value = histogram.percentiles(self.bins, (percent,)).get(percent)
            return value if value is None or self._max is None else min(value, self._max)
        return self._sum / self._weight if self._weight else None

    def _add_reading(self, value: float | None) -> float | None:
        join = self._row().join
        if value is not None and join:
            self._sum = join((self._sum, value)) if self._weight else value
            self._weight = 1.0
        return value

    def _add_bins(self, latencies: Any) -> float | None:
        """Add the histogram of an object that has latencies (figures/figure.py)."""
        latencies = getattr(latencies, "device", latencies)
        if not latencies.bins:
            return None
        self.bins = histogram.merge((self.bins, latencies.bins))
        self._max = max(self._max or 0, latencies.max_ns or 0) or None
        name = self.path[-1]
        value: float | None = latencies.max_ns if name == MAX else latencies.percentiles.get(name)
        return value
