"""The charts of a report's page, all of a kind on the same scales."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from iopstui import format as units
from iopstui.features.reports.drawing.svg import (
    Curve,
    Scale,
    Times,
    chart,
    heat,
    linear,
    logarithmic,
    stacked,
)
from iopstui.features.reports.drawing.xy import XYCurve, scaled, xy_chart
from iopstui.features.reports.folding.heat import HEAT_COLUMNS, HEAT_ROWS_PER_DECADE
from iopstui.features.reports.folding.run import Run
from iopstui.features.reports.folding.series import (
    QUEUE,
    WAIT_ABOVE,
    WAIT_CACHE,
    WAIT_CPU,
    WAIT_LAYERS,
    WAIT_UNKNOWN,
    WAIT_UNSENT,
    points,
)
from iopstui.features.reports.report_data import ReportData
from iopstui.model.metrics.waits import CACHE, UNSENT

LATENCIES = (("p99.9", "p999"), ("p99", "p99"), ("p50", "p50"))
IOPS, BUSY = ("fio", "device"), ("busiest", "busy", "job_cpu")
OTHER_PLACES = {
    WAIT_CPU: ("CPU", "p999"), WAIT_ABOVE: ("above", "fio"), WAIT_UNKNOWN: ("unknown", "other"),
    WAIT_CACHE: (CACHE, "p99"), WAIT_UNSENT: (UNSENT, "other"),
}  # fmt: skip
DIRECTION_STYLES = {"read": "fio", "write": "device", "trim": "p50", "mixed": "sixth"}
FINE = 20
LAYER_STYLES = ("device", "p50", "sixth", "p99")
Points = list[tuple[float, float | None]]


class Scales:
    """The same scales for all charts of a kind, so that recordings can be compared. ``times`` is
    the axis that all share; ``None``: one is so much longer that the others would be dots."""

    def __init__(self, reports: Sequence[ReportData]) -> None:
        all_times = [own_times(data) for data in reports]
        covered = Times(min(t.begin for t in all_times), max(t.end for t in all_times))
        shortest = min(t.end - t.begin for t in all_times)
        self.times = covered if covered.end - covered.begin <= 2 * shortest else None
        rows = [data.heat.rows for data in reports if data.heat.cells] or [(0, 0)]
        self.rows = min(row[0] for row in rows), max(row[1] for row in rows)
        self.iops = linear(_values(reports, IOPS))
        latencies = _values(reports, [name for name, _ in LATENCIES])
        means = _values([data for data in reports if data.foreign], ("mean",))
        self.latency = logarithmic([*latencies, *means])
        self.speed = linear(_values([data for data in reports if data.foreign], ("bw",)))
        self.queue = linear(_values(reports, (QUEUE,)))
        self.waits = linear([high for data in reports for high in _in_flight(data)])
        self.cpu = linear(_values(reports, BUSY))
        self.cpu = Scale(0.0, 100.0) if self.cpu.high <= 100 else self.cpu


def own_times(data: ReportData) -> Times:
    """Return the times from a report's beginning to its end, as charts beside others count."""
    return Times(-data.origin_t, data.duration - data.origin_t)


def _values(reports: Sequence[ReportData], names: Iterable[str]) -> list[float]:
    names = list(names)
    return [
        value
        for data in reports
        for name in names
        for _, value in points(data.series, name, top=name != "p50")
        if value is not None
    ]


def charts(data: ReportData, scales: Scales) -> list[str]:
    """The figures of a page, those that have something to show."""
    times = scales.times or own_times(data)
    marks = [(mark.t - data.origin_t, mark.text) for mark in data.marks]
    marks += [(stall.start - data.origin_t, stall.flag) for stall in data.stalls]
    marks.sort()
    drawn = [
        *(_foreign(data, scales, times) if data.foreign else _first(data, scales, times, marks)),
        heat("Latency of every I/O (stronger colour: more I/Os)",
             data.heat.cells, scales.rows, HEAT_COLUMNS, HEAT_ROWS_PER_DECADE, units.latency,
             times, marks, own_times(data)),
        *([_histogram(run) for run in data.runs] if data.foreign
          else _kernel(data, scales, times, marks)),
    ]  # fmt: skip
    return [f"<figure>{chart}</figure>" for chart in drawn if chart]


def _points(data: ReportData, name: str, top: bool = False) -> Points:
    return [(t - data.origin_t, value) for t, value in points(data.series, name, top)]


Marks = Sequence[tuple[float, str]]


def _first(data: ReportData, scales: Scales, times: Times, marks: Marks) -> list[str]:
    device = _device(data)
    return [
        chart("IOPS: fio and device",
              [Curve("fio", "fio", _points(data, "fio")),
               Curve(device, "device", _points(data, "device"))],
              scales.iops, units.number, times, marks),
        chart("Latency of all I/Os (logarithmic): " + _bins_of(data),
              [Curve(name, style, _points(data, name, top=name != "p50"))
               for name, style in LATENCIES],
              scales.latency, units.latency, times, marks),
    ]  # fmt: skip


def _device(data: ReportData) -> str:
    return data.header.target.name if data.header.target.devices_below else "device"


def _bins_of(data: ReportData) -> str:
    return "fio's " + (data.runs[0].bins_of if data.runs else "clat")


def _kernel(data: ReportData, scales: Scales, times: Times, marks: Marks) -> list[str]:
    return [
        chart("CPU load and fio's CPU use (percent of one CPU)",
              [Curve("busiest", "p999", _points(data, "busiest", top=True)),
               Curve("all, mean", "fio", _points(data, "busy")),
               Curve("fio jobs", "p50", _points(data, "job_cpu"))],
              scales.cpu, units.percent, times, marks),
        chart(f"Requests in flight at the device ({QUEUE})",
              [Curve(_device(data), "device", _points(data, QUEUE))],
              scales.queue, units.number, times, marks),
        *_waits(data, scales, times, marks),
    ]  # fmt: skip


def _in_flight(data: ReportData) -> list[float]:
    """I/Os in flight of all places together, second by second."""
    names = [name for name in data.series if name.startswith("wait.")]
    columns = [points(data.series, name) for name in names]
    return [sum(value or 0.0 for _, value in second) for second in zip(*columns, strict=True)]


def _waits(data: ReportData, scales: Scales, times: Times, marks: Marks) -> list[str]:
    """The I/Os in flight by the place where they wait, the top one first."""
    curves = _wait_curves(data)
    title = "Where the I/Os wait (I/Os in flight)"
    return [stacked(title, curves, scales.waits, units.number, times, marks)] if curves else []


def _wait_curves(data: ReportData) -> list[Curve]:
    """Return a curve for each place that ever held an I/O; of many devices the fullest by
    themselves."""
    waits_by_name = {
        name: _points(data, name)
        for name in data.series
        if name.startswith("wait.") and any(value > 0 for value in data.series[name])
    }
    layers = [name for name in waits_by_name if name.startswith(WAIT_LAYERS)]
    fullest = sorted(
        layers, key=lambda name: -sum(value or 0.0 for _, value in waits_by_name[name])
    )
    others = fullest[len(LAYER_STYLES) - 1 :] if len(layers) > len(LAYER_STYLES) else []
    styles = iter(LAYER_STYLES)
    curves = []
    for name, values in waits_by_name.items():
        if name in OTHER_PLACES:
            curves.append(Curve(*OTHER_PLACES[name], values))
        elif name not in others:
            curves.append(Curve(name.removeprefix(WAIT_LAYERS), next(styles), values))
    if others:
        others_sum = [
            (second[0][0], sum(value or 0.0 for _, value in second))
            for second in zip(*(waits_by_name[name] for name in others), strict=True)
        ]
        place = len(curves) - (WAIT_UNKNOWN in waits_by_name)
        curves.insert(place, Curve(f"{len(others)} others", next(styles), others_sum))
    return curves


def _foreign(data: ReportData, scales: Scales, times: Times) -> list[str]:
    """Charts of fio's documents or logs over time; empty if they have none."""
    latencies = [
        Curve(name, style, _points(data, name, top=name != "p50")) for name, style in LATENCIES
    ]
    title = "Latency of all I/Os (logarithmic): " + _bins_of(data)
    if not _values([data], [name for name, _ in LATENCIES]):
        latencies = [Curve("mean", "fio", _points(data, "mean"))]
        title = "Mean latency (logarithmic); averages give no percentiles"
    kinds = [
        ("IOPS", [Curve("fio", "fio", _points(data, "fio"))], scales.iops, units.number),
        ("MiB/s", [Curve("fio", "fio", _points(data, "bw"))], scales.speed, units.mib),
        (title, latencies, scales.latency, units.latency),
    ]
    return [
        chart(name, curves, scale, unit, times)
        for name, curves, scale, unit in kinds
        if any(value is not None for curve in curves for _, value in curve.points)
    ]


def _histogram(run: Run) -> str:
    """The latencies of all I/Os of a run by direction, as shares of it."""
    total = sum(run.all_bins.values())
    curves = []
    for name, bins in run.bins.items():
        shares: dict[int, float] = {}
        for key, count in bins.items():
            place = math.floor(math.log10(max(key, 1)) * FINE)
            shares[place] = shares.get(place, 0.0) + 100 * count / max(total, 1)
        places = range(min(shares, default=0) - 1, max(shares, default=-2) + 2)
        dots = [(10 ** ((place + 0.5) / FINE), shares.get(place, 0.0)) for place in places]
        curves.append(XYCurve(name, DIRECTION_STYLES.get(name, "fio"), dots, dots=False))
    keys = [x for curve in curves for x, _ in curve.points]
    if not keys:
        return ""
    axis = scaled(logarithmic(keys), units.latency)
    scale = linear([y for curve in curves for _, y in curve.points])
    title = f"Histogram of {run.bins_of}: percent of all I/Os, 20 bins per factor of ten"
    return xy_chart(title, axis, scale, units.percent, curves)
