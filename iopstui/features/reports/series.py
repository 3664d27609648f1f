"""Values over time, for the charts and tables of a report."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan

from iopstui.model.figures.disk import DiskRates
from iopstui.model.histogram import BinsTotal
from iopstui.model.metrics.cpus import busy_of
from iopstui.model.metrics.frame import Frame
from iopstui.output.page.svg import HEAT_COLUMNS, heat_rows

QUEUE = DiskRates.aqu_sz.name
SERIES = ("t", "seconds", "fio", "device", "p50", "p99", "p99.9", QUEUE, "busy", "busiest",
          "job_cpu", "mean", "bw")  # fmt: skip
WAIT = "wait."
WAIT_CPU, WAIT_ABOVE, WAIT_UNKNOWN = "wait.cpu", "wait.above", "wait.unknown"
WAIT_CACHE, WAIT_UNSENT = "wait.cache", "wait.unsent"
WAIT_LAYERS = "wait.layers."
MAX_POINTS = 500
GAP_FACTOR = 0.5
"""If nothing was measured for more than this number of intervals, the chart's line is broken."""

Values = dict[str, "float | None"]
Series = dict[str, "array[float]"]
"""Columns of values by the names in SERIES; "t" is an interval's end, "seconds" its length. After
them come the I/Os in flight by the places where they wait (model/metrics/waits.py), from the top
down."""


def empty(layers: Sequence[str] = ()) -> Series:
    """Empty series, for the beginning. ``layers`` are the devices in which I/Os may be."""
    in_layers = (WAIT_LAYERS + name for name in layers)
    places = (WAIT_CPU, WAIT_ABOVE, WAIT_CACHE, WAIT_UNSENT, *in_layers, WAIT_UNKNOWN)
    return {name: array("d") for name in (*SERIES, *places)}


def values_of(frame: Frame) -> Values:
    """The values of a frame, by the names of the series."""
    fio, disk, waits, busy = frame.fio, frame.total, frame.waits, busy_of(frame.cpus)
    iops, bw = frame.drawn
    values: Values = {
        "t": frame.t, "seconds": frame.seconds or (fio.seconds if fio else None) or 0.0,
        "fio": iops, "bw": bw, "busiest": max(busy, default=None),
        "busy": sum(busy) / len(busy) if busy else None,
    }  # fmt: skip
    if disk is not None:
        values |= {"device": disk.ios_s, QUEUE: disk.aqu_sz}
    if fio is not None:
        job = [value for value in (fio.usr_cpu, fio.sys_cpu) if value is not None]
        values |= {**fio.total.percentiles, "mean": fio.total.clat_ns}
        values["job_cpu"] = sum(job) if job else None
    if waits is not None:
        places = (WAIT_CPU, WAIT_ABOVE, WAIT_CACHE, WAIT_UNSENT, WAIT_UNKNOWN)
        values |= {name: getattr(waits, name.removeprefix(WAIT)) for name in places}
        values |= {WAIT_LAYERS + name: ios for name, ios in waits.layers.items()}
    return values


def append(series: Series, interval_s: float, values: Values) -> None:
    """Append the values of an interval. ``values`` includes its end ``t`` and its length
    ``seconds``."""
    _gap(series, interval_s, (values["t"] or 0.0) - (values["seconds"] or 0.0))
    for name, column in series.items():
        value = values.get(name)
        column.append(nan if value is None else value)


def extend(series: Series, interval_s: float, later: Series) -> None:
    if later["t"]:
        _gap(series, interval_s, later["t"][0] - later["seconds"][0])
    for name, column in series.items():
        column.extend(later[name])


def _gap(series: Series, interval_s: float, begin: float) -> None:
    """Add a gap before ``begin``, as between two runs of an experiment, which breaks the charts'
    lines."""
    times = series["t"]
    if times and begin - times[-1] > GAP_FACTOR * interval_s:
        for column in series.values():
            column.append(nan)
        times[-1] = begin


def mean(series: Mapping[str, array[float]], name: str) -> float | None:
    """The mean over the time in which the series was measured; ``None`` if it never was."""
    pairs = zip(series[name], series["seconds"], strict=True)
    known = [(value, length) for value, length in pairs if not math.isnan(value + length)]
    return _joined(known, False) if sum(length for _, length in known) else None


def points(
    series: Mapping[str, array[float]], name: str, top: bool = False
) -> list[tuple[float, float | None]]:
    """A series as pairs (second, value). If there are more than ``MAX_POINTS``, neighbours are
    replaced by their mean, or with ``top`` by their highest value. A value ``None`` is a gap."""
    times, lengths, values = (series[key] for key in ("t", "seconds", name))
    if len(times) <= MAX_POINTS:
        return [(t, None if math.isnan(v) else v) for t, v in zip(times, values, strict=True)]
    step = -(-len(times) // MAX_POINTS)
    points_ = []
    for first in range(0, len(times), step):
        part = slice(first, first + step)
        parts = [
            (value, length or 1e-9)
            for value, length in zip(values[part], lengths[part], strict=True)
            if not math.isnan(value)
        ]
        middle = (times[part][0] + times[part][-1]) / 2
        points_.append((middle, _joined(parts, top)))
    return points_


def _joined(values: Sequence[tuple[float, float]], top: bool) -> float | None:
    if not values:
        return None
    if top:
        return max(value for value, _ in values)
    return sum(value * weight for value, weight in values) / sum(weight for _, weight in values)


@dataclass
class Heat:
    """Counts of I/Os by time (columns) and latency (rows; ``HEAT_ROWS_PER_DECADE``)."""

    duration: float
    _cells: dict[tuple[int, int], int] = field(default_factory=dict)
    # the histograms of the present column are added up first: for a day, a column has some 700
    _now: int = 0
    _added: BinsTotal = field(default_factory=BinsTotal)

    def add(self, t: float, seconds: float, bins: Mapping[int, int]) -> None:
        """Add the histogram of the interval that ends at ``t`` to every column that it touches."""
        last = self._column(t)
        first = min(last, self._column(t - seconds) + 1)
        if first == last:
            if last != self._now:
                self._settle()
                self._now = last
            self._added.add(bins)
            return
        rows = heat_rows(bins)
        for column in range(first, last + 1):
            self._count(column, rows)

    def join(self, later: Heat) -> None:
        """Add the counts of another heat map with the same duration, whose intervals follow."""
        self._settle()
        for (column, row), count in later.cells.items():
            self._count(column, {row: count})

    def _settle(self) -> None:
        added, self._added = self._added, BinsTotal()
        self._count(self._now, heat_rows(added.bins))

    def _count(self, column: int, rows: Mapping[int, int]) -> None:
        for row, count in rows.items():
            place = column, row
            self._cells[place] = self._cells.get(place, 0) + count

    @property
    def cells(self) -> dict[tuple[int, int], int]:
        """The counts of I/Os by column and row."""
        self._settle()
        return self._cells

    def _column(self, t: float) -> int:
        return min(HEAT_COLUMNS - 1, max(0, int(HEAT_COLUMNS * t / self.duration)))

    @property
    def rows(self) -> tuple[int, int]:
        rows = [row for _, row in self.cells]
        return (min(rows), max(rows)) if rows else (0, 0)
