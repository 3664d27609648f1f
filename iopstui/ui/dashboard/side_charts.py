"""The charts of IOPS and latency beside other content, such as the page of a lesson."""

from __future__ import annotations

from collections.abc import Callable

from textual import events

from iopstui import format as f
from iopstui.ui.dashboard.screen import chart_specs
from iopstui.ui.draw.canvas import Canvas
from iopstui.ui.draw.charts.chart import Chart, TimeWindow
from iopstui.ui.draw.layout import Box
from iopstui.ui.draw.style import DIM, Charset
from iopstui.ui.state.live import LiveState

NO_FIO = "measured by fio while a job runs"


class SideCharts(Canvas):
    """Two charts, one below the other, of the state that ``state`` returns."""

    def __init__(self, state: Callable[[], LiveState], charset: Charset) -> None:
        super().__init__()
        self._state = state
        self._rates, self._latency = (
            Chart(spec, charset) for spec in chart_specs(charset, "device")
        )
        self._window = TimeWindow()
        for chart in (self._rates, self._latency):
            self.add(chart.widgets())

    def on_resize(self, event: events.Resize) -> None:
        width, height = self.size
        upper = height // 2
        self.add(self._rates.place(Box(0, 0, width, upper), framed=True))
        self.add(self._latency.place(Box(0, upper, width, height - upper), framed=True))
        self.paint()

    def paint(self) -> None:
        state, charts = self._state(), (self._rates, self._latency)
        if not self.display or not all(chart.shown for chart in charts):
            return
        columns = min(chart.columns for chart in charts)
        self._window.follow(state.history.end or 0.0, columns, 1.0)
        fio, frame = state.fio_now, state.frame
        disk = frame.combined(state.devices) if frame is not None else None
        rates = [f.number(disk.ios_s) if disk else "", f.number(fio.total.iops) if fio else ""]
        self._rates.paint(state.history, self._window, rates, ())
        percentiles = fio.total.percentiles if fio else {}
        names = ("p99.9", "p99", "p50")
        latencies = [
            f.latency(percentiles[name], "") if name in percentiles else "" for name in names
        ]
        note = [] if fio else [(NO_FIO, DIM)]
        self._latency.paint(state.history, self._window, latencies, note)
