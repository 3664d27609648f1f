"""The charts of a page of many hosts: what fio did, and what the devices under it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from iopstui import format as units
from iopstui.model.sizes import MIB
from iopstui.report.drawing.svg import Curve, Times, chart, heat, linear, logarithmic
from iopstui.report.fleet.report_data import KERNEL, FleetHeat, FleetReportData, SecondRow
from iopstui.report.folding.heat import HEAT_ROWS_PER_DECADE

READS, WRITES, QUEUE = (figure.name for figure in KERNEL)
CHARTED_PERCENTILES = (("p99.9", "p999"), ("p99", "p99"), ("p50", "p50"))
Figures = Mapping[str, float | None]


def charts(data: FleetReportData) -> list[str]:
    """Charts with values; "" if there is none."""
    if not data.seconds:
        return []
    times = Times(0.0, max(data.length_s, data.interval_s))
    return [
        *_of_fio(data, times),
        *_of_kernels(data, times),
        *_hosts(data, times),
        _heat("Latency of every I/O of all hosts (stronger colour: more "
              "I/Os)", data, data.heat, times),
        _heat("Device latency from the probes (stronger colour: more requests)",
              data, data.device_heat, times),
    ]  # fmt: skip


def _curves(
    data: FleetReportData, series: Sequence[tuple[str, str]], of: Callable[[SecondRow], Figures]
) -> list[Curve]:
    """A curve for each name, in its style, of what a second has by that name."""
    middle = data.interval_s / 2
    return [
        Curve(name, style, [(row.t + middle, of(row).get(name)) for row in data.seconds])
        for name, style in series
    ]


def _values(curves: list[Curve]) -> list[float]:
    return [value for curve in curves for _, value in curve.points if value]


def _of_fio(data: FleetReportData, times: Times) -> Iterator[str]:
    curves = _curves(data, (("read", "fio"), ("write", "device")), lambda row: row.rates)
    rates = [curve for curve in curves if _values([curve])]
    yield chart("IOPS of all counted hosts", rates, linear(_values(rates)), units.number,
                times)  # fmt: skip
    ranks = _curves(data, CHARTED_PERCENTILES, lambda row: row.latencies)
    if _values(ranks):
        yield chart("Latency of all I/Os of all hosts (logarithmic)", ranks,
                    logarithmic(_values(ranks)), units.latency, times)  # fmt: skip
    moved = _curves(data, (("all", "fio"),),
                    lambda row: {"all": row.bw / MIB if row.bw is not None else None})  # fmt: skip
    yield chart("MiB/s", moved, linear(_values(moved)), units.number, times)


def _of_kernels(data: FleetReportData, times: Times) -> Iterator[str]:
    """As /proc/diskstats has it; nothing of hosts whose files are on no disk."""
    if all(row.kernel[READS] is None for row in data.seconds):
        return
    curves = _curves(data, ((READS, "fio"), (WRITES, "device")), lambda row: row.kernel)
    yield chart("Requests per second at the devices of all hosts (kernel)", curves,
                linear(_values(curves)), units.number, times)  # fmt: skip
    waiting = _curves(data, ((QUEUE, "device"),), lambda row: row.kernel)
    yield chart(f"Requests in flight at the devices of all hosts ({QUEUE})", waiting,
                linear(_values(waiting)), units.number, times)  # fmt: skip
    if any(row.util for row in data.seconds):
        busy = _curves(data, (("highest", "p999"), ("middle", "fio")), lambda row: row.util)
        top = 100.0 if max(_values(busy), default=0.0) <= 100 else None
        yield chart("util of the hosts' devices (percent): highest and median", busy,
                    linear(_values(busy), top), units.percent, times)  # fmt: skip


def _hosts(data: FleetReportData, times: Times) -> Iterator[str]:
    curves = _curves(data, (("hosts", "fio"),), lambda row: {"hosts": float(row.counted)})
    top = linear([float(row.expected) for row in data.seconds])
    yield chart("Counted hosts", curves, top, units.number, times)


def _heat(title: str, data: FleetReportData, fleet_heat: FleetHeat, times: Times) -> str:
    lows = [row for _, row in fleet_heat.cells]
    if not lows:
        return ""
    covered = Times(0.0, fleet_heat.columns * fleet_heat.width * data.interval_s)
    return heat(
        title, fleet_heat.cells, (min(lows), max(lows)), fleet_heat.columns, HEAT_ROWS_PER_DECADE,
        units.latency, Times(0.0, max(times.end, covered.end)), covered=covered,
    )  # fmt: skip
