"""The charts of a sweep or a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui import format as units
from iopstui.events import PointFinished
from iopstui.features.reports.drawing.svg import Scale, linear, logarithmic
from iopstui.features.reports.drawing.xy import (
    MAX_CURVES,
    STYLES,
    XYCurve,
    places,
    scaled,
    xy_chart,
)
from iopstui.features.reports.experiment import Experiment
from iopstui.features.reports.folding.run import Run
from iopstui.features.reports.folding.series import points
from iopstui.features.reports.report_data import ReportData
from iopstui.model.experiment.load_curve import LOAD_OPTIONS, LoadCurve
from iopstui.model.experiment.plan import variant_letter
from iopstui.text import printable

PERCENTILES = ("p50", "p99", "p99.9")


def experiment_charts(data: ReportData, experiment: Experiment) -> list[str]:
    """Return the experiment's charts that have something to show."""
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
    # a knee is one of load: along anything else the points are in no such order
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
            # of several curves the tails would be a tangle
            lines.append(XYCurve("p99", "p99", [(x, y or 0.0) for x, y in tails]))
    latencies = [y for line in lines for y in line.heights()]
    return xy_chart(
        f"Latency against IOPS (logarithmic); numbers: {name}{more}",
        scaled(rates, units.number), logarithmic(latencies), units.latency, lines,
    )  # fmt: skip


def _label(curve: LoadCurve[PointFinished]) -> str:
    return " ".join(f"{name}={printable(value)}" for name, value in curve.fixed)


def _compare_charts(data: ReportData, experiment: Experiment) -> list[str]:
    """Every run of every variant over each other: the seconds, then the percentiles."""
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
