"""The charts of a report's page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from iopstui import format as units
from iopstui.events import PointFinished
from iopstui.features.reports.experiment import Experiment
from iopstui.features.reports.report_data import ReportData
from iopstui.features.reports.run import Run
from iopstui.features.reports.series import (
    QUEUE,
    WAIT_ABOVE,
    WAIT_CACHE,
    WAIT_CPU,
    WAIT_LAYERS,
    WAIT_UNKNOWN,
    WAIT_UNSENT,
    points,
)
from iopstui.model.experiment.load_curve import LoadCurve
from iopstui.model.experiment.plan import variant_letter
from iopstui.model.experiment.ramp import LOAD_OPTIONS
from iopstui.model.metrics.waits import CACHE, UNSENT
from iopstui.output.page.svg import (
    HEAT_COLUMNS,
    HEAT_ROWS_PER_DECADE,
    LATENCIES,
    MAX_CURVES,
    STYLES,
    Curve,
    Scale,
    Times,
    XYCurve,
    chart,
    heat,
    linear,
    logarithmic,
    places,
    scaled,
    stacked,
    xy_chart,
)
from iopstui.text import printable

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
    """The scales that all charts of a kind share, so that recordings can be compared. ``times`` is
    the common time axis; ``None`` if one recording is so much longer that the others would only be
    dots."""

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
    """The time span of a report, in seconds from its origin (``origin_t``), at which the charts of
    several reports are aligned."""
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
    """The charts of a page that have something to show."""
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
        chart(_latency_title(data), _latencies(data), scales.latency, units.latency, times, marks),
    ]  # fmt: skip


def _device(data: ReportData) -> str:
    return data.header.target.name if data.header.target.devices_below else "device"


def _latency_title(data: ReportData) -> str:
    bins_of = data.runs[0].bins_of if data.runs else "clat"
    return f"Latency of all I/Os (logarithmic): fio's {bins_of}"


def _latencies(data: ReportData) -> list[Curve]:
    return [Curve(name, style, _points(data, name, top=name != "p50")) for name, style in LATENCIES]


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
    """The I/Os in flight at all places together, for each second."""
    names = [name for name in data.series if name.startswith("wait.")]
    columns = [points(data.series, name) for name in names]
    return [sum(value or 0.0 for _, value in second) for second in zip(*columns, strict=True)]


def _waits(data: ReportData, scales: Scales, times: Times, marks: Marks) -> list[str]:
    """The I/Os in flight by the place where they wait, the topmost first."""
    curves = _wait_curves(data)
    title = "Where the I/Os wait (I/Os in flight)"
    return [stacked(title, curves, scales.waits, units.number, times, marks)] if curves else []


def _wait_curves(data: ReportData) -> list[Curve]:
    """A curve for each place where an I/O ever was. If there are many devices, only the fullest
    have a curve."""
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
    """Charts over time from fio's documents or logs; empty if these contain no times."""
    latencies, title = _latencies(data), _latency_title(data)
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
    """A histogram of the latencies in a run by direction, as shares of all I/Os."""
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


PERCENTILES = ("p50", "p99", "p99.9")


def experiment_charts(data: ReportData, experiment: Experiment) -> list[str]:
    """The experiment's charts that have something to show."""
    drawn = (
        _compare_charts(data, experiment) if experiment.plan.variants else _sweep_charts(experiment)
    )
    return [f"<figure>{chart}</figure>" for chart in drawn if chart]


def _sweep_charts(experiment: Experiment) -> list[str]:
    curves, axis = experiment.curves, experiment.axis
    if not curves:
        return []
    values = sorted(axis.values, key=int) if axis.name in LOAD_OPTIONS else list(axis.values)
    drawn = curves[:MAX_CURVES]
    more = f" (the first {len(drawn)} of {len(curves)} curves)" if len(curves) > len(drawn) else ""
    name = printable(axis.name)
    rates = [
        _rates(curve, values, style) for curve, style in zip(drawn, STYLES, strict=False)
    ]  # fmt: skip
    most = [y for curve in rates for y in curve.heights()]
    charts = [
        xy_chart(
            f"IOPS against {name}{more}", places(values), linear(most), units.number, rates,
        ),
    ]  # fmt: skip
    with_latency = [curve for curve in drawn if all(e.point.latency_ns for e in curve.points)]
    if axis.name in LOAD_OPTIONS and with_latency:
        charts.append(_hockey_stick(with_latency, name, linear(most), more))
    return charts


def _rates(curve: LoadCurve[PointFinished], values: Sequence[str], style: str) -> XYCurve:
    points = [
        (float(values.index(dict(event.settings)[curve.axis.name])), event.point.iops)
        for event in curve.points
    ]
    # a knee exists only over load, because other values have no such order
    knee = curve.knee if curve.axis.name in LOAD_OPTIONS else None
    bars = [event.point.iops_within for event in curve.points]
    return XYCurve(
        _label(curve), style, points, highlighted=knee.index if knee else None, bars=bars
    )


def _hockey_stick(
    curves: Sequence[LoadCurve[PointFinished]], name: str, rates: Scale, more: str
) -> str:
    lines = []
    for curve, style in zip(curves, STYLES, strict=False):
        knee, events = curve.knee, curve.points
        points = [(event.point.iops, event.point.latency_ns or 0.0) for event in events]
        beside = [f"{dict(event.settings)[curve.axis.name]}" for event in events]
        flag = knee.index if knee else None
        label = f"{_label(curve)} mean".strip()
        bars = [event.point.latency_within for event in events]
        lines.append(XYCurve(label, style, points, beside, flag, bars=bars))
        tails = [(event.point.iops, event.point.p99_ns) for event in events]
        if len(curves) == 1 and all(tail for _, tail in tails):
            # only for a single curve: the tails of several would be a tangle
            lines.append(XYCurve("p99", "p99", [(x, y or 0.0) for x, y in tails]))
    latencies = [y for line in lines for y in line.heights()]
    return xy_chart(
        f"Latency against IOPS (logarithmic); numbers: {name}{more}",
        scaled(rates, units.number), logarithmic(latencies), units.latency, lines,
    )  # fmt: skip


def _label(curve: LoadCurve[PointFinished]) -> str:
    return " ".join(f"{name}={printable(value)}" for name, value in curve.fixed)


def _compare_charts(data: ReportData, experiment: Experiment) -> list[str]:
    """Charts of a comparison: all runs of all variants by second, then by percentile."""
    seconds, latencies = [], []
    labelled: set[int] = set()
    runs = {experiment.steps[run.step]: run for run in data.runs if run.step in experiment.steps}
    for event in experiment.ordered:
        variant = event.variant
        style = STYLES[variant % len(STYLES)]
        name = f"{variant_letter(variant)}: {experiment.plan.variants[variant].label}"
        first = variant not in labelled
        labelled.add(variant)
        line = _over_time(data, runs.get(event.index))
        seconds.append(XYCurve(name, style, line, dots=False, labelled=first))
        point = event.point
        points = [(n, ns) for n, ns in enumerate((point.p50_ns, point.p99_ns, point.p999_ns)) if ns]
        latencies.append(XYCurve(name, style, points, labelled=first))
    length = experiment.plan.settle + experiment.plan.measure
    rates = [y for curve in seconds for _, y in curve.points]
    tails = [y for curve in latencies for _, y in curve.points]
    return [
        xy_chart(
            "IOPS of every run over time", scaled(linear([length]), lambda s: f"{s:g} s"),
            linear(rates), units.number, seconds, [(experiment.plan.settle, "measurement begins")],
        ),
        xy_chart(
            "Latency percentiles of every run (logarithmic)", places(PERCENTILES),
            logarithmic(tails), units.latency, latencies,
        ),
    ]  # fmt: skip


def _over_time(data: ReportData, run: Run | None) -> list[tuple[float, float]]:
    if run is None or run.begin is None:
        return []
    begin, end = run.begin, run.end
    return [
        (t - begin, value)
        for t, value in points(data.series, "fio")
        if value is not None and begin < t <= end + 1e-6
    ]
