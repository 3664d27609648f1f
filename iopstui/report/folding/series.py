"""Values per second for the charts and tables of a report."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from math import nan

from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.waits import Waits

QUEUE = DiskRates.aqu_sz.name
SERIES = ("t", "seconds", "fio", "device", "p50", "p99", "p99.9", QUEUE, "busy", "busiest",
          "job_cpu", "mean", "bw")  # fmt: skip
WAIT_CPU, WAIT_ABOVE, WAIT_UNKNOWN = "wait.cpu", "wait.above", "wait.unknown"
WAIT_CACHE, WAIT_UNSENT = "wait.cache", "wait.unsent"
WAIT_LAYERS = "wait.layers."
MAX_POINTS = 500
GAP_FACTOR = 0.5
"""Intervals: more time than that without a measurement breaks a line."""

Series = dict[str, "array[float]"]
"""By the names of SERIES; "t" is where an interval ends, "seconds" how long it was. Behind them the
I/Os in flight by the places where they wait (model/metrics/waits.py), from the top down."""


def empty(layers: Sequence[str] = ()) -> Series:
    """Nothing measured yet. ``layers`` are the devices that may hold I/Os."""
    return {name: array("d") for name in (*SERIES, *wait_names(layers))}


def wait_names(layers: Sequence[str]) -> tuple[str, ...]:
    """The names of the places."""
    in_layers = (WAIT_LAYERS + name for name in layers)
    return (WAIT_CPU, WAIT_ABOVE, WAIT_CACHE, WAIT_UNSENT, *in_layers, WAIT_UNKNOWN)


def wait_values(waits: Waits | None, layers: Sequence[str]) -> tuple[float | None, ...]:
    """A value for each of ``wait_names``."""
    if waits is None:
        return (None,) * len(wait_names(layers))
    above = (waits.cpu, waits.above, waits.cache, waits.unsent)
    return (*above, *map(waits.layers.get, layers), waits.unknown)


def append(
    series: Series, interval_s: float, t: float, seconds: float, *more: float | None
) -> None:
    """Append a value for each of SERIES and of the places; ``None`` is one that was not measured.
    Places may be left out."""
    _gap(series, interval_s, t - seconds)
    values = (t, seconds, *more)
    for column, value in zip_longest(series.values(), values):
        column.append(nan if value is None else value)


def extend(series: Series, interval_s: float, later: Series) -> None:
    """The intervals that follow."""
    if later["t"]:
        _gap(series, interval_s, later["t"][0] - later["seconds"][0])
    for name, column in series.items():
        column.extend(later[name])


def _gap(series: Series, interval_s: float, begin: float) -> None:
    """Gap before ``begin`` without measurements, between two runs of an experiment: lines break."""
    times = series["t"]
    if times and begin - times[-1] > GAP_FACTOR * interval_s:
        for column in series.values():
            column.append(nan)
        times[-1] = begin


def points(
    series: Mapping[str, array[float]], name: str, top: bool = False
) -> list[tuple[float, float | None]]:
    """A series as (second, value), at most ``MAX_POINTS``: beyond that the mean of neighbours,
    or the highest of them. ``None`` is a gap."""
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
